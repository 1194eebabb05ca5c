"""Names of slots, heads and neurons: complete, true to the weights, and kept in model folders."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from compiler.build import Machine, build_machine
from compiler.errors import TransputerError
from compiler.graph import Graph, Lookup
from compiler.machine_base_build import build_base_machine
from compiler.machine_words import WORDS
from compiler.names import Names, erased_by, names_of
from example_models import lookup_model, random_model
from executor.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from executor.loading import checkpoint_of

MACHINES = {"default": build_machine, "base": build_base_machine}


@pytest.fixture(params=MACHINES)
def machine(request: pytest.FixtureRequest) -> Machine:
    return MACHINES[str(request.param)]()


def own_names(machine: Machine) -> Names:
    return names_of(machine.graph, machine.plan, machine.placed)


def test_every_head_and_quantity_is_described(machine: Machine) -> None:
    named = set(machine.graph.quantities)
    named |= {name for name, node in machine.graph.nodes.items() if isinstance(node, Lookup)}
    assert named <= set(machine.graph.about)


def test_no_description_is_of_nothing() -> None:
    described = [set(build().graph.about) for build in MACHINES.values()]
    assert set(WORDS) == set.union(*described)


def test_graphs_refuse_to_describe_what_they_do_not_have() -> None:
    with pytest.raises(ValueError, match="nothing called 'verb'"):
        Graph().describe({"verb": "the last verb"})


def test_a_slot_that_changes_has_a_name_before_or_after(machine: Machine) -> None:
    names, arrays = own_names(machine), machine.arrays
    for layer in range(machine.plan.shape.n_layers):
        for half, array in enumerate((f"attn.{layer}.out_proj.weight", f"down.{layer}.weight")):
            time = 2 * layer + half
            for slot in np.flatnonzero(arrays[array].any(axis=1)):
                assert names.slots[time][slot] or names.slots[time + 1][slot]


def test_heads_and_neurons_with_a_name_are_those_with_weights(machine: Machine) -> None:
    names, shape = own_names(machine), machine.plan.shape
    for layer in range(shape.n_layers):
        outputs = machine.arrays[f"attn.{layer}.out_proj.weight"]
        heads = outputs.reshape(shape.d_model, shape.n_heads, 2).any(axis=(0, 2))
        assert [bool(name) for name in names.heads[layer]] == heads.tolist()
        neurons = machine.arrays[f"down.{layer}.weight"].any(axis=0)
        assert [bool(name) for name in names.neurons[layer]] == neurons.tolist()


def test_an_erased_quantity_is_named_before_and_not_after(machine: Machine) -> None:
    names = own_names(machine)
    rows = [row for pair in zip(names.heads, names.neurons, strict=True) for row in pair]
    erased = [(time, old) for time, row in enumerate(rows) for n in row for old in erased_by(n)]
    assert erased
    for time, old in erased:
        assert old in names.slots[time]
        assert old not in names.slots[time + 1]


def test_names_come_back_from_json(machine: Machine) -> None:
    names = own_names(machine)
    assert Names.from_json(names.to_json()) == names


def test_a_model_folder_keeps_the_names(machine: Machine, tmp_path: Path) -> None:
    checkpoint = checkpoint_of(machine)
    assert checkpoint.names is not None
    folder = save_checkpoint(checkpoint, tmp_path / "model")
    assert load_checkpoint(folder).names == checkpoint.names


def named_lookup_model() -> Checkpoint:
    model = lookup_model()
    shape = model.config
    rows = lambda length, width: (("a",) * width,) * length  # noqa: E731
    return replace(
        model,
        names=Names(
            rows(2 * shape.n_layers + 1, shape.d_model),
            rows(shape.n_layers, shape.n_heads),
            rows(shape.n_layers, shape.d_ffn),
        ),
    )


def test_names_are_optional_and_never_those_of_an_earlier_model(tmp_path: Path) -> None:
    folder = save_checkpoint(named_lookup_model(), tmp_path / "model")
    (folder / "names.json").rename(tmp_path / "names.json")
    assert load_checkpoint(folder).names is None
    (tmp_path / "names.json").rename(folder / "names.json")
    save_checkpoint(random_model(3), folder)
    assert not (folder / "names.json").exists()


def test_names_can_be_added_to_a_model_without_any(tmp_path: Path) -> None:
    folder = save_checkpoint(lookup_model(), tmp_path / "model")
    names = named_lookup_model().names
    assert names is not None
    (folder / "names.json").write_text(names.to_json())
    assert load_checkpoint(folder).names == names


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda data: data | {"version": 2}, "version 2"),
        (lambda data: data | {"format": "names"}, "not the names"),
        (lambda data: data | {"heads": [["a"]]}, "another shape"),
        (lambda data: data | {"slots": "a"}, "slots is not a list"),
        (lambda data: data | {"neurons": [[1]]}, "neurons is not a text"),
        (lambda data: data | {"about": {"a": 1}}, "about"),
        (lambda data: 7, "not the names"),
    ],
)
def test_wrong_names_are_refused_by_name(tmp_path: Path, damage, message: str) -> None:  # type: ignore[no-untyped-def]
    folder = save_checkpoint(lookup_model(), tmp_path / "model")
    names = named_lookup_model().names
    assert names is not None
    (folder / "names.json").write_text(json.dumps(damage(json.loads(names.to_json()))))
    with pytest.raises(TransputerError, match=message):
        load_checkpoint(folder)


def test_names_of_another_build_are_refused(tmp_path: Path) -> None:
    folder = save_checkpoint(named_lookup_model(), tmp_path / "model")
    path = folder / "names.json"
    path.write_text(path.read_text().replace('"a"', '"b"'))
    with pytest.raises(TransputerError, match=r"names\.json: damaged"):
        load_checkpoint(folder)

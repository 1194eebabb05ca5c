"""Broken machines are noticed: a changed table token, weight or plan entry changes the trace."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from compiler import rom
from compiler.build import build_machine, make_machine
from compiler.schedule import Plan, lives
from executor.checkpoint import Checkpoint
from executor.decode import decode, make_engine
from executor.loading import build_checkpoint
from executor.oracle import trace_tokens
from probe import INPUT, probe, prompt_ids

LIMIT = 40_000


@pytest.fixture(scope="module")
def model() -> Checkpoint:
    return build_checkpoint()


@pytest.fixture(scope="module")
def expected(model: Checkpoint) -> list[int]:
    return model.encode(trace_tokens(probe(), stdin=INPUT, limit=LIMIT))


def differs(model: Checkpoint, expected: list[int], head: tuple[int, ...] | None = None) -> bool:
    """Whether the model's trace of the probe is not the expected one, or cannot be made."""
    prompt = prompt_ids(replace(model, rom=head or model.rom), probe(), (), INPUT)
    try:
        engine = make_engine("hull", model)
        made = decode(engine, prompt, model.config.stop_tokens, len(expected))
        return any(token != wanted for token, wanted in zip(made, expected, strict=True))
    except (ValueError, OverflowError):  # keys that are no numbers any more, or a short trace
        return True


def test_the_whole_machine_writes_the_expected_trace(
    model: Checkpoint, expected: list[int]
) -> None:
    assert len(expected) > 5000
    assert not differs(model, expected)


COUNTS = [pytest.param(10, id="few"), pytest.param(120, id="many", marks=pytest.mark.long)]
"""How many mutations to try. Nine of ten must be noticed: some change nothing, such as a row of the
tables that fetches zero bytes from elsewhere, or a query of a head that only reads itself."""


@pytest.mark.parametrize("count", COUNTS)
def test_changed_table_tokens_are_noticed(
    model: Checkpoint, expected: list[int], count: int
) -> None:
    """Any row of the shift and division tables, exchanged for another row."""
    rng = random.Random(36)
    noticed = 0
    for _ in range(count):
        head = list(model.rom)
        at = rng.randrange(rom.AND_ENTRIES, rom.ROM_TOKENS)
        others = [token for token in model.rom[rom.AND_ENTRIES :] if token != head[at]]
        head[at] = rng.choice(others)
        noticed += differs(model, expected, tuple(head))
    assert noticed >= 0.9 * count


def nonzero_weights(model: Checkpoint) -> list[tuple[str, tuple[int, ...]]]:
    """Every entry of the layers that is not zero, but for those that only erase slots.

    What an erasure leaves behind does not always matter; that erasures stand where they must is
    a rule of the plan, which has its own tests.
    """
    return [
        (name, tuple(index))
        for name, array in sorted(model.weights.items())
        if name not in ("tok.weight", "head.weight")
        for index in np.argwhere(array).tolist()
        if not node_of(name, index).startswith("erase")
    ]


def node_of(name: str, index: list[int]) -> str:
    """The head or neuron to which a weight belongs."""
    kind, layer, *part = name.split(".")
    names = build_machine().placed.names[2 * int(layer) + (kind != "attn")]
    if kind != "attn":
        return names[index[kind == "down"]]
    row = index[0] % 36 if part == ["in_proj_weight"] else index[1]
    return names[row // 2]


@pytest.mark.parametrize("count", COUNTS)
def test_changed_weights_are_noticed(model: Checkpoint, expected: list[int], count: int) -> None:
    """Any nonzero weight of any layer, with its sign turned."""
    rng = random.Random(18)
    entries = nonzero_weights(model)
    noticed = 0
    for _ in range(count):
        name, index = rng.choice(entries)
        weights = {n: array.copy() for n, array in model.weights.items()}
        weights[name][index] *= -1
        noticed += differs(replace(model, weights=weights), expected)
    assert noticed >= 0.9 * count


def test_a_changed_plan_entry_is_noticed() -> None:
    """Two living quantities in one slot, and a head before what it reads: no weights are made."""
    machine = build_machine()
    life = lives(machine.graph, machine.plan.times, machine.plan.shape.end)
    alive = [name for name, one in life.items() if one.birth < 6 <= one.last_read]
    rng = random.Random(7)
    for _ in range(20):
        a, b = rng.sample(alive, 2)
        slots = {**machine.plan.slots, a: machine.plan.slots[b]}
        with pytest.raises(ValueError, match="invalid plan"):
            make(replace(machine.plan, slots=slots))
    with pytest.raises(ValueError, match="invalid plan"):
        make(replace(machine.plan, times={**machine.plan.times, "opcode": 2}))


def make(plan: Plan) -> None:
    machine = build_machine()
    make_machine(machine.graph, plan)


PERMUTED_TOKENS = {"hull": 100_000, "standard": 300, "torch": 100}


@pytest.mark.parametrize("engine_name", PERMUTED_TOKENS)
def test_a_permuted_vocabulary_changes_nothing(expected: list[int], engine_name: str) -> None:
    """Engines know no token: new ids, the same spellings."""
    model = build_checkpoint("softmax" if engine_name == "torch" else "hard")
    order = np.random.default_rng(11).permutation(len(model.vocabulary))
    new_id = np.argsort(order)
    weights = dict(model.weights)
    for name in ("tok.weight", "head.weight"):
        weights[name] = weights[name][order]
    permuted = replace(
        model,
        config=replace(
            model.config, stop_tokens=tuple(int(new_id[t]) for t in model.config.stop_tokens)
        ),
        vocabulary=tuple(model.vocabulary[token] for token in order),
        weights=weights,
        rom=tuple(int(new_id[token]) for token in model.rom),
    )
    wanted = [int(new_id[token]) for token in expected[: PERMUTED_TOKENS[engine_name]]]
    prompt = prompt_ids(permuted, probe(), (), INPUT)
    engine = make_engine(engine_name, permuted)
    assert list(decode(engine, prompt, permuted.config.stop_tokens, len(wanted))) == wanted

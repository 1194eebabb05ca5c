"""Model folders: what is written comes back; damaged or foreign folders are told in one line."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compiler.errors import TransputerError, UsageError
from example_models import lookup_model, random_model
from executor.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from executor.config import ModelConfig


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return save_checkpoint(random_model(3), tmp_path / "model")


def edit_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_saved_model_comes_back_whole(tmp_path: Path) -> None:
    before = random_model(3)
    before = Checkpoint(before.config, before.vocabulary, before.weights, rom=(4, 2, 2))
    after = load_checkpoint(save_checkpoint(before, tmp_path / "new" / "model"))
    assert after.config == before.config
    assert (after.vocabulary, after.rom) == (before.vocabulary, (4, 2, 2))
    assert after.weights.keys() == before.weights.keys()
    assert all(np.array_equal(after.weights[name], before.weights[name]) for name in after.weights)


def test_saving_again_replaces_the_model(folder: Path) -> None:
    save_checkpoint(lookup_model(), folder)
    assert load_checkpoint(folder).config.vocab_size == 17
    assert {path.name for path in folder.iterdir()} == {
        "config.json",
        "model.safetensors",
        "vocabulary.json",
    }


def test_a_folder_with_other_things_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("precious")
    with pytest.raises(UsageError, match="not a model folder"):
        save_checkpoint(random_model(3), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


@pytest.mark.parametrize("name", ["model.safetensors", "vocabulary.json", "config.json"])
@pytest.mark.parametrize("damage", ["missing", "empty", "truncated", "flipped", "noise", "folder"])
def test_damage_to_any_file_is_named(folder: Path, name: str, damage: str) -> None:
    path = folder / name
    data = path.read_bytes()
    if damage == "missing":
        path.unlink()
    elif damage == "folder":
        path.unlink()
        path.mkdir()
    elif damage == "flipped" and name == "config.json":
        path.write_bytes(data.replace(b'"d_model"', b'"d_modem"'))
    else:
        path.write_bytes(
            {
                "empty": b"",
                "truncated": data[: len(data) // 2],
                "flipped": data[:-40] + bytes([data[-40] ^ 1]) + data[-39:],
                "noise": b"\xff\xfe" * 50_000,
            }[damage]
        )
    with pytest.raises(TransputerError, match=r"model"):
        load_checkpoint(folder)


def test_files_of_two_models_do_not_mix(folder: Path, tmp_path: Path) -> None:
    other = save_checkpoint(random_model(4), tmp_path / "other")
    (folder / "model.safetensors").write_bytes((other / "model.safetensors").read_bytes())
    with pytest.raises(TransputerError, match="not written together"):
        load_checkpoint(folder)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "gpt"}, "not the configuration of a transputer model"),
        ({"version": 99}, "format version 99"),
        ({"attention": "linear"}, "attention"),
        ({"head_modes": [["latest"]]}, "head_modes"),
        ({"head_modes": 3}, "head_modes"),
        ({"stop_tokens": [30]}, "stop token"),
        ({"rom": [999]}, "ROM"),
        ({"rom": ["t1"]}, "ROM"),
        ({"rom": [1.5]}, "ROM"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"max_tokens": "x"}, "max_tokens"),
        ({"model": {}}, "damaged"),
        ({"model": 5}, "damaged"),
        ({"sha256": None}, "damaged"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused(
    folder: Path, changes: dict[str, Any], message: str
) -> None:
    edit_config(folder, **changes)
    with pytest.raises(TransputerError, match=message):
        load_checkpoint(folder)


def test_arrays_of_another_shape_are_refused(folder: Path) -> None:
    saved = json.loads((folder / "config.json").read_text())["model"]
    edit_config(folder, model={**saved, "d_ffn": 9})
    with pytest.raises(TransputerError, match=r"gate\.0\.weight.*\[8, 12\], not float64 \[9, 12\]"):
        load_checkpoint(folder)


def test_no_such_folder() -> None:
    with pytest.raises(UsageError, match="no such model folder"):
        load_checkpoint("/nowhere/at/all")


def test_weights_that_are_not_numbers_are_refused() -> None:
    model = random_model(0)
    weights = {**model.weights, "head.weight": model.weights["head.weight"] * np.nan}
    with pytest.raises(TransputerError, match=r"head\.weight"):
        Checkpoint(model.config, model.vocabulary, weights)


def test_an_unwritable_place_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        save_checkpoint(random_model(0), tmp_path / "file" / "model")


def test_digests_are_of_the_files(folder: Path) -> None:
    digests = json.loads((folder / "config.json").read_text())["sha256"]
    for name, digest in digests.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest


def test_a_config_checks_its_numbers() -> None:
    with pytest.raises(TransputerError, match="divisible"):
        ModelConfig(10, d_model=35, n_heads=18)
    with pytest.raises(TransputerError, match="position_slots"):
        ModelConfig(10, position_slots=(0, 36))
    with pytest.raises(TransputerError, match="positive"):
        ModelConfig(0)
    with pytest.raises(TransputerError, match="head mode"):
        ModelConfig(10, d_model=2, n_heads=1, n_layers=1, head_modes=(("newest",),))
    with pytest.raises(TransputerError, match="unexpected"):
        ModelConfig.from_mapping({"vocab_size": 3, "colour": "red"})

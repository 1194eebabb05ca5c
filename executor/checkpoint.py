"""A model as a value (config, vocabulary, ROM, weights, names) and as a folder of four files.

The folder holds ``model.safetensors`` (named float64 arrays, the names of the torch module's
``state_dict``), ``vocabulary.json`` (spellings; the index is the id) and ``config.json``, which
is written last and carries the SHA-256 of the others, so that a half-written, damaged or mixed
folder is recognised. ``names.json`` (see :mod:`compiler.names`) says what slots, heads and neurons
are; it may be missing. Needs no torch.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from compiler.errors import TransputerError, UsageError
from compiler.names import Names
from executor.config import LIMITS, WORDS, ModelConfig
from executor.files import write_atomically

FORMAT = "transputer-model"
VERSION = 1
WEIGHTS, VOCABULARY, CONFIG = "model.safetensors", "vocabulary.json", "config.json"
NAMES = "names.json"
SETTINGS = ("head_modes", "stop_tokens", "attention", "max_tokens")
"""The fields of ModelConfig that are not arguments of the transformer."""

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Checkpoint:
    """Everything an engine needs, the ids that head every prompt, and names for readers, if any.

    Raises:
        TransputerError: if weights, vocabulary, ROM or names do not fit the config.
    """

    config: ModelConfig
    vocabulary: tuple[str, ...]
    weights: Mapping[str, Array]
    rom: tuple[int, ...] = ()
    names: Names | None = None

    def __post_init__(self) -> None:
        if len(self.vocabulary) != self.config.vocab_size:
            raise TransputerError(
                f"the vocabulary has {len(self.vocabulary)} tokens, "
                f"the configuration says {self.config.vocab_size}"
            )
        if len(set(self.vocabulary)) != len(self.vocabulary):
            raise TransputerError("the vocabulary spells two tokens alike")
        if not all(type(t) is int and 0 <= t < self.config.vocab_size for t in self.rom):
            raise TransputerError("a ROM token is not in the vocabulary")
        c = self.config
        if self.names and not self.names.fits(c.d_model, c.n_heads, c.n_layers, c.d_ffn):
            raise TransputerError("the names are those of a model of another shape")
        for name, shape in self.config.shapes.items():
            array = self.weights.get(name)
            if array is None:
                raise TransputerError(f"the weights lack the array {name}")
            if array.shape != shape or array.dtype != np.float64:
                raise TransputerError(
                    f"the array {name} is {array.dtype} {list(array.shape)}, "
                    f"not float64 {list(shape)}"
                )
            if not np.isfinite(array).all():
                raise TransputerError(f"the array {name} holds a number that is not finite")

    @property
    def ids(self) -> dict[str, int]:
        """Id of every spelling (a new dictionary each time)."""
        return {spelling: token for token, spelling in enumerate(self.vocabulary)}

    @property
    def n_parameters(self) -> int:
        """Numbers in all weight arrays."""
        return sum(self.weights[name].size for name in self.config.shapes)

    @property
    def n_nonzero(self) -> int:
        """Numbers other than zero in all weight arrays."""
        return sum(int(np.count_nonzero(self.weights[name])) for name in self.config.shapes)

    def encode(self, spellings: Iterable[str]) -> list[int]:
        """Ids of token spellings.

        Raises:
            TransputerError: for a spelling that this model does not know.
        """
        ids = self.ids
        try:
            return [ids[spelling] for spelling in spellings]
        except KeyError as error:
            raise TransputerError(f"this model has no token {error.args[0]!r}") from None


def save_checkpoint(checkpoint: Checkpoint, folder: str | os.PathLike[str]) -> Path:
    """Write a model folder; an earlier model in it is replaced, anything else is left alone.

    Each file appears whole or not at all, the configuration last.

    Raises:
        UsageError: if the folder cannot be written or holds something else.
    """
    from safetensors.numpy import save

    path = Path(folder)
    arrays = {
        name: np.ascontiguousarray(checkpoint.weights[name]) for name in checkpoint.config.shapes
    }
    files = {
        WEIGHTS: save(arrays),
        VOCABULARY: _to_json(list(checkpoint.vocabulary)),
    }
    if checkpoint.names is not None:
        files[NAMES] = checkpoint.names.to_json().encode()
    settings = {name: getattr(checkpoint.config, name) for name in SETTINGS}
    limits = {name: getattr(checkpoint.config, name) for name in LIMITS}
    settings |= {name: limit for name, limit in limits.items() if limit is not None}
    settings |= {name: text for name in WORDS if (text := getattr(checkpoint.config, name))}
    config = {
        "format": FORMAT,
        "version": VERSION,
        "model": checkpoint.config.model_arguments(),
        **settings,
        "rom": list(checkpoint.rom),
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }
    try:
        path.mkdir(parents=True, exist_ok=True)
        if any(path.iterdir()) and not (path / CONFIG).exists() and not (path / WEIGHTS).exists():
            raise UsageError(f"{path}: not empty and not a model folder; choose another")
        for name, data in (files | {CONFIG: _to_json(config)}).items():
            write_atomically(path / name, data)
        if checkpoint.names is None:
            (path / NAMES).unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(f"{path}: cannot write the model: {error.strerror or error}") from error
    return path


def load_checkpoint(folder: str | os.PathLike[str]) -> Checkpoint:
    """Read a model folder written by :func:`save_checkpoint` (``transputer build``).

    Raises:
        TransputerError: if it is missing, foreign, damaged or inconsistent; the message says
            which file.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    path = Path(folder)
    if not path.is_dir():
        raise UsageError(f"{path}: no such model folder")
    config = _from_json(path / CONFIG, _read(path / CONFIG))
    if not isinstance(config, dict) or config.get("format") != FORMAT:
        raise TransputerError(f"{path / CONFIG}: not the configuration of a transputer model")
    if config.get("version") != VERSION:
        raise TransputerError(
            f"{path / CONFIG}: format version {config.get('version')!r}, "
            f"this transputer reads version {VERSION}; build the model again"
        )
    data = {name: _read(path / name) for name in (WEIGHTS, VOCABULARY)}
    if (path / NAMES).exists():
        data[NAMES] = _read(path / NAMES)
    digests = config.get("sha256")
    for name, content in data.items():
        expected = digests.get(name) if isinstance(digests, dict) else None
        if name == NAMES and expected is None:
            continue  # names that somebody wrote for a model without any
        if hashlib.sha256(content).hexdigest() != expected:
            raise TransputerError(
                f"{path / name}: damaged, or not written together with {CONFIG}; build it again"
            )
    vocabulary = _from_json(path / VOCABULARY, data[VOCABULARY])
    try:
        weights = load(data[WEIGHTS])
        return Checkpoint(
            config=_config(config),
            vocabulary=tuple(map(str, vocabulary)),
            weights=weights,
            rom=tuple(config["rom"]),
            names=_names(path / NAMES, data[NAMES]) if NAMES in data else None,
        )
    except (SafetensorError, KeyError, TypeError, AttributeError) as error:
        raise TransputerError(f"{path}: damaged model folder ({error!r})") from error
    except TransputerError as error:
        raise TransputerError(f"{path}: {error}") from error


def _names(path: Path, text: bytes) -> Names:
    try:
        return Names.from_json(text)
    except TransputerError as error:
        raise TransputerError(f"{path.name}: {error}") from error


def _config(saved: Mapping[str, Any]) -> ModelConfig:
    model = dict(saved["model"])
    values = {"vocab_size": model.pop("vocab"), **model}
    values |= {name: saved[name] for name in SETTINGS}
    values |= {name: saved[name] for name in (*LIMITS, *WORDS) if name in saved}
    return ModelConfig.from_mapping(values)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise TransputerError(f"{path}: cannot be read: {error.strerror or error}") from error


def _to_json(value: object) -> bytes:
    return (json.dumps(value, ensure_ascii=False, indent=1) + "\n").encode()


def _from_json(path: Path, data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise TransputerError(f"{path}: damaged, not JSON ({error})") from error

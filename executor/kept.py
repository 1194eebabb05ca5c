"""The default machine's model from the cache, and arrays as what the cache can keep."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from compiler.names import Names
from compiler.store import digest, keep, kept, sources_digest
from executor.checkpoint import Checkpoint
from executor.config import ModelConfig

Array = npt.NDArray[Any]


def kept_checkpoint() -> Checkpoint:
    """The default machine's model: kept from an earlier start with the same compiler, or built."""
    settings = ", ".join(field.name for field in fields(ModelConfig))
    key = digest(sources_digest("compiler"), settings)
    entry = kept("model", key)
    if entry is None:
        from executor.loading import build_checkpoint

        built = build_checkpoint()
        forms, blobs = pack_arrays(built.weights)
        names = None if built.names is None else built.names.to_json()
        value = [built.config.to_mapping(), built.vocabulary, built.rom, names, forms]
        keep("model", key, value, blobs)
        return built
    config, vocabulary, rom, names, forms = entry.value
    return Checkpoint(
        config=ModelConfig.from_mapping(config),
        vocabulary=tuple(vocabulary),
        weights=unpack_arrays(forms, entry.blobs),
        rom=tuple(rom),
        names=None if names is None else Names.from_json(names),
    )


def pack_arrays(arrays: Mapping[str, Array]) -> tuple[dict[str, object], list[bytes]]:
    """What JSON can hold of arrays (type and shape by name), and their bytes."""
    forms: dict[str, object] = {
        name: [array.dtype.str, array.shape] for name, array in arrays.items()
    }
    return forms, [np.ascontiguousarray(array).tobytes() for array in arrays.values()]


def unpack_arrays(forms: Mapping[str, Any], blobs: Iterable[bytes]) -> dict[str, Array]:
    """The arrays again; they cannot be written to."""
    return {
        name: np.frombuffer(blob, dtype).reshape(shape)
        for (name, (dtype, shape)), blob in zip(forms.items(), blobs, strict=True)
    }

"""The model as a thing: parameters, distinct values, bytes, time to build.

"Compressed" is xz -9e of the file that ``transputer build`` writes, nothing else done to it.

    python benchmarks/model.py [--quick] [--out FILE]
"""

from __future__ import annotations

import lzma
import tempfile
import time
from pathlib import Path

import numpy as np
import zstandard

import common
from common import Json, spread
from executor.checkpoint import Checkpoint, save_checkpoint
from executor.loading import build_checkpoint

BUILDS = 5
LAYERS = ("attention", "feed-forward")


def measure(quick: bool) -> Json:
    """All of it."""
    seconds = []
    for _ in range(2 if quick else BUILDS):
        began = time.perf_counter()
        model = build_checkpoint()
        seconds.append(time.perf_counter() - began)
    with tempfile.TemporaryDirectory() as folder:
        written = save_checkpoint(model, Path(folder) / "model")
        files = {path.name: path.read_bytes() for path in sorted(written.iterdir())}
    values = np.concatenate([array.ravel() for array in model.weights.values()])
    layers = np.concatenate(
        [array.ravel() for name, array in model.weights.items() if part_of(name) in LAYERS]
    )
    return {
        "parameters": int(values.size),
        "non_zeros": int(np.count_nonzero(values)),
        "distinct_values": len(np.unique(values)),
        "distinct_values_of_layers": len(np.unique(layers)),
        "build_seconds": spread(seconds),
        "files": {name: sizes(content) for name, content in files.items()},
        "parts": parts(model),
    }


def sizes(content: bytes) -> Json:
    """Bytes of a file as it is, and compressed."""
    return {
        "raw": len(content),
        "xz": len(lzma.compress(content, preset=9 | lzma.PRESET_EXTREME)),
        "zstd": len(zstandard.ZstdCompressor(22).compress(content)),
    }


def part_of(name: str) -> str:
    """Which part of the model a named array belongs to."""
    named = {"tok": "embedding", "head": "output head", "attn": "attention"}
    return named.get(name.split(".")[0], "feed-forward")


def parts(model: Checkpoint) -> Json:
    """Parameters and non-zeros of the embedding, the output head, attention and feed-forward."""
    named: dict[str, list[np.ndarray[tuple[int, ...], np.dtype[np.float64]]]] = {}
    for name, array in model.weights.items():
        named.setdefault(part_of(name), []).append(array)
    return {
        part: {
            "parameters": sum(array.size for array in arrays),
            "non_zeros": sum(int(np.count_nonzero(array)) for array in arrays),
        }
        for part, arrays in named.items()
    }


if __name__ == "__main__":
    common.main(measure, __doc__)

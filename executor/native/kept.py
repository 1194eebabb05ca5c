"""What the generator found for a model, kept on disk for the next start.

In: a model. Out: :class:`Code`. It is kept beside the compiled libraries, named after a hash of all
it depends on: configuration, weights, likely first tokens, and the sources of the generator itself.
A damaged file is made again.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt

from executor.checkpoint import Checkpoint
from executor.native.build import cache_folders
from executor.native.classify import Lookups
from executor.native.generate import generate

Say = Callable[[str], None]


@dataclass(frozen=True)
class Code:
    """An engine in C, the tables that ``native_new`` takes, and what was split, for people."""

    source: str
    tables: tuple[npt.NDArray[np.generic], ...]
    splits: tuple[str, ...]


def code_of(
    checkpoint: Checkpoint, specialise: bool, say: Say, lookups: Lookups = "classified"
) -> Code:
    """Find or generate the code of a model.

    Args:
        specialise: whether to generate specialised code too.
        lookups: see :func:`executor.native.generate.generate`.
        say: is told in one line what takes long.
    """
    name = f"code-{_key(checkpoint, specialise, lookups)}.npz"
    for folder in cache_folders():
        found = _read(folder / name)
        if found is not None:
            return found
    if specialise:
        say("specialising the native engine (once for each model)")
    generated = generate(checkpoint.config, checkpoint.weights, checkpoint.rom, specialise, lookups)
    splits = generated.special.described if generated.special is not None else ()
    code = Code(generated.source, generated.tables, splits)
    for folder in cache_folders():
        if _write(folder / name, code):
            break
    return code


def _key(checkpoint: Checkpoint, specialise: bool, lookups: Lookups) -> str:
    """A hash of all that the code depends on."""
    key = hashlib.sha256(_sources())
    key.update(repr((checkpoint.config, checkpoint.rom, specialise, lookups)).encode())
    for name, array in sorted(checkpoint.weights.items()):
        key.update(f"{name} {array.dtype} {array.shape}".encode())
        key.update(np.ascontiguousarray(array).tobytes())
    return key.hexdigest()[:32]


@cache
def _sources() -> bytes:
    """A hash of the generator: everything that decides about the code."""
    key = hashlib.sha256()
    package = files("executor")
    paths = [package / "codegen.py", package / "liveness.py"]
    for folder in (package / "native", package / "native" / "runtime"):
        paths += [path for path in folder.iterdir() if path.name.endswith((".py", ".h"))]
    for path in sorted(paths, key=str):
        key.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return key.digest()


def _read(path: Path) -> Code | None:
    """The code in a file; None if there is none that is whole."""
    try:
        with np.load(path, allow_pickle=False) as file:
            tables = tuple(file[f"table{i}"] for i in range(int(file["count"])))
            texts = [file[name].tobytes().decode("utf-8") for name in ("source", "splits")]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    return Code(texts[0], tables, tuple(texts[1].splitlines()))


def _write(path: Path, code: Code) -> bool:
    """Keep code; whether that worked."""
    arrays: dict[str, npt.NDArray[np.generic]] = {"count": np.array(len(code.tables))}
    arrays |= {f"table{i}": table for i, table in enumerate(code.tables)}
    texts = {"source": code.source, "splits": "\n".join(code.splits)}
    arrays |= {name: np.frombuffer(text.encode(), np.uint8) for name, text in texts.items()}
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix="build-", delete=False) as file:
            np.savez(file, allow_pickle=False, **arrays)
        os.replace(file.name, path)
    except OSError:
        return False
    return True

"""What the generator found for a model, kept on disk for the next start.

In: a model. Out: :class:`Code`. It is kept in the cache under a hash of all it depends on:
configuration, weights, likely first tokens, and the sources of the generator itself.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from compiler.store import digest, keep, kept
from executor.checkpoint import Checkpoint
from executor.kept import pack_arrays, unpack_arrays
from executor.native.build import PART

if TYPE_CHECKING:
    from executor.native.classify import Lookups

Say = Callable[[str], None]


@dataclass(frozen=True)
class Code:
    """An engine in C, the tables that ``native_new`` takes, and what was split, for people."""

    source: str
    tables: tuple[npt.NDArray[np.generic], ...]
    splits: tuple[str, ...]


def code_of(
    checkpoint: Checkpoint,
    specialise: bool,
    say: Say,
    lookups: Lookups = "classified",
    check: Callable[[], None] = lambda: None,
) -> Code:
    """Find or generate the code of a model.

    Args:
        specialise: whether to generate specialised code too.
        lookups: see :func:`executor.native.generate.generate`.
        say: is told in one line what takes long.
        check: is called before that; it may raise.
    """
    key = _key(checkpoint, specialise, lookups)
    found = _kept(key)
    if found is not None:
        return found
    check()
    if specialise:
        say("specialising the native engine (once for each model)")
    from executor.native.generate import generate

    with _without_collection():
        generated = generate(
            checkpoint.config, checkpoint.weights, checkpoint.rom, specialise, lookups
        )
    splits = generated.special.described if generated.special is not None else ()
    code = Code(generated.source, generated.tables, splits)
    forms, blobs = pack_arrays({str(i): table for i, table in enumerate(code.tables)})
    keep("code", key, [forms, splits], [code.source.encode(), *blobs], PART)
    return code


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """What the generator makes has hardly any cycles, and looking for them takes a seventh of its
    time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def kept_code(checkpoint: Checkpoint) -> Code | None:
    """The specialised code of a model, if it is in the cache."""
    return _kept(_key(checkpoint, True, "classified"))


def making_file(checkpoint: Checkpoint) -> str:
    """The name of the file that whoever makes the specialised engine of a model locks."""
    return f"making-{_key(checkpoint, True, 'classified')}"


def _kept(key: str) -> Code | None:
    entry = kept("code", key, PART)
    if entry is None:
        return None
    forms, splits = entry.value
    source, *blobs = entry.blobs
    tables = unpack_arrays(forms, blobs).values()
    return Code(source.decode(), tuple(tables), tuple(splits))


def _key(checkpoint: Checkpoint, specialise: bool, lookups: Lookups) -> str:
    """A hash of all that the code depends on."""
    arrays = sorted(checkpoint.weights.items())
    forms, blobs = pack_arrays(dict(arrays))
    about = repr((checkpoint.config, checkpoint.rom, specialise, lookups, forms))
    return digest(_sources(), about, *blobs)


@cache
def _sources() -> str:
    """A hash of the generator: everything that decides about the code."""
    package = files("executor")
    paths = [package / "codegen.py", package / "liveness.py"]
    for folder in (package / "native", package / "native" / "runtime"):
        paths += [path for path in folder.iterdir() if path.name.endswith((".py", ".h"))]
    paths.sort(key=str)
    return digest(*(part for path in paths for part in (path.name, path.read_bytes())))

"""The small C library of our own (``compiler/libc``): compiled once, kept in the cache.

``-fhosted -fno-builtin`` make ``main`` what C says it is, yet loops do not become calls of memset,
nor small calls of memcpy 64-bit moves; what remains are copies and clearings of 8-byte pieces of
structs and arrays (i64.load, i64.store, i64.const).
"""

from __future__ import annotations

import hashlib
import re
import tempfile
from importlib.resources import files
from pathlib import Path

from compiler.errors import Place
from compiler.library import CODE_FLAGS, LIBRARY_FLAGS, Kit
from compiler.toolchain_find import Toolchain
from compiler.toolchain_run import TIMEOUT_SECONDS, cache_folder, remedy, run

_FLAGS = (
    "--target=wasm32-unknown-unknown", "-nostdlib", "-fhosted", "-fno-builtin",
)  # fmt: skip


def kit(toolchain: Toolchain, timeout: float) -> Kit:
    """How to compile and link with this library, which is built if it is not in the cache."""
    archive = library_archive(toolchain, timeout=timeout)
    return Kit(_flags(toolchain), lambda types: [archive], _remedy)


def _flags(toolchain: Toolchain) -> tuple[str, ...]:
    return (*_FLAGS, "-isystem", str(folder()), *toolchain.headers)


def folder() -> Path:
    """Where the library's sources are."""
    return Path(str(files("compiler.libc")))


def library_archive(toolchain: Toolchain, *, timeout: float = TIMEOUT_SECONDS) -> Path:
    """The compiled small library, from the cache or built now (about a second).

    It is an archive, so that a program's own functions take precedence and only what is used is
    linked. It enters the cache whole, by one rename.
    """
    sources = folder()
    flags = (*CODE_FLAGS, *_FLAGS, *LIBRARY_FLAGS)
    digest = hashlib.sha256(repr((toolchain.identity, flags)).encode())
    for path in sorted(sources.glob("*.[ch]")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    cache = cache_folder()
    archive = cache / f"libc-{digest.hexdigest()[:16]}.a"
    if archive.exists():
        return archive
    with tempfile.TemporaryDirectory(prefix="libc-", dir=cache) as temporary:
        objects = []
        for source in sorted(sources.glob("*.c")):
            target = Path(temporary) / f"{source.stem}.o"
            command = (*toolchain.clang, *CODE_FLAGS, *_flags(toolchain), *LIBRARY_FLAGS)
            place = Place(file=f"the C library's {source.name}")
            run((*command, "-c", str(source), "-o", str(target)), timeout=timeout, place=place)
            objects.append(str(target))
        built = Path(temporary) / "libc.a"
        run((*toolchain.archive, "rcs", str(built), *objects), timeout=timeout)
        built.replace(archive)
    return archive


def _remedy(messages: str) -> str:
    known = remedy(messages, "the small C library")
    if known:
        return known
    if re.search(r"fatal error: '[^']*' file not found", messages):
        headers = ", ".join(sorted(path.name for path in folder().glob("*.h")))
        return (
            f"the small C library has {headers}; -I adds a folder of your own headers, "
            "--libc=wasi takes the whole standard library"
        )
    if "error: call to undeclared function" in messages:
        return (
            "the small C library has only a part of the standard one: --libc=wasi takes all of it"
        )
    return ""

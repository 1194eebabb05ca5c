"""How C and C++ are compiled, as keyword arguments that one function hands to the next."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypedDict


class Preprocessing(TypedDict, total=False):
    """What the preprocessor hears of: a part of :class:`COptions`."""

    opt: str
    include: Sequence[str | os.PathLike[str]]
    define: Sequence[str]
    flags: Sequence[str]


class COptions(Preprocessing, total=False):
    """Options of :func:`compiler.compile_program` for C and C++; what is left out has its default
    there."""

    clang: str | os.PathLike[str] | None
    sysroot: str | os.PathLike[str] | None
    libc: str | None
    stack_bytes: int | None
    memory_bytes: int | None


def preprocessing(options: COptions) -> Preprocessing:
    """The part that the preprocessor hears of."""
    part: Preprocessing = {}
    if "opt" in options:
        part["opt"] = options["opt"]
    if "include" in options:
        part["include"] = options["include"]
    if "define" in options:
        part["define"] = options["define"]
    if "flags" in options:
        part["flags"] = options["flags"]
    return part

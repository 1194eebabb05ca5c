"""What it takes to compile for a C library and to link it: a value, one for each library."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

CODE_FLAGS = (
    "-mcpu=mvp",
    "-mllvm", "-replexitval=never",
    "-mllvm", "-combiner-store-merging=false",
    "-mllvm", "-switch-to-lookup=false",
    "-mllvm", "-disable-lsr",
)  # fmt: skip
"""For all code that the model will run.

``mvp`` is WebAssembly 1.0 and nothing beyond. The next three keep 64-bit operations out of 32-bit
programs: the exit value of a counting loop in closed form, several stores merged to one, small
lookup tables packed into a constant. Loop strength reduction (``lsr``) makes addresses for machines
with more registers and addressing modes; without it programs execute up to 5 % fewer instructions.
"""
LIBRARY_FLAGS = ("-O2", "-g0")
CXX_SUFFIXES = (".cpp", ".cc", ".cxx")


@dataclass(frozen=True)
class Kit:
    """How to compile for a library and what to link.

    ``c_flags``, ``cxx_flags``: for the compiler. ``libraries``: archives in order, given the kinds
    of floating-point types that the program has (empty unless it ``needs_types``). ``remedy``: what
    a user can do about the messages of a compiler or linker, empty if they say it.
    """

    c_flags: tuple[str, ...]
    libraries: Callable[[Collection[str]], Sequence[Path]]
    remedy: Callable[[str], str]
    cxx_flags: tuple[str, ...] = ()
    link_flags: tuple[str, ...] = ()
    needs_types: bool = False

    def flags(self, source: Path) -> tuple[str, ...]:
        """Compiler flags for a source, by its suffix."""
        return self.cxx_flags if source.suffix in CXX_SUFFIXES else self.c_flags

    def linked(self, objects: Sequence[Path], types: Collection[str]) -> list[Path]:
        """All that is linked, in order."""
        return [*objects, *self.libraries(types)]

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
    a user can do about the messages of a compiler or linker, empty if they say it. ``stack_bytes``
    and ``memory_bytes``: sizes of the C stack and of the memory where none are asked for (None: as
    many pages as stack and data fill).
    """

    c_flags: tuple[str, ...]
    libraries: Callable[[Collection[str]], Sequence[Path]]
    remedy: Callable[[str], str]
    cxx_flags: tuple[str, ...] = ()
    stack_bytes: int = 32 << 10
    memory_bytes: int | None = None
    needs_types: bool = False

    def flags(self, source: Path) -> tuple[str, ...]:
        """Compiler flags for a source, by its suffix."""
        return self.cxx_flags if source.suffix in CXX_SUFFIXES else self.c_flags

    def layout(self, stack_bytes: int | None, memory_bytes: int | None) -> tuple[str, ...]:
        """Linker flags for the sizes of stack and memory that are asked for, None for the usual."""
        stack = self.stack_bytes if stack_bytes is None else stack_bytes
        memory = self.memory_bytes if memory_bytes is None else memory_bytes
        size = () if memory is None else (f"--initial-memory={memory}",)
        return "--stack-first", "-z", f"stack-size={stack}", *size

    def linked(self, objects: Sequence[Path], types: Collection[str]) -> list[Path]:
        """All that is linked, in order."""
        return [*objects, *self.libraries(types)]

"""Reads the primitive encodings of DWARF from a section of a WebAssembly module.

DWARF is input like any other: nothing here trusts a length or a count. What is malformed raises
``DwarfError``, and whoever asked goes on without it. Format: https://dwarfstd.org, versions 2 to 5.
"""

from __future__ import annotations

from compiler.errors import CompileError
from compiler.wasm_reader import Reader


class DwarfError(CompileError):
    """Debug information that is damaged, or of a kind that is not known here."""


class Cursor(Reader):
    """A cursor over a section, little end first; ``wide`` in a unit of the 64-bit format."""

    wide = False

    def error(self, reason: str, at: int | None = None) -> DwarfError:
        """The error for malformed input at byte ``at`` of the section (default: the current)."""
        where = self.position if at is None else at
        return DwarfError(f"{self.name}, byte {where}: {reason}")

    def fixed(self, size: int) -> int:
        """An unsigned number of ``size`` bytes."""
        return int.from_bytes(self.take(size), "little")

    def offset(self) -> int:
        """An offset into a section."""
        return self.fixed(8 if self.wide else 4)

    def unit(self) -> Cursor:
        """A cursor over the unit that begins here, its length read; this one skips it."""
        length = self.fixed(4)
        wide = length == 0xFFFFFFFF
        length = self.fixed(8) if wide else length
        start = self.position
        self.take(length)
        unit = Cursor(self.data, self.name, start, self.position)
        unit.wide = wide
        return unit

    def part(self, size: int) -> Cursor:
        """A cursor over the next ``size`` bytes, which this one skips."""
        start = self.position
        self.take(size)
        part = Cursor(self.data, self.name, start, self.position)
        part.wide = self.wide
        return part

    def string(self) -> bytes:
        """A string that a zero byte ends."""
        end = self.data.find(b"\0", self.position, self.end)
        if end < 0:
            raise self.error("a string without end")
        return self.take(end + 1 - self.position)[:-1]

"""From the code of a module to its source: the bytes of a module in, a lookup by offset out.

A module says in its custom sections (DWARF) which line of which file its instructions come from.
They are read when a place is first asked for, so programs that run well pay nothing. They are
hints and nothing else: a damaged section is ignored, and ``SourceMap.problem`` says why.
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_right
from dataclasses import dataclass
from pathlib import Path

from compiler.dwarf_lines import LineTable, Sequence, line_tables
from compiler.dwarf_reader import DwarfError
from compiler.errors import Place, printable
from compiler.wasm_reader import Reader

_CUSTOM, _CODE = 0, 10
_MOST_SOURCE_BYTES = 1 << 24
_MOST_LINE = 1 << 31


@dataclass(frozen=True)
class Sections:
    """The custom sections of a module by name, and which bytes are the content of its code."""

    custom: dict[str, bytes]
    code: range


def read_sections(wasm: bytes) -> Sections:
    """The sections of a module that a decoder has accepted; of several with a name, the first."""
    reader = Reader(wasm, "module", 8)
    custom: dict[str, bytes] = {}
    code = range(0)
    while reader.left:
        number = reader.byte()
        section = reader.section(reader.unsigned())
        if number == _CODE:
            code = range(section.position, section.end)
        elif number == _CUSTOM:
            name = section.text()
            custom.setdefault(name, section.take(section.left))
    return Sections(custom, code)


class SourceMap:
    """Where the instructions of a module come from.

    Attributes:
        problem: why (some of) its debug information is ignored; empty if nothing is.
    """

    def __init__(self, wasm: bytes) -> None:
        """Read the debug information of a module, if it has any; damage is no error."""
        self.problem = ""
        self._starts: list[int] = []
        self._rows: list[tuple[str, int]] = []
        self._texts: dict[str, list[str]] = {}
        if not wasm:
            return
        sections = read_sections(wasm)
        self._base = sections.code.start
        try:
            self._add_lines(sections)
        except DwarfError as error:
            self.problem = f"debug information ignored: {error.reason}"

    def place(self, offset: int) -> Place:
        """File, line and text of the instruction at byte ``offset`` of the module's file."""
        at = bisect_right(self._starts, offset - self._base) - 1 if self._starts else -1
        if offset < 0 or at < 0 or not self._rows[at][1]:
            return Place()
        file, line = self._rows[at]
        return Place(printable(file), line=line, text=self._text(file, line))

    def _text(self, file: str, line: int) -> str:
        """A line of a source file without the white space around it; empty if it is not there."""
        if file not in self._texts:
            self._texts[file] = _read_lines(file)
        lines = self._texts[file]
        return printable(lines[line - 1].strip().replace("\t", " ")) if line <= len(lines) else ""

    def _add_lines(self, sections: Sections) -> None:
        tables = []
        try:
            for _, table in line_tables(sections.custom):
                tables.append(table)
        finally:
            self._add_sequences(tables, len(sections.code))

    def _add_sequences(self, tables: list[LineTable], code_bytes: int) -> None:
        """Rows of code that is still there: what the linker has removed has addresses outside."""
        found: list[tuple[Sequence, dict[int, str]]] = []
        for table in tables:
            files = {number: os.fsdecode(path) for number, path in table.files.items()}
            found += [(sequence, files) for sequence in table.sequences if sequence.rows]
        end = 1
        for sequence, files in sorted(found, key=lambda item: item[0].rows[0][0]):
            if not end <= sequence.rows[0][0] < sequence.end <= code_bytes:
                continue
            end = sequence.end
            for address, number, line in sequence.rows:
                known = number in files and 0 < line < _MOST_LINE
                self._starts.append(address)
                self._rows.append((files[number], line) if known else ("", 0))
            self._starts.append(end)
            self._rows.append(("", 0))


def _read_lines(file: str) -> list[str]:
    """The lines of a source file; none if it is not there, or no file that a compiler reads."""
    try:
        kind = os.stat(file)
        if stat.S_ISREG(kind.st_mode) and kind.st_size <= _MOST_SOURCE_BYTES:
            return Path(file).read_text("utf-8", "replace").split("\n")
    except (OSError, ValueError):
        pass
    return []

"""From the code of a module to its source: the bytes of a module in, a lookup by offset out.

A module says in its custom sections (DWARF) which line of which file its instructions come from.
They are read when a place is first asked for, so programs that run well pay nothing. They are
hints and nothing else: a damaged section is ignored, and ``SourceMap.problem`` says why.
"""

from __future__ import annotations

import os
import stat
from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from compiler.dwarf_info import DebugInfo
from compiler.dwarf_lines import Sequence, line_tables
from compiler.dwarf_reader import DwarfError
from compiler.errors import Place, printable
from compiler.wasm_reader import Reader

LIBRARY_FOLDER = "(library)"
"""Stands in the modules that we compile for the folders of the C compiler and its libraries."""
_CUSTOM, _CODE = 0, 10
_MOST_SOURCE_BYTES = 1 << 24
_MOST_LINE = 1 << 31
_MOST_CALLS = 64
"""Calls that are told of one instruction."""
_Line = tuple[str, int]
"""File and line."""
_NOWHERE: _Line = ("", 0)


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
        self._rows: list[_Line] = []
        self._files: dict[int, dict[int, str]] = {}
        self._texts: dict[str, list[str]] = {}
        self._info: DebugInfo | None = None
        self._code = range(0)
        if not wasm:
            return
        sections = read_sections(wasm)
        self._code = sections.code
        self._add_lines(sections)
        with self._noting():
            self._info = DebugInfo(sections.custom)

    @contextmanager
    def _noting(self) -> Iterator[None]:
        """What is damaged is left out."""
        try:
            yield
        except DwarfError as error:
            self.problem = self.problem or f"debug information ignored: {error.reason}"

    def place(self, offset: int, function: str) -> Place:
        """Where the instruction at byte ``offset`` of the module's file, which belongs to a
        ``function`` of the module, comes from."""
        if offset not in self._code:
            return Place(function=function)
        address = offset - self._code.start
        at = bisect_right(self._starts, address) - 1
        line = self._rows[at] if at >= 0 else _NOWHERE
        inner, calls = self._inlined(address, function)
        return replace(self._line(*line), function=inner, inlined=calls)

    def _line(self, file: str, line: int) -> Place:
        return Place(printable(file), line=line, text=self._text(file, line)) if line else Place()

    def _inlined(self, address: int, function: str) -> tuple[str, tuple[Place, ...]]:
        """The function that an instruction was written in, and the calls that were replaced by
        it, the innermost first."""
        calls: list[tuple[str, Place]] = []
        with self._noting():
            found = self._info.scope(address) if self._info else None
            scope, table = found or (None, 0)
            while self._info and scope is not None and scope.parent and len(calls) < _MOST_CALLS:
                file = self._files.get(table, {}).get(scope.call_file, "")
                known = file and 0 < scope.call_line < _MOST_LINE
                call = self._line(file, scope.call_line if known else 0)
                calls.append((self._info.name(scope), call))
                scope = scope.parent
        names = [printable(name) or "(inlined)" for name, _ in calls] + [function]
        places = (
            replace(call, function=name) for (_, call), name in zip(calls, names[1:], strict=True)
        )
        return names[0], tuple(places)

    def _text(self, file: str, line: int) -> str:
        """A line of a source file without the white space around it; empty if it is not there."""
        if file not in self._texts:
            self._texts[file] = _read_lines(file)
        lines = self._texts[file]
        return printable(lines[line - 1].strip().replace("\t", " ")) if line <= len(lines) else ""

    def _add_lines(self, sections: Sections) -> None:
        """Rows of code that is still there: what the linker has removed has addresses outside."""
        found: list[tuple[Sequence, dict[int, str]]] = []
        with self._noting():
            for start, table in line_tables(sections.custom):
                files = {number: os.fsdecode(path) for number, path in table.files.items()}
                self._files[start] = files
                found += [(sequence, files) for sequence in table.sequences if sequence.rows]
        end = 1
        for sequence, files in sorted(found, key=lambda item: item[0].rows[0][0]):
            if not end <= sequence.rows[0][0] < sequence.end <= len(sections.code):
                continue
            end = sequence.end
            for address, number, line in sequence.rows:
                known = number in files and 0 < line < _MOST_LINE
                self._starts.append(address)
                self._rows.append((files[number], line) if known else _NOWHERE)
            self._starts.append(end)
            self._rows.append(_NOWHERE)


def _read_lines(file: str) -> list[str]:
    """The lines of a source file; none if it is not there, or no file that a compiler reads."""
    try:
        kind = os.stat(file)
        if stat.S_ISREG(kind.st_mode) and kind.st_size <= _MOST_SOURCE_BYTES:
            return Path(file).read_text("utf-8", "replace").split("\n")
    except (OSError, ValueError):
        pass
    return []

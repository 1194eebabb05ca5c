"""Line tables: the section ``.debug_line`` of a module in, rows of (address, file, line) out.

A table is a program for a small machine (DWARF 5, section 6.2; earlier versions differ in the
header). Addresses are counted from the first byte of the code section's content.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from compiler.dwarf_forms import Tables, read_value
from compiler.dwarf_reader import Cursor

_COPY, _ADVANCE_PC, _ADVANCE_LINE, _SET_FILE, _SET_COLUMN = 1, 2, 3, 4, 5
_CONST_ADD_PC, _FIXED_ADVANCE_PC = 8, 9
_END_SEQUENCE, _SET_ADDRESS, _DEFINE_FILE = 1, 2, 3
_PATH, _DIRECTORY = 1, 2
"""Kinds of content in a version 5 header that are read; the others are skipped."""


@dataclass(frozen=True)
class Sequence:
    """Rows of ascending addresses that end before ``end``: (address, index of file, line)."""

    rows: list[tuple[int, int, int]]
    end: int


@dataclass
class LineTable:
    """The table of one unit. ``files``: paths by the numbers that rows and calls use."""

    files: dict[int, bytes] = field(default_factory=dict)
    sequences: list[Sequence] = field(default_factory=list)


def line_tables(sections: Mapping[str, bytes]) -> Iterator[tuple[int, LineTable]]:
    """Each table of a module and its offset in the section.

    Raises:
        DwarfError: the section is damaged from here on, or has a version other than 2 to 5.
    """
    tables = Tables(sections)
    cursor = Cursor(sections.get(".debug_line", b""), ".debug_line")
    while cursor.left:
        start = cursor.position
        yield start, _table(cursor.unit(), tables)


@dataclass
class _Header:
    version: int = 0
    min_length: int = 1
    line_base: int = 0
    line_range: int = 1
    operands: bytes = b""
    """Number of operands of each standard opcode."""
    directories: list[bytes] = field(default_factory=list)


def _table(unit: Cursor, tables: Tables) -> LineTable:
    header, table = _Header(unit.fixed(2)), LineTable()
    if not 2 <= header.version <= 5:
        raise unit.error(f"line tables of version {header.version}")
    if header.version == 5:
        unit.take(2)  # sizes of addresses and segment selectors
    _read_header(unit.part(unit.offset()), tables, header, table)
    table.sequences = _run(unit, header, table)
    return table


def _read_header(cursor: Cursor, tables: Tables, header: _Header, table: LineTable) -> None:
    header.min_length = cursor.byte()
    if header.version >= 4:
        cursor.byte()  # operations per instruction, more than one on VLIW machines only
    cursor.byte()  # whether rows begin statements
    header.line_base = (cursor.byte() ^ 0x80) - 0x80
    header.line_range = cursor.byte()
    header.operands = cursor.take(max(0, cursor.byte() - 1))
    if not header.line_range:
        raise cursor.error("a line range of 0")
    if header.version == 5:
        header.directories = [path for path, _ in _entries(cursor, tables)]
        for number, (name, directory) in enumerate(_entries(cursor, tables)):
            table.files[number] = _joined(header, name, directory)
        return
    header.directories = [b""]
    while name := cursor.string():
        header.directories.append(name)
    while name := cursor.string():
        _define_file(cursor, header, table, name)


def _define_file(cursor: Cursor, header: _Header, table: LineTable, name: bytes) -> None:
    directory, _, _ = (cursor.unsigned(64) for _ in range(3))
    table.files[len(table.files) + 1] = _joined(header, name, directory)


def _joined(header: _Header, name: bytes, directory: int) -> bytes:
    """A path as the compiler was given it: relative to the folder it ran in, directory 0."""
    if name.startswith(b"/") or not 0 < directory < len(header.directories):
        return name
    folder = header.directories[directory]
    return folder + b"/" + name if folder else name


def _entries(cursor: Cursor, tables: Tables) -> Iterator[tuple[bytes, int]]:
    """Paths and directory numbers of a version 5 list of directories or files."""
    formats = [(cursor.unsigned(), cursor.unsigned()) for _ in range(cursor.byte())]
    count = cursor.unsigned()
    if count > cursor.left or (count and not formats):
        raise cursor.error(f"{count} entries in {cursor.left} bytes")
    for _ in range(count):
        path, directory = b"", 0
        for kind, form in formats:
            value = read_value(cursor, form, 4, 5)
            if kind == _PATH:
                path = tables.text(value)
            elif kind == _DIRECTORY:
                directory = value.number
        yield path, directory


class _State:
    """Registers of the line machine, and the rows written so far."""

    def __init__(self) -> None:
        self.address, self.file, self.line = 0, 1, 1
        self.rows: list[tuple[int, int, int]] = []

    def row(self) -> None:
        """Append a row; of several at one address the last one holds."""
        rows = self.rows
        if rows and rows[-1][0] == self.address:
            rows.pop()
        if not rows or rows[-1][1:] != (self.file, self.line):
            rows.append((self.address, self.file, self.line))


def _run(cursor: Cursor, header: _Header, table: LineTable) -> list[Sequence]:
    """Run the program; every opcode takes a byte at least, so it ends."""
    first_special = len(header.operands) + 1
    sequences: list[Sequence] = []
    state = _State()
    while cursor.left:
        opcode = cursor.byte()
        if opcode >= first_special:
            advance, line = divmod(opcode - first_special, header.line_range)
            state.address += advance * header.min_length
            state.line += header.line_base + line
            state.row()
        elif opcode:
            _standard(cursor, header, state, opcode, first_special)
        elif _extended(cursor.part(cursor.unsigned()), header, table, state):
            if any(a[0] > b[0] for a, b in zip(state.rows, state.rows[1:], strict=False)):
                raise cursor.error("rows whose addresses do not ascend")
            sequences.append(Sequence(state.rows, state.address))
            state = _State()
    return sequences


def _standard(
    cursor: Cursor, header: _Header, state: _State, opcode: int, first_special: int
) -> None:
    if opcode == _COPY:
        state.row()
    elif opcode == _ADVANCE_PC:
        state.address += cursor.unsigned(64) * header.min_length
    elif opcode == _ADVANCE_LINE:
        state.line += cursor.signed(64)
    elif opcode == _SET_FILE:
        state.file = cursor.unsigned(64)
    elif opcode == _CONST_ADD_PC:
        state.address += (255 - first_special) // header.line_range * header.min_length
    elif opcode == _FIXED_ADVANCE_PC:
        state.address += cursor.fixed(2)
    else:  # columns and flags, and what later versions add
        for _ in range(header.operands[opcode - 1]):
            cursor.unsigned(64)


def _extended(cursor: Cursor, header: _Header, table: LineTable, state: _State) -> bool:
    """Whether the sequence ends here."""
    opcode = cursor.byte()
    if opcode == _SET_ADDRESS:
        state.address = cursor.fixed(cursor.left)
    elif opcode == _DEFINE_FILE:
        _define_file(cursor, header, table, cursor.string())
    return opcode == _END_SEQUENCE

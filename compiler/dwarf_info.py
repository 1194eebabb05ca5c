"""Functions of the source: ``.debug_info`` of a module in, which function an address was written
in out.

A compiler that inlines leaves, for each piece of code, the function it was written in and the call
that was replaced by it. The units of the section are read one by one as they are asked for.
(DWARF 5, chapters 2, 3 and 7; versions 2 to 4 differ in headers and forms.)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from compiler.dwarf_forms import (
    ADDRX,
    IMPLICIT_CONST,
    RNGLISTX,
    Tables,
    Value,
    read_value,
    reference,
)
from compiler.dwarf_reader import Cursor, DwarfError

_SUBPROGRAM, _INLINED = 0x2E, 0x1D
_NAME, _LOW_PC, _HIGH_PC, _RANGES = 0x03, 0x11, 0x12, 0x55
_STMT_LIST, _ABSTRACT_ORIGIN, _SPECIFICATION = 0x10, 0x31, 0x47
_CALL_FILE, _CALL_LINE = 0x58, 0x59
_STR_OFFSETS_BASE, _ADDR_BASE, _RNGLISTS_BASE = 0x72, 0x73, 0x74
_READ = frozenset({
    _NAME, _LOW_PC, _HIGH_PC, _RANGES, _STMT_LIST, _ABSTRACT_ORIGIN, _SPECIFICATION, _CALL_FILE,
    _CALL_LINE, _STR_OFFSETS_BASE, _ADDR_BASE, _RNGLISTS_BASE,
})  # fmt: skip
"""Attributes that are kept."""
_TYPE_UNIT, _SKELETON, _SPLIT_COMPILE, _SPLIT_TYPE = 2, 4, 5, 6
_MOST_ATTRIBUTES, _MOST_RANGES, _MOST_NAMES = 100, 1 << 20, 8
"""Attributes of an entry, ranges of a unit, entries that one takes its name from: far more than
compilers write, so that damaged sections cannot ask for endless work."""

Attributes = dict[int, Value]
Ranges = list[tuple[int, int]]


@dataclass(frozen=True)
class Scope:
    """A function, or a copy of one that was inlined.

    ``origin``: the entry in the section that names it. ``parent``: what an inlined copy is part
    of. ``call_file``: by its number in the unit's line table.
    """

    origin: int
    parent: Scope | None = None
    call_file: int = 0
    call_line: int = 0


@dataclass
class _Unit:
    """A unit: its entries' bytes, what the header says, and what has been read of it.

    ``pieces``: addresses from which on another scope holds, and that scope.
    """

    start: int
    cursor: Cursor
    version: int
    abbreviations: dict[int, _Abbreviation]
    tables: Tables
    root: Attributes = field(default_factory=dict)
    ranges: Ranges = field(default_factory=list)
    base: int = 0
    rnglists_base: int = 0
    names: dict[int, Attributes] = field(default_factory=dict)
    starts: list[int] = field(default_factory=list)
    pieces: list[Scope | None] = field(default_factory=list)
    done: bool = False
    budget: int = _MOST_RANGES


@dataclass(frozen=True)
class _Abbreviation:
    tag: int
    children: bool
    attributes: list[tuple[int, int, int]]
    """Attribute, form, and the value of an implicit constant."""


class DebugInfo:
    """The functions that a module's debug information tells of."""

    def __init__(self, sections: Mapping[str, bytes]) -> None:
        """Read the head of each unit.

        Raises:
            DwarfError: one of them is damaged.
        """
        self._sections = sections
        self._units: list[_Unit] = []
        self._abbreviations: dict[int, dict[int, _Abbreviation]] = {}
        cursor = Cursor(sections.get(".debug_info", b""), ".debug_info")
        while cursor.left:
            start = cursor.position
            unit = self._head(start, cursor.unit())
            if unit is not None:
                self._units.append(unit)
        self._unit_starts = [unit.start for unit in self._units]
        spans = [(a, b, u) for u in self._units for a, b in u.ranges]
        self._spans = sorted(spans, key=lambda span: span[:2])
        self._span_starts = [span[0] for span in self._spans]

    def scope(self, address: int) -> tuple[Scope, int] | None:
        """The innermost function at an address, and where its unit's line table is.

        Raises:
            DwarfError: its unit is damaged.
        """
        at = bisect_right(self._span_starts, address) - 1
        if at < 0 or address >= self._spans[at][1]:
            return None
        unit = self._spans[at][2]
        _read_unit(unit)
        piece = bisect_right(unit.starts, address) - 1
        scope = unit.pieces[piece] if piece >= 0 else None
        return None if scope is None else (scope, _number(unit.root, _STMT_LIST))

    def name(self, scope: Scope) -> str:
        """The name of a function as its language writes it; empty if it has none."""
        offset = scope.origin
        for _ in range(_MOST_NAMES):
            at = bisect_right(self._unit_starts, offset) - 1
            if at < 0:
                break
            unit = self._units[at]
            _read_unit(unit)
            entry = unit.names.get(offset, {})
            if _NAME in entry:
                return unit.tables.text(entry[_NAME]).decode("utf-8", "replace")
            further = entry.get(_ABSTRACT_ORIGIN) or entry.get(_SPECIFICATION)
            if further is None:
                break
            offset = reference(further, unit.start)
        return ""

    def _head(self, start: int, cursor: Cursor) -> _Unit | None:
        """A unit, its first entry read; None if it has no code."""
        version = cursor.fixed(2)
        if not 2 <= version <= 5:
            raise cursor.error(f"debug information of version {version}", start)
        kind = cursor.byte() if version == 5 else 0
        address_bytes = cursor.byte() if version == 5 else 0
        table = cursor.offset()
        address_bytes = address_bytes or cursor.byte()
        if kind in (_SKELETON, _SPLIT_COMPILE):
            cursor.take(8)
        if kind in (_TYPE_UNIT, _SPLIT_TYPE):
            return None
        if table not in self._abbreviations:
            self._abbreviations[table] = _abbreviations(self._sections, table)
        tables = Tables(self._sections, address_bytes, 8 if cursor.wide else 4)
        unit = _Unit(start, cursor, version, self._abbreviations[table], tables)
        first = next(_entries(unit), None)
        if first is None:
            return None
        unit.root = root = first[3]
        tables.strings_base = _number(root, _STR_OFFSETS_BASE)
        tables.addresses_base = _number(root, _ADDR_BASE)
        unit.rnglists_base = _number(root, _RNGLISTS_BASE)
        unit.base = tables.address(root[_LOW_PC]) if _LOW_PC in root else 0
        unit.ranges = _ranges(unit, root)
        return unit


def _number(attributes: Attributes, name: int) -> int:
    """The number that an attribute holds, 0 if it is not there."""
    return attributes[name].number if name in attributes else 0


def _abbreviations(sections: Mapping[str, bytes], offset: int) -> dict[int, _Abbreviation]:
    cursor = Cursor(sections.get(".debug_abbrev", b""), ".debug_abbrev")
    cursor.take(offset)
    found: dict[int, _Abbreviation] = {}
    while code := cursor.unsigned(64):
        tag, children = cursor.unsigned(64), cursor.byte()
        attributes: list[tuple[int, int, int]] = []
        while True:
            name, form = cursor.unsigned(64), cursor.unsigned(64)
            implicit = cursor.signed(64) if form == IMPLICIT_CONST else 0
            if not name and not form:
                break
            attributes.append((name, form, implicit))
        if len(attributes) > _MOST_ATTRIBUTES:
            raise cursor.error(f"an entry of {len(attributes)} attributes")
        found[code] = _Abbreviation(tag, bool(children), attributes)
    return found


def _entries(unit: _Unit) -> Iterator[tuple[int, int, int, Attributes]]:
    """Each entry of a unit: its place, its depth, its tag and the attributes that are read."""
    cursor = unit.cursor.part(unit.cursor.left)
    unit.cursor.position = cursor.position
    depth = 0
    while cursor.left:
        place, code = cursor.position, cursor.unsigned(64)
        if not code:
            depth -= 1
            if depth <= 0:
                return
            continue
        abbreviation = unit.abbreviations.get(code)
        if abbreviation is None:
            raise cursor.error(f"an entry of unknown kind {code}", place)
        attributes: Attributes = {}
        for name, form, implicit in abbreviation.attributes:
            if form == IMPLICIT_CONST:
                value = Value(form, implicit)
            else:
                value = read_value(cursor, form, unit.tables.address_bytes, unit.version)
            if name in _READ:
                attributes[name] = value
        yield place, depth, abbreviation.tag, attributes
        if abbreviation.children:
            depth += 1
        elif not depth:
            return


def _read_unit(unit: _Unit) -> None:
    """Find the scopes of a unit, once."""
    if unit.done:
        return
    unit.done = True
    open_: list[tuple[int, Scope | None]] = [(-1, None)]
    found: list[tuple[int, int, int, Scope]] = []
    for place, depth, tag, attributes in _entries(unit):
        while open_[-1][0] >= depth:
            open_.pop()
        scope = open_[-1][1]
        if tag in (_SUBPROGRAM, _INLINED):
            if tag == _SUBPROGRAM:
                unit.names[place] = attributes
                scope = Scope(place)
            elif _ABSTRACT_ORIGIN in attributes:
                origin = reference(attributes[_ABSTRACT_ORIGIN], unit.start)
                file, line = (_number(attributes, name) for name in (_CALL_FILE, _CALL_LINE))
                scope = Scope(origin, scope, file, line)
            if scope is not None:
                found += [(a, b, depth, scope) for a, b in _ranges(unit, attributes)]
        open_.append((depth, scope))
    _cut(unit, found)


def _cut(unit: _Unit, found: list[tuple[int, int, int, Scope]]) -> None:
    """Nested ranges to pieces, of which each has one scope."""

    def begin(address: int, scope: Scope | None) -> None:
        if unit.starts and unit.starts[-1] == address:
            unit.pieces[-1] = scope
        else:
            unit.starts.append(address)
            unit.pieces.append(scope)

    open_: list[tuple[int, Scope | None]] = [(1 << 64, None)]
    for low, high, _, scope in sorted(found, key=lambda item: (item[0], -item[1], item[2])):
        while open_[-1][0] <= low:
            end, _ = open_.pop()
            begin(end, open_[-1][1])
        begin(low, scope)
        open_.append((min(high, open_[-1][0]), scope))
    while len(open_) > 1:
        end, _ = open_.pop()
        begin(end, open_[-1][1])


# --- ranges ------------------------------------------------------------------------------------


def _ranges(unit: _Unit, attributes: Attributes) -> Ranges:
    """The addresses of an entry: those that the linker has left."""
    if _RANGES in attributes:
        lists = _range_list if unit.version < 5 else _range_list_5
        found = list(lists(unit, attributes[_RANGES]))
    elif _LOW_PC in attributes and _HIGH_PC in attributes:
        low = unit.tables.address(attributes[_LOW_PC])
        high = attributes[_HIGH_PC]
        end = unit.tables.address(high) if high.is_address else low + high.number
        found = [(low, end)]
    else:
        return []
    return [(low, high) for low, high in found if 0 < low < high]


def _spend(unit: _Unit) -> None:
    unit.budget -= 1
    if unit.budget < 0:
        raise DwarfError("too many ranges in one unit of .debug_info")


def _range_list(unit: _Unit, value: Value) -> Iterator[tuple[int, int]]:
    """Pairs of addresses in ``.debug_ranges``, counted from a base."""
    size = unit.tables.address_bytes
    cursor, base = unit.tables.cursor(".debug_ranges", value.number), unit.base
    while True:
        _spend(unit)
        low, high = cursor.fixed(size), cursor.fixed(size)
        if low == (1 << 8 * size) - 1:
            base = high
        elif not low and not high:
            return
        else:
            yield base + low, base + high


def _range_list_5(unit: _Unit, value: Value) -> Iterator[tuple[int, int]]:
    """Entries of ``.debug_rnglists``."""
    tables, offset = unit.tables, value.number
    if value.form == RNGLISTX:
        at = unit.rnglists_base + offset * tables.offset_bytes
        offset = unit.rnglists_base + tables.cursor(".debug_rnglists", at).offset()
    cursor, base = tables.cursor(".debug_rnglists", offset), unit.base

    def indexed() -> int:
        return tables.address(Value(ADDRX, cursor.unsigned(64)))

    def direct() -> int:
        return cursor.fixed(tables.address_bytes)

    while kind := cursor.byte():
        _spend(unit)
        if kind in (1, 5):  # base_addressx, base_address
            base = indexed() if kind == 1 else direct()
        elif kind in (2, 6):  # startx_endx, start_end
            yield (indexed(), indexed()) if kind == 2 else (direct(), direct())
        elif kind in (3, 7):  # startx_length, start_length
            low = indexed() if kind == 3 else direct()
            yield low, low + cursor.unsigned(64)
        elif kind == 4:  # offset_pair
            low, high = cursor.unsigned(64), cursor.unsigned(64)
            yield base + low, base + high
        else:
            raise cursor.error(f"a range of kind {kind}")

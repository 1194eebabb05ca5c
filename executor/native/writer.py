"""Writes the C statements of one step: expressions, variables, and the token tables they use.

Variables are assigned once. What depends on one token alone is a column of a table, indexed by that
token; columns that differ by a power of two are one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from executor.checkpoint import Array
from executor.native.forms import HERE, Form, Linear, Place, exact_sum, merged
from executor.native.nodes import Node, Program, Sum

Bits = npt.NDArray[np.bool_]
SMALL_TABLE = 4
"""Places that use few columns share a table of at most so many, which stays in the L1 cache."""
WORD = 64
SNAP = 2.0**40
"""A float64 sum with a constant of this size is a multiple of 2^-12, whatever else is in it."""


@dataclass
class _Lookups:
    """What is looked up for the token at one place: columns of numbers, and one-bit columns."""

    columns: dict[bytes, Array] = field(default_factory=dict)
    bits: dict[bytes, Bits] = field(default_factory=dict)


@dataclass
class Writer:
    """Lines of C, and what they refer to.

    ``rounded`` holds the variables whose values may not be exact: means, and what comes from them.
    They are never cancelled against each other.
    """

    lines: list[str] = field(default_factory=list)
    rounded: set[str] = field(default_factory=set)
    program: Program = field(default_factory=Program)
    indent: str = "    "
    _lookups: dict[Place, _Lookups] = field(default_factory=dict)
    _bases: dict[bytes, Array] = field(default_factory=dict)
    _names: dict[str, int] = field(default_factory=dict)
    _positions: dict[tuple[object, ...], str] = field(default_factory=dict)
    _n_positions: int = 0

    def say(self, line: str) -> None:
        """Append one line of C."""
        self.lines.append(self.indent + line)

    def name(self, prefix: str) -> str:
        """A new name: the prefix, and from the second time on a number.

        Names in inner blocks (g, n, s, score, better, token) are no prefixes.
        """
        count = self._names[prefix] = self._names.get(prefix, 0) + 1
        return prefix if count == 1 else f"{prefix}_{count}"

    def variable(self, prefix: str, text: str, node: Node, rounded: bool = False) -> Linear:
        """Declare a double and return it."""
        name = self.name(prefix)
        self.program.nodes[name] = node
        self.say(f"const double {name} = {text};")
        if rounded:
            self.rounded.add(name)
        return Linear(variables=((1.0, name),))

    def position(self, text: str, node: Node, key: tuple[object, ...] | None = None) -> str:
        """Declare a position, a place to look up tokens; the same one for the same key."""
        if key is not None and key in self._positions:
            return self._positions[key]
        self._n_positions += 1
        name = f"i{self._n_positions}"
        self.program.nodes[name] = node
        self.say(f"const int64_t {name} = {text};")
        self.say(f"@{name}@")
        if key is not None:
            self._positions[key] = name
        return name

    def is_rounded(self, linear: Linear) -> bool:
        """Whether the value may be rounded; not to a fixed grid, by adding a large constant."""
        if abs(linear.form.const) >= SNAP:
            return False
        return any(name in self.rounded for _, name in linear.variables)

    def combine(self, terms: Sequence[tuple[float, Linear]], prefix: str = "total") -> Linear:
        """The sum of factor times value, simplified where that is exact."""
        terms = [(factor, value) for factor, value in terms if factor and value.constant != 0.0]
        form = exact_sum((factor, value.form) for factor, value in terms)
        variables = [
            (factor * own, name) for factor, value in terms for own, name in value.variables
        ]
        simple = merged(variables)
        cancelled = {name for _, name in variables} - {name for _, name in simple}
        if form is not None and not (cancelled & self.rounded and (simple or not form.is_zero)):
            return Linear(form, tuple(simple))
        column = _rounded_column(terms) if form is None else None
        if column is not None:
            return Linear(column)
        text = ""
        for factor, value in terms:
            part = self.text(value)
            text = plus(text, factor, part if part.isidentifier() else f"({part})")
        rounded = any(self.is_rounded(value) for _, value in terms)
        return self.variable(prefix, text, Sum(tuple(terms)), rounded)

    def settled(self, value: Linear, prefix: str) -> Linear:
        """The value as a form or a single variable, declaring one if it needs to."""
        if not value.variables or (
            value.form.is_zero and value.variables[0][0] == 1.0 == len(value.variables)
        ):
            return value
        return self.variable(prefix, self.text(value), Sum(((1.0, value),)), self.is_rounded(value))

    def text(self, value: Linear) -> str:
        """C for a value: variables, position, columns, constant. What varies least comes last."""
        text = ""
        for factor, name in value.variables:
            text = plus(text, factor, name)
        form = value.form
        if form.p:
            text = plus(text, form.p, "position")
        if form.square:
            text = plus(text, form.square, "square")
        const = form.const
        for place, column in sorted(form.columns.items(), key=lambda item: item[0]):
            whole = column + const
            if const and exact_shift(column, const):
                column, const = whole, 0.0
            factor, name = self.column(place, column)
            text = plus(text, factor, name)
        if const or not text:
            text = plus(
                text, -1.0 if const < 0 and text else 1.0, number(abs(const) if text else const)
            )
        return text

    def column(self, place: Place, column: Array) -> tuple[float, str]:
        """Factor and C text of a column at a place."""
        columns = self._lookups.setdefault(place, _Lookups()).columns
        first = float(column[np.flatnonzero(column)[0]]) if column.any() else 1.0
        scale = float(np.copysign(2.0 ** (np.frexp(first)[1] - 1), first))
        key = (column / scale + 0.0).tobytes()
        base = columns.setdefault(key, self._bases.setdefault(key, column))
        at = np.flatnonzero(base)
        factor = float(column[at[0]] / base[at[0]]) if at.size else 1.0
        index = list(columns).index(key)
        return factor, f"{pointer(place)}[@{place[0]},{place[1]}:{index}@]"

    def bit(self, place: Place, column: Bits) -> tuple[str, int]:
        """The C name of a word for the token at a place, and the number of the column's bit."""
        bits = self._lookups.setdefault(place, _Lookups()).bits
        bits.setdefault(column.tobytes(), column)
        index = list(bits).index(column.tobytes())
        return f"{pointer(place, 'm')}_{index // WORD}", index % WORD

    def finish(self) -> tuple[list[str], list[npt.NDArray[np.generic]], int]:
        """The lines with lookups resolved; the tables (tokens, columns); how many hold numbers."""
        tables: list[dict[bytes, Array]] = []
        where: dict[Place, int] = {}
        for place, lookups in sorted(self._lookups.items(), key=lambda i: -len(i[1].columns)):
            if lookups.columns:
                where[place] = _put(tables, lookups.columns)
        masks: list[npt.NDArray[np.uint64]] = []
        mask_of: dict[Place, int] = {}
        for place, lookups in self._lookups.items():
            if lookups.bits:
                mask_of[place] = len(masks)
                masks.append(_packed(list(lookups.bits.values())))
        arrays: list[npt.NDArray[np.generic]] = [
            np.ascontiguousarray(np.stack(list(table.values()), axis=1)) for table in tables
        ]

        def index(match: re.Match[str]) -> str:
            place = (match[1], int(match[2]))
            key = list(self._lookups[place].columns)[int(match[3])]
            return str(list(tables[where[place]]).index(key))

        lines: list[str] = []
        for line in self.lines:
            marker = re.fullmatch(r"\s*@(\w+)@", line)
            if marker is None:
                lines.append(re.sub(r"@(\w+),(\d+):(\d+)@", index, line))
                continue
            for place in sorted(self._lookups):
                if place[0] == marker[1]:
                    lines += self._definitions(place, where, mask_of, arrays, masks)
        return lines, [*arrays, *masks], len(arrays)

    def _definitions(
        self,
        place: Place,
        where: dict[Place, int],
        mask_of: dict[Place, int],
        arrays: Sequence[npt.NDArray[np.generic]],
        masks: Sequence[npt.NDArray[np.generic]],
    ) -> Iterable[str]:
        base, back = place
        at = f"before({base}, {back})" if back else base
        token = "token" if place == HERE else f"e->core.tokens[{at}]"
        if place in where:
            table = where[place]
            width = arrays[table].shape[1]
            yield f"    const double *const {pointer(place)} = e->table{table} + {width} * {token};"
        if place in mask_of:
            words = masks[mask_of[place]].shape[1]
            for i in range(words):
                row = f"e->mask{mask_of[place]}[{words} * {token} + {i}]"
                yield f"    const uint64_t {pointer(place, 'm')}_{i} = {row};"


def pointer(place: Place, prefix: str = "t") -> str:
    """Name of the row of a table that belongs to the token at a place."""
    return f"{prefix}_{place[0]}" + (f"_{place[1]}" if place[1] else "")


def number(value: float) -> str:
    """A float64 literal."""
    return repr(float(value))


def plus(text: str, factor: float, term: str) -> str:
    """C of a sum with one more term."""
    size = abs(factor)
    product = term if size == 1.0 else f"{number(size)} * {term}"
    if text:
        return f"{text} {'-' if factor < 0 else '+'} {product}"
    return f"-{product}" if factor < 0 else product


def _rounded_column(terms: Sequence[tuple[float, Linear]]) -> Form | None:
    """A sum that may round, if it depends on one token: its values, added up in this order."""
    places = {place for _, value in terms for place in value.form.columns}
    known = all(value.constant is not None or value.place is not None for _, value in terms)
    if not known or len(places) != 1:
        return None
    (place,) = places
    parts = [
        factor * (value.form.const if value.constant is not None else value.form.table(place))
        for factor, value in terms
    ]
    column = np.asarray(sum(parts[1:], parts[0]) + 0.0)
    return Form(columns={place: column}) if (column != column[0]).any() else Form(float(column[0]))


def exact_shift(column: Array, const: float) -> bool:
    """Whether adding a number to a column is exact for every token."""
    shifted = exact_sum([(1.0, Form(const)), (1.0, Form(columns={HERE: column}))])
    return shifted is not None


def _put(tables: list[dict[bytes, Array]], columns: dict[bytes, Array]) -> int:
    """The index of a table with all the columns, a small one if they are few."""
    for i, table in enumerate(tables):
        fits = len(set(table) | set(columns)) <= SMALL_TABLE
        if fits or (set(columns) == set(table)):
            for key, column in columns.items():
                table.setdefault(key, column)
            return i
    tables.append(dict(columns))
    return len(tables) - 1


def _packed(columns: Sequence[Bits]) -> npt.NDArray[np.uint64]:
    """One-bit columns as words (tokens, words), bit i of word w from column 64 w + i."""
    words = -(-len(columns) // WORD)
    packed = np.zeros((len(columns[0]), words), dtype=np.uint64)
    for i, column in enumerate(columns):
        packed[:, i // WORD] |= column.astype(np.uint64) << np.uint64(i % WORD)
    return packed

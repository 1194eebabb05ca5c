"""C for heads that find a record of one of the keys so far: few keys, keys of a table, any keys.

In: heads that share keys. Out: statements and declarations, as in
:mod:`executor.native.attention`, of which this is the half that deals with structures of records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp, ldexp

from executor.checkpoint import Array
from executor.codegen import Cache
from executor.liveness import Head
from executor.native.classify import Kind, Lookups, is_of_token, key_values
from executor.native.forms import HERE, Form, Linear, can_shift, shifted
from executor.native.nodes import AsDouble, Cell, Insert, Query, Weight
from executor.native.state import Description, State, counted
from executor.native.writer import Writer

Results = dict[int, list[tuple[float, Linear]]]
"""For each slot what it receives: factor and value."""


@dataclass(frozen=True)
class Reader:
    """Heads of one layer with the same key, mode and query."""

    heads: tuple[Head, ...]
    query: tuple[Linear, Linear]
    kind: Kind


@dataclass(frozen=True)
class Group:
    """Heads of one layer that share keys and are of one kind.

    Attributes:
        values: all that heads with this cache store, by row.
        results: where to put what is found.
    """

    layer: int
    cache: Cache
    key: tuple[Linear, Linear]
    values: Sequence[Linear]
    readers: Sequence[Reader]
    results: Results

    @property
    def is_mean(self) -> bool:
        """Whether values of equal keys are averaged; else the latest counts."""
        return self.cache.mode == "mean"

    def rows(self, reader: Reader) -> list[int]:
        """Which of the values a reader needs."""
        return sorted(
            {
                self.cache.columns[head.index, c]
                for head in reader.heads
                for c in range(len(head.out))
                if head.out[c].any()
            }
        )

    def all_rows(self) -> list[int]:
        """Which of the values any reader needs."""
        return sorted({row for reader in self.readers for row in self.rows(reader)})

    def kept(self, rows: Sequence[int]) -> list[int]:
        """Those that are stored with a key; others are computed again from the position."""
        return [row for row in rows if self.is_mean or not _is_cheap(self.values[row])]

    def chosen(self, rows: Sequence[int]) -> tuple[Linear, ...]:
        """Some of the values."""
        return tuple(self.values[row] for row in rows)


class Structures:
    """Writes what is found with keys."""

    def __init__(self, writer: Writer, state: State, lookups: Lookups = "classified") -> None:
        self.writer = writer
        self.state = state
        self.lookups: Lookups = lookups
        self.described: list[Description] = []
        self._positions: dict[str, str] = {}  # variables that are positions as numbers

    def _say(self, line: str) -> None:
        self.writer.say(line)

    def deliver(
        self, group: Group, reader: Reader, found: dict[int, Linear], how: str, part: str
    ) -> None:
        """Add the values found, by row of the cache, to what the slots receive; ``how`` and
        ``part`` are for people."""
        for head in reader.heads:
            for component, out in enumerate(head.out):
                for slot in _support(out):
                    value = found[group.cache.columns[head.index, component]]
                    group.results.setdefault(slot, []).append((float(out[slot]), value))
        indices = tuple(head.index for head in reader.heads)
        self.described.append(Description(group.layer, indices, reader.kind, how, part))

    def again(self, form: Form, base: str, back: int = 0) -> Linear:
        """A value of the token at a position, computed again from the tokens."""
        moved = Linear(shifted(form, base, back))
        if not form.p:
            return moved
        there = self.writer.variable("d", f"(double){base}", AsDouble(base))
        self._positions[there.variables[0][1]] = base
        return self.writer.combine([(1.0, moved), (form.p, there)])

    def record(
        self,
        group: Group,
        reader: Reader,
        cells: Sequence[str],
        weight: str,
        stored: Sequence[int],
        owner: str,
    ) -> dict[int, Linear]:
        """The values of a record: read or, if not stored, computed from its position."""
        w, values, found = self.writer, group.values, dict[int, Linear]()
        rows, mean = group.rows(reader), group.is_mean
        for k, (row, cell) in enumerate(zip(stored, cells, strict=True), 1):
            if row in rows:
                node = Cell(owner, cell, values[row], weight if mean else "", k)
                text = f"{cell} / (double){weight}" if mean else cell
                found[row] = w.variable("v", text, node, mean or w.is_rounded(values[row]))
        again = [row for row in rows if row not in found]
        if again:
            base = w.position(weight, Weight(owner, weight))
            found |= {row: self.again(values[row].form, base) for row in again}
        return found

    def _insert(self, name: str, insert: Insert) -> None:
        """Fill the record and insert it."""
        self.writer.program.effects[name] = insert
        table = insert.kind == "table"
        at = f"PLACE_{name}(p, token)" if table else "1" if insert.mean else "p"
        self._say(f"{insert.fresh}[0].i = {at};")
        for k, value in enumerate(insert.values):
            cell, text = f"{insert.fresh}[{k + 1}]", self.writer.text(value)
            self._say(f"KEEP_{name}_{k + 1}({cell}, {text});" if table else f"{cell}.d = {text};")
        self._say(insert.call.format(*map(self.writer.text, insert.arguments)))

    def _query(
        self, group: Group, reader: Reader, query: Query, stored: Sequence[int], how: str
    ) -> None:
        w = self.writer
        record = w.name("r")
        w.program.nodes[record] = query
        call = query.call.format(*map(w.text, query.arguments))
        self._say(f"const cell *const {record} = {call};")
        cells = [f"{record}[{k + 1}].d" for k in range(len(stored))]
        weight = f"{record}[0].i"
        if query.is_table:
            cells = [f"VALUE_{query.of}_{k + 1}({record})" for k in range(len(stored))]
            weight = f"AT_{query.of}({record})"
        found = self.record(group, reader, cells, weight, stored, record)
        self.deliver(group, reader, found, how_stored(how, stored, " with each"), query.of)

    def _few_valued(self, group: Group) -> None:
        w, name = self.writer, f"few_{group.cache.name}"
        assert is_of_token(group.key)
        distinct, which = key_values(group.key)
        stored = group.kept(group.all_rows())
        keys = f"keys_{group.cache.name}"
        self.state.fields.append(f"few {name};")
        numbers = ", ".join(repr(float(x)) for pair in distinct for x in pair)
        self.state.constants.append(f"static const double {keys}[] = {{{numbers}}};")
        arguments = f"{int(group.is_mean)}, {len(stored)}, {keys}, {len(distinct)}"
        self.state.start.append(f"few_start(&e->{name}, &e->core.status, {arguments});")
        self.state.clear.append(f"few_clear(&e->{name});")
        index = w.combine([(1.0, Linear(_token_form(which.astype(float))))])
        call = f"few_insert(&e->{name}, (int)({{0}}));"
        fresh, given = f"few_fresh(&e->{name})", group.chosen(stored)
        self._insert(name, Insert("few", fresh, group.is_mean, given, call, (index,), distinct))
        for reader in group.readers:
            call = f"few_query(&e->{name}, &e->core.status, {{0}}, {{1}})"
            query = Query(name, call, reader.query)
            self._query(group, reader, query, stored, counted(len(distinct), "record"))

    def _indexed(self, group: Group) -> None:
        w, name = self.writer, f"table_{group.cache.name}"
        stored = group.kept(group.all_rows())
        self.state.fields.append(f"table {name};")
        self.state.start.append(f"table_start(&e->{name}, &e->core.status, {len(stored)});")
        self.state.clear.append(f"table_clear(&e->{name});")
        call = f"table_insert(&e->{name}, {{0}}, {{1}});"
        fresh, given = f"e->{name}.fresh", group.chosen(stored)
        self._insert(name, Insert("table", fresh, False, given, call, group.key))
        for reader in group.readers:
            query = w.combine([(1.0 / reader.kind.scale, reader.query[0])])
            found = Query(name, f"table_query(&e->{name}, {{0}})", (query,))
            self._query(group, reader, found, stored, "a record for every key")

    def _general(self, group: Group) -> None:
        structure = "scan" if group.readers[0].kind.name == "scan" else "hull"
        name, stored = f"{structure}_{group.cache.name}", group.kept(group.all_rows())
        down = any((r.query[1].constant or -1.0) < 0.0 for r in group.readers)
        self.state.fields.append(f"{structure} {name};")
        arguments = f"&e->core.status, {int(group.is_mean)}, {len(stored)}, {int(down)}"
        self.state.start.append(f"{structure}_start(&e->{name}, {arguments});")
        self.state.clear.append(f"{structure}_clear(&e->{name});")
        call = f"{structure}_insert(&e->{name}, {{0}}, {{1}}, e->{name}.fresh);"
        fresh, given = f"e->{name}.fresh", group.chosen(stored)
        self._insert(name, Insert("hull", fresh, group.is_mean, given, call, group.key))
        self._say("if (e->core.status.error)")
        self._say("    return -1;")
        each = "vertex" if structure == "hull" else "token"
        for reader in group.readers:
            query = Query(name, f"{structure}_query(&e->{name}, {{0}}, {{1}})", reader.query)
            self._query(group, reader, query, stored, f"a record for every {each}")

    _scan = _general


def how_stored(records: str, stored: Sequence[int], ending: str = "") -> str:
    """What is stored, in words: records, and the values in them."""
    return f"{records}, {counted(len(stored), 'value')}{ending}" if stored else records


def power_of_two(value: Linear) -> float:
    """The scale of a value's first part: values that differ by a power of two are stored once."""
    form = value.form
    first = next(iter(value.variables), (form.p or form.square, ""))[0]
    for column in (form.columns[place] for place in sorted(form.columns)):
        first = first or float(column[column.nonzero()[0][0]])
    return ldexp(1.0, frexp(abs(first or 1.0))[1] - 1)


def _support(row: Array) -> list[int]:
    return [int(i) for i in row.nonzero()[0]]


def _is_cheap(value: Linear) -> bool:
    """Whether computing it again takes no more than one token."""
    return can_shift(value) and len(value.form.columns) <= 1


def _token_form(column: Array) -> Form:
    return Form(columns={HERE: column}) if (column != column[0]).any() else Form(float(column[0]))

"""C for the heads of a layer: store keys and values, look up, add the results to the stream.

In: what the heads read, as values; out: statements in a :class:`~executor.native.writer.Writer` and
declarations of the state that later tokens look at. A value that a later token can compute from
the tokens is not stored at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp, ldexp

from executor.checkpoint import Array
from executor.codegen import Cache
from executor.liveness import Head
from executor.native.classify import Kind, Lookups, classify, is_of_token, key_values
from executor.native.forms import HERE, Form, Linear, can_shift, shifted
from executor.native.nodes import (
    AddTo,
    AsDouble,
    Back,
    Cell,
    Extreme,
    Insert,
    Load,
    Mean,
    Nearest,
    Query,
    Quotient,
    Store,
    Weight,
)
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


class Attention:
    """Writes the attention of one layer after another."""

    def __init__(self, writer: Writer, state: State, lookups: Lookups = "classified") -> None:
        self.writer = writer
        self.state = state
        self.lookups: Lookups = lookups
        self.described: list[Description] = []
        self._positions: dict[str, str] = {}  # variables that are positions as numbers

    def cache(
        self,
        layer: int,
        cache: Cache,
        key: tuple[Linear, Linear],
        values: Sequence[Linear],
        readers: Sequence[tuple[tuple[Head, ...], tuple[Linear, Linear]]],
        results: Results,
    ) -> None:
        """One group of heads that share keys."""
        found = [
            Reader(heads, q, classify(cache.mode, key, q, self.lookups)) for heads, q in readers
        ]
        if any(reader.kind.name == "general" for reader in found):
            reason = "another head with these keys needs a convex hull"
            found = [
                Reader(r.heads, r.query, Kind("general", reason)) if r.kind.name == "indexed" else r
                for r in found
            ]
        self._layer = layer
        groups: dict[str, list[Reader]] = {}
        for reader in found:
            groups.setdefault(reader.kind.name, []).append(reader)
        for name, members in groups.items():
            for reader in members:
                heads = " ".join(str(head.index) for head in reader.heads)
                self._say(f"/* head {heads}: {name}: {reader.kind.reason} */")
            write = getattr(self, f"_{name.replace('-', '_')}")
            write(cache, key, values, members, results)

    def _say(self, line: str) -> None:
        self.writer.say(line)

    def _rows(self, cache: Cache, reader: Reader) -> list[int]:
        """Which of the cache's values a reader needs."""
        return sorted(
            {
                cache.columns[head.index, c]
                for head in reader.heads
                for c in range(len(head.out))
                if head.out[c].any()
            }
        )

    def _deliver(
        self,
        cache: Cache,
        reader: Reader,
        found: dict[int, Linear],
        results: Results,
        how: str,
        part: str,
    ) -> None:
        """Add the values found, by row of the cache, to what the slots receive; ``how`` and
        ``part`` are for people."""
        for head in reader.heads:
            for component, out in enumerate(head.out):
                for slot in _support(out):
                    value = found[cache.columns[head.index, component]]
                    results.setdefault(slot, []).append((float(out[slot]), value))
        indices = tuple(head.index for head in reader.heads)
        self.described.append(Description(self._layer, indices, reader.kind, how, part))

    def _self(
        self,
        cache: Cache,
        key: tuple[Linear, Linear],
        values: Sequence[Linear],
        readers: Sequence[Reader],
        results: Results,
    ) -> None:
        for reader in readers:
            found = {row: values[row] for row in self._rows(cache, reader)}
            self._deliver(cache, reader, found, results, "nothing stored", "p")

    def _uniform(
        self,
        cache: Cache,
        key: tuple[Linear, Linear],
        values: Sequence[Linear],
        readers: Sequence[Reader],
        results: Results,
    ) -> None:
        rows = sorted({row for reader in readers for row in self._rows(cache, reader)})
        means = {}
        for row in rows:
            name = f"sum_{cache.name}_{row}"
            self.state.fields.append(f"double {name}; /* of a value over all tokens */")
            self._say(f"e->{name} += {self.writer.text(values[row])};")
            self.writer.program.effects[name] = AddTo(values[row])
            text = f"e->{name} / (position + 1.0)"
            means[row] = self.writer.variable("mean", text, Mean(name), rounded=True)
        for reader in readers:
            self._deliver(cache, reader, means, results, "running sums", f"sum_{cache.name}")

    def _position(
        self,
        cache: Cache,
        key: tuple[Linear, Linear],
        values: Sequence[Linear],
        readers: Sequence[Reader],
        results: Results,
    ) -> None:
        for reader in readers:
            kind, w = reader.kind, self.writer
            rows = self._rows(cache, reader)
            stored = {row: self._column(values[row]) for row in rows if not can_shift(values[row])}
            if kind.name == "quotient":
                x, y = (w.text(q) for q in reader.query)
                text = f"nearest_quotient(&e->core.status, {x}, {y}, p)"
                base, back = w.position(text, Quotient(*reader.query)), 0
            elif kind.back is None:
                query = w.combine([(1.0 / kind.scale, reader.query[0])])
                text = f"nearest(&e->core.status, {w.text(query)}, p)"
                known = self._positions.get(w.text(query))
                base = known or w.position(text, Nearest(query), ("nearest", *query.key()))
                back = 0
            else:
                base, back = "p", kind.back
            if back and (stored or any(values[row].form.p for row in rows)):
                base, back = w.position(f"before(p, {back})", Back(back), ("before", back)), 0
            found = {}
            for row in rows:
                if row in stored:
                    column, factor = stored[row]
                    text = f"LOAD_{column}({base})"
                    one = w.variable("v", text, Load(column, base))
                    if w.is_rounded(values[row]):
                        w.rounded.add(one.variables[0][1])
                    found[row] = w.combine([(factor, one)])
                else:
                    found[row] = self._again(values[row].form, base, back)
            how = "nothing stored"
            if stored:
                how = f"{counted(len(stored), 'value')} stored for every token"
            self._deliver(cache, reader, found, results, how, base)

    _quotient = _position

    def _column(self, value: Linear) -> tuple[int, float]:
        """Store a value for every token; the number of the array, and the factor it needs."""
        factor = _power_of_two(value)
        scaled = self.writer.combine([(1.0 / factor, value)])
        key = scaled.key()
        if key not in self.state.stored:
            text = self.writer.text(scaled)
            self.state.stored[key] = len(self.state.columns)
            self._say(f"STORE_{len(self.state.columns)}(p, {text});")
            self.writer.program.effects[f"column {self.state.stored[key]}"] = Store(scaled)
            self.state.columns.append(text)
        return self.state.stored[key], factor

    def _again(self, form: Form, base: str, back: int = 0) -> Linear:
        """A value of the token at a position, computed again from the tokens."""
        moved = Linear(shifted(form, base, back))
        if not form.p:
            return moved
        there = self.writer.variable("d", f"(double){base}", AsDouble(base))
        self._positions[there.variables[0][1]] = base
        return self.writer.combine([(1.0, moved), (form.p, there)])

    def _extreme(
        self,
        cache: Cache,
        key: tuple[Linear, Linear],
        values: Sequence[Linear],
        readers: Sequence[Reader],
        results: Results,
    ) -> None:
        w = self.writer
        for number, reader in enumerate(readers):
            name = f"best_{cache.name}" + (f"_{number}" if number else "")
            rows = self._rows(cache, reader)
            mean = cache.mode == "mean"
            stored = [row for row in rows if mean or not _is_cheap(values[row])]
            fields = "".join(f" double v{k};" for k in range(len(stored)))
            self.state.fields.append(f"struct {{ extreme x;{fields} }} {name};")
            self.state.start.append(f"e->{name}.x.weight = -1;")
            score = w.settled(w.combine([(reader.kind.sign, key[reader.kind.axis])]), "key")
            self._say("{")
            self._say(f"    const double score = {w.text(score)};")
            compare = f"extreme_compare(&e->core.status, &e->{name}.x, score)"
            self._say(f"    const int better = {compare};")
            texts = [w.text(values[row]) for row in stored]
            weight = "1" if mean else "p"
            w.program.effects[name] = Extreme(score, mean, tuple(values[row] for row in stored))
            self._say(f"    if (better {'>' if mean else '>='} 0) {{")
            self._say(f"        e->{name}.x.key = score, e->{name}.x.weight = {weight};")
            for k, text in enumerate(texts):
                self._say(f"        e->{name}.v{k} = {text};")
            if mean:
                self._say("    } else if (better == 0) {")
                self._say(f"        e->{name}.x.weight++;")
                for k, text in enumerate(texts):
                    self._say(f"        e->{name}.v{k} += {text};")
            self._say("    }")
            self._say("}")
            found = self._record(
                [f"e->{name}.v{k}" for k in range(len(stored))],
                f"e->{name}.x.weight", mean, stored, rows, values, name,
            )  # fmt: skip
            self._deliver(cache, reader, found, results, _how("1 record", stored), name)

    def _record(
        self,
        cells: Sequence[str],
        weight: str,
        mean: bool,
        stored: Sequence[int],
        rows: Sequence[int],
        values: Sequence[Linear],
        owner: str,
    ) -> dict[int, Linear]:
        """The values of a record: read or, if not stored, computed from its position."""
        w = self.writer
        found = {}
        for k, (row, cell) in enumerate(zip(stored, cells, strict=True), 1):
            if row in rows:
                node = Cell(owner, cell, values[row], weight if mean else "", k)
                text = f"{cell} / (double){weight}" if mean else cell
                found[row] = w.variable("v", text, node, mean or w.is_rounded(values[row]))
        again = [row for row in rows if row not in found]
        if again:
            base = w.position(weight, Weight(owner, weight))
            found |= {row: self._again(values[row].form, base) for row in again}
        return found

    def _keyed(
        self,
        cache: Cache,
        values: Sequence[Linear],
        readers: Sequence[Reader],
    ) -> list[int]:
        """Rows to be stored with every key of a structure."""
        rows = sorted({row for reader in readers for row in self._rows(cache, reader)})
        mean = cache.mode == "mean"
        return [row for row in rows if mean or not _is_cheap(values[row])]

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
        self,
        cache: Cache,
        reader: Reader,
        query: Query,
        stored: Sequence[int],
        values: Sequence[Linear],
        results: Results,
        how: str,
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
        rows, mean = self._rows(cache, reader), cache.mode == "mean"
        found = self._record(cells, weight, mean, stored, rows, values, record)
        self._deliver(cache, reader, found, results, _how(how, stored, " with each"), query.of)

    def _few_valued(
        self,
        cache: Cache,
        key: tuple[Linear, Linear],
        values: Sequence[Linear],
        readers: Sequence[Reader],
        results: Results,
    ) -> None:
        w, name, mean = self.writer, f"few_{cache.name}", cache.mode == "mean"
        assert is_of_token(key)
        distinct, which = key_values(key)
        stored = self._keyed(cache, values, readers)
        self.state.fields.append(f"few {name};")
        numbers = ", ".join(repr(float(x)) for pair in distinct for x in pair)
        self.state.constants.append(f"static const double keys_{cache.name}[] = {{{numbers}}};")
        arguments = (
            f"&e->core.status, {int(mean)}, {len(stored)}, keys_{cache.name}, {len(distinct)}"
        )
        self.state.start.append(f"few_start(&e->{name}, {arguments});")
        self.state.clear.append(f"few_clear(&e->{name});")
        index = w.combine([(1.0, Linear(_token_form(which.astype(float))))])
        given = tuple(values[row] for row in stored)
        call = f"few_insert(&e->{name}, (int)({{0}}));"
        fresh = f"few_fresh(&e->{name})"
        self._insert(name, Insert("few", fresh, mean, given, call, (index,), distinct))
        for reader in readers:
            call = f"few_query(&e->{name}, &e->core.status, {{0}}, {{1}})"
            query = Query(name, call, reader.query)
            how = counted(len(distinct), "record")
            self._query(cache, reader, query, stored, values, results, how)

    def _indexed(
        self,
        cache: Cache,
        key: tuple[Linear, Linear],
        values: Sequence[Linear],
        readers: Sequence[Reader],
        results: Results,
    ) -> None:
        w, name = self.writer, f"table_{cache.name}"
        stored = self._keyed(cache, values, readers)
        self.state.fields.append(f"table {name};")
        self.state.start.append(f"table_start(&e->{name}, &e->core.status, {len(stored)});")
        self.state.clear.append(f"table_clear(&e->{name});")
        given = tuple(values[row] for row in stored)
        call = f"table_insert(&e->{name}, {{0}}, {{1}});"
        self._insert(name, Insert("table", f"e->{name}.fresh", False, given, call, key))
        for reader in readers:
            query = w.combine([(1.0 / reader.kind.scale, reader.query[0])])
            found = Query(name, f"table_query(&e->{name}, {{0}})", (query,))
            self._query(cache, reader, found, stored, values, results, "a record for every key")

    def _general(
        self,
        cache: Cache,
        key: tuple[Linear, Linear],
        values: Sequence[Linear],
        readers: Sequence[Reader],
        results: Results,
    ) -> None:
        structure = "scan" if readers[0].kind.name == "scan" else "hull"
        name, mean = f"{structure}_{cache.name}", cache.mode == "mean"
        stored = self._keyed(cache, values, readers)
        down = any((r.query[1].constant or -1.0) < 0.0 for r in readers)
        self.state.fields.append(f"{structure} {name};")
        arguments = f"&e->core.status, {int(mean)}, {len(stored)}, {int(down)}"
        self.state.start.append(f"{structure}_start(&e->{name}, {arguments});")
        self.state.clear.append(f"{structure}_clear(&e->{name});")
        given = tuple(values[row] for row in stored)
        call = f"{structure}_insert(&e->{name}, {{0}}, {{1}}, e->{name}.fresh);"
        self._insert(name, Insert("hull", f"e->{name}.fresh", mean, given, call, key))
        self._say("if (e->core.status.error)")
        self._say("    return -1;")
        each = "vertex" if structure == "hull" else "token"
        for reader in readers:
            query = Query(name, f"{structure}_query(&e->{name}, {{0}}, {{1}})", reader.query)
            self._query(cache, reader, query, stored, values, results, f"a record for every {each}")

    _scan = _general


def _how(records: str, stored: Sequence[int], ending: str = "") -> str:
    """What is stored, in words: records, and the values in them."""
    return f"{records}, {counted(len(stored), 'value')}{ending}" if stored else records


def _support(row: Array) -> list[int]:
    return [int(i) for i in row.nonzero()[0]]


def _power_of_two(value: Linear) -> float:
    """The scale of a value's first part: values that differ by a power of two are stored once."""
    form = value.form
    first = next(iter(value.variables), (form.p or form.square, ""))[0]
    for column in (form.columns[place] for place in sorted(form.columns)):
        first = first or float(column[column.nonzero()[0][0]])
    return ldexp(1.0, frexp(abs(first or 1.0))[1] - 1)


def _is_cheap(value: Linear) -> bool:
    """Whether computing it again takes no more than one token."""
    return can_shift(value) and len(value.form.columns) <= 1


def _token_form(column: Array) -> Form:
    return Form(columns={HERE: column}) if (column != column[0]).any() else Form(float(column[0]))

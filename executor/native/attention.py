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
from executor.native.classify import Kind, classify, is_of_token, key_values
from executor.native.forms import HERE, Form, Linear, can_shift, shifted
from executor.native.state import Description, State
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

    def __init__(self, writer: Writer, state: State) -> None:
        self.writer = writer
        self.state = state
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
        found = [Reader(heads, q, classify(cache.mode, key, q)) for heads, q in readers]
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
        self, cache: Cache, reader: Reader, found: dict[int, Linear], results: Results, how: str
    ) -> None:
        """Add the values found, by row of the cache, to what the slots receive."""
        for head in reader.heads:
            for component, out in enumerate(head.out):
                for slot in _support(out):
                    value = found[cache.columns[head.index, component]]
                    results.setdefault(slot, []).append((float(out[slot]), value))
        indices = tuple(head.index for head in reader.heads)
        self.described.append(Description(self._layer, indices, reader.kind, how))

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
            self._deliver(cache, reader, found, results, "nothing stored")

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
            text = f"e->{name} / (position + 1.0)"
            means[row] = self.writer.variable("mean", text, rounded=True)
        for reader in readers:
            self._deliver(cache, reader, means, results, "running sums")

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
                base, back = w.position(text), 0
            elif kind.back is None:
                query = w.combine([(1.0 / kind.scale, reader.query[0])])
                text = f"nearest(&e->core.status, {w.text(query)}, p)"
                known = self._positions.get(w.text(query))
                base = known or w.position(text, ("nearest", *query.key()))
                back = 0
            else:
                base, back = "p", kind.back
            if back and (stored or any(values[row].form.p for row in rows)):
                base, back = w.position(f"before(p, {back})", ("before", back)), 0
            found = {}
            for row in rows:
                if row in stored:
                    column, factor = stored[row]
                    one = w.variable("v", f"e->columns[{column}][{base}]")
                    if w.is_rounded(values[row]):
                        w.rounded.add(one.variables[0][1])
                    found[row] = w.combine([(factor, one)])
                else:
                    found[row] = self._again(values[row].form, base, back)
            how = f"{len(stored)} values stored for every token" if stored else "nothing stored"
            self._deliver(cache, reader, found, results, how)

    _quotient = _position

    def _column(self, value: Linear) -> tuple[int, float]:
        """Store a value for every token; the number of the array, and the factor it needs."""
        factor = _power_of_two(value)
        scaled = self.writer.combine([(1.0 / factor, value)])
        key = scaled.key()
        if key not in self.state.stored:
            text = self.writer.text(scaled)
            self.state.stored[key] = len(self.state.columns)
            self._say(f"e->columns[{len(self.state.columns)}][p] = {text};")
            self.state.columns.append(text)
        return self.state.stored[key], factor

    def _again(self, form: Form, base: str, back: int = 0) -> Linear:
        """A value of the token at a position, computed again from the tokens."""
        moved = Linear(shifted(form, base, back))
        if not form.p:
            return moved
        there = self.writer.variable("d", f"(double){base}")
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
                f"e->{name}.x.weight", mean, stored, rows, values,
            )  # fmt: skip
            self._deliver(cache, reader, found, results, f"1 record, {len(stored)} values")

    def _record(
        self,
        cells: Sequence[str],
        weight: str,
        mean: bool,
        stored: Sequence[int],
        rows: Sequence[int],
        values: Sequence[Linear],
    ) -> dict[int, Linear]:
        """The values of a record: read or, if not stored, computed from its position."""
        w = self.writer
        if mean:
            cells = [f"{cell} / (double){weight}" for cell in cells]
        found = {
            row: w.variable("v", cell, mean or w.is_rounded(values[row]))
            for row, cell in zip(stored, cells, strict=True)
            if row in rows
        }
        again = [row for row in rows if row not in found]
        if again:
            base = w.position(weight)
            found |= {row: self._again(values[row].form, base) for row in again}
        return found

    def _keyed(
        self,
        cache: Cache,
        values: Sequence[Linear],
        readers: Sequence[Reader],
    ) -> tuple[list[int], list[str]]:
        """Rows to be stored with every key of a structure, and the C of their values."""
        rows = sorted({row for reader in readers for row in self._rows(cache, reader)})
        mean = cache.mode == "mean"
        stored = [row for row in rows if mean or not _is_cheap(values[row])]
        return stored, [self.writer.text(values[row]) for row in stored]

    def _fill(self, fresh: str, mean: bool, texts: Sequence[str]) -> None:
        self._say(f"{fresh}[0].i = {'1' if mean else 'p'};")
        for k, text in enumerate(texts):
            self._say(f"{fresh}[{k + 1}].d = {text};")

    def _query(
        self,
        cache: Cache,
        reader: Reader,
        call: str,
        stored: Sequence[int],
        values: Sequence[Linear],
        results: Results,
        how: str,
    ) -> None:
        w = self.writer
        record = w.name("r")
        self._say(f"const cell *const {record} = {call};")
        cells = [f"{record}[{k + 1}].d" for k in range(len(stored))]
        rows = self._rows(cache, reader)
        found = self._record(cells, f"{record}[0].i", cache.mode == "mean", stored, rows, values)
        self._deliver(cache, reader, found, results, f"{how}, {len(stored)} values with each")

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
        stored, texts = self._keyed(cache, values, readers)
        self.state.fields.append(f"few {name};")
        numbers = ", ".join(repr(float(x)) for pair in distinct for x in pair)
        self.state.constants.append(f"static const double keys_{cache.name}[] = {{{numbers}}};")
        arguments = (
            f"&e->core.status, {int(mean)}, {len(stored)}, keys_{cache.name}, {len(distinct)}"
        )
        self.state.start.append(f"few_start(&e->{name}, {arguments});")
        self.state.clear.append(f"free(e->{name}.records);")
        fresh = w.name("fresh")
        self._say(f"cell *const {fresh} = few_fresh(&e->{name});")
        self._fill(fresh, mean, texts)
        index = w.combine([(1.0, Linear(_token_form(which.astype(float))))])
        self._say(f"few_insert(&e->{name}, (int)({w.text(index)}));")
        for reader in readers:
            x, y = (w.text(q) for q in reader.query)
            call = f"few_query(&e->{name}, &e->core.status, {x}, {y})"
            self._query(cache, reader, call, stored, values, results, f"{len(distinct)} records")

    def _indexed(
        self,
        cache: Cache,
        key: tuple[Linear, Linear],
        values: Sequence[Linear],
        readers: Sequence[Reader],
        results: Results,
    ) -> None:
        w, name = self.writer, f"table_{cache.name}"
        stored, texts = self._keyed(cache, values, readers)
        self.state.fields.append(f"table {name};")
        self.state.start.append(f"table_start(&e->{name}, &e->core.status, {len(stored)});")
        self.state.clear.append(f"table_clear(&e->{name});")
        self._fill(f"e->{name}.fresh", False, texts)
        self._say(f"table_insert(&e->{name}, {w.text(key[0])}, {w.text(key[1])});")
        for reader in readers:
            query = w.combine([(1.0 / reader.kind.scale, reader.query[0])])
            call = f"table_query(&e->{name}, {w.text(query)})"
            self._query(cache, reader, call, stored, values, results, "a record for every key")

    def _general(
        self,
        cache: Cache,
        key: tuple[Linear, Linear],
        values: Sequence[Linear],
        readers: Sequence[Reader],
        results: Results,
    ) -> None:
        w, name, mean = self.writer, f"hull_{cache.name}", cache.mode == "mean"
        stored, texts = self._keyed(cache, values, readers)
        down = any((r.query[1].constant or -1.0) < 0.0 for r in readers)
        self.state.fields.append(f"hull {name};")
        arguments = f"&e->core.status, {int(mean)}, {len(stored)}, {int(down)}"
        self.state.start.append(f"hull_start(&e->{name}, {arguments});")
        self.state.clear.append(f"hull_clear(&e->{name});")
        self._fill(f"e->{name}.fresh", mean, texts)
        keys = f"{w.text(key[0])}, {w.text(key[1])}"
        self._say(f"hull_insert(&e->{name}, {keys}, e->{name}.fresh);")
        self._say("if (e->core.status.error)")
        self._say("    return -1;")
        for reader in readers:
            x, y = (w.text(q) for q in reader.query)
            call = f"hull_query(&e->{name}, {x}, {y})"
            self._query(cache, reader, call, stored, values, results, "a record for every vertex")


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

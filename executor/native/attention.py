"""C for the heads of a layer: store keys and values, look up, add the results to the stream.

In: what the heads read, as values; out: statements in a :class:`~executor.native.writer.Writer` and
declarations of the state that later tokens look at. A value that a later token can compute from
the tokens is not stored at all.
"""

from __future__ import annotations

from collections.abc import Sequence

from executor.codegen import Cache
from executor.liveness import Head
from executor.native.classify import Kind, classify
from executor.native.forms import Linear, can_shift
from executor.native.nodes import AddTo, Back, Extreme, Load, Mean, Nearest, Quotient, Store
from executor.native.state import counted
from executor.native.structures import (
    Group,
    Reader,
    Results,
    Structures,
    how_stored,
    power_of_two,
)


class Attention(Structures):
    """Writes the attention of one layer after another."""

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
        kinds: dict[str, list[Reader]] = {}
        for reader in found:
            kinds.setdefault(reader.kind.name, []).append(reader)
        for name, members in kinds.items():
            for reader in members:
                heads = " ".join(str(head.index) for head in reader.heads)
                self._say(f"/* head {heads}: {name}: {reader.kind.reason} */")
            write = getattr(self, f"_{name.replace('-', '_')}")
            write(Group(layer, cache, key, values, members, results))

    def _self(self, group: Group) -> None:
        for reader in group.readers:
            found = {row: group.values[row] for row in group.rows(reader)}
            self.deliver(group, reader, found, "nothing stored", "p")

    def _uniform(self, group: Group) -> None:
        means = {}
        for row in group.all_rows():
            name, value = f"sum_{group.cache.name}_{row}", group.values[row]
            self.state.fields.append(f"double {name}; /* of a value over all tokens */")
            self._say(f"e->{name} += {self.writer.text(value)};")
            self.writer.program.effects[name] = AddTo(value)
            text = f"e->{name} / (position + 1.0)"
            means[row] = self.writer.variable("mean", text, Mean(name), rounded=True)
        for reader in group.readers:
            self.deliver(group, reader, means, "running sums", f"sum_{group.cache.name}")

    def _position(self, group: Group) -> None:
        w, values = self.writer, group.values
        for reader in group.readers:
            rows = group.rows(reader)
            stored = {row: self._column(values[row]) for row in rows if not can_shift(values[row])}
            base, back = self._place(reader)
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
                    found[row] = self.again(values[row].form, base, back)
            how = "nothing stored"
            if stored:
                how = f"{counted(len(stored), 'value')} stored for every token"
            self.deliver(group, reader, found, how, base)

    _quotient = _position

    def _place(self, reader: Reader) -> tuple[str, int]:
        """The C variable of the position that is found, and how many tokens before it."""
        kind, w = reader.kind, self.writer
        if kind.name == "quotient":
            x, y = (w.text(q) for q in reader.query)
            text = f"nearest_quotient(&e->core.status, {x}, {y}, p)"
            return w.position(text, Quotient(*reader.query)), 0
        if kind.back is not None:
            return "p", kind.back
        query = w.combine([(1.0 / kind.scale, reader.query[0])])
        text = f"nearest(&e->core.status, {w.text(query)}, p)"
        known = self._positions.get(w.text(query))
        return known or w.position(text, Nearest(query), ("nearest", *query.key())), 0

    def _column(self, value: Linear) -> tuple[int, float]:
        """Store a value for every token; the number of the array, and the factor it needs."""
        factor = power_of_two(value)
        scaled = self.writer.combine([(1.0 / factor, value)])
        key = scaled.key()
        if key not in self.state.stored:
            text = self.writer.text(scaled)
            self.state.stored[key] = len(self.state.columns)
            self._say(f"STORE_{len(self.state.columns)}(p, {text});")
            self.writer.program.effects[f"column {self.state.stored[key]}"] = Store(scaled)
            self.state.columns.append(text)
        return self.state.stored[key], factor

    def _extreme(self, group: Group) -> None:
        w, mean = self.writer, group.is_mean
        for number, reader in enumerate(group.readers):
            name = f"best_{group.cache.name}" + (f"_{number}" if number else "")
            stored = group.kept(group.rows(reader))
            fields = "".join(f" double v{k};" for k in range(len(stored)))
            self.state.fields.append(f"struct {{ extreme x;{fields} }} {name};")
            self.state.start.append(f"e->{name}.x.weight = -1;")
            score = w.settled(w.combine([(reader.kind.sign, group.key[reader.kind.axis])]), "key")
            self._say("{")
            self._say(f"    const double score = {w.text(score)};")
            compare = f"extreme_compare(&e->core.status, &e->{name}.x, score)"
            self._say(f"    const int better = {compare};")
            texts = [w.text(value) for value in group.chosen(stored)]
            w.program.effects[name] = Extreme(score, mean, group.chosen(stored))
            self._say(f"    if (better {'>' if mean else '>='} 0) {{")
            weight = "1" if mean else "p"
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
            cells = [f"e->{name}.v{k}" for k in range(len(stored))]
            found = self.record(group, reader, cells, f"e->{name}.x.weight", stored, name)
            self.deliver(group, reader, found, how_stored("1 record", stored), name)

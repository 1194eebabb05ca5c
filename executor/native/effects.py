"""What changes the state of the engine, on one path through the step.

The part of :class:`~executor.native.tails.Tail` that writes sums, records and extremes.
"""

from __future__ import annotations

from abc import abstractmethod
from math import inf

from executor.native.exprs import Expr
from executor.native.forms import Linear
from executor.native.lookups import Kept, Lookups
from executor.native.nodes import AddTo, Extreme, Insert, Store
from executor.native.positions import CALL
from executor.native.shared import Shared
from executor.native.sums import variable


class Effects(Lookups):
    """See the module.

    Attributes:
        below: in a trace, for an extreme a number that is less than its key.
    """

    def __init__(self, shared: Shared, first: int) -> None:
        super().__init__(shared, first)
        self.below: dict[str, float] = {}

    def effect(self, name: str) -> None:
        """Write what changes the state, once."""
        if name in self.done:
            return
        self.done.add(name)
        effect = self.shared.program.effects[name]
        match effect:
            case Store(value):
                if not self.shared.dropped:
                    text = self.text(self.linear(value))
                    self.say(f"e->columns[{name.split()[1]}][{self.now}] = {text};")
            case AddTo():
                pass  # see commit
            case Extreme():
                self._extreme(name, effect)
            case Insert():
                self._insert(name, effect)

    def commit(self) -> None:
        """Sums: what must not be done twice comes last."""
        for name in self.shared.program.effects:
            self.commit_sum(name)

    def commit_sum(self, name: str) -> None:
        """Write a running sum, once."""
        effect = self.shared.program.effects[name]
        if isinstance(effect, AddTo) and name not in self.committed:
            if self.linear(effect.value).constant != 0.0:
                self.unfit = self.unfit or "a sum moves"
                unit, total = self.shared.sum_unit(name), self.sum_of(name)
                text = self.text(total) if unit is None else self.multiple(total, unit)
                self.say(f"{variable(self.shared, name)} = {text};")
            self.committed.add(name)

    @abstractmethod
    def sum_of(self, name: str) -> Expr:
        """A running sum, with the current token."""

    def _extreme(self, name: str, effect: Extreme) -> None:
        score = self.linear(effect.score)
        key = self.seen.get(name)
        if key is not None and score.range.high < key:
            return
        if self.several and self.offset:
            self._no_better(name, effect, score)
            return
        weight = "1" if effect.mean else "p"
        record = [f"e->{name}.x.weight = {weight};"]
        if key is not None and score.constant == key:
            self.say(record[0])
            for k, value in enumerate(map(self.linear, effect.values)):
                self.say(f"e->{name}.v{k} = {self.text(value)};")
            return
        text = self.single(score)
        if effect.mean:
            self._means(name, text, list(map(self.linear, effect.values)))
            return
        better = f"if ({text} >= e->{name}.x.key)"
        if all(map(self.shared.is_timeless, effect.values)):
            self.shared.exceeded.add(name)
            for structure in self.shared.depends(effect.values):
                self.effect(structure)
            self.say(better)
            self.say(f"    exceed_{name}(e, p, {text});")
            return
        values = [self.linear(value) for value in effect.values]
        inner = self.child()
        inner.say(f"e->{name}.x.key = {text}, {record[0]}")
        for k, value in enumerate(values):
            inner.say(f"e->{name}.v{k} = {inner.text(value)};")
        self.block(f"{better} {{", inner)

    def _no_better(self, name: str, effect: Extreme, score: Expr) -> None:
        """Leave a trace if an extreme changes; one comparison does for lesser keys as well."""
        if effect.mean or score.constant == self.seen.get(name, inf):
            self.unfit = "an extreme changes"
        if score.range.high > self.below.get(name, -inf):
            self.guard(f"{self.single(score)} >= e->{name}.x.key")
            if score.constant is not None:
                self.below[name] = score.constant

    def _means(self, name: str, score: str, values: list[Expr]) -> None:
        """The sums of the values at the greatest key."""
        texts = [self.text(value) for value in values]
        self.say("{")
        key = f"e->{name}.x.key"
        self.say(f"    const int better = {score} > {key} ? 1 : {score} == {key} ? 0 : -1;")
        self.say("    if (better > 0) {")
        self.say(f"        e->{name}.x.key = {score}, e->{name}.x.weight = 1;")
        for k, text in enumerate(texts):
            self.say(f"        e->{name}.v{k} = {text};")
        self.say("    } else if (better == 0) {")
        self.say(f"        e->{name}.x.weight++;")
        for k, text in enumerate(texts):
            self.say(f"        e->{name}.v{k} += {text};")
        self.say("    }")
        self.say("}")

    def _insert(self, name: str, effect: Insert) -> None:
        arguments = [self.linear(argument) for argument in effect.arguments]
        if effect.kind == "table" and all(a.constant == 0.0 for a in arguments):
            self._insert_zero(name, effect)
            return
        current = self.shared.columns.masks[self.tokens.get(self.here, 0)]
        if effect.kind == "few" and self.shared.is_known(name):
            self.shared.unwritten.add(name)
            return
        if not (current & self.shared.winners(name)).any():
            self.shared.unwritten.add(name)
            return
        placed = None
        if effect.kind == "table" and not self.shared.restless:
            placed = self.square_key(*arguments)
        if self.several:
            for line in self.written(name):
                self.say(line)
            self.versions[name] = self.versions.get(name, 0) + 1
            self.unfit = self.unfit or ("" if effect.kind == "table" else "a structure changes")
        late = self.shared.late.get(name, {})
        for structure in self.shared.depends(late.values()):
            self.effect(structure)
        cells = {
            k: self.kept(name, k, value)
            for k, value in enumerate(effect.values, 1)
            if k not in late
        }
        given = [] if placed else [self.text(argument) for argument in arguments]
        self.cost += CALL
        fresh = self._placed(name, placed) if placed else effect.fresh
        if effect.kind == "few":
            fresh = self.name("fresh")
            self.say(f"cell *const {fresh} = {effect.fresh};")
        at = "1" if effect.mean else self.now
        if effect.kind == "table":
            at = f"PLACE_{name}({self.now}, {self.token(self.here)})"
        self.say(f"{fresh}[0].i = {at};")
        for k, (field, text) in cells.items():
            self.say(f"{fresh}[{k}].{field} = {text};")
        if placed:
            return
        self.say(effect.call.format(*given))
        if effect.kind == "hull":
            self.say("if (e->core.status.error)")
            self.say("    goto failed;")
        if name in self.shared.keyed or (self.several and effect.kind == "table"):
            self.guard(f"e->{name}.general")

    @abstractmethod
    def square_key(self, x: Expr, y: Expr) -> tuple[Expr, float, float] | None:
        """See :meth:`~executor.native.tails.Tail.square_key`."""

    def _placed(self, name: str, placed: tuple[Expr, float, float]) -> str:
        """The record of a key of a table; one that is not as guessed is left to the plain code."""
        key, low, high = placed
        number, odd, unit = self.name("key"), list[str](), self.unit(key, convert=True, coarsest=0)
        assert unit is not None
        if unit == 0:
            self.say(f"const int64_t {number} = {self.in_units(key, 0)};")
        else:
            parts = self.name("parts")
            self.say(f"const int64_t {parts} = {self.in_units(key, unit)};")
            self.say(f"const int64_t {number} = {parts} >> {-unit};")
            odd = [f"{parts} & {2**-unit - 1}"]
        odd += [f"{number} < {int(low)}"] if key.range.low < low else []
        odd += [f"{number} > {int(high)}"] if key.range.high > high else []
        if odd:
            self.guard(" || ".join(odd))
        fresh = self.name("fresh")
        self.say(f"cell *const {fresh} = table_put(&e->{name}, {number});")
        self.guard(f"!{fresh}")
        return fresh

    def _insert_zero(self, name: str, effect: Insert) -> None:
        """A token that writes nothing: only the latest of them counts, and hardly ever."""
        self.shared.zeroed.add(name)
        trial = self.twin()  # a look that does not count as a dependency
        values: tuple[Kept, ...] | None = None
        constant = all(trial.linear(value).constant is not None for value in effect.values)
        if not constant and all(map(self.shared.is_timeless, effect.values)):
            self.shared.refreshed[name] = effect.values
            for structure in self.shared.depends(effect.values):
                self.effect(structure)
        else:
            if self.several and not constant:
                self.unfit = "a value changes with time"
            values = tuple(self.kept(name, k, value) for k, value in enumerate(effect.values, 1))
        self.pending[name] = self.offset, values
        if not self.several:
            for line in self.written(name):
                self.say(line)

    def written(self, name: str) -> list[str]:
        """C that writes the record of the key 0 of a table, if that is still to be done."""
        lines = self.to_write(name)
        self.pending.pop(name, None)
        return lines

    def to_write(self, name: str) -> list[str]:
        """The same C; the record stays pending."""
        return _zero_written(name, *self.pending[name]) if name in self.pending else []

    def flush(self) -> list[str]:
        """C that writes all records that are pending; they stay so."""
        return [line for name in self.pending for line in self.to_write(name)]

    def kept(self, name: str, index: int, value: Linear) -> Kept:
        """What a record of a structure keeps for a value."""
        expr, unit = self.linear(value), self.shared.unit_of(name, index)
        if unit is None:
            return "d", self.text(expr)
        return "i", self.multiple(expr, unit)

    def block(self, opening: str, inner: Lookups) -> None:
        """Lines of an inner scope, in braces."""
        self.say(opening, inner.cost)
        self.lines += ["    " + line for line in inner.lines]
        self.say("}", 0)


def _zero_written(name: str, offset: int, values: tuple[Kept, ...] | None) -> list[str]:
    """C that writes the record of the key 0; without values, which come when they are asked for."""
    position = f"p + {offset}" if offset else "p"
    if values is None:
        return [f"table_zero_later(&e->{name}, {position});"]
    parts = [f"[{k}].{field} = {text};" for k, (field, text) in enumerate(values, 1)]
    record = f"table_zero(&e->{name})"
    at = f"PLACE_{name}({position}, e->core.tokens[{position}])"
    return [f"{record}[0].i = {at};", *(record + part for part in parts)]

"""A step once more, under assumptions: which tokens are at a place, how far back an extreme is.

In: a :class:`~executor.native.nodes.Program`. Out: lines of C, on paths that branch where something
becomes known. Where the assumptions close a gate, its neurons and what only they read are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import copysign, frexp

from executor.native.effects import Effects
from executor.native.exprs import Expr, Terms, Units, constant
from executor.native.forks import Fork, fork
from executor.native.forms import Linear
from executor.native.lookups import MOST_KEY
from executor.native.nodes import (
    Accumulate,
    AddTo,
    AsDouble,
    Cell,
    Load,
    Mean,
    Neuron,
    Node,
    Product,
    Sum,
)  # fmt: skip
from executor.native.ranges import (
    ROUNDED,
    ZERO,
    Range,
    narrowed,
    point,
    total,
    two,
    whole,
)  # fmt: skip
from executor.native.shared import SUM_BOUND, Shared
from executor.native.steps import Level, stairs
from executor.native.writer import number

MOST_TERMS = 3
"""Longer sums get a variable of their own where a node of the plain code ends."""

Values = Sum | Product | Mean | Accumulate | Load | AsDouble | Cell


class Tail(Effects):
    """One path through the step.

    Attributes:
        closed: neurons (their ``id``) whose gates are known to be closed.
        undecided: what a branch could tell of gates.
    """

    def __init__(self, shared: Shared, first: int) -> None:
        super().__init__(shared, first)
        self._values: dict[object, Expr] = {}
        self._sums: dict[str, str] = {}
        self.closed: frozenset[int] = frozenset()
        self.undecided: dict[Fork, None] = {}

    def child(self) -> Tail:
        """The same to go on with, under more assumptions; its lines start anew."""
        other = Tail(self.shared, self.first)
        self.copy_to(other)
        other.tokens, other.back = dict(self.tokens), dict(self.back)
        other.beyond, other.seen = dict(self.beyond), dict(self.seen)
        other._sums, other.done = dict(self._sums), set(self.done)
        other.committed = set(self.committed)
        other.retry, other.guarded = self.retry, self.guarded
        other.closed, other.unfit = self.closed, self.unfit
        other.offset, other.several = self.offset, self.several
        other.pending, other.versions = dict(self.pending), dict(self.versions)
        other.below, other.column_of = dict(self.below), dict(self.column_of)
        other.from_on = dict(self.from_on)
        return other

    def twin(self) -> Tail:
        """The same to go on with, as long as nothing more is assumed."""
        other = self.child()
        other._values, other._spots = dict(self._values), dict(self._spots)
        other.undecided = dict(self.undecided)
        return other

    def without_values_of(self, terms: Terms) -> Tail:
        """The same to go on with where more is assumed of some terms; other values are kept."""
        other, names = self.twin(), {name for _, name in terms}
        spots = {self.column_of[name][2] for name in names if name in self.column_of}
        names = {name for name, (_, _, spot) in self.column_of.items() if spot in spots} | names
        values, variables = list[int](), list[str]()
        for key, expr in self._values.items():
            if any(name in names for _, name in expr.terms):
                values += [key] if isinstance(key, int) else []
                variables += [key] if isinstance(key, str) else []
        gone, lost = self.shared.dependence.following(values, variables)
        for one in (*gone, *lost):
            other._values.pop(one, None)
        for name in lost:
            other._spots.pop(name, None)
        return other

    def following(self, retry: str) -> Tail:
        """The next step of a trace: the token after this one, with all that is still known."""
        other = self.child()
        other.lines, other.cost, other.retry = [], 0, retry
        other.offset += 1
        other.done, other.committed = set(), set()
        offset = other.offset
        other.position = other.combine([(1.0, self.start), (1.0, constant(float(offset)))])
        low, high, _ = other.position.range
        square = Units(0, lambda s: f"(p + {offset}) * (p + {offset})")
        squares = Range(low * low, high * high, 0)
        other.square = other.atom("square", squares, None, ("p²", offset), units=square)
        return other

    # Values

    def linear(self, value: Linear) -> Expr:
        """A value of the plain code."""
        known = self._values.get(id(value))
        if known is None:
            known = self._values[id(value)] = self._linear(value)
        return known

    def _linear(self, value: Linear) -> Expr:
        parts = [(factor, self.variable(name)) for factor, name in value.variables]
        form = value.form
        if form.p:
            parts.append((form.p, self.position))
        if form.square:
            parts.append((form.square, self.square))
        columns, const = self.shared.columns.parts(value)
        parts += [(factor, self.column(place, column)) for place, factor, column in columns]
        if const:
            parts.append((1.0, constant(const)))
        return self.bounded(self.combine(parts))

    def force(self, name: str) -> None:
        """Evaluate a variable of the plain code, whatever it is, to see whether it is bounded."""
        if isinstance(self.shared.program.nodes[name], Values):
            self.variable(name)

    def range_now(self, value: Linear) -> Range:
        """What a value can be on this path."""
        return self.linear(value).range

    def variable(self, name: str) -> Expr:
        """A variable of the plain code."""
        known = self._values.get(name)
        if known is None:
            prefix = name.split("_")[0]
            full = self._variable(prefix, self.shared.program.nodes[name])
            known = full
            if len(full.terms) > MOST_TERMS:
                known = self.named(prefix, full)
            self._values[name] = known
        return known

    def _variable(self, prefix: str, node: Node) -> Expr:
        match node:
            case Sum(terms):
                return self.combine([(f, self.linear(v)) for f, v in terms], prefix)
            case Product():
                return self._product(node)
            case Mean(name):
                values = self.shared.range_of(self.added(name)).joined(ZERO).widened()
                total = self.sum_of(name)
                count = f"((double)p + {number(self.offset + 1.0)})"
                key = ("mean", name, *self.at_present)
                return self.atom("mean", values, lambda s: f"{s.text(total)} / {count}", key)
            case Accumulate(start, neurons):
                return self._accumulate(prefix, self.linear(start), neurons)
            case Load(column, base):
                return self.load(column, self.spot(base))
            case AsDouble(base):
                return self.as_double(self.spot(base))
            case Cell():
                return self.value_of(node)
        raise AssertionError(node)

    # Running sums

    def added(self, name: str) -> Linear:
        """What a token adds to a sum."""
        effect = self.shared.program.effects[name]
        assert isinstance(effect, AddTo)
        return effect.value

    def sum_of(self, name: str) -> Expr:
        """A running sum, with the current token."""
        value = self.added(name)
        added = self.shared.range_of(value)
        least, most = min(added.low, 0.0), max(added.high, 0.0)
        count = self.range_of("position").high + 1.0
        low, high = least * count, most * count
        if self.first:
            low, high = max(low, -SUM_BOUND + least), min(high, SUM_BOUND + most)
        grain = added.grain if Range(low, high, added.grain).is_exact else ROUNDED

        def make(scope: Tail) -> str:
            if name in scope.committed or scope.linear(value).constant == 0.0:
                return f"e->{name}"
            return f"e->{name} + {scope.factor(scope.linear(value))}"

        def whole(scope: Tail, unit: int) -> str:
            added = scope.linear(value)
            if name in scope.committed or added.constant == 0.0:
                return f"held_{name}"
            return f"held_{name} + ({scope.multiple(added, unit)})"

        unit = self.shared.sum_unit(name) if self.first else None
        if unit is not None:
            units = Units(unit, lambda s: whole(s, unit))
            return self.atom(name, Range(low, high, unit), None, ("sum", name), units=units)
        return self.atom(name, Range(low, high, grain), make, ("sum", name))

    def _product(self, node: Product) -> Expr:
        """A neuron that is always open; a mean times the number of tokens is a running sum."""
        found = self.times(self.linear(node.gate), self.linear(node.value))
        form, value = node.gate.form, node.value
        if len(value.variables) != 1 or value.variables[0][0] != 1.0 or not value.form.is_zero:
            return found
        mean = self.shared.program.nodes[value.variables[0][1]]
        counts = not (node.gate.variables or form.columns or form.square)
        if isinstance(mean, Mean) and counts and form.p == form.const == 1.0 and found.terms:
            self._sums[found.terms[0][1]] = mean.name
        return found

    def special_sum(self, parts: Sequence[tuple[float, Expr]]) -> Expr | None:
        """A mean times the number of tokens, plus a constant so large that the error is gone.

        Two roundings make an error of at most 2^-51 of the sum; the sum is a multiple of the unit
        to which the addition rounds, so if the error is less than half a unit the result is exact.
        """
        if len(parts) != 2 or parts[1][1].terms or parts[0][0] != 1.0:
            return None
        expr, const = parts[0][1], parts[1][0] * parts[1][1].const
        name = self._sums.get(expr.terms[0][1]) if len(expr.terms) == 1 else None
        if name is None or expr.const or expr.terms[0][0] != 1.0:
            return None
        exact = self.sum_of(name)
        low, high = const + exact.range.low, const + exact.range.high
        if not low > 0 or frexp(low * (1 - 2.0**-40))[1] != frexp(high * (1 + 2.0**-40))[1]:
            return None
        unit = frexp(low)[1] - 53
        if exact.range.size * 2.0**-51 >= two(unit - 1):
            return None
        whole_sum = [(1.0, exact), (1.0, constant(const))]  # if exact, both are multiples of it
        return self.combine(whole_sum) if self.is_exact(whole_sum) else None

    # Neurons

    def _accumulate(self, prefix: str, start: Expr, neurons: Sequence[Neuron]) -> Expr:
        parts, groups = [(1.0, start)], dict[object, list[tuple[int, float, Expr, Expr]]]()
        found = [(self.linear(n.gate), n) for n in neurons if id(n) not in self.closed]
        opened = {gate.terms for gate, _ in found if gate.range.high > 0.0}
        for gate, neuron in found:
            if gate.terms not in opened:
                continue
            value = self.linear(neuron.value)
            if value.constant == 0.0:
                continue
            if gate.terms and gate.range.grain >= 0:
                scale = _scale(value)
                shape = (value.const / scale, tuple((f / scale, name) for f, name in value.terms))
                member = (len(parts), neuron.down * scale, gate, value)
                if point(neuron.down).scaled(scale).is_exact:
                    groups.setdefault((gate.terms, shape), []).append(member)
            parts.append((neuron.down, self._neuron(gate, value)))
        if self.is_exact(parts):
            for members in groups.values():
                stair = self._stairs(members)
                if stair is not None:
                    for index, *_ in members:
                        parts[index] = (0.0, start)
                    parts.append(stair)
        return self.combine(parts, prefix)

    def _unit(self, value: Expr) -> Expr:
        """Without its scale."""
        return constant(1.0) if not value.terms else self.combine([(1.0 / _scale(value), value)])

    def _neuron(self, gate: Expr, value: Expr) -> Expr:
        """Value times gate where the gate is greater than 0."""
        if gate.range.high <= 0.0:
            return constant(0.0)
        if gate.range.low >= 0.0:
            return self.times(gate, value)
        self._note(gate.terms, -gate.const, True)
        if value.constant is not None:
            return self.times(self.opened(gate), value)
        return self.gated(gate, value)

    def square_key(self, x: Expr, y: Expr) -> tuple[Expr, float, float] | None:
        """The number E of a key that is (2 E, -E²) if E is an integer from one number to another.

        The square is one or two neurons, which multiply E by itself, or -E where that is positive.
        The products of such integers are exact, whatever else E may be.
        """
        key = self.combine([(0.5, x)])
        if self.unit(key, convert=True, coarsest=0) is None:
            return None
        minus = self.combine([(-1.0, key)])
        up, down = self._neuron(key, key), self._neuron(minus, minus)
        sides = ((up, down), MOST_KEY, MOST_KEY), ((down, up), MOST_KEY, MOST_KEY)
        for neurons, least, most in (*sides, ((up,), 0.0, MOST_KEY), ((down,), MOST_KEY, 0.0)):
            square = self.combine([(1.0, neuron) for neuron in neurons])
            if self.combine([(-1.0, square)]).key == y.key:
                return key, -least, most
        return None

    def _note(self, terms: Terms, number: float, strictly: bool) -> None:
        """Something that a branch could tell."""
        one = fork(self, terms, number, strictly)
        if one is not None:
            self.undecided[one] = None

    def _stairs(
        self, members: Sequence[tuple[int, float, Expr, Expr]]
    ) -> tuple[float, Expr] | None:
        """Neurons whose gates differ by integers, as a few comparisons: factor and value."""
        levels = stairs([(gate.const, down) for _, down, gate, _ in members])
        if levels is None or any(not whole(gate.const) for _, _, gate, _ in members):
            return None
        _, _, gate, value = members[0]
        value = self._unit(value)
        ranges = total([self.range_of(name).scaled(f) for f, name in gate.terms])
        sums = Expr(0.0, gate.terms, ranges)
        values = sums.range
        for _, _, gate, _ in members:
            own = gate.range
            values = narrowed(values, Range(own.low - gate.const, own.high - gate.const, 0))
        kept: list[Level] = [(t, v) for t, v in levels if values.low < t <= values.high]
        known = [v for t, v in levels if t <= values.low]
        below = known[-1] if known else 0.0
        if not kept:
            return below, value
        for threshold, _ in kept:
            self._note(gate.terms, threshold, False)
        factor = next(v for v in (below, *(v for _, v in kept)) if v)
        kept = [(t, v / factor) for t, v in kept]
        outcomes = [below / factor, *(v for _, v in kept)]
        if any(v * factor not in {below, *(v for _, v in levels)} for v in outcomes):
            return None
        if value.constant is None and set(outcomes) <= {0.0, 1.0}:
            return factor, self.steps(sums, below / factor, kept, value)
        return factor, self.times(self.steps(sums, below / factor, kept, None), value)


def _scale(value: Expr) -> float:
    """A number, or a power of two with the sign of the first term."""
    if not value.terms:
        return value.const
    first = value.terms[0][0]
    return copysign(2.0 ** (frexp(first)[1] - 1), first)

"""Values as integers: multiples of a power of two, where every intermediate is proved exact.

An atom has *units* if it is an integer of type int64_t times 2^unit: positions, columns of tokens,
and what is computed from such atoms by sums, products, gates and steps. The integer is proved to
stay below 2^61, and its float64 counterpart is exact, so either stands for the other. Of an atom
without units, but of a known grain, an integer can be made by a conversion.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from math import ceil, floor

from executor.native.exprs import Expr, Make, Scope, Units
from executor.native.forms import NO_GRAIN
from executor.native.ranges import FINEST, ROUNDED, Range, grain_of, product, two, whole
from executor.native.steps import Level, select
from executor.native.writer import plus

MOST = 2.0**61
"""Integers and all sums on the way to them are less: int64_t with room to round up."""


class Integers(Scope):
    """A scope that knows which of its values are integers."""

    # Units

    def unit_of(self, name: str, convert: bool = True) -> int | None:
        """The unit of an atom; if it is a float64 variable that can be converted, its grain."""
        atom = self._atoms[name]
        if atom.units is not None:
            return atom.units.unit
        known = convert and atom.range.is_exact and abs(atom.range.grain) <= FINEST
        return atom.range.grain if known and atom.kind == "double" else None

    def unit(
        self,
        expr: Expr,
        convert: bool | None = None,
        const: bool = True,
        coarsest: int = NO_GRAIN,
    ) -> int | None:
        """The coarsest unit for an expression, of which its terms are multiples.

        Args:
            convert: whether float64 variables may be converted to integers; None: if they are no
                more than those that are integers, which had to be converted otherwise.
            const: whether the constant has to be a multiple as well.
            coarsest: the unit is no coarser.
        """
        least, balance = min(coarsest, grain_of(expr.const) if const else NO_GRAIN), 0
        for factor, name in expr.terms:
            unit = self.unit_of(name, convert is not False)
            if unit is None:
                return None
            least = min(least, unit + grain_of(factor))
            if self._atoms[name].kind:
                balance += 1 if self._atoms[name].units is not None else -1
        return least if (convert or balance >= 0) and self._fits(expr, least) else None

    def _fits(self, expr: Expr, unit: int) -> bool:
        """Whether an expression stays small in a unit, with all sums on the way."""
        size = abs(expr.const) + sum(abs(f) * self.range_of(a).size for f, a in expr.terms)
        return abs(unit) <= FINEST and size < MOST * two(unit)

    def _sum(self, expr: Expr, unit: int, const: int) -> str:
        """C of the terms in a unit, of which they are multiples, plus a number of units."""
        text = ""
        for factor, name in expr.terms:
            own = self.unit_of(name)
            assert own is not None
            count = factor * two(own - unit)
            assert whole(count)
            part, size = self._integer(name, own), abs(int(count))
            part = part if size == 1 else f"{size} * {part}"
            text = (
                f"{text} {'-' if count < 0 else '+'} {part}" if text else "-" * (count < 0) + part
            )
        if not text:
            return str(const)
        return text + (f" {'-' if const < 0 else '+'} {abs(const)}" if const else "")

    def _integer(self, name: str, unit: int) -> str:
        if self._atoms[name].units is not None:
            return self.read_units(name)
        return self.declared(
            f"{name}_n", "int64_t", lambda s: f"(int64_t)({plus('', two(-unit), s.read(name))})"
        )

    def in_units(self, expr: Expr, unit: int) -> str:
        """C of type int64_t of an expression in a unit that is no coarser than its own."""
        const = expr.const * two(-unit)
        assert whole(const)
        return self._sum(expr, unit, int(const))

    def _one_name(self, expr: Expr, unit: int) -> str:
        """The same as a name."""
        if len(expr.terms) == 1 and expr.terms[0][0] == 1.0 and not expr.const:
            return self.in_units(expr, unit)
        named = self.named("g", expr)
        if self.unit(named) is None:  # it was too large before more was known
            return self._as_factor(expr, unit)
        return self.in_units(named, unit)

    def _as_factor(self, expr: Expr, unit: int) -> str:
        """The same as a factor."""
        text = self.in_units(expr, unit)
        return f"({text})" if " " in text or text.startswith("-") else text

    # Consumers

    def rounded(
        self,
        expr: Expr,
        exponent: int = 0,
        add: float = 0.0,
        up: bool = False,
        convert: bool = True,
    ) -> str:
        """C of (expression + ``add``) / 2^exponent, rounded down or up; empty if there is none."""
        scale = Fraction(2) ** exponent
        const = (Fraction(expr.const) + Fraction(add)) / scale
        round_to: Callable[[Fraction], int] = ceil if up else floor
        if not expr.terms:
            return str(round_to(const))
        unit = self.unit(expr, convert, False)
        if unit is None:
            return ""
        unit = min(unit, exponent)
        shift = exponent - unit
        room = abs(Fraction(add)) / scale * 2**shift + 2**shift
        if shift > 60 or room > MOST or not self._fits(expr, unit):
            return ""
        if not shift:
            return self._sum(expr, unit, round_to(const))
        shifted = round_to(const * 2**shift) + (2**shift - 1) * up
        return f"({self._sum(expr, unit, shifted)}) >> {shift}"

    def multiple(self, expr: Expr, unit: int) -> str:
        """C of an expression in a unit of which its value is a multiple, whatever its terms are."""
        text = self.rounded(expr, unit)
        return text or f"(int64_t)({plus('', two(-unit), self.factor(expr))})"

    def can_be(self, expr: Expr, number: float) -> bool:
        """Whether an expression may have a value, by its range and the grain of its terms."""
        least = min((grain_of(f) + self.range_of(a).grain for f, a in expr.terms), default=NO_GRAIN)
        rest = Fraction(number) - Fraction(expr.const)
        inside = expr.range.low <= number <= expr.range.high
        return inside and (rest / Fraction(2) ** least).denominator == 1

    def text(self, expr: Expr) -> str:
        """C of an expression as a float64; of several integers the sum is converted."""
        integers = any(self._atoms[name].make is None for _, name in expr.terms)
        several = len(expr.terms) + bool(expr.const) > 1
        unit = self.unit(expr, False) if integers and several else None
        if unit is None:
            return super().text(expr)
        return plus("", two(unit), f"(double)({self.in_units(expr, unit)})")

    def named(self, prefix: str, expr: Expr) -> Expr:
        """An expression as one variable."""
        unit = self.unit(expr)
        if unit is None:
            return self.atom(prefix, expr.range, lambda s: s.text(expr), ("is", expr.key))
        units = Units(unit, lambda s: s.in_units(expr, unit))
        return self.atom(prefix, expr.range, None, ("is", expr.key), units=units)

    def single(self, expr: Expr) -> str:
        """C of an expression as one name or number."""
        if not expr.terms or (expr.terms[0][0] == 1.0 == len(expr.terms) and not expr.const):
            return self.text(expr)
        return self.text(self.named("g", expr))

    # Atoms that are computed from others

    def times(self, gate: Expr, value: Expr) -> Expr:
        """A product."""
        for one, other in ((gate, value), (value, gate)):
            if one.constant is not None:
                return self.combine([(one.constant, other)], "n")
        key = ("times", gate.key, value.key)
        values, units = self._multiplied(gate, gate.range, value, "{0} * {1}")
        make: Make = lambda s: f"{s.factor(gate)} * {s.factor(value)}"  # noqa: E731
        return self.atom("n", values, None if units else make, key, units=units)

    def _multiplied(
        self, gate: Expr, gates: Range, value: Expr, template: str
    ) -> tuple[Range, Units | None]:
        """What a product can be, and the product in units."""
        values = product(gates, value.range)
        if min(gates.grain, value.range.grain) <= ROUNDED or not values.is_exact:
            return values.widened(), None
        one, other = self.unit(gate), self.unit(value)
        if one is None or other is None or not values.size < MOST * two(one + other):
            return values, None
        if abs(one + other) > FINEST:
            return values, None
        return values, Units(
            one + other,
            lambda s: template.format(s._one_name(gate, one), s._as_factor(value, other)),
        )

    def opened(self, gate: Expr) -> Expr:
        """A gate where it is greater than 0, else 0."""
        values = Range(0.0, gate.range.high, gate.range.grain)
        unit = self.unit(gate)
        if unit is not None:
            units = Units(unit, lambda s: "{0} > 0 ? {0} : 0".format(s._one_name(gate, unit)))
            return self.atom("g", values, None, ("relu", gate.key), units=units)
        make: Make = lambda s: "{0} > 0.0 ? {0} : 0.0".format(s.single(gate))  # noqa: E731
        return self.atom("g", values, make, ("relu", gate.key))

    def gated(self, gate: Expr, value: Expr) -> Expr:
        """Gate times value where the gate is greater than 0, else 0."""
        opened = Range(0.0, gate.range.high, gate.range.grain)
        values, units = self._multiplied(gate, opened, value, "{0} > 0 ? {0} * {1} : 0")

        def make(scope: Integers) -> str:
            text = scope.single(gate)
            return f"{text} > 0.0 ? {text} * {scope.factor(value)} : 0.0"

        values = values.joined(Range(0.0, 0.0, NO_GRAIN))
        key = ("neuron", gate.key, value.key)
        return self.atom("n", values, None if units else make, key, units=units)

    def steps(self, of: Expr, below: float, levels: Sequence[Level], value: Expr | None) -> Expr:
        """Stairs in an expression; those of 0 and 1 may be times a value that is no number."""
        outcomes = [below, *(level for _, level in levels)]
        values = Range(min(outcomes), max(outcomes), min(map(grain_of, outcomes)))
        at = self.unit(of, coarsest=0)
        unit = values.grain if value is None else self.unit(value)
        shape = (of.key, below, tuple(levels))
        key = ("stairs", shape) if value is None else ("select", shape, value.key)
        if value is not None:
            values = value.range.joined(Range(0.0, 0.0, NO_GRAIN))
        whole = unit is not None and at is not None and abs(unit) <= FINEST

        def make(scope: Integers) -> str:
            text = scope.text(of) if at is None else scope.in_units(of, at)
            limits = [t if at is None else int(t * two(-at)) for t, _ in levels]
            texts = [scope._step(v, value, unit if whole else None) for v in outcomes]
            one = 1.0 if at is None else int(two(-at))
            return select(text, texts[0], list(zip(limits, texts[1:], strict=True)), one)

        if not whole or unit is None:
            return self.atom("b", values, make, key)
        return self.atom("b", values, None, key, units=Units(unit, make))

    def _step(self, number: float, value: Expr | None, unit: int | None) -> str:
        """C of one step's value."""
        if value is not None and number == 1.0:
            return self.factor(value) if unit is None else self._as_factor(value, unit)
        return repr(number) if unit is None else str(int(number * two(-unit)))

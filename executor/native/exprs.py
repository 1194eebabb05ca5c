"""Sums of C variables with what is known of their values, declared when code needs them.

An :class:`Expr` is a sum of variables ("atoms") that is proved exact, or one atom. Where exactness
is not proved the operations of the plain code are kept, in their order. Atoms are declared when
code that is written reads them, so what nothing reads is not there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import frexp
from typing import Any, NamedTuple

from executor.native.forms import MOST_TOKENS, NO_GRAIN
from executor.native.ranges import (
    HUGE,
    ROUNDED,
    Range,
    grain_of,
    narrowed,
    point,
    total,
    two,
)  # fmt: skip
from executor.native.writer import number, plus

Key = tuple[object, ...]
Terms = tuple[tuple[float, str], ...]
Make = Callable[[Any], str]
"""Given the scope that declares it, the C of a value; declares first what that reads."""


class Units(NamedTuple):
    """An integer that times 2^``unit`` is the value of an atom.

    ``make`` gives C of type int64_t; of a variable, unless ``is_variable`` is false.
    """

    unit: int
    make: Make
    is_variable: bool = True


class Unsuitable(Exception):
    """The model gets the plain code only; the message says why."""


class Expr(NamedTuple):
    """``const`` plus factors times atoms."""

    const: float
    terms: Terms
    range: Range

    @property
    def constant(self) -> float | None:
        """Its value if it is a number."""
        return None if self.terms else self.const

    @property
    def key(self) -> Key:
        """Equal for equal values."""
        return (self.const, self.terms)


@dataclass(frozen=True, slots=True)
class Atom:
    """A C variable, or an expression if ``kind`` is empty.

    Attributes:
        make: the C of its value, which declares first what it reads; None if it is made from
            ``units``.
        units: the same as an integer.
        is_position: an integer from 0 to the current position.
    """

    range: Range
    make: Make | None
    kind: str = "double"
    units: Units | None = None
    is_position: bool = False


@lru_cache(maxsize=65536)
def constant(value: float) -> Expr:
    """A number."""
    return Expr(value + 0.0, (), point(value + 0.0))


class Scope:
    """Variables of one path through the code; :meth:`child` goes on from there."""

    def __init__(self, first: int) -> None:
        self.lines: list[str] = []
        self.cost = 0
        self._atoms: dict[str, Atom] = {}
        self._known: dict[Key, Expr] = {}
        self._declared: set[str] = set()
        self._names: dict[str, int] = {}
        self.bounds: dict[Terms, tuple[float, float]] = {}
        low, high = float(first), float(MOST_TOKENS)
        self._atoms["p"] = Atom(Range(low, high, 0), lambda s: "p", "")
        whole, square = Units(0, lambda s: "p", False), Units(0, lambda s: "p * p")
        self.position = self.atom(
            "position", Range(low, high, 0), None, ("p",), units=whole, is_position=True
        )
        self.start = self.position
        squares = Range(low * low, high * high, 0)
        self.square = self.atom("square", squares, None, ("p²",), units=square)

    def copy_to(self, other: Scope) -> None:
        """Give another scope all that is known and declared here."""
        other.start, other.position, other.square = self.start, self.position, self.square
        other._atoms, other._known = dict(self._atoms), dict(self._known)
        other._declared, other._names = set(self._declared), dict(self._names)
        other.bounds = dict(self.bounds)

    def say(self, line: str, cost: int = 1) -> None:
        """Append a line of C."""
        self.lines.append(line)
        self.cost += cost

    def atom(
        self,
        prefix: str,
        values: Range,
        make: Make | None,
        key: Key,
        kind: str = "double",
        units: Units | None = None,
        is_position: bool = False,
    ) -> Expr:
        """A variable (an expression without ``kind``), or the one with the same key."""
        known = self._known.get(key)
        if known is not None:
            return known
        if not values.size <= HUGE:
            raise Unsuitable(f"no bound is known for {prefix}")
        if values.low == values.high:
            return constant(values.low)
        name = self.name(prefix) if kind else prefix
        self._atoms[name] = Atom(values, make, kind, units, is_position)
        self._known[key] = Expr(0.0, ((1.0, name),), values)
        return self._known[key]

    def name(self, prefix: str) -> str:
        """A new name."""
        count = self._names[prefix] = self._names.get(prefix, 0) + 1
        return prefix if count == 1 else f"{prefix}_{count}"

    def given(self, name: str, text: str) -> None:
        """Declare an atom as what was computed before."""
        self._declared.add(name)
        self.say(f"const {self._atoms[name].kind} {name} = {text};")

    def alias(self, name: str, make: Make) -> str:
        """The name of an integer variable for something that is a number already."""
        self._atoms.setdefault(name, Atom(Range(0.0, 1.0, 0), make, "int64_t"))
        return name

    def is_position(self, name: str) -> bool:
        """Whether an atom is an integer from 0 to the current position."""
        return self._atoms[name].is_position

    def range_of(self, name: str) -> Range:
        """What is known of an atom."""
        return self._atoms[name].range

    def fixed(self, number: int) -> str:
        """The name of a position that is known."""
        values = Range(float(number), float(number), 0)
        self._atoms.setdefault(str(number), Atom(values, lambda s: str(number), ""))
        return str(number)

    # Sums and products

    def combine(self, parts: Sequence[tuple[float, Expr]], prefix: str = "t") -> Expr:
        """The sum of factor times expression."""
        parts = [part for part in parts if part[0] and (part[1].terms or part[1].const)]
        if not parts:
            return constant(0.0)
        if len(parts) == 1 and parts[0][0] == 1.0:
            return parts[0][1]
        if not any(e.terms for _, e in parts):
            exact = all(e.range.scaled(f).is_exact for f, e in parts) and self.is_exact(parts)
            if exact:
                return constant(sum(f * e.const for f, e in parts))
        ranges = total([e.range.scaled(f) for f, e in parts])
        if self.is_exact(parts):
            return self._merged(parts, ranges)
        if len(parts) == 1:
            factor, expr = parts[0]
            if len(expr.terms) == 1 and not expr.const:
                f, name = expr.terms[0]
                if factor == 1.0 or frexp(abs(factor))[0] == 0.5:
                    return Expr(0.0, ((factor * f, name),), ranges)
        if self._is_exact_in_order(parts) and _is_exactly_merged(parts):
            merged = self._merged(parts, ranges)
            if self.is_exact([(1.0, merged)]):
                return merged
        special = self.special_sum(parts)
        if special is not None:
            return special
        kept = tuple(parts)

        def make(scope: Scope) -> str:
            text = ""
            for factor, expr in kept:
                text = plus(text, factor, scope.factor(expr))
            return text

        key = ("sum", *((f, e.key) for f, e in kept))
        return self.atom(prefix, ranges.widened(), make, key)

    def special_sum(self, parts: Sequence[tuple[float, Expr]]) -> Expr | None:
        """What a sum is that is not exact as it stands, if something better is known."""
        return None

    def is_exact(self, parts: Sequence[tuple[float, Expr]]) -> bool:
        """Whether adding up the atoms is exact in any order."""
        size, least = 0.0, NO_GRAIN
        for factor, expr in parts:
            own = grain_of(factor)
            if expr.const:
                size += abs(factor * expr.const)
                least = min(least, own + grain_of(expr.const))
            for f, name in expr.terms:
                low, high, grain = self._atoms[name].range
                size += abs(factor * f) * max(-low, high)
                grain += own + grain_of(f)
                least = grain if grain < least else least
        return size < two(53 + least)

    def _is_exact_in_order(self, parts: Sequence[tuple[float, Expr]]) -> bool:
        """Whether adding up the parts one by one is exact, each as a number of its own."""
        sums = [e.range.scaled(f) for f, e in parts]
        least = min(part.grain for part in sums)
        low = high = 0.0
        for part in sums:
            low, high = low + part.low, high + part.high
            if max(-low, high, part.size) >= two(53 + least):
                return False
        return least > ROUNDED

    def _merged(self, parts: Sequence[tuple[float, Expr]], ranges: Range) -> Expr:
        const = 0.0
        factors: dict[str, float] = {}
        for factor, expr in parts:
            const += factor * expr.const
            for f, name in expr.terms:
                factors[name] = factors.get(name, 0.0) + factor * f
        terms = tuple((f, name) for name, f in factors.items() if f)
        again = total([point(const), *(self._atoms[a].range.scaled(f) for f, a in terms)])
        values = narrowed(ranges, again)
        if values.low == values.high:
            return constant(values.low)
        return Expr(const + 0.0, terms, values)

    # What branches tell

    def bounded(self, expr: Expr) -> Expr:
        """An expression with what is known of its terms together."""
        if not self.bounds or not expr.terms:
            return expr
        scale, ordered = in_order(expr.terms)
        known = self.bounds.get(ordered)
        if known is None or not self.is_exact([(1.0, expr)]):
            return expr
        low, high = sorted((known[0] * scale, known[1] * scale))
        low, high = max(low + expr.const, expr.range.low), min(high + expr.const, expr.range.high)
        return constant(low) if low == high else Expr(*expr[:2], Range(low, high, expr.range.grain))

    def know_atom(self, name: str, values: Range) -> None:
        """Go on with an atom in an interval."""
        self._atoms[name] = replace(self._atoms[name], range=values)
        alone = Expr(0.0, ((1.0, name),), values)
        if values.low == values.high:
            alone = constant(values.low)
        for key, known in self._known.items():
            if known.terms == ((1.0, name),) and not known.const:
                self._known[key] = alone

    # C

    def text(self, expr: Expr) -> str:
        """C of an expression, for which everything is declared."""
        text = ""
        for factor, name in expr.terms:
            text = plus(text, factor, self.read(name))
        if expr.const or not text:
            sign = -1.0 if expr.const < 0 and text else 1.0
            text = plus(text, sign, number(abs(expr.const) if text else expr.const))
        return text

    def factor(self, expr: Expr) -> str:
        """C of an expression that can stand in a product."""
        text = self.text(expr)
        simple = not expr.terms or (expr.terms[0][0] == 1.0 == len(expr.terms) and not expr.const)
        return text if simple and not text.startswith("-") else f"({text})"

    def read(self, name: str) -> str:
        """Declare an atom if need be; its C."""
        atom = self._atoms[name]
        if atom.make is None:
            assert atom.units is not None
            variable = f"{name}_d" if atom.units.is_variable else name
            unit = atom.units.unit
            return self.declared(
                variable, "double", lambda s: plus("", two(unit), f"(double){s.read_units(name)}")
            )
        return self.declared(name, atom.kind, atom.make) if atom.kind else atom.make(self)

    def read_units(self, name: str) -> str:
        """The same for the integer that the atom is in its units."""
        units = self._atoms[name].units
        assert units is not None
        return self.declared(name, "int64_t", units.make) if units.is_variable else units.make(self)

    def declared(self, variable: str, kind: str, make: Make) -> str:
        """Declare a C variable if need be; its name."""
        if variable not in self._declared:
            text = make(self)
            self._declared.add(variable)
            self.say(f"const {kind} {variable} = {text};")
        return variable


def in_order(terms: Terms) -> tuple[float, Terms]:
    """A factor and the terms without it, in an order.

    The terms are equal for sums that differ by a power of two and the sign.
    """
    ordered = sorted(terms, key=lambda term: term[1])
    first = ordered[0][0]
    scale = first if abs(first) == two(grain_of(first)) else 1.0
    return scale, tuple((factor / scale, name) for factor, name in ordered)


def _is_exactly_merged(parts: Sequence[tuple[float, Expr]]) -> bool:
    """Whether the factors of all atoms, and the constants, add up exactly as float64 numbers."""
    factors: dict[str, list[tuple[float, float]]] = {}
    for factor, expr in parts:
        for f, name in (*expr.terms, (expr.const, "")):
            factors.setdefault(name, []).append((factor, f))
    return all(
        Fraction(sum(one * other for one, other in pairs))
        == sum(Fraction(one) * Fraction(other) for one, other in pairs)
        for pairs in factors.values()
    )

"""Branches on a path: a sum that decides whether a gate is open is at least some number, or less.

In: a :class:`~executor.native.tails.Tail` that does not know it. Out: C of the condition, and two
tails that do. A neuron's step, or that of several that are stairs, is undecided on a path if the
interval of the sum has ends on both sides: a slot that is 0 or 1 by it is a number on either side.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from math import floor
from typing import TYPE_CHECKING, NamedTuple

from executor.native.exprs import Expr, Terms, in_order
from executor.native.ranges import ROUNDED, Range, grain_of, total

if TYPE_CHECKING:
    from executor.native.tails import Tail


class Fork(NamedTuple):
    """Whether a sum of terms is at least ``least``; if it is not, it is at most ``below``."""

    terms: Terms
    least: float
    below: float


def fork(tail: Tail, terms: Terms, number: float, strictly: bool) -> Fork | None:
    """Whether a sum of terms is greater than a number, or at least that if not ``strictly``."""
    grain = min((grain_of(f) + tail.range_of(name).grain for f, name in terms), default=ROUNDED)
    if grain <= ROUNDED // 2:
        return None
    ends = _ends(number, grain, strictly)
    return None if ends is None else Fork(terms, *ends)


@lru_cache(maxsize=4096)
def _ends(number: float, grain: int, strictly: bool) -> tuple[float, float] | None:
    """The least multiple of 2^grain that is greater, and the one below; None if not float64."""
    unit = Fraction(2) ** grain
    steps = Fraction(number) / unit
    first = floor(steps) + 1 if strictly or steps.denominator > 1 else floor(steps)
    least, below = first * unit, (first - 1) * unit
    if Fraction(float(least)) != least or Fraction(float(below)) != below:
        return None
    return float(least), float(below)


def split(tail: Tail, one: Fork) -> tuple[str, Tail, Tail]:
    """C of the condition, which may append lines to the tail; the path if it holds, and if not."""
    values = total([tail.range_of(name).scaled(f) for f, name in one.terms])
    text = _condition(tail, Expr(0.0, one.terms, values), one.least)
    yes, no = (tail.without_values_of(one.terms) for _ in range(2))
    _know(yes, one.terms, Range(one.least, values.high, values.grain))
    _know(no, one.terms, Range(values.low, one.below, values.grain))
    return text, yes, no


def _condition(tail: Tail, sums: Expr, least: float) -> str:
    """C of whether a sum is at least a number."""
    unit = tail.unit(sums, coarsest=grain_of(least))
    if unit is None:
        return f"{tail.text(sums)} >= {least!r}"
    return f"{tail.in_units(sums, unit)} >= {int(Fraction(least) / Fraction(2) ** unit)}"


def _know(tail: Tail, terms: Terms, values: Range) -> None:
    """Go on with a sum of terms in an interval."""
    scale, ordered = in_order(terms)
    low, high = sorted((values.low / scale, values.high / scale))
    if len(ordered) > 1 or ordered[0][0] != 1.0:
        known = tail.bounds.get(ordered, (low, high))
        tail.bounds[ordered] = max(low, known[0]), min(high, known[1])
        return
    name = ordered[0][1]
    own = tail.range_of(name)
    tail.know_atom(name, Range(max(own.low, low), min(own.high, high), own.grain))
    if name in tail.column_of:
        number, mask, spot = tail.column_of[name]
        columns = tail.shared.columns
        held = (columns.arrays[number] >= low) & (columns.arrays[number] <= high)
        fitting = columns.masks[mask] & held
        if fitting.any():  # else nothing gets here: a second fork between two of its numbers
            tail.tokens[spot] = columns.mask(fitting)

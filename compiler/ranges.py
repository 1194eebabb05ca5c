"""Ranges of dyadic numbers: how large, and multiples of which power of two.

A dot product is exact in any order, with or without fused multiply-add, if all its terms are
multiples of 2^g and neither its positive nor its negative terms add up to more than 2^(53 + g):
every partial sum is then a multiple of 2^g that a double holds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor

DOUBLE_BITS = 53
ANY_GRAIN = 10_000
"""Grain of zero, which is a multiple of every power of two."""


def grain_of(value: float | Fraction | int) -> int:
    """The greatest g such that the dyadic number ``value`` is a multiple of 2^g."""
    fraction = Fraction(value)
    if fraction == 0:
        return ANY_GRAIN
    numerator, denominator = fraction.numerator, fraction.denominator
    return (numerator & -numerator).bit_length() - denominator.bit_length()


@dataclass(frozen=True)
class Range:
    """All multiples of 2^grain from ``low`` to ``high``.

    ``grain`` is None for numbers that are rounded, whose bits go on.
    """

    low: Fraction
    high: Fraction
    grain: int | None

    @staticmethod
    def of(*values: float | Fraction) -> Range:
        """The smallest range that holds all the values."""
        numbers = [Fraction(value) for value in values]
        return Range(min(numbers), max(numbers), min(map(grain_of, numbers)))

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high, _least(self.grain, other.grain))

    def __mul__(self, other: Range) -> Range:
        corners = [a * b for a in (self.low, self.high) for b in (other.low, other.high)]
        grain = None if None in (self.grain, other.grain) else self.grain + other.grain  # type: ignore[operator]
        return Range(min(corners), max(corners), grain)

    def scaled(self, factor: float | Fraction) -> Range:
        """All values times a constant."""
        exact, grain = _dyadic(factor)
        low, high = self.low * exact, self.high * exact
        if exact < 0:
            low, high = high, low
        return Range(low, high, None if self.grain is None else self.grain + grain)

    def positive(self) -> Range:
        """What ReLU leaves."""
        zero = Fraction(0)
        return Range(max(self.low, zero), max(self.high, zero), self.grain)

    def union(self, other: Range) -> Range:
        """The smallest range that holds both."""
        return Range(
            min(self.low, other.low), max(self.high, other.high), _least(self.grain, other.grain)
        )

    def within(self, low: Fraction, high: Fraction) -> Range:
        """The part between two bounds; the nearest bound where there is none."""
        return Range(min(max(self.low, low), high), max(min(self.high, high), low), self.grain)

    def multiples_of(self, grain: int | None) -> Range:
        """The multiples of 2^grain among them; all of them for None."""
        if grain is None or (self.grain is not None and self.grain >= grain):
            return self
        return Range(self.low, self.high, grain)

    def values(self, most: int = 16) -> tuple[Fraction, ...] | None:
        """All of them, where they are at most so many; else None."""
        if self.grain is None:
            return None
        unit = Fraction(2) ** self.grain
        low, high = ceil(self.low / unit), floor(self.high / unit)
        return tuple(n * unit for n in range(low, high + 1)) if high - low < most else None

    @property
    def magnitude(self) -> Fraction:
        """The greatest absolute value."""
        return max(abs(self.low), abs(self.high))

    @property
    def is_zero(self) -> bool:
        """Whether 0 is all there is."""
        return self.low == self.high == 0


ZERO = Range.of(0)


def bits_of_sum(terms: Iterable[Range]) -> int | None:
    """Significand bits that a dot product needs in any order; None if a term is rounded."""
    live = [term for term in terms if not term.is_zero]
    if any(term.grain is None for term in live):
        return None
    zero = Fraction(0)
    above = sum((max(term.high, zero) for term in live), zero)
    below = sum((max(-term.low, zero) for term in live), zero)
    total = max(above, below)  # no partial sum is farther from zero
    grain = min((term.grain for term in live if term.grain is not None), default=0)
    return bits(total, grain)


def error_of_sum(terms: Iterable[Range]) -> Fraction:
    """A bound on what rounding can change in a dot product, in any order, fused or not.

    n products and n - 1 additions err by less than 2n parts in 2^53 of the terms' magnitudes
    (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1).
    """
    sizes = [term.magnitude for term in terms]
    return sum(sizes, Fraction(0)) * 2 * len(sizes) / 2**52


def bits(magnitude: Fraction, grain: int) -> int:
    """Bits of the largest multiple of 2^grain up to ``magnitude``; 2^b itself needs b of them."""
    units = magnitude / Fraction(2) ** grain
    whole = -(-units.numerator // units.denominator)
    return max(whole - 1, 0).bit_length()


@lru_cache(maxsize=4096)
def _dyadic(value: float | Fraction) -> tuple[Fraction, int]:
    return Fraction(value), grain_of(value)


def _least(one: int | None, other: int | None) -> int | None:
    return None if one is None or other is None else min(one, other)

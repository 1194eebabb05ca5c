"""Sets of numbers as an interval and a grain: every number is a multiple of 2^grain.

A sum of numbers whose magnitudes add up to less than 2^(53 + least grain) is exact in float64,
in any order. ``ROUNDED`` is the grain of numbers of which nothing is known.
"""

from __future__ import annotations

from functools import lru_cache
from math import floor, frexp, inf
from typing import NamedTuple

from executor.native.forms import NO_GRAIN

ROUNDED = -1074
HUGE = 2.0**1000
"""No quantity may be greater: then nothing can overflow."""
FINEST = 512
"""Units of integers are from 2^-512 to 2^512; so are their inverses."""
SLACK = 2.0**-40
"""Relative error of an interval's ends; far more than a few roundings are."""


class Range(NamedTuple):
    """Numbers from ``low`` to ``high`` that are multiples of 2^``grain``."""

    low: float
    high: float
    grain: int

    @property
    def size(self) -> float:
        """The greatest magnitude."""
        return max(abs(self.low), abs(self.high))

    @property
    def is_exact(self) -> bool:
        """Whether every multiple of the grain in the interval is a float64 number."""
        return self.grain > ROUNDED and self.size <= two(53 + self.grain)

    def scaled(self, factor: float) -> Range:
        """Times a number, as if nothing were rounded."""
        if factor == 0.0:
            return ZERO
        if factor == 1.0:
            return self
        one, other = self.low * factor, self.high * factor
        grain = self.grain + grain_of(factor)
        grain = grain if grain > ROUNDED else ROUNDED
        return Range(one, other, grain) if one < other else Range(other, one, grain)

    def widened(self) -> Range:
        """With room for rounding; what a float64 of this size is a multiple of in any case."""
        room = self.size * SLACK
        low, high = self.low - room, self.high + room
        least = low if low > 0 else -high if high < 0 else 0.0
        return Range(low, high, frexp(least)[1] - 53 if least else ROUNDED)

    def joined(self, other: Range) -> Range:
        """All numbers of either."""
        return Range(
            min(self.low, other.low), max(self.high, other.high), min(self.grain, other.grain)
        )


ZERO = Range(0.0, 0.0, NO_GRAIN)


@lru_cache(maxsize=65536)
def grain_of(value: float) -> int:
    """The greatest g such that the number is a multiple of 2^g; ``NO_GRAIN`` for zero."""
    if value == 0.0:
        return NO_GRAIN
    numerator, denominator = value.as_integer_ratio()
    if denominator > 1:
        return 1 - denominator.bit_length()
    return (numerator & -numerator).bit_length() - 1


def two(exponent: int) -> float:
    """2^exponent, within float64."""
    return 2.0 ** max(-1000, min(exponent, 1000))


def point(value: float) -> Range:
    """One number."""
    return Range(value, value, grain_of(value))


def total(parts: list[Range]) -> Range:
    """Sums of one number of each, as if nothing were rounded."""
    low = high = 0.0
    least = NO_GRAIN
    for one, other, grain in parts:
        low += one
        high += other
        least = grain if grain < least else least
    return Range(low, high, least)


def product(one: Range, other: Range) -> Range:
    """Products, as if nothing were rounded."""
    ends = [a * b for a in (one.low, one.high) for b in (other.low, other.high)]
    low, high = min(ends), max(ends)
    if not (abs(low) < inf and abs(high) < inf):
        return Range(-inf, inf, ROUNDED)
    return Range(low, high, max(ROUNDED, min(one.grain + other.grain, NO_GRAIN)))


def narrowed(one: Range, other: Range) -> Range:
    """What is in both, if both hold."""
    return Range(max(one.low, other.low), min(one.high, other.high), max(one.grain, other.grain))


def whole(value: float) -> bool:
    """Whether a number is an integer."""
    return value == floor(value)

"""How many significand bits the scores of a head need, so that every engine finds the same key.

A score is the sum of two products. If both products are exact, rounding their sum cannot turn the
order of two keys round, only make them equal; and if the winner's score is exact too, no other
key reaches it. So exact products and an exact winner are enough.

Parabolic keys (2p, -p²) need less. Against the query (x, 1) the score is x² - (x - p)²:

- Keys far behind: for \\|p\\| >= 4·\\|x\\| the computed score is negative, while key 0 scores 0.
- Queries far beyond: if \\|x\\| exceeds every key by a part in 1,024, scores of neighbouring keys
  differ by more than \\|x\\|/512 times their distance, and rounding moves them by less than
  2^-49·\\|x\\| times the greatest key: no bit matters.
- Where every position is present, only the two nearest to x can win, and only where x is within
  2^-10 of half-way between them does the last bit decide: the greatest product that must be exact
  is 2·p·x for the greatest position p that can win.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from compiler.ranges import DOUBLE_BITS, Range, bits, error_of_sum

BEYOND = Fraction(1025, 1024)
"""Queries this much beyond the last key are decided by any arithmetic."""
NEAR = Fraction(1, 1024)
FEW = 2**16
"""Up to here every score errs by less than ``NEAR``: 2^-51·3·(2^17)² < 2^-10."""
MOST_KEYS = Fraction(2) ** 38
"""The bound on keys (over their grain) under which the arguments above hold."""
UNKNOWN = 4 * DOUBLE_BITS
"""Needed by what must be exact and is rounded."""


def position_needs(
    x: Range, d: Range, tokens: int, winner: Fraction | None
) -> Iterator[tuple[str, int]]:
    """Keys (2p, -p²) for every position p of a sequence of ``tokens``, query (x, d), d > 0.

    ``winner`` bounds the position that is fetched, where that is known.
    """
    last = Fraction(tokens - 1)
    if x.high <= 0:  # key 0 scores 0, all others less, however they are rounded
        return
    if x.grain is None or d.grain is None or d.low <= 0 or last > MOST_KEYS:
        yield "query", UNKNOWN
        return
    nearest = min(x.high / d.low, last * BEYOND)
    if winner is not None:
        nearest = min(nearest, winner + Fraction(1, 2))
    reach = min(x.high, nearest * d.high)
    if d.low == d.high:
        rival = Fraction(int(nearest + Fraction(1, 2) + NEAR))
        near = min(rival, last) if rival <= FEW else last
        reach = min(reach, (near - Fraction(1, 2) + NEAR) * d.high) if rival <= FEW else reach
    else:
        near = min(2 * nearest + 2, last)
    grain = x.grain + 1
    yield "product", bits(2 * near * max(reach, Fraction(0)), grain)
    yield "square", bits(d.high * near * near, d.grain)
    yield "winner", bits(reach * min(nearest, near), min(grain, d.grain))


def parabola_needs(x: Range, key: Range, origin: Fraction) -> Iterator[tuple[str, int]]:
    """Some keys (2k, -k²), k in the range ``key``, query (x, 1).

    ``origin``: a key that is always there.
    """
    if x.grain is None or key.grain is None or key.magnitude > MOST_KEYS * 2**key.grain:
        yield "query", UNKNOWN
        return
    greatest = key.magnitude
    reach = min(x.magnitude, max(greatest, abs(origin)) * BEYOND)
    grain = min(x.grain + key.grain + 1, 2 * key.grain)
    yield "product", bits(2 * greatest * reach, x.grain + key.grain + 1)
    yield "square", bits(greatest * greatest, 2 * key.grain)
    lowest = abs(origin) * (2 * reach + abs(origin))
    yield "winner", bits(max(reach * reach, lowest), grain)


def product_needs(
    products: tuple[Range, Range], least: Fraction | None
) -> Iterator[tuple[str, int]]:
    """Any keys. ``least``: what some key that is always there scores at least."""
    live = [p for p in products if not p.is_zero]
    if not live:
        return
    if any(p.grain is None for p in live):
        yield "query or key", UNKNOWN
        return
    total = products[0] + products[1]
    if least is not None and total.high + error_of_sum(live) < least:
        return  # it loses, however it is rounded
    grains = [p.grain for p in live if p.grain is not None]
    for product, grain in zip(live, grains, strict=True):
        yield "product", bits(product.magnitude, grain)
    low = total.low if least is None else max(total.low, least)
    yield "winner", bits(max(abs(total.high), abs(low)), min(grains))

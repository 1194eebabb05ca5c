"""The output head: families of tokens whose scores are lines in one quantity, and single rows.

In: the rows of the head that can differ, their ids, and which slots are constant. Out: groups. The
scores of a family are ``common + slope·y + intercept`` with one y for all its members, so the
winner is read off the upper envelope of the lines, which is fixed: for slopes 2b and intercepts
-b² it is the b nearest to y. Nothing is assumed: a family is what lies on a line in the space of
rows, and it is used if all corners of its envelope are float64 numbers.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, cached_property
from math import gcd

import numpy as np

from executor.checkpoint import Array

SMALLEST_FAMILY = 4
MOST_DIRECTIONS = 8

Row = tuple[Fraction, ...]
Line3 = tuple[Fraction, Fraction, int]
"""Slope, intercept, token id."""


@dataclass(frozen=True)
class Line:
    """One token of a family: it scores common + slope·y + intercept."""

    token: int
    slope: float
    intercept: float


@dataclass(frozen=True)
class Family:
    """Tokens scored by lines in y = direction·stream.

    ``winners[i]`` wins below ``corners[i]`` and above ``corners[i - 1]``; ``at_corner[i]`` is the
    lowest id of all that tie there. ``spacing`` is the distance of the corners if it is the same
    power of two between all.
    """

    direction: Array
    common: Array
    winners: tuple[Line, ...]
    corners: tuple[float, ...]
    at_corner: tuple[int, ...]
    spacing: float | None
    size: int

    @cached_property
    def arrays(self) -> tuple[Array, Array, Array]:
        """Slopes and intercepts of the winners, and the corners."""
        slopes = np.array([line.slope for line in self.winners])
        tops = np.array([line.intercept for line in self.winners])
        return slopes, tops, np.array(self.corners)


@dataclass(frozen=True)
class Single:
    """A token scored by its own row."""

    token: int
    row: Array


def group_rows(
    tokens: Sequence[int], rows: Array, constants: Array
) -> tuple[list[Family], list[Single]]:
    """Split the head's rows (n, slots) into families and single rows.

    Args:
        constants: (slots,): the value of a slot that is the same for all tokens, else NaN.
    """
    varying = np.isnan(constants)
    fraction = cache(Fraction)  # rows have few different numbers
    exact = [tuple(map(fraction, row[varying].tolist())) for row in rows]
    known = [(i, fraction(c)) for i, c in enumerate(constants.tolist()) if c == c and c]
    fixed = [
        sum((fraction(row[i]) * c for i, c in known if row[i]), Fraction()) for row in rows.tolist()
    ]
    left = set(range(len(tokens)))
    families: list[Family] = []
    made = 1
    while made:
        made = 0
        for direction in _directions(sorted(left), exact):
            for members in _along(direction, left, exact):
                family = _family(members, direction, tokens, exact, fixed, varying)
                if family:
                    families.append(family)
                    left -= set(members)
                    made += 1
            if made:
                break
    return families, [Single(tokens[i], rows[i]) for i in sorted(left)]


def _directions(left: Sequence[int], exact: Sequence[Row]) -> list[Row]:
    """Directions between neighbours in the order of ids or of rows that repeat, commonest first."""
    unit = max((w.denominator for i in left for w in exact[i]), default=1)  # all are powers of two
    rows = {i: tuple(w.numerator * (unit // w.denominator) for w in exact[i]) for i in left}
    by_row = sorted(left, key=lambda i: rows[i])
    pairs = [*zip(left, left[1:], strict=False), *zip(by_row, by_row[1:], strict=False)]
    count: Counter[tuple[int, ...]] = Counter()
    for one, other in pairs:
        difference = [b - a for a, b in zip(rows[one], rows[other], strict=True)]
        first = next((d for d in difference if d), 0)
        if first:
            size = gcd(*difference) * (1 if first > 0 else -1)
            count[tuple(d // size for d in difference)] += 1
    common = [row for row, n in count.most_common(MOST_DIRECTIONS) if n >= SMALLEST_FAMILY - 1]
    return [tuple(Fraction(d, next(filter(None, row))) for d in row) for row in common]


def _along(direction: Row, left: set[int], exact: Sequence[Row]) -> list[list[int]]:
    """Rows that differ by multiples of the direction, in groups that are large enough."""
    pivot = next(i for i, d in enumerate(direction) if d)
    groups: dict[Row, list[int]] = {}
    for i in sorted(left):
        along = exact[i][pivot] / direction[pivot]
        rest = tuple(w - along * d if d else w for w, d in zip(exact[i], direction, strict=True))
        groups.setdefault(rest, []).append(i)
    return [members for members in groups.values() if len(members) >= SMALLEST_FAMILY]


def _family(
    members: Sequence[int],
    direction: Row,
    tokens: Sequence[int],
    exact: Sequence[Row],
    fixed: Sequence[Fraction],
    varying: Array,
) -> Family | None:
    pivot = next(i for i, d in enumerate(direction) if d)
    lines = [(exact[i][pivot] / direction[pivot], fixed[i], tokens[i]) for i in members]
    rest = [w - lines[0][0] * d for w, d in zip(exact[members[0]], direction, strict=True)]
    hull = _envelope(lines)
    corners = [
        (hull[i][1] - hull[i + 1][1]) / (hull[i + 1][0] - hull[i][0]) for i in range(len(hull) - 1)
    ]
    at_corner = _ties(hull, corners, lines)
    numbers = [*corners, *rest, *direction, *(n for line in hull for n in line[:2])]
    if not all(map(_is_float, numbers)):
        return None
    gaps = {b - a for a, b in zip(corners, corners[1:], strict=False)}
    spacing = float(gaps.pop()) if len(gaps) == 1 and corners else None
    return Family(
        direction=_spread(direction, varying),
        common=_spread(rest, varying),
        winners=tuple(Line(token, float(slope), float(top)) for slope, top, token in hull),
        corners=tuple(map(float, corners)),
        at_corner=tuple(at_corner),
        spacing=spacing if spacing and np.frexp(spacing)[0] == 0.5 else None,
        size=len(members),
    )


def _ties(hull: Sequence[Line3], corners: Sequence[Fraction], lines: Sequence[Line3]) -> list[int]:
    """The lowest id at each corner: of the lines that meet there, or pass through it."""
    lowest = [min(hull[i][2], hull[i + 1][2]) for i in range(len(corners))]
    slopes = [slope for slope, _, _ in hull]
    for slope, intercept, token in lines:
        i = bisect_left(slopes, slope) - 1
        if 0 <= i < len(corners) and slope < slopes[i + 1]:
            top = hull[i][0] * corners[i] + hull[i][1]
            if slope * corners[i] + intercept == top:
                lowest[i] = min(lowest[i], token)
    return lowest


def _is_float(number: Fraction) -> bool:
    if number.denominator == 1 and abs(number.numerator) <= 1 << 53:
        return True
    return abs(number) < 2**1000 and Fraction(float(number)) == number


def _envelope(lines: Sequence[Line3]) -> list[Line3]:
    """The lines that are greatest somewhere, by slope; of equal lines the lowest id."""
    best: dict[Fraction, Line3] = {}
    for line in lines:
        old = best.get(line[0])
        if old is None or line[1] > old[1] or (line[1] == old[1] and line[2] < old[2]):
            best[line[0]] = line
    hull: list[Line3] = []
    for line in sorted(best.values()):
        while len(hull) > 1 and _is_covered(hull[-2], hull[-1], line):
            hull.pop()
        hull.append(line)
    return hull


def _is_covered(
    low: Line3,
    middle: Line3,
    high: Line3,
) -> bool:
    """Whether the middle line is nowhere greater than both others."""
    left = (low[1] - middle[1]) * (high[0] - middle[0])
    return left >= (middle[1] - high[1]) * (middle[0] - low[0])


def _spread(values: Sequence[Fraction], varying: Array) -> Array:
    full = np.zeros(len(varying))
    full[np.flatnonzero(varying)] = [float(value) for value in values]
    return full

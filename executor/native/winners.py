"""Which keys of a structure of few keys can ever win, where some keys are there from the start.

In: the structure's keys, those that are there, and the range of its queries (q, 1). A key scores
q·x + y, a line in q; it can win or tie if it reaches the upper envelope of the lines that are there
somewhere in the range. All others might as well not be inserted. Where two keys tie the later wins,
so what a query finds changes with time unless no query is where two lines cross on the envelope.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from fractions import Fraction
from itertools import combinations, pairwise

from executor.checkpoint import Array

Query = tuple[float, float, int]
"""What the first component of queries can be: least, greatest, grain."""
Line = tuple[Fraction, Fraction]
"""Slope and height at 0."""


def can_win(keys: Array, present: Collection[int], query: Query) -> list[bool]:
    """For each key (n, 2) whether some query (q, 1) may find it.

    >>> import numpy as np
    >>> can_win(np.array([[0.0, 0.0], [1.0, -4.0], [2.0, -1.0]]), [0, 2], (-9.0, 9.0, 0))
    [True, False, True]
    """
    lines = _lines(keys)
    ends = [Fraction(query[0]), Fraction(query[1])]
    upper = _envelope([lines[i] for i in present])
    if not upper:
        return [True] * len(lines)
    corners = [(one[1] - other[1]) / (other[0] - one[0]) for one, other in pairwise(upper)]
    at = [*ends, *(corner for corner in corners if ends[0] < corner < ends[1])]
    best = [(q, max(slope * q + height for slope, height in upper)) for q in at]
    return [any(slope * q + height >= top for q, top in best) for slope, height in lines]


def can_tie(
    keys: Array, present: Collection[int], query: Query, among: Collection[int] | None = None
) -> Iterator[tuple[int, int]]:
    """Pairs of keys (``among`` some) that some query (q, 1) may find equally good.

    >>> import numpy as np
    >>> keys = np.array([[0.0, 0.0], [2.0, -1.0], [4.0, -4.0]])
    >>> list(can_tie(keys, [0, 2], (0.0, 9.0, 0)))
    [(0, 2)]
    >>> list(can_tie(keys, [0, 1], (0.0, 9.0, -1)))
    [(0, 1), (1, 2)]
    """
    lines, grain = _lines(keys), Fraction(2) ** query[2]
    there = [lines[i] for i in present]
    for i, j in combinations(range(len(lines)) if among is None else sorted(among), 2):
        one, other = lines[i], lines[j]
        if one[0] == other[0]:
            continue
        q = (one[1] - other[1]) / (other[0] - one[0])
        if query[0] <= q <= query[1] and (q / grain).denominator == 1:
            score = one[0] * q + one[1]
            if all(slope * q + height <= score for slope, height in there):
                yield i, j


def _lines(keys: Array) -> list[Line]:
    return [(Fraction(x), Fraction(y)) for x, y in keys.tolist()]


def _envelope(lines: Sequence[Line]) -> list[Line]:
    """The lines that are greatest somewhere, by slope."""
    upper: list[Line] = []
    for line in sorted(lines):
        if upper and upper[-1][0] == line[0]:
            upper.pop()
        while len(upper) > 1 and _is_covered(upper[-2], upper[-1], line):
            upper.pop()
        upper.append(line)
    return upper


def _is_covered(low: Line, middle: Line, high: Line) -> bool:
    """Whether the middle line is nowhere greater than both others."""
    left = (low[1] - middle[1]) * (high[0] - middle[0])
    return left >= (middle[1] - high[1]) * (middle[0] - low[0])

"""Neurons whose gates differ by integers: as functions of an integer they are stairs.

The sum of c·max(0, s + k) over several (k, c) is linear between its corners. Where the k are
consecutive, the c add up to 0 and s is an integer, it is 0, then some values, then constant.
"""

from __future__ import annotations

from collections.abc import Sequence


def stairs(corners: Sequence[tuple[float, float]]) -> list[tuple[float, float]] | None:
    """The function as (from which s on, value) in ascending order; None if it is no stairs.

    Args:
        corners: pairs (k, c); the k are integers.

    >>> stairs([(1.0, 2.0), (0.0, -2.0)])
    [(0.0, 2.0)]
    >>> stairs([(1.0, 1.0), (0.0, -2.0), (-1.0, 1.0)])
    [(0.0, 1.0), (1.0, 0.0)]
    """
    factors: dict[float, float] = {}
    for k, c in corners:
        factors[k] = factors.get(k, 0.0) + c
    ordered = sorted(((k, c) for k, c in factors.items() if c), reverse=True)
    if sum(c for _, c in ordered):
        return None
    if any(k - other != 1.0 for (k, _), (other, _) in zip(ordered, ordered[1:], strict=False)):
        return None
    found, value, slope = [], 0.0, 0.0
    for k, c in ordered[:-1]:
        slope += c
        value += slope
        found.append((1.0 - k, value))
    return found


Level = tuple[float, float]
"""From which number on, and the value from there."""


def select(text: str, below: str, levels: Sequence[tuple[float, str]], one: float = 1.0) -> str:
    """C of stairs in what ``text`` is, which is a multiple of ``one``: from which on what C.

    >>> select("s", "0", [(4, "1"), (6, "0")], 2)
    's == 4 ? 1 : 0'
    """
    if len(levels) == 2 and levels[1] == (levels[0][0] + one, below):
        return f"{text} == {levels[0][0]!r} ? {levels[0][1]} : {below}"
    found = below
    for start, level in levels:
        found = f"{text} >= {start!r} ? {level} : {found}"
    return found

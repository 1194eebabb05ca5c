"""Signs of the two determinants a planar hull needs, decided exactly.

In: finite float64 coordinates. Out: -1, 0 or +1, never wrong. Two steps: one float64 quotient per
edge settles all but near ties; those are settled in integers, for every finite float is an integer
over a power of two, and on one denominator the question is about integers only.

The *fall* of an edge from (x0, y0) to (x1, y1), x0 < x1, is (y0 - y1) / (x1 - x0). Computed with
two differences and a quotient it is off by at most 3 roundings of 2**-53, relatively; a query's
q_x / q_y by one. Adding the slack rounds once more, so values that differ by more than `SLACK`, 8
roundings, are in the right order. `TINY` does the same for quotients that underflow. Coordinates
below `LIMIT` keep differences from overflowing. A quotient may: it is infinite then, and infinity
exceeds only what the quotient exceeds too, or fails the comparison and goes to the integers.
"""

from __future__ import annotations

from math import inf

SLACK = 2.0**-50
TINY = 1e-300
LIMIT = 2.0**1022


def scaled_integers(*numbers: float) -> list[int]:
    """Multiply finite numbers by the smallest power of two that makes all of them integers.

    >>> scaled_integers(3.0, -0.25)
    [12, -1]
    """
    if all(map(float.is_integer, numbers)):  # a compiled model's are; twice as fast
        return list(map(int, numbers))
    ratios = [number.as_integer_ratio() for number in numbers]
    denominator = max(ratio[1] for ratio in ratios)
    return [numerator * (denominator // own) for numerator, own in ratios]


def checked(x: float, y: float, what: str) -> tuple[float, float]:
    """A key or query as two floats; ValueError if one is NaN, infinite or not below `LIMIT`.

    >>> checked(1, -2.5, "key")
    (1.0, -2.5)
    >>> checked(float("inf"), 0.0, "query")
    Traceback (most recent call last):
        ...
    ValueError: query (inf, 0.0) is not finite
    """
    x = float(x)
    y = float(y)
    if -LIMIT < x < LIMIT and -LIMIT < y < LIMIT:
        return x, y
    if -inf < x < inf and -inf < y < inf:
        raise ValueError(f"{what} ({x}, {y}) is not below 2**1022 in size")
    raise ValueError(f"{what} ({x}, {y}) is not finite")


def height(ax: float, ay: float, bx: float, by: float, cx: float, cy: float) -> int:
    """Where b lies, ax < bx < cx: above (+1), on (0) or below (-1) the line from a to c.

    Coordinates below `LIMIT` in size. O(1).

    >>> height(0.0, 0.0, 1.0, 5e-324, 2.0, 0.0), height(0.0, 0.0, 1.0, 1.0, 2.0, 2.0)
    (1, 0)
    """
    before = (ay - by) / (bx - ax)
    after = (by - cy) / (cx - bx)
    slack = abs(after) * SLACK + TINY
    if before < after - slack:
        return 1
    if before > after + slack:
        return -1
    iax, iay, ibx, iby, icx, icy = scaled_integers(ax, ay, bx, by, cx, cy)
    determinant = (iby - iay) * (icx - iax) - (icy - iay) * (ibx - iax)
    return (determinant > 0) - (determinant < 0)


def score_change(qx: float, qy: float, ax: float, ay: float, bx: float, by: float) -> int:
    """Sign of q·b - q·a: whether key b scores above (+1), below (-1) or level with (0) key a.

    Keys below `LIMIT` in size. O(1).

    >>> score_change(1.0, 1.0, 2.0, 3.0, 3.0, 2.0)
    0
    >>> score_change(2.0**60, 2.0**-39, 0.0, 0.0, 2.0**-99, -1.0)
    0
    """
    across = qx * (bx - ax)
    up = qy * (by - ay)
    slack = (abs(across) + abs(up)) * SLACK + TINY
    if across + up > slack:
        return 1
    if across + up < -slack:
        return -1
    iqx, iqy = scaled_integers(qx, qy)
    iax, iay, ibx, iby = scaled_integers(ax, ay, bx, by)
    change = iqx * (ibx - iax) + iqy * (iby - iay)
    return (change > 0) - (change < 0)

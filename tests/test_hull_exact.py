"""The predicates of `hullcache.exact` against rational arithmetic."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import hull_oracle as oracle
from hullcache.exact import LIMIT, checked, height, score_change

keys = st.one_of(oracle.float_keys, oracle.integer_keys)


def sign(number: Fraction) -> int:
    return (number > 0) - (number < 0)


@settings(max_examples=400, deadline=None)
@given(st.lists(keys, min_size=3, max_size=3), st.booleans())
def test_height_is_the_sign_of_the_determinant(points: list[oracle.Point], mix: bool) -> None:
    (ax, ay), (bx, by), (cx, cy) = sorted(points)
    if mix:  # put the middle key as near to the line as a float gets
        by = ay + (cy - ay) * ((bx - ax) / (cx - ax)) if cx > ax else by
        assume(abs(by) < LIMIT)
    assume(ax < bx < cx)
    a, b, c = [(Fraction(x), Fraction(y)) for x, y in ((ax, ay), (bx, by), (cx, cy))]
    line = (b[1] - a[1]) * (c[0] - a[0]) - (c[1] - a[1]) * (b[0] - a[0])
    assert height(ax, ay, bx, by, cx, cy) == sign(line)


@settings(max_examples=400, deadline=None)
@given(keys, keys, oracle.float_queries, st.booleans(), st.integers(0, 2))
def test_score_change_is_the_sign_of_the_difference_of_scores(
    a: oracle.Point, b: oracle.Point, q: oracle.Point, level: bool, which: int
) -> None:
    if level and (near := oracle.normals([a, b])):
        q = near[which % len(near)]
    change = Fraction(q[0]) * (Fraction(b[0]) - Fraction(a[0]))
    change += Fraction(q[1]) * (Fraction(b[1]) - Fraction(a[1]))
    assert score_change(*q, *a, *b) == sign(change)


def test_quotients_that_underflow_decide_nothing() -> None:
    """Both falls are near 1.5 units of the least subnormal, and round apart the wrong way."""
    unit = 5e-324
    points = (-2.0, 3 * unit, 2.0**-52, 0.0, float.fromhex("0x1.2aaaaaaaaaaabp+2"), -7 * unit)
    assert height(*points) == 1


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf"), LIMIT, -LIMIT])
def test_coordinates_out_of_range_are_refused(bad: float) -> None:
    for pair in ((bad, 0.0), (0.0, bad)):
        with pytest.raises(ValueError, match="probe"):
            checked(*pair, "probe")

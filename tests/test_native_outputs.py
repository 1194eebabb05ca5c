"""Which families of the output head can be left out: those that always score less than another."""

from __future__ import annotations

import numpy as np
import pytest

from executor.native.columns import Columns
from executor.native.exprs import Expr, constant
from executor.native.families import Family, Line
from executor.native.nodes import Program
from executor.native.outputs import Rival, beaten
from executor.native.ranges import Range
from executor.native.shared import Shared
from executor.native.tails import Tail


def family(first: int, lift: float) -> Family:
    """Tokens 2·b·y - b² for b from 0 to 3, from a token on and higher by so much."""
    lines = tuple(Line(first + b, 2.0 * b, lift - float(b * b)) for b in range(4))
    at_corner = tuple(first + b for b in range(3))
    none = np.zeros(1)
    return Family(none, none, lines, (0.5, 1.5, 2.5), at_corner, 1.0, 4)


def rival(index: int, y: Expr, common: float = 0.0) -> Rival:
    return Rival(Range(-1.0, 1.0, 0), index, y, constant(common), constant(0.0))


@pytest.mark.parametrize(
    ("lift", "common", "expected"),
    [
        (-1.0, 0.0, True),
        (-0.5, -0.5, True),
        (0.0, 0.0, False),
        (1.0, 0.0, False),
        (-1.0, 1.0, False),
        (-(2.0**-50), 0.0, False),  # scores may round to equal ones, and the lower id wins
        (-(2.0**-40), 0.0, True),
        (-(2.0**-40), 2.0**20, False),
        (2.0**20 - 2.0**-30, -(2.0**20), False),  # what is added up is larger than the difference
    ],
)
def test_a_family_is_left_out_only_by_more_than_rounding(
    lift: float, common: float, expected: bool
) -> None:
    families = [family(0, lift), family(4, 0.0)]
    tail = Tail(Shared(Program(), Columns(8), lambda value: Range(0.0, 1.0, 0)), 0)
    y = tail.atom("y", Range(-1.0, 4.0, -10), lambda scope: "y", ("y",))
    one, other = rival(0, y, common), rival(1, y)
    assert beaten(tail, one, other, families) is expected
    assert not beaten(tail, one, one, families)


def test_lines_that_cross_between_the_corners() -> None:
    """One family wins at both ends and one corner, the other at another corner."""
    steep = Family(
        np.zeros(1), np.zeros(1), (Line(4, 0.0, -0.5), Line(5, 6.0, -8.75)), (1.375,), (4,), None, 2
    )
    families = [steep, family(0, 0.0)]
    tail = Tail(Shared(Program(), Columns(8), lambda value: Range(0.0, 1.0, 0)), 0)
    for high, expected in ((1.0, True), (2.9, False)):
        y = tail.atom("y", Range(0.0, high, -10), lambda scope: "y", ("y", high))
        assert beaten(tail, rival(0, y), rival(1, y), families) is expected


def test_families_of_different_quantities_are_not_compared() -> None:
    families = [family(0, -100.0), family(4, 0.0)]
    tail = Tail(Shared(Program(), Columns(8), lambda value: Range(0.0, 1.0, 0)), 0)
    y, z = (tail.atom(n, Range(-1.0, 4.0, -10), lambda scope: "y", (n,)) for n in "yz")
    assert beaten(tail, rival(0, y), rival(1, y), families)
    assert not beaten(tail, rival(0, y), rival(1, z), families)


@pytest.mark.parametrize(("lift", "expected"), [(-0.5, False), (-1.5, True)])
def test_a_line_that_is_above_at_a_corner_alone(lift: float, expected: bool) -> None:
    """y - 0.5 is less than the greater of 0 and 2·y - 2 at both ends, but not at 1."""
    none = np.zeros(1)
    families = [
        Family(none, none, (Line(0, 1.0, lift),), (), (), None, 1),
        Family(none, none, (Line(1, 0.0, 0.0), Line(2, 2.0, -2.0)), (1.0,), (1,), None, 2),
    ]
    tail = Tail(Shared(Program(), Columns(8), lambda value: Range(0.0, 1.0, 0)), 0)
    y = tail.atom("y", Range(0.0, 2.0, -10), lambda scope: "y", ("y",))
    assert beaten(tail, rival(0, y), rival(1, y), families) is expected

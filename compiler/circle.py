"""Opcodes as integer points on a circle, so that one neuron or one logit recognises one of them.

For points u, v on the circle of squared radius R², u·v - R² + 1 is 1 when u = v and otherwise
1 - |u - v|²/2, an integer that is at most 0. Neighbouring opcodes that end in the same commit
form an arc, and a linear function that is positive on exactly that arc recognises the class.
Points inside the circle, which is what tokens that are no opcodes show, pass no test.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

RADIUS_SQUARED = 160225
"""5²·13·17·29 has 96 integer points, and its root, 400, is greater than every byte: whatever token
is read as an opcode, at most one test is positive."""

Point = tuple[int, int]


def points() -> list[Point]:
    """The 96 integer points of the circle by angle."""
    limit = math.isqrt(RADIUS_SQUARED)
    found = [
        (x, y)
        for x in range(-limit, limit + 1)
        for y in range(-limit, limit + 1)
        if x * x + y * y == RADIUS_SQUARED
    ]
    return sorted(found, key=lambda point: math.atan2(point[1], point[0]))


@dataclass(frozen=True)
class Classifier:
    """The linear function ``x_factor·x + y_factor·y + constant``."""

    x_factor: int
    y_factor: int
    constant: int

    def __call__(self, point: Point) -> int:
        return self.x_factor * point[0] + self.y_factor * point[1] + self.constant


def is_point(point: Point) -> Classifier:
    """1 on ``point``, at most 0 on every other point of the circle and inside of it."""
    return Classifier(point[0], point[1], 1 - RADIUS_SQUARED)


def is_one_of(first: Point, second: Point) -> Classifier:
    """1 on two neighbours, at most 0 on every other point of the circle and well inside of it.

    Both stand at the same angle from the line between them, all others farther away.
    """
    x, y = first[0] + second[0], first[1] + second[1]
    return Classifier(x, y, 1 - RADIUS_SQUARED - first[0] * second[0] - first[1] * second[1])


def is_arc(members: Iterable[Point], others: Iterable[Point]) -> Classifier:
    """A function that is at least 1 on all ``members`` and at most -1 on ``others`` and the origin.

    Raises ValueError where no line through the circle separates them.
    """
    inside, outside = list(members), list(others)
    x_sum, y_sum = sum(x for x, _ in inside), sum(y for _, y in inside)
    first = min(inside, key=lambda point: _side(point, (x_sum, y_sum)))
    last = max(inside, key=lambda point: _side(point, (x_sum, y_sum)))
    x_factor, y_factor = first[0] + last[0], first[1] + last[1]
    low = min(x_factor * x + y_factor * y for x, y in inside)
    high = max([0, *(x_factor * x + y_factor * y for x, y in outside)])
    if low <= high:
        raise ValueError("the points do not form an arc of less than half the circle")
    return Classifier(2 * x_factor, 2 * y_factor, -(low + high))


def _side(point: Point, axis: Point) -> float:
    """Angle of ``point`` measured from ``axis``."""
    cross = axis[0] * point[1] - axis[1] * point[0]
    dot = axis[0] * point[0] + axis[1] * point[1]
    return math.atan2(cross, dot)

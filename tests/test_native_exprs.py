"""Sums of variables are merged only where every operation of the plain code is exact."""

from __future__ import annotations

import pytest

from executor.native.exprs import Expr, Scope, constant
from executor.native.ranges import Range

BIG = 1.5 * 2.0**48


def variable(scope: Scope, name: str, low: float, high: float, grain: int) -> Expr:
    return scope.atom(name, Range(low, high, grain), lambda s: name, (name,))


def test_a_large_constant_cancels_where_each_sum_is_exact() -> None:
    scope = Scope(0)
    x = variable(scope, "x", 0.0, 100.0, 0)
    shifted = scope.combine([(1.0, x), (1.0, constant(BIG))])
    assert scope.combine([(1.0, shifted), (1.0, constant(-BIG))]).key == x.key
    y = variable(scope, "y", 0.0, 1.0, -6)  # finer than the constant allows
    shifted = scope.combine([(1.0, y), (1.0, constant(BIG))])
    assert scope.combine([(1.0, shifted), (1.0, constant(-BIG))]).key != y.key


@pytest.mark.parametrize(("large", "merged"), [(2.0**51, True), (2.0**53, False)])
def test_sums_that_are_exact_in_their_order_alone(large: float, merged: bool) -> None:
    """x - large·y + large·y: a sum of all magnitudes is too large, each partial sum is not."""
    scope = Scope(0)
    x = variable(scope, "x", 0.0, 100.0, 0)
    y = variable(scope, "y", 0.0, 2.0, 0)
    total = scope.combine([(1.0, x), (-large, y), (large, y)])
    assert (total.key == x.key) is merged


def test_factors_whose_product_is_rounded_are_not_merged() -> None:
    """0.1·(0.1·x) is not (0.1·0.1)·x."""
    scope = Scope(0)
    x = variable(scope, "x", 0.0, 1.0, 0)
    tenth = scope.combine([(0.1, x)])
    total = scope.combine([(0.1, tenth), (1.0, constant(2.0**-80))])
    assert len(total.terms) == 1 and total.terms[0][0] == 1.0 and not total.const
    lines = scope.text(total)
    assert lines == total.terms[0][1]
    assert any("0.1 *" in line for line in scope.lines)

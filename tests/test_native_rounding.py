"""Random sums of numbers that just fit into a float64, or do not: no bit of the result is another.

What an expression means is what its operations give one by one, in their order. What the code does
instead may be anything that always gives the same.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from executor.native.build import load
from executor.native.exprs import Expr, Scope, Units, constant
from executor.native.integers import Integers
from executor.native.ranges import ROUNDED, Range
from executor.native.sources import runtime

Value = Callable[[list[float]], float]
N_MADE, N_POINTS = 1500, 12


@dataclass
class Rough:
    """Random expressions in a few inputs, each with what it means."""

    rng: np.random.Generator
    scope: Integers = field(default_factory=lambda: Integers(0))
    inputs: list[tuple[int, int, float]] = field(default_factory=list)
    """Of each input the ends, in units."""
    found: list[tuple[Expr, Value]] = field(default_factory=list)

    def pick(self, *options: float) -> float:
        return float(self.rng.choice(options))

    def input(self) -> None:
        rng, i = self.rng, len(self.inputs)
        bits = int(rng.choice([2, 20, 50, 51, 52, 53]))
        unit = self.pick(1, 1, 1, 2, 0.5, 2.0**-20)
        high = 2**bits - int(rng.integers(0, 2))
        low = -high if rng.random() < 0.4 else high // 2 if rng.random() < 0.5 else 0
        self.inputs.append((low, high, unit))
        values = Range(low * unit, high * unit, int(np.log2(unit)))
        if rng.random() < 0.5:
            one = self.scope.atom("x", values, lambda s: f"in[{i}]", (i,))
        else:
            units = Units(values.grain, lambda s: f"(int64_t)({1 / unit!r} * in[{i}])")
            one = self.scope.atom("x", values, None, (i,), units=units)
        self.found.append((one, lambda point: point[i]))

    def any(self) -> tuple[Expr, Value]:
        return self.found[int(self.rng.integers(len(self.found)))]

    def number(self) -> float:
        """A constant: small, or so large that little is left of others."""
        if self.rng.random() < 0.5:
            return self.pick(-3, 0.5, 1, 2, 7)
        return 2.0 ** int(self.rng.integers(49, 55)) * self.pick(-1.5, 1, 1.5, -1)

    def factor(self) -> float:
        return self.pick(1, 1, 1, -1, -1, 2, -0.5, 3, 0.1, 2.0**20, -(2.0**-20))

    def sum(self) -> tuple[Expr, Value]:
        parts = [(self.factor(), *self.any()) for _ in range(int(self.rng.choice([1, 1, 2, 3])))]
        if self.rng.random() < 0.4:
            number = self.number()
            parts.append((self.pick(1, 1, -1, 0.1), constant(number), lambda p: number))
        if self.rng.random() < 0.4:  # something of it back again
            factor, expr, value = parts[int(self.rng.integers(len(parts)))]
            parts.insert(int(self.rng.integers(len(parts) + 1)), (-factor, expr, value))
        total = self.scope.combine([(f, e) for f, e, _ in parts])

        def meaning(point: list[float]) -> float:
            first, *others = [f * value(point) for f, _, value in parts]
            for other in others:
                first += other
            return first

        return total, meaning

    def make(self) -> None:
        """One more, of those before."""
        (one, first), (other, second) = self.sum(), self.any()
        match int(self.rng.integers(6)):
            case 0:
                self.found.append((self.scope.times(one, other), lambda p: first(p) * second(p)))
            case 1 if one.range.high > 0 > one.range.low:
                gated = self.scope.gated(one, other)
                self.found.append((gated, lambda p: first(p) * second(p) if first(p) > 0 else 0.0))
            case _:
                self.found.append((one, first))


def test_random_sums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRANSPUTER_CACHE", str(tmp_path))
    rng = np.random.default_rng(1)
    lines, cases = ["#include <stdint.h>", runtime("special.h")], []
    exact = 0
    for k in range(N_MADE):
        made = Rough(rng)
        for _ in range(3):
            made.input()
        for _ in range(int(rng.integers(1, 6))):
            made.make()
        expr, value = made.found[-1]
        text = made.scope.text(expr)
        lines += [f"double f{k}(const double *in) {{", *made.scope.lines, f"return {text};", "}"]
        cases.append((made.inputs, expr, value))
        exact += expr.range.grain > ROUNDED
    assert 0.1 * N_MADE < exact < 0.9 * N_MADE
    compiled = load("\n".join(lines), lambda line: None, "-O0")
    for k, (inputs, expr, value) in enumerate(cases):
        function = compiled[f"f{k}"]
        function.restype = ctypes.c_double
        for _ in range(N_POINTS):
            point = []
            for low, high, unit in inputs:
                near = (low, low + 1, high, high - 1, int(rng.integers(low, high + 1)))
                point.append(near[rng.integers(5)] * unit)
            wanted = value(point)
            found = function((ctypes.c_double * len(point))(*point))
            assert found == wanted, (k, point)
            assert expr.range.low <= wanted <= expr.range.high, (k, point)
            if expr.range.grain > ROUNDED:
                assert (Fraction(wanted) / Fraction(2) ** expr.range.grain).denominator == 1


def variable(scope: Scope, name: str, low: float, high: float) -> Expr:
    return scope.atom(name, Range(low, high, 0), lambda s: name, (name,))


def test_a_part_that_is_rounded_does_not_cancel() -> None:
    """x + 3·y - 2·y - y is not x where 3·y has 54 bits, though all sums are small."""
    scope, third = Integers(0), (2**53 + 1) // 3
    x = variable(scope, "x", -(2.0**53) + 200, -(2.0**53) + 208)
    y = variable(scope, "y", third + 2.0, third + 8.0)
    total = scope.combine([(1.0, x), (3.0, y), (-2.0, y), (-1.0, y)])
    assert total.key != x.key
    a, b = -(2.0**53) + 205, third + 4.0
    assert a + 3.0 * b - 2.0 * b - b != a


def test_factors_that_do_not_add_up_are_not_merged() -> None:
    """c + (2^53 - 1)·x + 2·x is not c + 2^53·x, the nearest float64 of the sum of the factors."""
    scope, c = Integers(0), 2.0 - 2.0**53
    x = variable(scope, "x", 0.0, 1.0)
    total = scope.combine([(1.0, constant(c)), (2.0**53 - 1, x), (2.0, x)])
    assert (2.0**53, "x") not in total.terms
    assert c + (2.0**53 - 1) + 2.0 == 3.0 != c + 2.0**53


def test_a_sum_that_is_exact_in_its_order_alone_keeps_it() -> None:
    scope = Integers(0)
    x, y, z = (variable(scope, name, 2.0**52, 2.0**52 + 8) for name in "xyz")
    total = scope.combine([(1.0, x), (-1.0, y), (1.0, z)])
    assert len(total.terms) == 1
    assert scope.text(total) == total.terms[0][1]
    assert scope.lines[-1].endswith("x - y + z;")


def test_two_factors_of_which_the_product_is_rounded_stay_two() -> None:
    scope = Integers(0)
    x = variable(scope, "x", 0.0, 9.0)
    three = scope.combine([(3.0, x)])
    assert three.terms == ((3.0, "x"),)
    total = scope.combine([(0.1, three)])
    scope.text(total)
    assert scope.lines[-1].endswith("0.1 * (3.0 * x);")


@pytest.mark.parametrize(("high", "whole"), [(2.0**26, True), (2.0**27 - 1, False)])
def test_a_product_of_more_than_53_bits_is_no_integer(high: float, whole: bool) -> None:
    scope = Integers(0)
    x, y = (
        scope.atom(n, Range(0.0, high, 0), None, (n,), units=Units(0, lambda s: "in")) for n in "xy"
    )
    product = scope.times(x, y)
    assert (scope.unit(product) is not None) is whole
    assert product.range.is_exact is whole

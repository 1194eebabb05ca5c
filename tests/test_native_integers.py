"""Values as integers in units are what they stand for: random expressions, compiled."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil, floor
from pathlib import Path

import numpy as np
import pytest

from executor.native.build import load
from executor.native.columns import Columns
from executor.native.exprs import Expr, Units, constant
from executor.native.families import Family, Line
from executor.native.integers import Integers
from executor.native.nodes import Program
from executor.native.outputs import Rival, corner
from executor.native.ranges import Range
from executor.native.shared import Shared
from executor.native.sources import runtime
from executor.native.tails import Tail

Value = Callable[[list[int]], Fraction]
N_MADE, N_POINTS = 150, 40


@dataclass
class Made:
    """Random expressions in a few inputs, each with what it means."""

    rng: np.random.Generator
    scope: Integers = field(default_factory=lambda: Integers(0))
    inputs: list[tuple[int, int, int]] = field(default_factory=list)
    """Of each input the ends, times a step."""
    found: list[tuple[Expr, Value]] = field(default_factory=list)

    def power(self, low: int, high: int) -> float:
        return float(2.0 ** int(self.rng.integers(low, high)))

    def input(self) -> None:
        """A variable: an integer in units that may be finer than its grain, or a float64."""
        rng, i = self.rng, len(self.inputs)
        unit, step = int(rng.integers(-6, 4)), 2 ** int(rng.integers(0, 3))
        low = int(rng.integers(-40, 5))
        high = low + int(rng.integers(1, 60))
        self.inputs.append((low, high, step))
        grain = unit + step.bit_length() - 1
        values = Range(low * 2.0**grain, high * 2.0**grain, grain)
        text = f"in[{i}]"
        if rng.random() < 0.7:
            units = Units(unit, lambda s: text, bool(rng.random() < 0.5))
            one = self.scope.atom("x", values, None, (i,), units=units)
        else:
            one = self.scope.atom("x", values, lambda s: f"{2.0**unit!r} * (double){text}", (i,))
        self.found.append((one, lambda point: point[i] * Fraction(2) ** unit))

    def any(self) -> tuple[Expr, Value]:
        return self.found[int(self.rng.integers(len(self.found)))]

    def sum(self) -> tuple[Expr, Value]:
        parts = [self.any() for _ in range(int(self.rng.integers(1, 4)))]
        factors = [self.power(-3, 3) * int(self.rng.choice([-3, -1, 1, 2])) for _ in parts]
        const = self.power(-5, 3) * int(self.rng.integers(-9, 10))
        terms = [(f, e) for f, (e, _) in zip(factors, parts, strict=True)]
        total = self.scope.combine([*terms, (1.0, constant(const))])
        return (
            total,
            lambda point: (
                Fraction(const)
                + sum(Fraction(f) * v(point) for f, (_, v) in zip(factors, parts, strict=True))
            ),
        )

    def make(self) -> None:
        """One more, of those before."""
        (one, first), (other, second) = self.sum(), self.any()
        match int(self.rng.integers(5)):
            case 0:
                self.found.append((self.scope.times(one, other), lambda p: first(p) * second(p)))
            case 1 if one.range.high > 0 > one.range.low:
                self.found.append((self.scope.opened(one), lambda p: max(first(p), Fraction())))
            case 2 if one.range.high > 0 > one.range.low:
                gated = self.scope.gated(one, other)
                self.found.append((gated, lambda p: max(first(p), Fraction()) * second(p)))
            case 3 if one.range.grain >= 0 and one.terms:
                self.steps(one, first, other, second)
            case _:
                self.found.append((self.scope.named("t", one), first))

    def steps(self, of: Expr, first: Value, other: Expr, second: Value) -> None:
        at = float(floor((of.range.low + of.range.high) / 2))
        if self.rng.random() < 0.5 and other.terms:
            stairs = self.scope.steps(of, 0.0, [(at, 1.0), (at + 1.0, 0.0)], other)
            self.found.append((stairs, lambda p: second(p) if first(p) == at else Fraction()))
            return
        below, above = self.power(-3, 3), -self.power(-3, 3)
        stairs = self.scope.steps(of, below, [(at, above), (at + 2, 0.0)], None)

        def value(point: list[int]) -> Fraction:
            s = first(point)
            return Fraction(below if s < at else above if s < at + 2 else 0.0)

        self.found.append((stairs, value))


def library(functions: list[str]) -> ctypes.CDLL:
    source = "\n".join(["#include <stdint.h>", runtime("special.h"), *functions])
    return load(source, lambda line: None, "-O0")


def test_random_expressions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a float64, and rounded up or down in any unit."""
    monkeypatch.setenv("TRANSPUTER_CACHE", str(tmp_path))
    rng = np.random.default_rng(1)
    functions, cases, native = [], [], 0
    for k in range(N_MADE):
        made = Made(rng)
        for _ in range(4):
            made.input()
        for _ in range(8):
            made.make()
        expr, value = made.found[-1]
        exponent, add, up = int(rng.integers(-4, 4)), float(rng.integers(-9, 9)) / 8, k % 2 > 0
        whole = made.scope.rounded(expr, exponent, add, up)
        if not whole:
            continue  # some product is too large
        native += made.scope.unit(expr) is not None
        number = made.scope.text(expr)
        functions += [
            f"void f{k}(const int64_t *in, int64_t *whole, double *number) {{",
            *made.scope.lines, f"*whole = {whole}; *number = {number};", "}",
        ]  # fmt: skip
        cases.append((k, made.inputs, expr, value, exponent, add, up))
    assert len(cases) > N_MADE / 2 and native > N_MADE / 4
    compiled = library(functions)
    for k, inputs, expr, value, exponent, add, up in cases:
        for _ in range(N_POINTS):
            point = [(low, high, int(rng.integers(low, high + 1)))[rng.integers(3)] * step
                     for low, high, step in inputs]  # fmt: skip
            integer, double = ctypes.c_int64(), ctypes.c_double()
            given = (ctypes.c_int64 * len(point))(*point)
            compiled[f"f{k}"](given, ctypes.byref(integer), ctypes.byref(double))
            wanted = value(point)
            assert expr.range.low <= wanted <= expr.range.high
            assert Fraction(double.value) == wanted
            rounded = (wanted + Fraction(add)) / Fraction(2) ** exponent
            assert integer.value == (ceil(rounded) if up else floor(rounded))


@pytest.mark.parametrize(("size", "whole"), [(2.0**52, True), (2.0**61, False)])
def test_what_may_not_fit_is_no_integer(size: float, whole: bool) -> None:
    scope = Integers(0)
    values = Range(0.0, size, 9)
    x = scope.atom("x", values, None, ("x",), units=Units(0, lambda s: "x"))
    assert (scope.unit(x) is not None) is whole
    assert bool(scope.rounded(x)) is whole
    assert not scope.rounded(x, -12)


def test_a_finer_unit_has_to_fit_as_well() -> None:
    """2^70 is 2^40 units of 2^30, and is too large for comparisons with an odd number."""
    scope = Integers(0)
    values = Range(0.0, 2.0**70, 30)
    x = scope.atom("x", values, None, ("x",), units=Units(30, lambda s: "in"))
    assert scope.unit(x) == 30 and scope.unit(x, coarsest=20) == 20
    assert scope.unit(x, coarsest=0) is None
    stairs = scope.steps(x, 0.0, [(3.0, 1.0)], None)
    scope.text(stairs)
    assert ">= 3.0 ? 1.0 : 0.0" in scope.lines[-1]


def test_what_a_branch_tells_may_make_an_integer_of_a_named_sum() -> None:
    scope = Integers(0)
    values = Range(-(2.0**60), 2.0**60, 10)
    x = scope.atom("x", values, None, ("x",), units=Units(0, lambda s: "in", False))
    thrice = scope.combine([(3.0, x)])
    assert scope.single(thrice) == "g"
    scope.know_atom("x", Range(-8.0 * 2**10, 2.0**40, 10))
    thrice = scope.combine([(3.0, x)])
    assert scope.in_units(scope.opened(thrice), 0)
    assert "> 0 ?" in scope.lines[-1] and "3 * in" in scope.lines[-1]


def test_products_that_are_rounded_are_no_integers() -> None:
    scope = Integers(0)
    x, y = (
        scope.atom(n, Range(-(2.0**30), 2.0**30, 0), None, (n,), units=Units(0, lambda s: "in"))
        for n in "xy"
    )
    assert scope.unit(scope.times(x, y)) is None
    assert scope.unit(scope.times(x, scope.combine([(0.5, x)]))) is None


def test_a_column_is_integers_for_the_tokens_that_are_read() -> None:
    columns = Columns(6)
    number = columns.column(np.array([0.5, 1.0, 3.5, 2.0**-40, 2.0**30, -4.0]))[1]
    few = columns.mask(np.array([1, 1, 1, 0, 0, 0], np.bool_))
    assert columns.unit(number, 0) is None  # 71 bits
    assert columns.unit(number, few) == -1
    assert columns.integer(number, -1, "p", few, "token") == f"K{number}_{few}(token)"
    (table,), (row,), (macro,) = columns.tables()
    assert table.dtype == np.uint8 and table.shape == (6, 1)
    assert table[:, 0].tolist() == [1, 2, 7, 0, 0, 0]
    assert f"int8_t K{number}_{few}" in row and f"rows0[k].K{number}_{few}" in macro


def input_of(tail: Tail, rng: np.random.Generator) -> tuple[Expr, int, range]:
    """A sum with one input: an integer or a float64, its unit, and what the input can be."""
    unit, low = int(rng.integers(-4, 3)), int(rng.integers(-60, 60))
    high = low + int(rng.integers(1, 90))
    values = Range(low * 2.0**unit, high * 2.0**unit, unit)
    if rng.random() < 0.5:
        x = tail.atom("x", values, None, ("x",), units=Units(unit, lambda s: "in"))
    else:
        x = tail.atom("x", values, lambda s: f"{2.0**unit!r} * (double)in", ("x",))
    const = float(rng.integers(-40, 40)) / 8
    return tail.combine([(1.0, x), (1.0, constant(const))]), unit, range(low, high + 1)


def tail_from(first: int) -> Tail:
    return Tail(Shared(Program(), Columns(8), lambda value: Range(0.0, 1.0, 0)), first)


def test_corners_and_positions_are_cut_to_their_range(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """How many corners are below a number, and the nearest position, for all of an interval."""
    monkeypatch.setenv("TRANSPUTER_CACHE", str(tmp_path))
    rng = np.random.default_rng(2)
    functions, corners, positions = [], [], []
    for k in range(60):
        tail = tail_from(0)
        y, unit, inputs = input_of(tail, rng)
        spacing, start = 2.0 ** int(rng.integers(-2, 3)), float(rng.integers(-30, 30)) / 4
        last = max(1, ceil((y.range.high - start) / spacing) + int(rng.integers(-2, 2)))
        edges = tuple(start + spacing * np.arange(last))
        line, none = Line(0, 1.0, 0.0), np.zeros(1)
        family = Family(none, none, (line,) * (last + 1), edges, (0,) * last, spacing, last + 1)
        rival = Rival(Range(0.0, 1.0, 0), 0, y, constant(0.0), constant(0.0))
        at = corner(tail, rival, family, {})
        constants = tail.shared.constants.values()
        functions += [f"int64_t c{k}(int64_t in) {{", *constants, *tail.lines, f"return {at};", "}"]
        corners.append((edges, y.const, unit, inputs))
        tail = tail_from(int(rng.integers(1, 20)))
        query, unit, inputs = input_of(tail, rng)
        query = tail.combine([(float(rng.integers(2)), tail.position), (1.0, query)])
        text = tail.nearest(query, tail.now, tail.is_past(query))
        functions += [
            f"int64_t p{k}(int64_t in, int64_t p) {{",
            *tail.lines,
            f"return {text};",
            "}",
        ]
        positions.append((tail.first, query, unit, inputs))
    compiled = library(functions)
    for k, (edges, const, unit, inputs) in enumerate(corners):
        for one in inputs:
            wanted = int(np.searchsorted(edges, const + one * 2.0**unit))
            assert compiled[f"c{k}"](ctypes.c_int64(one)) == wanted
    for k, (first, query, unit, inputs) in enumerate(positions):
        for p in (first, first + 1, first + 30):
            for one in inputs:
                own = sum(p for _, name in query.terms if name == "position")
                wanted = floor(query.const + own + one * 2.0**unit + 0.5)
                found = compiled[f"p{k}"](ctypes.c_int64(one), ctypes.c_int64(p))
                assert found == max(0, min(wanted, p))

"""Ranges: their arithmetic is sound, sums that are called exact are, and traces stay inside."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.build import build_machine
from compiler.evaluate import Evaluator
from compiler.invariants import analyse
from compiler.ranges import DOUBLE_BITS, Range, bits, bits_of_sum, grain_of
from executor.oracle import trace_tokens
from probe import INPUT, probe

dyadic = st.builds(
    lambda n, e: Fraction(n) * Fraction(2) ** e, st.integers(-999, 999), st.integers(-30, 30)
)
dyadics = st.lists(dyadic, min_size=1, max_size=6)


def contains(one: Range, value: Fraction | int) -> bool:
    """Whether the value is in the range and a multiple of its grain."""
    inside = one.low <= value <= one.high
    return inside and (one.grain is None or value == 0 or grain_of(value) >= one.grain)


@given(dyadics, dyadics, dyadic)
def test_arithmetic_contains_every_result(
    a: list[Fraction], b: list[Fraction], c: Fraction
) -> None:
    one, other = Range.of(*a), Range.of(*b)
    for x in a:
        assert contains(one, x) and contains(one.positive(), max(x, Fraction(0)))
        assert contains(one.scaled(c), x * c)
        for y in b:
            assert contains(one + other, x + y) and contains(one * other, x * y)
            assert contains(one.union(other), x) and contains(one.union(other), y)


@given(dyadic)
def test_grain_is_the_greatest_power_of_two_that_divides(value: Fraction) -> None:
    grain = grain_of(value)
    if value:
        units = value / Fraction(2) ** grain
        assert units.denominator == 1 and units.numerator % 2 == 1


@given(st.integers(1, 2**60))
def test_bits_hold_the_number_and_no_fewer_do(count: int) -> None:
    needed = bits(Fraction(count), 0)
    assert count <= 2**needed and (count == 1 or count > 2 ** (needed - 1))


@given(
    st.lists(st.tuples(st.integers(-(2**51), 2**51), st.integers(-8, 8)), min_size=1, max_size=8)
)
def test_a_sum_called_exact_is_exact_in_every_order(parts: list[tuple[int, int]]) -> None:
    terms = [Fraction(n) * Fraction(2) ** e for n, e in parts]
    needed = bits_of_sum([Range.of(term) for term in terms])
    assert needed is not None
    if needed <= DOUBLE_BITS:
        for seed in range(6):
            random.Random(seed).shuffle(terms)
            total = 0.0
            for term in terms:
                total += float(term)
            assert Fraction(total) == sum(terms)


def test_a_sum_beyond_the_bits_is_not_called_exact() -> None:
    needed = bits_of_sum([Range.of(2.0**53), Range.of(1)])
    assert needed is not None and needed > DOUBLE_BITS


@pytest.mark.parametrize(
    "count", [pytest.param(40, id="few"), pytest.param(2500, id="many", marks=pytest.mark.long)]
)
def test_every_quantity_of_a_trace_is_in_its_range(count: int) -> None:
    """The probe's prompt and the beginning of its trace, through the exact evaluator."""
    machine = build_machine()
    analysis = analyse(machine, tokens=2**26)
    ranges = analysis.ranges()
    evaluator = Evaluator(machine.graph)
    prompt = [*machine.rom, *probe().tokens, *probe().input_tokens((), INPUT)]
    for number, token in enumerate(
        [*prompt, *islice(trace_tokens(probe(), stdin=INPUT, limit=10**6), count)]
    ):
        evaluator.feed(token)
        cases = analysis.cases_of(token, evaluator.values)
        assert cases, (number, token)
        for case in cases:
            for name, one in ranges[case].items():
                assert contains(one, evaluator.values[name]), (number, token, case, name)

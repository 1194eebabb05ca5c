"""When a mean times the number of tokens, plus a large constant, is taken for the sum itself."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from executor.native.columns import Columns
from executor.native.exprs import constant
from executor.native.forms import HERE, Form, Linear
from executor.native.nodes import AddTo, Mean, Product, Program
from executor.native.ranges import ROUNDED, Range
from executor.native.shared import SUM_BOUND, Shared
from executor.native.tails import Tail

SNAP = 1.5 * 2.0**48
"""Sums with it are multiples of 1/16."""


@dataclass(frozen=True)
class Case:
    """What tokens add, the neuron that multiplies, and what is combined with the constant."""

    most: float = 1.0
    grain: int = 0
    const: float = SNAP
    least: float = 0.0
    gate: Form = Form(const=1.0, p=1.0)
    factor: float = 1.0
    times: float = 1.0
    plus: float = 0.0


def tail_of(case: Case) -> Tail:
    added = Linear(Form(columns={HERE: np.array([case.least, case.most])}))
    nodes = {
        "mean": Mean("sum"),
        "product": Product(Linear(case.gate), Linear(Form(), ((case.factor, "mean"),))),
    }
    program = Program(nodes=dict(nodes), effects={"sum": AddTo(added)})
    values = Range(case.least, case.most, case.grain)
    return Tail(Shared(program, Columns(2), lambda value: values), 64)


def is_the_sum(case: Case) -> bool:
    tail = tail_of(case)
    product = tail.variable("product")
    if case.plus:
        product = product._replace(const=case.plus)
    total = tail.combine([(case.times, product), (1.0, constant(case.const))])
    return total.terms == ((1.0, "sum"),) and total.const == case.const


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (Case(), True),
        (Case(least=-1.0), True),
        (Case(grain=-4), True),
        (Case(grain=-5), False),  # finer than what is left of it
        (Case(const=0.0), False),
        (Case(const=-SNAP), False),
        (Case(const=2.0**49 - 2.0**20), False),  # some sums are rounded to another unit
        (Case(const=2.0**49 - 2.0**28), True),
        (Case(const=2.0**48, least=-1.0), False),
        (Case(const=SNAP + 2.0**-4), True),
        (Case(most=2.0**20, const=1.25 * 2.0**48), True),
        (Case(most=2.0**20, const=1.25 * 2.0**47), False),  # the error may be half a unit
        (Case(most=2.0**20, const=1.25 * 2.0**46), False),
        (Case(gate=Form(const=2.0, p=1.0)), False),  # not the number of tokens
        (Case(gate=Form(const=1.0, p=2.0)), False),
        (Case(gate=Form(const=1.0, p=1.0, square=1.0)), False),
        (Case(gate=Form(1.0, 1.0, 0.0, {HERE: np.array([0.0, 1.0])})), False),
        (Case(factor=2.0), False),
        (Case(times=2.0), False),
        (Case(plus=1.0), False),
    ],
)
def test_only_where_the_error_is_lost(case: Case, expected: bool) -> None:
    assert is_the_sum(case) is expected


@pytest.mark.parametrize(
    ("least", "most", "grain", "expected"),
    [
        (0.0, 1.0, 0, Range(0.0, 2.0**26 + 1.0, 0)),
        (0.0, 2.0**30, 0, Range(0.0, SUM_BOUND + 2.0**30, 0)),  # what is left after one more
        (-(2.0**30), 4.0, 0, Range(-SUM_BOUND - 2.0**30, 2.0**28 + 4.0, 0)),
        (0.0, 2.0**30, -7, Range(0.0, SUM_BOUND + 2.0**30, -7)),
        (0.0, 2.0**30, -8, Range(0.0, SUM_BOUND + 2.0**30, ROUNDED)),  # does not fit any more
    ],
)
def test_what_a_sum_can_be(least: float, most: float, grain: int, expected: Range) -> None:
    assert tail_of(Case(most, grain, least=least)).sum_of("sum").range == expected

"""What a branch on a sum tells: the condition is that of the gate, and both ways know it."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from executor.native.columns import Columns
from executor.native.exprs import Units, constant
from executor.native.families import Family, Line
from executor.native.forks import fork, split
from executor.native.nodes import Program
from executor.native.outputs import Rival, write_rivals
from executor.native.ranges import Range
from executor.native.shared import Shared
from executor.native.tails import Tail

STEPS = range(4)


def a_tail(columns: Columns | None = None) -> Tail:
    return Tail(Shared(Program(), columns or Columns(8), lambda value: Range(0.0, 1.0, 0)), 0)


@pytest.mark.parametrize("seed", range(60))
def test_both_ways_know_on_which_side_a_gate_is(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tail, count = a_tail(), int(rng.integers(1, 4))
    grains, lows = rng.integers(-3, 3, count), rng.integers(-3, 2, count)
    factors = [float(f) for f in rng.choice([-2.0, -1.0, 0.5, 1.0, 3.0], count)]
    values = [
        [float((low + i) * 2.0**g) for i in STEPS] for low, g in zip(lows, grains, strict=True)
    ]
    parts = []
    for i, held in enumerate(values):
        units = Units(int(grains[i]), lambda s, i=i: f"x{i}", False)
        whole = Range(held[0], held[-1], int(grains[i]))
        parts.append((factors[i], tail.atom(f"a{i}", whole, None, (i,), units=units)))
    const = float(rng.integers(-8, 9)) / 4
    gate = tail.combine([*parts, (1.0, constant(const))])
    if not gate.range.low < 0.0 < gate.range.high:
        return
    found = fork(tail, gate.terms, -const, True)
    assert found is not None and found.below < found.least
    condition, *ways = split(tail, found)
    again = [way.bounded(way.combine([*parts, (1.0, constant(const))])) for way in ways]
    twice = [way.bounded(way.combine([(-2.0 * f, part) for f, part in parts])) for way in ways]
    for point in product(STEPS, repeat=count):
        numbers = [values[i][k] for i, k in enumerate(point)]
        total = sum(f * x for f, x in zip(factors, numbers, strict=True))
        inputs = {f"x{i}": int(x / 2.0 ** grains[i]) for i, x in enumerate(numbers)}
        holds = bool(eval(condition, {}, inputs))
        assert holds is (total + const > 0.0)
        way = 0 if holds else 1
        assert again[way].range.low <= total + const <= again[way].range.high
        assert twice[way].range.low <= -2.0 * total <= twice[way].range.high
    assert again[0].range.low > 0.0 >= again[1].range.high
    assert tail.combine([*parts, (1.0, constant(const))]).range == gate.range


def test_an_atom_that_is_one_number_on_a_way_is_that_number() -> None:
    tail = a_tail()
    units = Units(0, lambda s: "x", False)
    tail.atom("a", Range(0.0, 1.0, 0), None, ("a",), units=units)
    found = fork(tail, ((1.0, "a"),), 1.0, False)
    assert found is not None and (found.least, found.below) == (1.0, 0.0)
    _, yes, no = split(tail, found)
    for way, number in ((yes, 1.0), (no, 0.0)):
        assert way.atom("a", Range(0.0, 1.0, 0), None, ("a",), units=units).constant == number


def test_a_branch_on_a_column_tells_which_tokens_are_left() -> None:
    columns = Columns(8)
    _, number = columns.column(np.array([0.0, 1.0, 1.0, 0.0, 5.0, -3.0, 1.0, 0.0]))
    tail = a_tail(columns)
    tail.tokens["p", 0] = mask = columns.mask(np.arange(8) < 6)
    one = tail.column(("p", 0), number)
    found = fork(tail, one.terms, 1.0, False)
    assert found is not None
    _, yes, no = split(tail, found)
    assert columns.masks[yes.tokens["p", 0]].tolist() == [0, 1, 1, 0, 1, 0, 0, 0]
    assert columns.masks[no.tokens["p", 0]].tolist() == [1, 0, 0, 1, 0, 1, 0, 0]
    assert tail.tokens["p", 0] == mask


def test_nothing_is_told_of_sums_that_round() -> None:
    tail = a_tail()
    tail.atom("a", Range(-1.0, 1.0, 0).widened(), lambda s: "a", ("a",))
    assert fork(tail, ((1.0, "a"),), 0.0, True) is None


def test_a_token_that_follows_from_another_is_a_column() -> None:
    """2·b·y - b² for few b, where y is a column: halves are corners, where the lower id wins."""
    columns = Columns(128)
    y = np.resize([-1.0, 0.5, 1.0, 1.5, 2.0, 9.0], 128)
    factor, number = columns.column(y)
    tail = a_tail(columns)
    lines = tuple(Line(100 - b, 2.0 * b, -float(b * b)) for b in range(4))
    none = np.zeros(1)
    family = Family(none, none, lines, (0.5, 1.5, 2.5), (99, 98, 97), 1.0, 4)
    column = tail.combine([(factor, tail.column(("p", 0), number))])
    left = Rival(Range(-9.0, 9.0, 0), 0, column, constant(0.0), constant(0.0))
    text, outputs = write_rivals(tail, [family], [left])
    (array,) = [one for one in columns.arrays if one.max() > 90.0]
    assert array[:6].tolist() == [100.0, 99.0, 99.0, 98.0, 98.0, 97.0]
    assert text.startswith("K") and not tail.lines
    assert np.flatnonzero(outputs).tolist() == [97, 98, 99, 100]
    alone = Family(none, none, lines[:1], (), (), None, 1)
    assert write_rivals(tail, [alone], [left])[0] == "100"

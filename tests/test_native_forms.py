"""What the native engine's generator knows of quantities: exact sums, groups, families."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executor.native.families import group_rows
from executor.native.forms import (
    HERE,
    NO_GRAIN,
    Form,
    Linear,
    can_shift,
    exact_product,
    exact_sum,
    grain,
    shifted,
)  # fmt: skip
from executor.native.grouping import grouped


def column(*values: float, back: int = 0) -> Form:
    return Form(columns={("p", back): np.array(values)})


@pytest.mark.parametrize(
    ("values", "expected"),
    [((6.0, 2.5), -1), ((0.0,), NO_GRAIN), ((8.0, -24.0), 3), ((5e-324,), -1074), ((1 / 3,), -54)],
)
def test_grain(values: tuple[float, ...], expected: int) -> None:
    assert grain(np.array(values)) == expected


def test_sums_that_may_round_are_not_taken() -> None:
    big, small = Form(2.0**52), column(0.0, 0.5)
    assert exact_sum([(1.0, big), (1.0, small)]) is None
    assert exact_sum([(0.5, big), (1.0, small)]) is not None
    assert exact_sum([(1.0, Form(p=1.0)), (1.0, Form(square=1.0))]) is not None
    assert exact_sum([(4.0, Form(square=1.0)), (0.25, Form(p=1.0))]) is None


def test_cancelled_columns_are_gone() -> None:
    one, other = column(1.0, 2.0, 4.0), column(3.0, 2.0, 0.0)
    assert exact_sum([(1.0, one), (-1.0, one)]) == Form()
    constant = exact_sum([(1.0, one), (1.0, other)])
    assert constant == Form(4.0) and constant.is_constant


def test_a_form_is_shifted_to_another_place() -> None:
    form = exact_sum([(1.0, column(1.0, 2.0, back=3)), (1.0, Form(5.0, p=2.0))])
    assert form is not None and can_shift(Linear(form))
    moved = shifted(form, "i7", 2)
    assert list(moved.columns) == [("i7", 5)] and (moved.const, moved.p) == (5.0, 0.0)
    assert not can_shift(Linear(moved))
    assert not can_shift(Linear(form, ((1.0, "x"),))) and not can_shift(Linear(Form(square=1.0)))


def test_products_of_columns() -> None:
    assert exact_product(np.array([2.0**30, 3.0]), np.array([2.0**20]))
    assert not exact_product(np.array([2.0**30 + 1]), np.array([2.0**30 + 1]))


def test_values_that_differ_by_one_column_are_a_group() -> None:
    values = [
        Linear(Form(float(i), columns={("i1", 0): np.array([i, 2.0])}), ((1.0, "x"),))
        for i in range(1, 5)
    ]
    values += [Linear(Form(float(i)), ((1.0, "y"),)) for i in range(3)]
    values.append(Linear(Form(columns={HERE: np.array([1.0, 2.0])}), ((1.0, "z"),)))
    groups = grouped(values)
    assert [group.members for group in groups] == [(0, 1, 2, 3), (4, 5, 6), (7,)]
    assert groups[0].place == ("i1", 0) and groups[0].columns[2].tolist() == [6.0, 5.0]
    assert groups[1].place is None and [c.tolist() for c in groups[1].columns] == [[0], [1], [2]]


lines = st.tuples(st.integers(-4, 4), st.integers(-6, 6))


@settings(deadline=None)
@given(st.lists(lines, min_size=4, max_size=24), st.randoms())
def test_families_give_the_greatest_line(rows: list[tuple[int, int]], random: object) -> None:
    """Slope and intercept of each row, at every corner and between them, ties to the lowest id."""
    unique = list(dict.fromkeys(rows))
    matrix = np.array(unique, dtype=float)
    families, singles = group_rows(range(len(unique)), matrix, np.array([np.nan, 1.0]))
    covered = sum(family.size for family in families) + len(singles)
    assert covered == len(unique) and len(families) <= 1
    for family in families:
        assert list(family.corners) == sorted(set(family.corners))
        for y in [n / 4 for n in range(-60, 61)] + list(family.corners):
            i = sum(corner < y for corner in family.corners)
            token = family.winners[i].token
            if i < len(family.corners) and y == family.corners[i]:
                token = family.at_corner[i]
            scores = [Fraction(slope) * Fraction(y) + top for slope, top in unique]
            assert token == scores.index(max(scores))


def test_a_family_with_corners_that_are_no_floats_is_scored_row_by_row() -> None:
    rows = np.array([[0.0, 0.0], [1.0, 0.0], [4.0, -1.0], [9.0, -9.0]])
    families, singles = group_rows(range(4), rows, np.array([np.nan, 1.0]))
    assert families == [] and [single.token for single in singles] == [0, 1, 2, 3]


def test_families_in_two_directions_and_rows_of_neither() -> None:
    """In three slots, in shuffled order; the last is constant."""
    b = np.arange(8.0)
    zero = np.zeros(8)
    first = np.stack([2 * b, zero, -(b**2)], 1)
    second = np.stack([zero + 1, b, -(b**2) / 4], 1)
    other = np.array([[5.0, 99.0, 1.0], [7.0, 98.0, 1.0]])
    rows = np.concatenate([first, second, other])
    order = np.random.default_rng(2).permutation(18)
    constants = np.array([np.nan, np.nan, 1.0])
    families, singles = group_rows(range(18), rows[order], constants)
    assert sorted(family.size for family in families) == [8, 8]
    assert all(family.spacing is not None for family in families)
    assert {int(order[single.token]) for single in singles} == {16, 17}

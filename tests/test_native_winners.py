"""Which of few keys a query can find, against a scan of all queries."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from executor.native.winners import can_tie, can_win

keys = st.lists(
    st.tuples(st.integers(-4, 4), st.integers(-9, 9)), min_size=1, max_size=8, unique=True
)
bounds = st.tuples(st.integers(-6, 6), st.integers(0, 6))


@given(keys, st.data(), bounds, st.integers(-2, 1))
def test_what_a_scan_finds(
    lines: list[tuple[int, int]], data: st.DataObject, bound: tuple[int, int], grain: int
) -> None:
    """With any keys in addition to those that are there, for all queries of a grain."""
    there = data.draw(st.sets(st.sampled_from(range(len(lines))), min_size=1))
    low, high = float(bound[0]), float(sum(bound))
    array = np.array(lines, dtype=np.float64)
    won, tied = set(), set()
    unit = 2.0**grain
    for n in range(int(np.ceil(low / unit)), int(np.floor(high / unit)) + 1):
        scores = array @ np.array([n * unit, 1.0])
        best = max(scores[i] for i in there)
        found = {i for i, score in enumerate(scores) if score >= best}
        won |= found
        tied |= {(i, j) for i, j in combinations(sorted(found), 2) if scores[i] == scores[j]}
    query = (low, high, grain)
    assert won <= {i for i, can in enumerate(can_win(array, there, query)) if can}
    crossing = {(i, j) for i, j in tied if lines[i][0] != lines[j][0]}
    assert crossing == set(can_tie(array, there, query))


def test_a_key_that_is_always_below_cannot_win() -> None:
    array = np.array([[0.0, 0.0], [1.0, -4.0], [2.0, -1.0], [1.0, 0.0]])
    assert can_win(array, [0, 2], (-9.0, 9.0, 0)) == [True, False, True, True]
    assert can_win(array, [0, 2], (-9.0, -2.0, 0)) == [True, False, False, False]
    assert can_win(array, [], (-9.0, 9.0, 0)) == [True] * 4

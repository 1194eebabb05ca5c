"""`StandardHead` against brute force over exact scores."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hull_oracle as oracle
from hullcache import Mode, StandardHead
from hullcache.exact import LIMIT

modes = st.sampled_from(["latest", "mean"])
lists = st.one_of(oracle.key_lists("integer", 30), oracle.key_lists("float", 20))
queries = st.lists(st.one_of(oracle.integer_queries, oracle.float_queries), max_size=6)


@settings(max_examples=200, deadline=None)
@given(modes, lists, queries)
def test_it_answers_as_brute_force(
    mode: Mode, keys: list[oracle.Point], asked: list[oracle.Point]
) -> None:
    head, brute = StandardHead(mode), oracle.BruteHead(mode)
    for n, (x, y) in enumerate(keys):
        for one in (head, brute):
            one.insert(x, y, (float(n), float(n % 3)))
    for q in asked + oracle.normals(keys):
        assert head.query(*q) == brute.query(*q), q


def test_it_grows() -> None:
    head = StandardHead("latest", width=1)
    for p in range(300):
        head.insert(2.0 * p, -1.0 * p * p, (float(p),))
    assert [head.query(float(p), 1.0) for p in range(300)] == [(float(p),) for p in range(300)]
    assert len(head) == 300 and head.nbytes >= 300 * 3 * 8


def test_scores_that_overflow_are_compared_exactly() -> None:
    head, huge = StandardHead("latest", width=1), LIMIT / 2
    for n, (x, y) in enumerate([(huge, huge), (huge, -huge), (-huge, huge)]):
        head.insert(x, y, (float(n),))
    assert head.query(huge, huge) == (0.0,)
    assert head.query(huge, -huge) == (1.0,)


def test_an_empty_head_has_no_answer() -> None:
    with pytest.raises(ValueError, match="no keys"):
        StandardHead("mean").query(1.0, 1.0)


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError):
        StandardHead("first")  # type: ignore[arg-type]

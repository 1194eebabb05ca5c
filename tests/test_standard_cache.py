"""`StandardKVCache` alone: hard attention against exact scores, softmax against its formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hull_oracle as oracle
from hullcache import Mode, StandardKVCache


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from(["latest", "mean"]),
    st.one_of(oracle.key_lists("integer", 25), oracle.key_lists("float", 25)),
    st.lists(oracle.float_queries, max_size=5),
)
def test_hard_attention_compares_scores_exactly(
    mode: Mode, keys: list[oracle.Point], queries: list[oracle.Point]
) -> None:
    cache, brute = StandardKVCache(1, 1, mode), oracle.BruteHead(mode)
    for n, key in enumerate(keys):
        cache.append(0, [key], [(float(n), float(n * n))])
        brute.insert(*key, (float(n), float(n * n)))
    for q in queries + oracle.normals(keys):
        assert tuple(cache.attend(0, [q])[0].tolist()) == brute.query(*q), q


def test_large_scores_are_compared_exactly() -> None:
    cache = StandardKVCache(1, 1)
    top, scale = 2**26, 2.0**20 + 1
    for k in range(top - 50, top):
        cache.append(0, [[2.0 * k, -float(k * k)]], [[float(k), 0.0]])
    half = (top - 7.5) * scale
    assert cache.attend(0, [[(top - 7) * scale, scale]]).tolist() == [[top - 7.0, 0.0]]
    assert cache.attend(0, [[half, scale]]).tolist() == [[top - 7.0, 0.0]]
    assert cache.attend(0, [[math.nextafter(half, 0.0), scale]]).tolist() == [[top - 8.0, 0.0]]


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=1, max_size=12),
    st.tuples(st.floats(-9, 9), st.floats(-9, 9)),
    st.sampled_from([None, 1.0, 30.0]),
)
def test_softmax_follows_the_formula(
    keys: list[oracle.Point], q: oracle.Point, scale: float | None
) -> None:
    cache = StandardKVCache(1, 1, attention="softmax")
    if scale is not None:
        cache = StandardKVCache(1, 1, attention="softmax", scale=scale)
    cache.extend(0, [[key] for key in keys], [[(float(n), 1.0)] for n in range(len(keys))])
    factor = 1 / math.sqrt(2) if scale is None else scale
    scores = [factor * (q[0] * x + q[1] * y) for x, y in keys]
    weights = [math.exp(score - max(scores)) for score in scores]
    expected = math.fsum(n * w for n, w in enumerate(weights)) / math.fsum(weights)
    answer = cache.attend(0, [q])[0]
    assert answer[0] == pytest.approx(expected, rel=1e-9, abs=1e-12)
    assert answer[1] == pytest.approx(1.0)


def test_softmax_ignores_modes_and_a_huge_scale_picks_the_winner() -> None:
    cache = StandardKVCache(1, 1, "latest", attention="softmax", scale=2.0**46)
    cache.extend(0, [[[0, 1]], [[1, 0]], [[0, 1]]], [[[2, 0]], [[9, 9]], [[4, 0]]])
    assert cache.attend(0, [[0, 1]]).tolist() == [[3.0, 0.0]]


def test_arrays_grow_geometrically() -> None:
    cache = StandardKVCache(1, 2)
    sizes = set()
    for _ in range(1000):
        cache.append(0, np.ones((2, 2)), np.ones((2, 2)))
        sizes.add(cache.nbytes)
    assert len(sizes) < 8
    assert 1000 * 2 * 4 * 8 <= cache.nbytes <= 2 * 1000 * 2 * 4 * 8 + 4096


def test_an_unknown_kind_of_attention_is_refused() -> None:
    with pytest.raises(ValueError, match="linear"):
        StandardKVCache(1, 1, attention="linear")  # type: ignore[arg-type]

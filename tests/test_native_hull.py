"""The C of hull, scan and table of indexed keys gives what ``hullcache.HullHead`` gives."""

from __future__ import annotations

import ctypes
from fractions import Fraction
from itertools import pairwise
from math import inf, nextafter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hullcache import HullHead, Mode
from native_hulls import hull_library

library = pytest.fixture(hull_library, scope="module")


class NativeHead:
    """The hull in C, with the interface of ``HullHead`` for one value; and the scan beside it."""

    def __init__(self, lib: ctypes.CDLL, mode: Mode) -> None:
        self.lib, self.latest, self.count = lib, mode == "latest", 0
        self.handle = lib.both_new(int(not self.latest))

    def insert(self, x: float, y: float, value: float) -> None:
        weight = self.count if self.latest else 1
        self.lib.hull_add(self.handle, x, y, weight, value)
        self.count += 1

    def query(self, x: float, y: float) -> float:
        answer = float(self.lib.hull_ask(self.handle, x, y))
        assert self.lib.scan_ask(self.handle, x, y) == answer
        return answer

    def close(self) -> None:
        assert self.lib.both_error(self.handle) == 0
        assert self.lib.both_free(self.handle) == 0


def compare(
    lib: ctypes.CDLL,
    mode: Mode,
    keys: list[tuple[float, float]],
    queries: list[tuple[float, float]],
    every: int = 1,
) -> None:
    ours, theirs = NativeHead(lib, mode), HullHead(mode, width=1)
    for i, (x, y) in enumerate(keys):
        ours.insert(x, y, float(i))
        theirs.insert(x, y, (float(i),))
        if i % every == 0 or i == len(keys) - 1:
            for q in queries:
                assert ours.query(*q) == theirs.query(*q)[0], (i, q)
    ours.close()


small = st.integers(-4, 4).map(float)
dyadic = st.builds(lambda m, e: m * 2.0**e, st.integers(-9, 9), st.integers(-3, 3))
near = st.builds(lambda m, n: m + n * 2.0**-50, st.integers(-2, 2), st.integers(-1, 1))
wild = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)
modes = st.sampled_from(["latest", "mean"])


def pairs(number: st.SearchStrategy[float], n: int) -> st.SearchStrategy[list[tuple[float, float]]]:
    return st.lists(st.tuples(number, number), min_size=1, max_size=n)


@settings(deadline=None)
@given(modes, pairs(small, 40), pairs(small, 8))
def test_integers_with_many_ties(
    library: ctypes.CDLL,
    mode: Mode,
    keys: list[tuple[float, float]],
    queries: list[tuple[float, float]],
) -> None:
    compare(library, mode, keys, queries)


@settings(deadline=None)
@given(modes, pairs(dyadic, 30), pairs(dyadic, 8))
def test_dyadic_numbers(
    library: ctypes.CDLL,
    mode: Mode,
    keys: list[tuple[float, float]],
    queries: list[tuple[float, float]],
) -> None:
    compare(library, mode, keys, queries)


@settings(deadline=None)
@given(modes, pairs(near, 20), pairs(near, 8))
def test_numbers_within_rounding_of_ties(
    library: ctypes.CDLL,
    mode: Mode,
    keys: list[tuple[float, float]],
    queries: list[tuple[float, float]],
) -> None:
    compare(library, mode, keys, queries)


@settings(deadline=None)
@given(pairs(wild, 20), pairs(wild, 6))
def test_any_floats(
    library: ctypes.CDLL, keys: list[tuple[float, float]], queries: list[tuple[float, float]]
) -> None:
    compare(library, "latest", keys, queries)


@settings(deadline=None)
@given(st.lists(st.tuples(wild, wild), min_size=1, max_size=6), st.booleans())
def test_signs_of_sums_of_products(
    library: ctypes.CDLL, pairs: list[tuple[float, float]], cancelled: bool
) -> None:
    if cancelled:  # an exact zero, however the products round
        pairs = pairs[:3] + [(-b, a) for a, b in pairs[:3]]
    exact = sum(Fraction(a) * Fraction(b) for a, b in pairs)
    flat = [number for pair in pairs for number in pair]
    found = library.sign((ctypes.c_double * len(flat))(*flat), len(pairs))
    assert found == (exact > 0) - (exact < 0)


@pytest.mark.parametrize("mode", ["latest", "mean"])
@pytest.mark.parametrize("shape", ["grid", "circle", "parabola", "line", "two lines"])
def test_many_keys(library: ctypes.CDLL, mode: Mode, shape: str) -> None:
    rng = np.random.default_rng(len(shape))
    n = 3000
    t = rng.integers(-40, 41, n)
    keys = {
        "grid": np.stack([rng.integers(-9, 10, n), rng.integers(-9, 10, n)], 1),
        "circle": np.rint(300 * np.stack([np.cos(t), np.sin(t)], 1)),
        "parabola": np.stack([2 * t, -(t**2)], 1),
        "line": np.stack([3 * t, 2 * t], 1),
        "two lines": np.stack([t, np.abs(t)], 1),
    }[shape]
    queries = [(float(a), float(b)) for a in range(-3, 4) for b in range(-3, 4)]
    compare(library, mode, [(float(x), float(y)) for x, y in keys], queries, every=100)


def test_a_rising_parabola_keeps_every_key_and_clears_up(library: ctypes.CDLL) -> None:
    head = NativeHead(library, "latest")
    for k in range(20_000):
        head.insert(2.0 * k, -1.0 * k * k, float(k))
    assert library.hull_kept(head.handle) == 20_000
    assert [head.query(float(k), 1.0) for k in range(0, 20_000, 777)] == list(range(0, 20_000, 777))
    head.close()


MOST_KEY = 94_906_265
clusters = st.builds(
    lambda page, k: max(-MOST_KEY, min(64 * page + k, MOST_KEY)),
    st.sampled_from([0, 1, -1, 63, 64, -64, 4096, -4097, 2**18, 2**20, -(2**20), 2**21, -(2**21)]),
    st.integers(-2, 2),
)
numbers = st.integers(-30, 30) | st.integers(-(2**26), 2**26) | clusters
halves = st.integers(-70, 70).map(lambda n: n / 2) | dyadic | numbers.map(float) | wild


@settings(deadline=None)
@given(st.lists(numbers, min_size=1, max_size=40), st.lists(halves, max_size=12), st.data())
def test_tables_of_indexed_keys(
    library: ctypes.CDLL, keys: list[int], queries: list[float], data: st.DataObject
) -> None:
    """And on from the first key that is not on the parabola, if there is one."""
    stray, put = data.draw(st.none() | st.integers(0, len(keys))), data.draw(st.booleans())
    handle, theirs = library.both_new(0), HullHead("latest", width=1)
    there: dict[int, int] = {}
    for i, k in enumerate(keys):
        x, y = 2.0 * k, -1.0 * k * k
        if i == stray:
            x, y = data.draw(st.tuples(small, small) | st.just((2.0 * k + 1, y)))
        if put and not library.table_is_general(handle) and i != stray:
            library.table_place(handle, k, i, float(i))
        else:
            library.table_add(handle, x, y, i, float(i))
        theirs.insert(x, y, (float(i),))
        middles = [(k + other) / 2 for other in (keys[0], keys[i - 1])]
        for e in [*queries, *middles, *(k + d / 4 for d in range(-3, 4))]:
            assert library.table_ask(handle, e) == theirs.query(e, 1.0)[0]
        if library.table_is_general(handle):
            there.clear()
        else:
            there[round(x / 2)] = i
        for other in {*keys, *(k + 1 for k in keys), 0, -1, 2**40}:
            latest = there.get(other, -1) if other else -1
            assert library.table_find(handle, other) == latest
    assert library.both_error(handle) == 0
    assert library.both_free(handle) == 0


@pytest.mark.parametrize(
    ("stray", "query", "expected"),
    [
        ((1.0, -50.0), 0.0, 0),
        ((4.0, -3.5), 2.0, 3),
        ((0.0, -1.0), 0.0, 0),
        ((6.0, -8.0), 3.0, 3),
        ((2.0 * MOST_KEY + 2, -float((MOST_KEY + 1) ** 2)), 1e9, 3),
    ],
)
def test_a_stray_key_moves_all_keys_to_a_hull(
    library: ctypes.CDLL, stray: tuple[float, float], query: float, expected: int
) -> None:
    """Keys 0, 2, -1, and one that is off the parabola, with an x that is known or new."""
    handle = library.both_new(0)
    for i, k in enumerate([0.0, 2.0, -1.0]):
        library.table_add(handle, 2 * k, -k * k, i, float(i))
    library.table_add(handle, *stray, 3, 3.0)
    assert library.table_is_general(handle)
    theirs = HullHead("latest", width=1)
    for i, key in enumerate([(0.0, 0.0), (4.0, -4.0), (-2.0, -1.0), stray]):
        theirs.insert(*key, (float(i),))
    assert library.table_ask(handle, query) == theirs.query(query, 1.0)[0] == expected
    assert library.both_free(handle) == 0


@pytest.mark.parametrize("stride", [1, 8, 64, 16384])
def test_a_table_finds_all_of_many_keys(library: ctypes.CDLL, stride: int) -> None:
    handle, n = library.both_new(0), 4000
    for i in range(n):
        k = float(i * stride)
        library.table_add(handle, 2 * k, -k * k, i, float(i))
    ks = range(0, n, 7)
    assert [library.table_ask(handle, float(i * stride)) for i in ks] == list(ks)
    between = [library.table_ask(handle, (i + 0.25) * stride) for i in ks]
    assert between == list(ks)
    assert not library.table_is_general(handle)
    assert library.both_free(handle) == 0


third = st.integers(-30, 30).map(lambda n: n / 3)
lines = st.builds(lambda k, m: (2.0 * k, -1.0 * k * k + m), st.integers(-9, 9), st.integers(-1, 0))


@settings(deadline=None)
@given(
    modes,
    st.lists(lines | st.tuples(dyadic, dyadic) | st.tuples(third, third), min_size=9, unique=True),
    st.lists(halves, max_size=8),
    st.data(),
)
def test_few_keys_that_are_known_before(
    library: ctypes.CDLL,
    mode: Mode,
    keys: list[tuple[float, float]],
    queries: list[float],
    data: st.DataObject,
) -> None:
    """Those there are so far answer, by a search of their corners where that settles it."""
    keys.sort()
    flat = (ctypes.c_double * (2 * len(keys)))(*(x for key in keys for x in key))
    handle = library.few_new(flat, len(keys), int(mode == "mean"))
    theirs = HullHead(mode, width=1)
    for i, which in enumerate(data.draw(st.lists(st.integers(0, len(keys) - 1), min_size=1))):
        library.few_add(handle, which, i if mode == "latest" else 1, float(i))
        theirs.insert(*keys[which], (float(i),))
        edges = [(ay - by) / (bx - ax) for (ax, ay), (bx, by) in pairwise(keys) if ax < bx]
        edges += [nextafter(edge, inf) for edge in edges]
        for e in [*queries, *(k / 2 for k in range(-9, 10)), *edges]:
            assert library.few_ask(handle, e, 1.0) == theirs.query(e, 1.0)[0]
        assert library.few_ask(handle, 1.0, -2.0) == theirs.query(1.0, -2.0)[0]
    library.few_free(handle)


@settings(deadline=None)
@given(st.lists(clusters, min_size=1, max_size=30), st.integers(0, 12), st.booleans())
def test_a_table_without_memory(
    library: ctypes.CDLL, keys: list[int], allocations: int, put: bool
) -> None:
    """It fails once and for all, what was there before is still found, and all is freed."""
    handle, positions, keys = library.both_new(0), dict[int, int](), [0, *keys]
    library.allow(allocations)
    for i, k in enumerate(keys):
        if put:
            library.table_place(handle, k, i, float(i))
        else:
            library.table_add(handle, 2.0 * k, -1.0 * k * k, i, float(i))
        if library.both_error(handle):
            assert k not in positions
            break
        positions[k] = i
    library.allow(-1)
    assert all(library.table_ask(handle, float(k)) == i for k, i in positions.items())
    assert library.both_free(handle) == 0


@settings(deadline=None)
@given(st.integers(0, 40), dyadic | wild, dyadic | wild)
def test_quotients_of_positions(library: ctypes.CDLL, p: int, x: float, y: float) -> None:
    theirs = HullHead("latest", width=1)
    for j in range(p + 1):
        theirs.insert(2.0 * j, -1.0 * j * j, (float(j),))
    assert library.ask_position(x, y, p) == theirs.query(x, y)[0]


@settings(deadline=None)
@given(st.integers(1, 200), st.integers(-(2**40), 2**40), st.sampled_from([0.0, 0.5, -0.5]))
def test_division_by_positions(library: ctypes.CDLL, d: int, r: int, offset: float) -> None:
    """Query (r - d/2 + offset, d) at a long trace: the nearest position to r/d - 1/2 + offset/d."""
    p = 2**26 - 1
    exact = Fraction(2 * r - d, 2 * d) + Fraction(offset) / d
    nearest = (exact + Fraction(1, 2)).__floor__()
    found = library.ask_position(r - d / 2 + offset, float(d), p)
    assert found == min(max(nearest, 0), p)

"""What the hull cache is tested against: all keys, exact rational scores, no cleverness.

Also the strategies for keys and queries that make ties, collinear keys and near ties frequent.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from itertools import pairwise
from typing import Literal
from unittest import mock

from hypothesis import strategies as st

from hullcache import HullHead, Mode, Value, chain
from hullcache.exact import LIMIT

Point = tuple[float, float]


class BruteHead:
    """Same interface as `HullHead`; O(n) Fractions per query."""

    def __init__(self, mode: Mode) -> None:
        self.mode = mode
        self.keys: list[tuple[Fraction, Fraction]] = []
        self.values: list[Value] = []

    def insert(self, kx: float, ky: float, value: Value) -> None:
        self.keys.append((Fraction(kx), Fraction(ky)))
        self.values.append(value)

    def query(self, qx: float, qy: float) -> Value:
        x, y = Fraction(qx), Fraction(qy)
        scores = [x * kx + y * ky for kx, ky in self.keys]
        greatest = max(scores)
        tied = [v for v, score in zip(self.values, scores, strict=True) if score == greatest]
        if self.mode == "latest":
            return tied[-1]
        columns = zip(*tied, strict=True)
        return tuple(float(sum(map(Fraction, column)) / len(tied)) for column in columns)


def vertices_of(upper: chain.UpperChain) -> list[chain.Vertex]:
    """From left to right."""
    return [upper._vertices[x] for x in upper._xs]


def check_chain(upper: chain.UpperChain) -> None:
    """The invariants that `UpperChain` documents."""
    assert list(upper._xs) == sorted(upper._vertices)
    vertices = vertices_of(upper)
    assert vertices[-1] is upper._last
    falls = [vertex.fall for vertex in vertices]
    assert falls.pop() == math.inf
    assert list(upper._falls) == sorted(falls)
    assert upper._last.inner is None
    if falls:
        assert upper._turn >= falls[-1]
    slopes = []
    for x, vertex in zip(upper._xs, vertices, strict=True):
        assert vertex.record[0] == x
    for one, other, fall in zip(vertices, vertices[1:], falls, strict=False):
        (ax, ay), (bx, by) = one.record[:2], other.record[:2]
        assert fall == (ay - by) / (bx - ax)
        slopes.append((Fraction(by) - Fraction(ay)) / (Fraction(bx) - Fraction(ax)))
    assert all(one > other for one, other in pairwise(slopes))


@contextmanager
def blocks_of(load: int) -> Iterator[None]:
    """Chains with at most 2 * load vertices a block, so that few keys make many blocks."""
    with mock.patch.object(chain.LongList, "DEFAULT_LOAD_FACTOR", load):
        yield


def _pair(
    one: st.SearchStrategy[float], other: st.SearchStrategy[float]
) -> st.SearchStrategy[Point]:
    return st.tuples(one, other)


def _ints(low: int, high: int) -> st.SearchStrategy[float]:
    return st.integers(low, high).map(float)


small_keys = _pair(_ints(-4, 4), _ints(-4, 4))
line_keys = _ints(-20, 20).map(lambda k: (k, 3.0 * k - 2.0))
parabola_keys = _ints(-30, 30).map(lambda k: (2.0 * k, -k * k))
arch_keys = _pair(_ints(-9, 9), st.sampled_from([1.0, -1.0, 0.5])).map(
    lambda pair: (pair[0], pair[1] * pair[0] * pair[0])
)


def _roof(pair: tuple[int, float]) -> Point:
    """A key on, or a little off, a concave polygon with five integer points on each edge."""
    (q, r), raised = divmod(pair[0], 4), pair[1]
    return float(pair[0]), raised - 4.0 * q * q - (2.0 * q + 1.0) * r


roof_keys = st.tuples(st.integers(-14, 14), st.sampled_from([0.0, 0.0, 0.0, -1.0, 1.0])).map(_roof)
integer_keys = st.one_of(small_keys, line_keys, parabola_keys, arch_keys, roof_keys)

big_parabola_keys = st.tuples(st.integers(0, 2**27), st.sampled_from([0, 2**40, 2**54])).map(
    lambda pair: (2.0 * pair[0], float(-(pair[0] ** 2) - pair[1]))
)


def _nudged(pair: tuple[float, int], slope: float = 0.1, offset: float = 0.3) -> Point:
    """A key some units in the last place off the line y = slope x + offset."""
    x, steps = pair
    y = slope * x + offset
    for _ in range(abs(steps)):
        y = math.nextafter(y, math.copysign(math.inf, steps))
    return x, y


near_line_keys = st.tuples(
    st.one_of(_ints(-8, 8), st.floats(-4.0, 4.0, allow_subnormal=False)), st.integers(-2, 2)
).map(_nudged)
any_float = st.floats(-LIMIT, LIMIT, exclude_min=True, exclude_max=True)
wild_keys = st.one_of(
    st.tuples(any_float, any_float),
    st.tuples(
        st.sampled_from([-1.7e-308, -5e-324, -0.0, 0.0, 5e-324, 1.0, 1.0 + 2**-52, 4e307, -4e307]),
        st.sampled_from([-4.4e307, -1e-320, 0.0, 5e-324, 1.0, 1.0 - 2**-53, 1e16, 1e16 + 2, 4e307]),
    ),
)
# On y = 0.3 x as nearly as floats get, with x of all sizes: falls round apart, often the wrong way.
scaled_line_keys = st.tuples(
    st.integers(1, 64), st.integers(-6, 2), st.sampled_from([0, 0, 0, 1, -1])
).map(lambda k: _nudged((math.ldexp(k[0], k[1]), k[2]), 0.3, 0.0))
float_keys = st.one_of(near_line_keys, scaled_line_keys, wild_keys, big_parabola_keys)


def key_lists(
    kind: Literal["integer", "float"], max_size: int, min_size: int = 1
) -> st.SearchStrategy[list[Point]]:
    """Lists of keys of one sort, or of all sorts of a kind; in any order, or from left to right."""
    sorts = {
        "integer": (small_keys, line_keys, parabola_keys, arch_keys, roof_keys, integer_keys),
        "float": (near_line_keys, scaled_line_keys, wild_keys, big_parabola_keys, float_keys),
    }[kind]
    lists = st.one_of(*(st.lists(one, min_size=min_size, max_size=max_size) for one in sorts))
    return st.one_of(lists, lists.map(sorted))


axis_queries = st.sampled_from([(0.0, 0.0), (1.0, 0.0), (-2.0, 0.0), (0.0, 1.0), (-0.0, -3.0)])
integer_queries = st.one_of(axis_queries, _pair(_ints(-6, 6), _ints(-6, 6)))
fine_queries = st.tuples(
    st.one_of(_ints(-(2**27), 2**27), st.floats(-100.0, 100.0)), st.sampled_from([1.0, -1.0, 0.1])
).flatmap(
    lambda pair: st.sampled_from([2.0**60, 1.0, 2.0**-39]).map(
        lambda scale: (pair[0] * scale, pair[1] * scale)
    )
)
float_queries = st.one_of(
    axis_queries, st.tuples(any_float, any_float), fine_queries, integer_queries
)


def normals(keys: list[Point]) -> list[Point]:
    """For each two successive keys queries under which they tie, as nearly as floats can."""
    found = []
    for (ax, ay), (bx, by) in pairwise(keys):
        qx, qy = ay - by, bx - ax
        for x, y in ((qx, qy), (-3.0 * qx, -3.0 * qy), (0.7 * qx, math.nextafter(0.7 * qy, 0.0))):
            if max(abs(x), abs(y)) < LIMIT:
                found.append((x, y))
    return found


def kept(head: HullHead) -> list[Point]:
    """The vertices of the head's two chains, each from left to right, if it has any."""
    if not head._spread:
        return []
    below = head._underside.chain
    upper = [vertex.record[:2] for vertex in vertices_of(head._upper)]
    lower = [] if below is None else [vertex.record[:2] for vertex in vertices_of(below)]
    return upper + [(x, -y) for x, y in reversed(lower)]

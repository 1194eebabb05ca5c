"""The upper hull of a growing set of planar keys, with everything that ties on it.

In: records of keys, in any order. Out: for a query with q_y > 0, the record of the key with the
greatest q·k, merged with the records of all keys that tie with it. A lower hull is the same object
fed with y negated.

What is kept: the vertices, where the hull turns strictly, from left to right. A key strictly below
the hull can neither win nor tie, ever again, because the hull only grows. A key on an edge, between
its ends, ties only when both ends do, and never becomes a vertex: a new key either lies on the
edge's line, and the edge grows, or is off it, and the edge's inner keys stay on the edge or end up
strictly below the hull together. So one merged record per edge stands for the keys on it, however
many they are, and a query costs the same with ties as without.

How the winner is found: the falls (see `hullcache.exact`) of the edges grow from left to right, and
the winner has as many edges on its left as there are falls less than q_x / q_y. Two sorted lists
(of Sorted Containers) hold the x of the vertices and the falls, so one bisection gives that number
and the number gives the vertex. Only how many falls are less matters: rounding may swap the
falls of two edges in their list, but then they are within rounding of each other, and where
rounding could decide, integers do.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from math import inf
from sys import getsizeof

import numpy as np
from numpy.typing import NDArray
from sortedcontainers import SortedList

from hullcache.exact import SLACK, TINY, height, score_change
from hullcache.record import Join, Record, to_columns, to_records


class LongList(SortedList):  # type: ignore[misc]
    """A sorted list of fewer, longer blocks: most keys come in order, and queries count blocks."""

    DEFAULT_LOAD_FACTOR = 2**14


class Vertex:
    """A vertex, and the edge on its right; the last one's fall is infinite and never searched."""

    __slots__ = ("fall", "inner", "record")

    def __init__(self, record: Record) -> None:
        self.record = record
        self.fall = inf
        self.inner: Record | None = None  # the keys strictly between the edge's ends, merged


class UpperChain:
    """Upper hull of the keys inserted so far, of which there is always at least one.

    >>> from hullcache.record import join_latest
    >>> chain = UpperChain((0.0, 0.0, 0, (10.0,)), join_latest, lambda record: None)
    >>> chain.insert(4.0, 0.0, (4.0, 0.0, 1, (11.0,)))
    >>> chain.insert(2.0, 0.0, (2.0, 0.0, 2, (12.0,)))
    >>> chain.best(1.0, 1.0)[3], chain.best(0.0, 1.0)[3], len(chain)
    ((11.0,), (12.0,), 2)
    """

    __slots__ = ("_falls", "_join", "_last", "_spill", "_turn", "_vertices", "_xs")

    def __init__(self, first: Record, join: Join, spill: Callable[[Record], None]) -> None:
        """Start with one key. `spill` is given every record that is not, or no longer, a vertex."""
        self._join = join
        self._spill = spill
        self._last = Vertex(first)
        self._vertices = {first[0]: self._last}  # by x
        self._xs = LongList(self._vertices)
        self._falls = LongList()
        self._turn = -inf  # the hull turns at the last vertex if the next fall exceeds this

    def __len__(self) -> int:
        """Number of vertices. O(1)."""
        return len(self._vertices)

    @property
    def n_kept(self) -> int:
        """Number of records held: one a vertex, one an edge with keys on it. O(n)."""
        return len(self) + sum(vertex.inner is not None for vertex in self._vertices.values())

    @property
    def first(self) -> Record:
        """The leftmost vertex. O(1)."""
        return self._vertex(0).record

    @property
    def last(self) -> Record:
        """The rightmost vertex. O(1)."""
        return self._last.record

    @property
    def nbytes(self) -> int:
        """Bytes of the containers and records, without the values. O(n)."""
        record = self._last.record
        pointers = getsizeof([0.0]) - getsizeof([])
        each = getsizeof(record) + sum(map(getsizeof, record[:3]))
        vertices = len(self) * (getsizeof(self._last) + getsizeof(inf) + 2 * pointers)
        return getsizeof(self._vertices) + vertices + each * self.n_kept

    def state(self, width: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What is kept, as two arrays of columns: the vertices from left to right, and for edges
        with keys on them the number of the vertex on their left, then the record. O(n)."""
        vertices = [self._vertices[x] for x in self._xs]
        inner = [(i, v.inner) for i, v in enumerate(vertices) if v.inner is not None]
        edges = to_columns([record for _, record in inner], width)
        numbers = np.array([[i for i, _ in inner]], np.float64)
        return to_columns([v.record for v in vertices], width), np.vstack((numbers, edges))

    @classmethod
    def restored(
        cls,
        vertices: NDArray[np.float64],
        edges: NDArray[np.float64],
        join: Join,
        spill: Callable[[Record], None],
    ) -> UpperChain:
        """The chain whose `state` these arrays are. O(n)."""
        x, y = vertices[:2]
        with np.errstate(over="ignore"):
            falls = ((y[:-1] - y[1:]) / (x[1:] - x[:-1])).tolist()
        made = [Vertex(record) for record in to_records(vertices)]
        for vertex, fall in zip(made, falls, strict=False):  # the last one has none
            vertex.fall = fall
        for i, record in zip(edges[0].tolist(), to_records(edges[1:]), strict=True):
            made[int(i)].inner = record
        chain = cls(made[0].record, join, spill)
        chain._last = made[-1]
        chain._vertices = {vertex.record[0]: vertex for vertex in made}
        chain._xs, chain._falls = LongList(chain._vertices), LongList(falls)
        chain._turn = _turn_after(falls[-1]) if falls else -inf
        return chain

    def best(self, qx: float, qy: float) -> Record:
        """The merged record of all keys with the greatest score; q_y > 0. O(log n).

        Up to ten times slower when the query is within rounding of an edge's normal.
        """
        ratio = qx / qy
        slack = abs(ratio) * SLACK + TINY
        low = ratio - slack
        if low > self._turn:
            return self._last.record
        # Counted from the right: Sorted Containers finds items of the last block quickest so.
        vertex = self._vertices[self._xs[self._falls.bisect_left(low) - len(self._vertices)]]
        if vertex.fall > ratio + slack:
            return vertex.record
        return self._best_exactly(qx, qy, low, ratio + slack)

    def _best_exactly(self, qx: float, qy: float, low: float, high: float) -> Record:
        """`best` by exact comparisons; only edges whose fall is in low..high are in doubt.

        A bound that is not finite puts every edge in doubt.
        """

        def change(i: int) -> int:
            """The sign of the change of the score from vertex i to the next."""
            one, other = self._vertex(i).record, self._vertex(i + 1).record
            return score_change(qx, qy, one[0], one[1], other[0], other[1])

        stop = self._falls.bisect_right(high)
        edges = range(stop)
        start = self._falls.bisect_left(low)
        i = bisect_left(edges, True, start, key=lambda i: change(i) <= 0)
        winner = self._vertex(i)
        if i == stop or change(i) < 0:
            return winner.record
        tied = self._join(winner.record, self._vertex(i + 1).record)
        return self._joined(tied, winner.inner)

    def insert(self, x: float, y: float, record: Record) -> None:
        """Add the key (x, y), coordinates below `LIMIT`, with its record, made from the same x, y.

        O(1) for a key equal to a vertex or straight below it. For any other O(log n), as Sorted
        Containers counts, and O(log n) more for each vertex that it hides, which happens to a
        vertex once.
        """
        vertex = self._vertices.get(x)
        if vertex is not None:
            old = vertex.record
            if old[1] == y:
                vertex.record = self._join(old, record)
                return
            if old[1] > y:
                self._spill(record)
                return
        last = self._last
        end = last.record
        if x > end[0]:
            fall = (end[1] - y) / (x - end[0])
            if fall > self._turn:
                last.fall = fall
                self._turn = _turn_after(fall)
                self._last = self._vertices[x] = Vertex(record)
                self._xs.add(x)
                self._falls.add(fall)
                return
        self._insert(x, y, record)

    def _insert(self, x: float, y: float, record: Record) -> None:
        """Add a key of any place, unless it is at or below a vertex of the same x."""
        start = self._xs.bisect_left(x)
        stop = start + (x in self._vertices)  # vertices start..stop - 1 are hidden by the key
        n = len(self)
        if 0 < start == stop < n:
            left, right = self._vertex(start - 1), self._vertex(start).record
            side = height(left.record[0], left.record[1], x, y, right[0], right[1])
            if side <= 0:
                if side == 0:
                    left.inner = self._joined(record, left.inner)
                self._spill(record)
                return
        # A hidden vertex on a line with the key and the one beyond it is now between them.
        left_inner = right_inner = None
        while start > 1:
            left, near = self._vertex(start - 2), self._vertex(start - 1).record
            side = height(left.record[0], left.record[1], near[0], near[1], x, y)
            if side > 0:
                break
            start -= 1
            if side == 0:
                left_inner = self._joined(near, left.inner)
        while stop < n - 1:
            near, right = self._vertex(stop).record, self._vertex(stop + 1).record
            side = height(x, y, near[0], near[1], right[0], right[1])
            if side > 0:
                break
            if side == 0:
                right_inner = self._joined(near, self._vertex(stop).inner)
            stop += 1
        self._replace(start, stop, record, left_inner, right_inner)

    def _replace(
        self,
        start: int,
        stop: int,
        record: Record,
        left_inner: Record | None,
        right_inner: Record | None,
    ) -> None:
        """Put a vertex in the place of vertices start..stop - 1, with the inner keys of its edges.

        Each hidden vertex costs O(log n).
        """
        left = self._vertex(start - 1) if start else None
        right = self._vertex(stop) if stop < len(self) else None
        hidden = [self._vertex(i) for i in range(start, stop)]
        for vertex in [left, *hidden] if left else hidden:
            if vertex is not self._last:
                self._falls.remove(vertex.fall)
        for vertex in hidden:
            self._xs.remove(vertex.record[0])
            del self._vertices[vertex.record[0]]
            self._spill(vertex.record)
        new = self._vertices[record[0]] = Vertex(record)
        self._xs.add(record[0])
        if left:
            self._join_up(left, new, left_inner)
        if right:
            self._join_up(new, right, right_inner)
        else:
            self._last = new
        self._turn = _turn_after(self._vertex(-2).fall) if len(self) > 1 else -inf

    def _join_up(self, left: Vertex, right: Vertex, inner: Record | None) -> None:
        """Make an edge between two vertices."""
        one, other = left.record, right.record
        left.fall = (one[1] - other[1]) / (other[0] - one[0])
        left.inner = inner
        self._falls.add(left.fall)

    def _joined(self, record: Record, inner: Record | None) -> Record:
        return record if inner is None else self._join(record, inner)

    def _vertex(self, i: int) -> Vertex:
        """Vertex number i from the left."""
        return self._vertices[self._xs[i]]


def _turn_after(fall: float) -> float:
    """What the next fall has to exceed for the hull to turn there for certain."""
    return fall + (abs(fall) * SLACK + TINY) if fall > -inf else -inf

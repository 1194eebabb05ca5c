"""One 2D attention head with hard attention: insert keys, query the best one.

In: keys, queries and values as Python floats. Out: the value of the key with the greatest q·k,
compared exactly; ties as the head's mode says. This is what an engine written in Python calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from sys import getsizeof

import numpy as np
from numpy.typing import NDArray

from hullcache.chain import UpperChain
from hullcache.exact import LIMIT, checked, score_change
from hullcache.record import Join, Mode, Record, Value, join_for, to_columns, to_records


class Underside:
    """The keys that are not vertices of the upper hull, as far as a query with q_y < 0 needs them.

    Vertices of the upper hull other than its ends are strictly above the line between the ends, so
    downwards they can neither win nor tie; only the two ends are compared with what is in here.
    Heads whose keys all stay on the upper hull, parabolic ones say, pay nothing for a lower one.
    """

    __slots__ = ("_join", "chain")

    def __init__(self, join: Join) -> None:
        self._join = join
        self.chain: UpperChain | None = None

    def add(self, record: Record) -> None:
        """Add a key with its record. Cost: see `UpperChain.insert`."""
        x, y, weight, value = record
        record = (x, -y, weight, value)
        if self.chain is None:
            self.chain = UpperChain(record, self._join, discard)
        else:
            self.chain.insert(x, -y, record)

    def best(self, upper: UpperChain, qx: float, qy: float) -> Record:
        """All keys with the greatest score for q_y < 0, merged. O(log n)."""
        winner = upper.first
        rivals = [] if upper.last is winner else [upper.last]
        if self.chain is not None:
            x, y, weight, value = self.chain.best(qx, -qy)
            rivals.append((x, -y, weight, value))
        for rival in rivals:
            change = score_change(qx, qy, winner[0], winner[1], rival[0], rival[1])
            if change == 0:
                winner = self._join(winner, rival)
            elif change > 0:
                winner = rival
        return winner


def discard(record: Record) -> None:
    """Where a lower hull spills: keys strictly inside both hulls are of no use to any query."""


class HullHead:
    """The keys of one head that can still win, and their values.

    Mode `latest`: the value of the latest of all keys with the greatest score. Mode `mean`: the
    average of the values of all of them, as a float64 sum over their number. The sums are exact for
    integers (and multiples of one power of two) as long as they need no more than 53 bits; for
    other values the order of insertion can show in the last bits. While all keys are equal, the
    mean is the running sum of the values over the number of keys. A zero query scores every key
    alike: the latest of all keys, or the mean of all.

    Values are tuples of `width` numbers. Heads whose keys are the same can share one `HullHead` if
    their values are put side by side: insert once, query once for each.

    >>> head = HullHead("latest")
    >>> for k, value in [(0, 5.0), (1, 6.0), (2, 7.0), (1, 8.0)]:
    ...     head.insert(2.0 * k, -1.0 * k * k, (value, 0.0))
    >>> head.query(1.0, 1.0)
    (8.0, 0.0)
    >>> len(head), head.n_kept
    (4, 3)
    """

    __slots__ = (
        "_count",
        "_join",
        "_latest",
        "_left",
        "_right",
        "_spread",
        "_total",
        "_underside",
        "_upper",
        "_width",
    )

    def __init__(self, mode: Mode, width: int = 2) -> None:
        """Raises ValueError for an unknown mode or a width below 1."""
        self._join = join_for(mode)
        self._latest = mode == "latest"
        if width < 1:
            raise ValueError(f"width {width} is not positive")
        self._width = width
        self.clear()

    def clear(self) -> None:
        """Forget all keys.

        >>> head = HullHead("mean", width=1)
        >>> head.insert(1.0, 2.0, (3.0,))
        >>> head.clear()
        >>> len(head)
        0
        """
        nothing: Record = (0.0, 0.0, 0, (0.0,) * self._width)
        self._count = 0
        self._spread = False  # two different keys seen: the chains are in use
        self._total = nothing  # all keys merged
        self._left = nothing  # all keys with the least x, merged
        self._right = nothing
        self._underside = Underside(self._join)
        self._upper = UpperChain(nothing, self._join, self._underside.add)

    def insert(self, kx: float, ky: float, value: Value) -> None:
        """Add the key (kx, ky) with its value, a tuple of `width` finite numbers (not checked).

        Raises ValueError if a coordinate is NaN, infinite or 2**1022 or more in size, or if the
        value has another width. O(1) while all keys are equal and for a key equal to a vertex of
        the upper hull, amortised O(log n) for others, as Sorted Containers counts.

        >>> head = HullHead("latest")
        >>> head.insert(0.0, float("nan"), (1.0, 2.0))
        Traceback (most recent call last):
            ...
        ValueError: key (0.0, nan) is not finite
        """
        x = float(kx)
        y = float(ky)
        if not (-LIMIT < x < LIMIT and -LIMIT < y < LIMIT):
            checked(x, y, "key")
        if len(value) != self._width:
            raise ValueError(f"value has {len(value)} numbers, the head {self._width}")
        weight = self._count if self._latest else 1
        self._count += 1
        record = (x, y, weight, value)
        total = self._total
        if not self._spread:
            if self._count == 1:
                self._total = record
                return
            if x == total[0] and y == total[1]:
                self._total = self._join(total, record)
                return
            self._begin_spread()
        self._total = record if self._latest else self._join(total, record)
        self._upper.insert(x, y, record)
        if x >= self._right[0]:
            self._right = record if x > self._right[0] else self._join(self._right, record)
        if x <= self._left[0]:
            self._left = record if x < self._left[0] else self._join(self._left, record)

    def _begin_spread(self) -> None:
        """Start the hull with the one key there has been so far."""
        self._spread = True
        self._left = self._right = self._total
        self._upper = UpperChain(self._total, self._join, self._underside.add)

    def query(self, qx: float, qy: float) -> Value:
        """The value of the key that maximises qx * kx + qy * ky, exactly, ties by the mode.

        Raises ValueError if the head is empty or a coordinate is NaN, infinite or 2**1022 or more
        in size. O(log n); O(1) for qy == 0 and while all keys are equal.

        >>> head = HullHead("mean", width=1)
        >>> for x, y, v in [(0.0, 0.0, 1.0), (2.0, 2.0, 2.0), (1.0, 1.0, 6.0), (3.0, 0.0, 7.0)]:
        ...     head.insert(x, y, (v,))
        >>> head.query(-1.0, 1.0), head.query(1.0, 0.0), head.query(0.0, 0.0)
        ((3.0,), (7.0,), (4.0,))
        """
        qx = float(qx)
        qy = float(qy)
        if not (-LIMIT < qx < LIMIT and -LIMIT < qy < LIMIT):
            checked(qx, qy, "query")
        if not self._spread or not (qx or qy):
            if not self._count:
                raise ValueError("query of an empty head")
            record = self._total
        elif qy > 0.0:
            record = self._upper.best(qx, qy)
        elif qy < 0.0:
            record = self._underside.best(self._upper, qx, qy)
        else:
            record = self._right if qx > 0.0 else self._left
        if self._latest:
            return record[3]
        weight = record[2]
        return tuple([number / weight for number in record[3]])

    def state(self) -> dict[str, NDArray[np.float64]]:
        """All that is kept, as arrays of float64, for `restore`. O(n).

        >>> head, other = HullHead("latest", width=1), HullHead("latest", width=1)
        >>> for x in range(5):
        ...     head.insert(2.0 * x, -1.0 * x * x, (10.0 * x,))
        >>> other.restore(head.state())
        >>> other.query(3.0, 1.0), len(other)
        ((30.0,), 5)
        """
        merged = to_columns([self._total, self._left, self._right], self._width)
        found = {"count": np.array([float(self._count)]), "merged": merged}
        if self._spread:
            found["upper"], found["upper_edges"] = self._upper.state(self._width)
            if self._underside.chain is not None:
                found["lower"], found["lower_edges"] = self._underside.chain.state(self._width)
        return found

    def restore(self, state: Mapping[str, NDArray[np.float64]]) -> None:
        """Become the head of the same mode and width whose `state` this is. O(n)."""
        self.clear()
        self._count = int(state["count"][0])
        self._total, self._left, self._right = to_records(state["merged"])
        self._spread = "upper" in state
        if self._spread:
            parts = state["upper"], state["upper_edges"]
            self._upper = UpperChain.restored(*parts, self._join, self._underside.add)
        if "lower" in state:
            parts = state["lower"], state["lower_edges"]
            self._underside.chain = UpperChain.restored(*parts, self._join, discard)

    def __len__(self) -> int:
        """Number of keys inserted. O(1)."""
        return self._count

    @property
    def n_kept(self) -> int:
        """Number of records kept: about one a vertex of the convex hull. O(n).

        >>> head = HullHead("latest", width=1)
        >>> for x, y in [(0, 0), (9, 0), (0, 9), (9, 9), (4, 4), (4, 5), (5, 5), (5, 4)]:
        ...     head.insert(x, y, (0.0,))
        >>> head.n_kept
        4
        """
        if not self._spread:
            return min(self._count, 1)
        below = self._underside.chain
        return self._upper.n_kept + (0 if below is None else below.n_kept)

    @property
    def nbytes(self) -> int:
        """Bytes held by the head, from the sizes of Python's objects. O(n)."""
        value = self._total[3]
        total = getsizeof(self) + getsizeof(self._total) + getsizeof(value)
        total += sum(map(getsizeof, value)) * (1 + self.n_kept)
        if self._spread:
            below = self._underside.chain
            total += self._upper.nbytes + (0 if below is None else below.nbytes)
        return total

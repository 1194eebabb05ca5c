"""Hard attention for every position of a known sequence at once: who answers whom, exactly.

In: one head's keys and queries, (T, 2) each. Out: for each position the latest of the keys up to
it (its own included) that have the greatest q·k. Keys and queries of the shapes that compiled
machines have are answered by a few NumPy passes: equal keys, queries along an axis, keys (2k, -k²).
Any others go through a growing convex hull, one position after another.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from hullcache import HullHead
from hullcache.exact import SLACK, TINY, scaled_integers
from hullcache.standard import exact_ties

Floats = NDArray[np.float64]
Positions = NDArray[np.int64]
Tick = Callable[[int], None]
"""Told how many positions are done, now and then."""

LARGEST_ROOT = 2**26
"""Squares of integers up to here, and sums of two of them, are exact in double precision."""
FEW = 256
"""Different keys that are few."""
BLOCK, TICK = 1 << 13, 1 << 14


class Keys:
    """The keys of one head, ready for any number of query sequences.

    O(T log T) time and O(T) memory for each of them; if the keys or the queries have no simple
    shape, some microseconds a position.
    """

    def __init__(self, keys: Floats) -> None:
        """Args:
        keys: (T, 2), the key that each position adds.
        """
        self.keys = keys
        self.alike = bool((keys == keys[:1]).all())
        self._roots = None if self.alike else _roots(keys)
        self._written: _Written | None = None
        self._distinct: tuple[Floats, NDArray[np.intp]] | None = None

    def latest(self, queries: Floats, tick: Tick = lambda done: None) -> Positions:
        """The position that answers each query (T, 2): causal, exact, the latest of a tie."""
        own = np.arange(len(self.keys))
        if self.alike:
            return own
        for axis in (0, 1):
            if not queries[:, 1 - axis].any():
                return _along_axis(self.keys[:, axis], queries[:, axis], own)
        if self._roots is None or not (queries[:, 1] > 0).all():
            few = self._few()
            if few is not None:
                return few.latest(queries)
            return _by_hull(self.keys, queries, tick)
        if (self._roots == own).all():
            return _nearest_position(queries)
        if self._written is None:
            self._written = _Written(self._roots)
        return _nearest_root(self._written, queries)

    def _few(self) -> FewKeys | None:
        """The keys as a few different ones, None if they are many."""
        if self._distinct is None:
            self._distinct = np.unique(self.keys, axis=0, return_inverse=True)
        distinct, which = self._distinct
        return FewKeys(distinct, which.reshape(-1)) if len(distinct) <= FEW else None

    def means(self, queries: Floats, values: Floats, tick: Tick = lambda done: None) -> Floats:
        """What a head that averages returns: the mean of the values (T, 2) of all winners."""
        if self.alike or not queries.any():
            return np.cumsum(values, axis=0) / np.arange(1, len(values) + 1)[:, np.newaxis]
        return _means_by_hull(self.keys, queries, values, tick)


def _along_axis(keys: Floats, queries: Floats, own: Positions) -> Positions:
    """The greatest key so far for positive queries, the least for negative ones."""
    winners = own.copy()
    for sign in (1.0, -1.0):
        asked = queries * sign > 0
        if asked.any():
            signed = keys * sign
            holds = signed == np.maximum.accumulate(signed)
            best = np.maximum.accumulate(np.where(holds, own, 0))
            winners[asked] = best[asked]
    return winners


def _roots(keys: Floats) -> NDArray[np.int64] | None:
    """The integers k of keys (2k, -k²), None for other keys."""
    half = keys[:, 0] / 2
    if not ((np.abs(half) <= LARGEST_ROOT).all() and (half == np.rint(half)).all()):
        return None
    return half.astype(np.int64) if (keys[:, 1] == -half * half).all() else None


def _nearest_position(queries: Floats) -> Positions:
    """Keys (2p, -p²) and q_y > 0: the position nearest to q_x / q_y, the later of two."""
    own = np.arange(len(queries))
    target = _quotient(queries)
    low = np.clip(np.floor(np.nan_to_num(target)), 0, own).astype(np.int64)
    high = np.minimum(low + 1, own)
    return np.where(_upper_wins(low, high, queries, target) >= 0, high, low)


def _nearest_root(written: _Written, queries: Floats) -> Positions:
    """Keys (2k, -k²) and q_y > 0: the k nearest to q_x / q_y that was there, the later of two."""
    own = np.arange(len(queries))
    target = _quotient(queries)
    below, above = written.below(target), written.above(target)
    low, high = np.maximum(below, 0), np.minimum(above, len(written.values) - 1)
    change = _upper_wins(written.values[low], written.values[high], queries, target)
    change[below < 0], change[above > high] = 1, -1
    low_last, high_last = (written.writes.latest(at, own) for at in (low, high))
    tied = np.maximum(low_last, high_last)
    return np.where(change > 0, high_last, np.where(change < 0, low_last, tied))


def _quotient(queries: Floats) -> Floats:
    with np.errstate(over="ignore"):
        quotient: Floats = queries[:, 0] / queries[:, 1]
    return quotient


def _upper_wins(
    low: NDArray[np.int64], high: NDArray[np.int64], queries: Floats, target: Floats
) -> NDArray[np.int64]:
    """The sign of score(high) - score(low) for numbers low <= high."""
    middle = (low + high).astype(np.float64)
    change = np.sign(2 * target - middle)
    # The quotient is rounded, unless the divisor is a power of two and the quotient a normal one.
    mantissa, _ = np.frexp(queries[:, 1])
    rounded = (mantissa != 0.5) | (np.abs(target) < 2.0**-900)
    close = np.abs(2 * target - middle) <= np.abs(middle) * SLACK + 2.0**-900
    for at in np.flatnonzero(close & rounded):
        qx, qy = scaled_integers(float(queries[at, 0]), float(queries[at, 1]))
        exact = 2 * qx - int(middle[at]) * qy
        change[at] = (exact > 0) - (exact < 0)
    change[low == high] = 0
    return change.astype(np.int64)


class Writes:
    """Which of a few things each position wrote, and so when each was written last.

    Attributes:
        first: for each thing the position that wrote it first.
    """

    def __init__(self, which: NDArray[np.intp], count: int) -> None:
        """Args:
        which: (T,), what each position writes: 0 to ``count`` - 1, all of them at some time.
        """
        self._order = np.argsort(which, kind="stable")  # positions, by thing and then by time
        self._stride = len(which)
        self._writes = which[self._order] * self._stride + self._order
        self.first = self._order[np.searchsorted(which[self._order], np.arange(count))]

    def latest(self, thing: Positions, by: Positions) -> Positions:
        """The last position up to ``by`` that wrote the thing; any if there is none."""
        at = np.searchsorted(self._writes, thing * self._stride + by, "right") - 1
        return self._order[np.maximum(at, 0)]


class _Written:
    """Integers written one a position: which were there by then, and when each was written last."""

    def __init__(self, roots: NDArray[np.int64]) -> None:
        self.values, which = np.unique(roots, return_inverse=True)
        self.writes = Writes(which, len(self.values))
        # rows[l][j]: the earliest first write of the values j .. j + 2^l - 1
        self._rows = [self.writes.first]
        while (width := 1 << (len(self._rows) - 1)) * 2 <= len(self.values):
            row = self._rows[-1]
            self._rows.append(np.minimum(row[:-width], row[width:]))

    def below(self, target: Floats) -> NDArray[np.int64]:
        """Index of the greatest value <= target that was there at each position, -1 for none."""
        stop = np.searchsorted(self.values, target, "right")
        for level in reversed(range(len(self._rows))):
            stop = np.where(self._too_late(level, stop - (1 << level)), stop - (1 << level), stop)
        return stop - 1

    def above(self, target: Floats) -> NDArray[np.int64]:
        """Index of the least value > target that was there, ``len(values)`` for none."""
        start = np.searchsorted(self.values, target, "right")
        for level in reversed(range(len(self._rows))):
            start = np.where(self._too_late(level, start), start + (1 << level), start)
        return start

    def _too_late(self, level: int, start: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether none of the 2^level values from ``start`` on was there at each position."""
        row = self._rows[level]
        inside = (start >= 0) & (start < len(row))
        first = row[np.clip(start, 0, len(row) - 1)]
        return inside & (first > np.arange(len(start)))


class FewKeys:
    """Keys of which few differ: every query is scored with each of them."""

    def __init__(self, distinct: Floats, which: NDArray[np.intp]) -> None:
        """Args:
        distinct: (m, 2). which: (T,), the one that each position adds.
        """
        self._distinct, self._writes = distinct, Writes(which, len(distinct))
        self._integral = bool((distinct == np.rint(distinct)).all())

    def latest(self, queries: Floats) -> Positions:
        """See :meth:`Keys.latest`. O(T m)."""
        winners = np.empty(len(queries), np.int64)
        for start in range(0, len(queries), BLOCK):
            by = np.arange(start, min(start + BLOCK, len(queries)))
            winners[by] = self._block(queries[by], by)
        return winners

    def _block(self, queries: Floats, by: Positions) -> Positions:
        with np.errstate(over="ignore", invalid="ignore"):
            scores = queries @ self._distinct.T  # (n, m)
            size = np.abs(queries) @ np.abs(self._distinct).T
        exact = (size < 2.0**53) & self._integral
        exact &= (queries == np.rint(queries)).all(axis=1)[:, np.newaxis]
        error = np.where(exact, 0.0, size * SLACK + TINY)
        scores[self._writes.first > by[:, np.newaxis]] = -np.inf
        close = scores + error >= (scores - error).max(axis=1, keepdims=True)
        doubtful = (close.sum(axis=1) > 1) & (close & (error > 0)).any(axis=1)
        doubtful |= ~np.isfinite(error).all(axis=1)
        there = scores > -np.inf
        for row in np.flatnonzero(doubtful):
            ties = exact_ties(self._distinct.T, np.flatnonzero(there[row]), queries[row])
            close[row] = np.isin(np.arange(len(self._distinct)), ties)
        rows, things = np.nonzero(close)
        latest = self._writes.latest(things, by[rows])
        winners = np.full(len(by), -1)
        np.maximum.at(winners, rows, latest)
        return winners


def _by_hull(keys: Floats, queries: Floats, tick: Tick) -> Positions:
    head = HullHead("latest", width=1)
    insert, query = head.insert, head.query
    winners = np.empty(len(keys), np.int64)
    pairs = zip(keys.tolist(), queries.tolist(), strict=True)
    for position, ((kx, ky), (qx, qy)) in enumerate(pairs):
        insert(kx, ky, (position,))
        winners[position] = query(qx, qy)[0]
        if not position % TICK:
            tick(position)
    return winners


def _means_by_hull(keys: Floats, queries: Floats, values: Floats, tick: Tick) -> Floats:
    head = HullHead("mean")
    means = np.empty_like(values)
    rows = zip(keys.tolist(), queries.tolist(), values.tolist(), strict=True)
    for position, ((kx, ky), (qx, qy), value) in enumerate(rows):
        head.insert(kx, ky, tuple(value))
        means[position] = head.query(qx, qy)
        if not position % TICK:
            tick(position)
    return means

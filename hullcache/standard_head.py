"""`StandardHead`: every key of one head, and a scan of all of them for every query."""

from __future__ import annotations

import math

import numpy as np

from hullcache.base import Floats
from hullcache.exact import SLACK, TINY
from hullcache.record import Mode, Value, join_for
from hullcache.standard import FIRST_CAPACITY, exact_ties


class StandardHead:
    """What `HullHead` does, without a hull: insert amortised O(1), query O(n), memory O(n).

    The yardstick for engines that call one head at a time, and as exact. Coordinates must be below
    2**1022 in size, which is not checked.

    >>> head = StandardHead("latest", width=1)
    >>> for key, value in [((0.0, 0.0), 1.0), ((2.0, -1.0), 2.0), ((2.0, -1.0), 3.0)]:
    ...     head.insert(*key, (value,))
    >>> head.query(1.0, 1.0), head.query(0.2, 1.0), len(head)
    ((3.0,), (1.0,), 3)
    """

    def __init__(self, mode: Mode, width: int = 2) -> None:
        join_for(mode)
        self.mode = mode
        self._length = 0
        self._keys: Floats = np.empty((2, FIRST_CAPACITY))
        self._values: Floats = np.empty((FIRST_CAPACITY, width))
        self._reach = [0.0, 0.0]

    def __len__(self) -> int:
        """Number of keys. O(1)."""
        return self._length

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, with the part that is not filled yet. O(1)."""
        return self._keys.nbytes + self._values.nbytes

    def insert(self, kx: float, ky: float, value: Value) -> None:
        """Append the next position's key and value, `width` numbers."""
        n = self._length
        if n == len(self._values):
            self._keys = np.concatenate((self._keys, np.empty_like(self._keys)), axis=1)
            self._values = np.concatenate((self._values, np.empty_like(self._values)))
        self._keys[0, n] = kx
        self._keys[1, n] = ky
        self._values[n] = value
        self._reach = [max(self._reach[0], abs(kx)), max(self._reach[1], abs(ky))]
        self._length = n + 1

    def query(self, qx: float, qy: float) -> Value:
        """Value of the key with the greatest q·k, ties by the mode.

        ValueError: there is no key yet.
        """
        n = self._length
        if not n:
            raise ValueError("the head has no keys yet")
        keys = self._keys[:, :n]
        reach = abs(qx) * self._reach[0] + abs(qy) * self._reach[1]
        if math.isfinite(reach):
            scores = keys[0] * qx
            scores += keys[1] * qy  # each is off by less than half of the slack
            close = np.flatnonzero(scores >= scores.max() - (reach * SLACK + TINY))
        else:
            close = np.arange(n)
        ties = exact_ties(keys, close, np.array([qx, qy])) if len(close) > 1 else close
        if self.mode == "latest":
            return tuple(self._values[ties[-1]].tolist())
        return tuple((self._values[ties].sum(axis=0) / len(ties)).tolist())

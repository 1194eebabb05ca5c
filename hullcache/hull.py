"""`HullKVCache`: hard attention over 2D heads in O(log n) per query."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hullcache.base import Floats, KVCache
from hullcache.head import HullHead
from hullcache.record import Mode


class HullKVCache(KVCache):
    """Keeps only the keys that can still win: per head the convex hull of its keys.

    Answers exactly what `StandardKVCache` with hard attention answers (means of values that are
    not integers may differ in the last bits). With h vertices on a head's hull: append amortised
    O(log h) per head, attend O(log h), memory O(h).

    >>> cache = HullKVCache(n_layers=1, n_heads=2, modes=[["latest", "mean"]])
    >>> for p in range(4):
    ...     keys = [[2.0 * p, -1.0 * p * p], [1.0, 0.0]]
    ...     cache.append(0, keys, values=[[10.0 * p, 0.0], [1.0 * p, 1.0]])
    >>> cache.attend(0, [[2.0, 1.0], [5.0, 0.0]]).tolist()
    [[20.0, 0.0], [1.5, 1.0]]
    >>> cache.heads[0][0].query(1.0, 1.0), len(cache)
    ((10.0, 0.0), 4)
    """

    def __init__(
        self, n_layers: int, n_heads: int, modes: Mode | Sequence[Sequence[Mode]] = "latest"
    ) -> None:
        super().__init__(n_layers, n_heads, modes)
        self.heads = tuple(tuple(map(HullHead, row)) for row in self.modes)
        """The heads, [layer][head], for callers that want to skip the arrays."""

    def length(self, layer: int) -> int:
        return len(self.heads[self._layer(layer)][0])

    def clear(self) -> None:
        for row in self.heads:
            for head in row:
                head.clear()

    @property
    def nbytes(self) -> int:
        """Bytes held by the heads, from the sizes of Python's objects. O(vertices)."""
        return sum(head.nbytes for row in self.heads for head in row)

    def _extend(self, layer: int, keys: Floats, values: Floats) -> None:
        heads = self.heads[layer]
        for row in zip(keys.tolist(), values.tolist(), strict=True):
            for head, (x, y), value in zip(heads, *row, strict=True):
                head.insert(x, y, tuple(value))

    def _attend(self, layer: int, queries: Floats) -> Floats:
        heads = self.heads[layer]
        return np.array(
            [
                [head.query(x, y) for head, (x, y) in zip(heads, row, strict=True)]
                for row in queries.tolist()
            ]
        ).reshape(queries.shape)

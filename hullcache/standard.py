"""`StandardKVCache`: every key and value, and a scan of all of them for every query.

The yardstick for `HullKVCache`, and the cache for softmax, which needs every key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from hullcache.base import Floats, KVCache
from hullcache.exact import SLACK, TINY, score_change
from hullcache.record import Mode

FIRST_CAPACITY = 64


class StandardKVCache(KVCache):
    """Keeps everything in arrays that double when full.

    `attention="hard"`: the greatest q·k, compared exactly, ties by the head's mode.
    `attention="softmax"`: softmax of `scale` * q·k in float64; modes mean nothing then. The usual
    scale, 1 / sqrt(2), is the one `torch.nn.MultiheadAttention` applies to heads of two dimensions.
    With n positions: append amortised O(1) per head, attend O(n), memory O(n).

    >>> cache = StandardKVCache(n_layers=1, n_heads=1, modes="mean")
    >>> cache.extend(0, keys=[[[1, 0]], [[0, 1]], [[1, 0]]], values=[[[2, 0]], [[5, 0]], [[4, 0]]])
    >>> cache.attend(0, [[1, 0]]).tolist(), cache.attend(0, [[1, 2]]).tolist()
    ([[3.0, 0.0]], [[5.0, 0.0]])
    >>> soft = StandardKVCache(1, 1, attention="softmax", scale=1.0)
    >>> soft.extend(0, keys=[[[0, 0]], [[0, 1]]], values=[[[1, 0]], [[0, 1]]])
    >>> soft.attend(0, [[0, 0]]).tolist(), soft.attend(0, [[0, 800]]).tolist()
    ([[0.5, 0.5]], [[0.0, 1.0]])
    """

    def __init__(
        self,
        n_layers: int,
        n_heads: int,
        modes: Mode | Sequence[Sequence[Mode]] = "latest",
        *,
        attention: Literal["hard", "softmax"] = "hard",
        scale: float = 0.5**0.5,
    ) -> None:
        super().__init__(n_layers, n_heads, modes)
        if attention not in ("hard", "softmax"):
            raise ValueError(f"attention {attention!r} is neither hard nor softmax")
        self.attention = attention
        self.scale = scale
        self.clear()

    def clear(self) -> None:
        shape = (self.n_heads, 2, FIRST_CAPACITY)
        self._lengths = [0] * self.n_layers
        self._keys: list[Floats] = [np.empty(shape) for _ in range(self.n_layers)]
        self._values: list[Floats] = [np.empty(shape) for _ in range(self.n_layers)]
        # The largest |x| and |y| of each head's keys: they bound the rounding of its scores.
        self._reach = np.zeros((self.n_layers, self.n_heads, 2))

    def length(self, layer: int) -> int:
        return self._lengths[self._layer(layer)]

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, with the part that is not filled yet. O(n_layers)."""
        return sum(array.nbytes for array in (*self._keys, *self._values))

    def _extend(self, layer: int, keys: Floats, values: Floats) -> None:
        start = self._lengths[layer]
        stop = start + len(keys)
        if not len(keys):
            return
        for arrays, new in ((self._keys, keys), (self._values, values)):
            capacity = arrays[layer].shape[2]
            if stop > capacity:
                grown = np.empty((self.n_heads, 2, max(stop, 2 * capacity)))
                grown[:, :, :start] = arrays[layer][:, :, :start]
                arrays[layer] = grown
            arrays[layer][:, :, start:stop] = new.transpose(1, 2, 0)
        np.maximum(self._reach[layer], np.abs(keys).max(axis=0), out=self._reach[layer])
        self._lengths[layer] = stop

    def _attend(self, layer: int, queries: Floats) -> Floats:
        n = self._lengths[layer]
        keys = self._keys[layer][:, :, :n]  # (n_heads, 2, n)
        values = self._values[layer][:, :, :n]
        answer = self._hard if self.attention == "hard" else self._soft
        return np.array([answer(layer, keys, values, q) for q in queries]).reshape(queries.shape)

    def _soft(self, layer: int, keys: Floats, values: Floats, q: Floats) -> Floats:
        """Softmax attention; q is (n_heads, 2)."""
        scores = self.scale * scores_of(keys, q)
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        answers: Floats = (weights[:, np.newaxis] * values).sum(axis=2)
        return answers

    def _hard(self, layer: int, keys: Floats, values: Floats, q: Floats) -> Floats:
        """Hard attention; q is (n_heads, 2). Scores are off by less than half of `slack`."""
        with np.errstate(over="ignore", invalid="ignore"):
            scores = scores_of(keys, q)
            slack = (np.abs(q) * self._reach[layer]).sum(axis=1) * SLACK + TINY
            least = scores.max(axis=1) - slack
            close = scores >= least[:, np.newaxis]
        close[~np.isfinite(slack)] = True
        answers: Floats = values[np.arange(self.n_heads), :, close.argmax(axis=1)]
        for h in np.flatnonzero(close.sum(axis=1) > 1).tolist():
            ties = exact_ties(keys[h], np.flatnonzero(close[h]), q[h])
            if self.modes[layer][h] == "latest":
                answers[h] = values[h, :, ties[-1]]
            else:
                answers[h] = values[h][:, ties].sum(axis=1) / len(ties)
        return answers


def scores_of(keys: Floats, q: Floats) -> Floats:
    """q·k for each head and position; keys (n_heads, 2, n), q (n_heads, 2). O(n)."""
    scores: Floats = keys[:, 0] * q[:, :1] + keys[:, 1] * q[:, 1:]
    return scores


def exact_ties(keys: Floats, close: NDArray[np.intp], q: Floats) -> NDArray[np.intp]:
    """Those of the positions `close`, in order, whose key has exactly the greatest q·k.

    keys (2, n), q (2,). O(m) for m positions with one key or under a zero query, else O(m log m).

    >>> keys = np.array([[1.0, 2.0, 1.0, 3.0], [2.0, 1.0, 2.0, 2.0**-52]])
    >>> exact_ties(keys, np.array([0, 1, 2, 3]), np.array([1.0, 1.0])).tolist()
    [3]
    >>> exact_ties(keys, np.array([0, 1, 2]), np.array([1.0, 1.0])).tolist()
    [0, 1, 2]
    """
    some = keys[:, close]
    if not q.any() or (some == some[:, :1]).all():
        return close
    distinct, which = np.unique(some, axis=1, return_inverse=True)
    qx, qy = q.tolist()
    points: list[tuple[float, float]] = list(zip(*distinct.tolist(), strict=True))
    best = [0]
    for number, (x, y) in enumerate(points[1:], 1):
        change = score_change(qx, qy, *points[best[0]], x, y)
        if change > 0:
            best = [number]
        elif change == 0:
            best.append(number)
    return close[np.isin(which.reshape(-1), best)]

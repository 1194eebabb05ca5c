"""What every cache offers: keys and values go in position by position, queries come back answered.

In: float64 arrays, two numbers per head and position. Out: arrays of the same shape. A subclass
says how it stores and searches; the checks are here, so that all caches refuse the same things.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hullcache.exact import LIMIT
from hullcache.record import Mode, join_for

Floats = NDArray[np.float64]


class KVCache(ABC):
    """Keys and values of all layers and heads of a model whose heads have two dimensions.

    Arrays may be anything `numpy.asarray` takes. ValueError: a shape that does not fit, NaN,
    infinities, keys or queries of 2**1022 or more in size, a query of a layer that has no keys yet.
    IndexError: a layer that does not exist. A refused call changes nothing.
    """

    def __init__(
        self, n_layers: int, n_heads: int, modes: Mode | Sequence[Sequence[Mode]] = "latest"
    ) -> None:
        """`modes`: one mode for all heads, or n_layers sequences of n_heads modes."""
        if n_layers < 1 or n_heads < 1:
            raise ValueError(f"{n_layers} layers of {n_heads} heads: both must be positive")
        rows = [[modes] * n_heads] * n_layers if isinstance(modes, str) else modes
        self.modes: tuple[tuple[Mode, ...], ...] = tuple(map(tuple, rows))
        self.n_layers = n_layers
        self.n_heads = n_heads
        if len(self.modes) != n_layers or any(len(row) != n_heads for row in self.modes):
            raise ValueError(f"modes are not {n_layers} sequences of {n_heads}")
        for row in self.modes:
            for mode in row:
                join_for(mode)

    def append(self, layer: int, keys: ArrayLike, values: ArrayLike) -> None:
        """Add one position to a layer; keys and values are (n_heads, 2)."""
        k, v = self._pairs(keys, "keys"), self._pairs(values, "values")
        if k.ndim != 2 or v.ndim != 2:
            raise ValueError("append takes one position; extend takes several")
        self._extend(self._layer(layer), k[np.newaxis], v[np.newaxis])

    def extend(self, layer: int, keys: ArrayLike, values: ArrayLike) -> None:
        """Add T positions to a layer, as T appends do; keys and values are (T, n_heads, 2)."""
        k, v = self._pairs(keys, "keys"), self._pairs(values, "values")
        if k.ndim != 3 or k.shape != v.shape:
            raise ValueError(f"keys {k.shape} and values {v.shape} are not (T, {self.n_heads}, 2)")
        self._extend(self._layer(layer), k, v)

    def attend(self, layer: int, queries: ArrayLike) -> Floats:
        """Answer queries (n_heads, 2), or T of them (T, n_heads, 2), from all keys of the layer.

        Returns an array of the shape of the queries.
        """
        q = self._pairs(queries, "queries")
        if not self.length(layer):
            raise ValueError(f"layer {layer} has no keys yet")
        answers = self._attend(layer, q.reshape(-1, self.n_heads, 2))
        return answers.reshape(q.shape)

    def append_attend(
        self, layer: int, keys: ArrayLike, values: ArrayLike, queries: ArrayLike
    ) -> Floats:
        """Causal attention: add a position, then answer its query; for T positions, one by one.

        All arrays are (n_heads, 2) or all are (T, n_heads, 2); so is the result.
        """
        k, v, q = (
            self._pairs(array, what)
            for array, what in ((keys, "keys"), (values, "values"), (queries, "queries"))
        )
        if not k.shape == v.shape == q.shape:
            raise ValueError(f"keys {k.shape}, values {v.shape} and queries {q.shape} differ")
        layer = self._layer(layer)
        answers = np.empty((q.size // (2 * self.n_heads), self.n_heads, 2))
        one = (1, self.n_heads, 2)
        flat = (array.reshape(-1, self.n_heads, 2) for array in (k, v, q))
        for t, (k_t, v_t, q_t) in enumerate(zip(*flat, strict=True)):
            self._extend(layer, k_t.reshape(one), v_t.reshape(one))
            answers[t] = self._attend(layer, q_t.reshape(one))[0]
        return answers.reshape(q.shape)

    def __len__(self) -> int:
        """Number of positions that every layer has. O(n_layers)."""
        return min(self.length(layer) for layer in range(self.n_layers))

    @abstractmethod
    def length(self, layer: int) -> int:
        """Number of positions a layer has. O(1)."""

    @abstractmethod
    def clear(self) -> None:
        """Forget everything; layers, heads and modes stay."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of memory held."""

    @abstractmethod
    def _extend(self, layer: int, keys: Floats, values: Floats) -> None:
        """Store T positions; arrays (T, n_heads, 2), checked."""

    @abstractmethod
    def _attend(self, layer: int, queries: Floats) -> Floats:
        """Answer queries (T, n_heads, 2), checked, from a layer that has keys."""

    def _layer(self, layer: int) -> int:
        if not 0 <= layer < self.n_layers:
            raise IndexError(f"layer {layer} of {self.n_layers}")
        return layer

    def _pairs(self, array: ArrayLike, what: str) -> Floats:
        """An argument as float64 (..., n_heads, 2), or a ValueError that names it."""
        pairs = np.asarray(array, dtype=np.float64)
        if pairs.ndim not in (2, 3) or pairs.shape[-2:] != (self.n_heads, 2):
            raise ValueError(f"{what} {pairs.shape} are not ([T,] {self.n_heads}, 2)")
        if not np.isfinite(pairs).all():
            raise ValueError(f"{what} are not finite")
        if what != "values" and not (np.abs(pairs) < LIMIT).all():
            raise ValueError(f"{what} are not below 2**1022 in size")
        return pairs

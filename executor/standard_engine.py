"""Hard attention by scanning every key: the plain engine that the fast ones must agree with.

Dense NumPy arrays, all heads of a layer at once, nothing read off the weights. A token costs
O(t) time and memory grows by ``2 * n_layers * d_model`` numbers a token.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from executor.checkpoint import Array, Checkpoint
from executor.decode import Arrays, Ids, extend

BLOCK = 64
"""Prompt tokens that are read at once."""


class StandardEngine:
    """See :class:`executor.decode.Engine`."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        config, weights = checkpoint.config, checkpoint.weights
        self._config = config
        self._weights = weights
        modes = [np.array(layer) for layer in config.head_modes]
        self._latest = [np.flatnonzero(layer == "latest") for layer in modes]
        self._mean = [np.flatnonzero(layer == "mean") for layer in modes]
        self._length = 0
        # keys and values: (layer, head, position, component)
        self._keys = np.zeros((config.n_layers, config.n_heads, BLOCK, config.d_head))
        self._values = np.zeros_like(self._keys)

    def feed(self, tokens: Sequence[int]) -> None:
        """Append tokens, in blocks."""
        for start in range(0, len(tokens), BLOCK):
            self.forward(tokens[start : start + BLOCK])

    def step(self, token: int) -> int:
        """Append one token; the id of the greatest logit."""
        return self.predict([token])[0]

    def predict(self, tokens: Sequence[int]) -> list[int]:
        """Append tokens, in blocks; the id of the greatest logit after each."""
        head = self._weights["head.weight"].T
        blocks = (tokens[start : start + BLOCK] for start in range(0, len(tokens), BLOCK))
        return [int(best) for block in blocks for best in np.argmax(self.forward(block) @ head, 1)]

    def extend(self, token: int, stop: Collection[int], limit: int) -> Ids:
        """Append a token and those that follow it."""
        return extend(self.step, token, stop, limit)

    def state(self) -> Arrays:
        """See :class:`executor.decode.Keepable`. Positions come last: so it packs well."""
        kept = {"keys": self._keys, "values": self._values}
        return {name: array[:, :, : self._length].swapaxes(2, 3) for name, array in kept.items()}

    def restore(self, state: Arrays) -> None:
        """See :class:`executor.decode.Keepable`."""
        self._length = state["keys"].shape[3]
        self._keys = np.ascontiguousarray(state["keys"].swapaxes(2, 3))
        self._values = np.ascontiguousarray(state["values"].swapaxes(2, 3))

    def forward(self, tokens: Sequence[int]) -> Array:
        """Run T tokens through all layers; the last residual stream (T, d_model)."""
        weights = self._weights
        start, end = self._length, self._length + len(tokens)
        self._reserve(end)
        p = np.arange(start, end, dtype=np.float64)
        x: Array = weights["tok.weight"][np.asarray(tokens)]  # (T, d_model), a copy
        first, second = self._config.position_slots
        x[:, first] += p
        x[:, second] += p * p
        for layer in range(self._config.n_layers):
            heads = self._attend(layer, x @ weights[f"attn.{layer}.in_proj_weight"].T, start)
            x = x + heads @ weights[f"attn.{layer}.out_proj.weight"].T
            gate = np.maximum(x @ weights[f"gate.{layer}.weight"].T, 0.0)
            value = x @ weights[f"value.{layer}.weight"].T
            x = x + (gate * value) @ weights[f"down.{layer}.weight"].T
        self._length = end
        return x

    def _attend(self, layer: int, projected: Array, start: int) -> Array:
        """Store T keys and values, answer T queries: (T, 3 d_model) to (T, d_model)."""
        config = self._config
        time = projected.shape[0]
        end = start + time
        # (3, head, T, component)
        parts = projected.reshape(time, 3, config.n_heads, config.d_head).transpose(1, 2, 0, 3)
        self._keys[layer, :, start:end] = parts[1]
        self._values[layer, :, start:end] = parts[2]
        keys, values = self._keys[layer, :, :end], self._values[layer, :, :end]
        scores = parts[0] @ keys.transpose(0, 2, 1)  # (head, T, position)
        if time > 1:
            future = np.arange(end) > np.arange(start, end)[:, None]
            scores[:, future] = -np.inf
        mixed = np.empty((config.n_heads, time, config.d_head))
        latest, mean = self._latest[layer], self._mean[layer]
        # argmax takes the first of equals, so the latest is found from the end
        last = end - 1 - np.argmax(scores[latest, :, ::-1], axis=2)
        mixed[latest] = np.take_along_axis(values[latest], last[:, :, None], axis=1)
        ties = scores[mean] == scores[mean].max(axis=2, keepdims=True)
        mixed[mean] = ties @ values[mean] / ties.sum(axis=2, keepdims=True)
        return mixed.transpose(1, 0, 2).reshape(time, config.d_model)

    def _reserve(self, length: int) -> None:
        while self._keys.shape[2] < length:
            self._keys = np.concatenate((self._keys, np.zeros_like(self._keys)), axis=2)
            self._values = np.concatenate((self._values, np.zeros_like(self._values)), axis=2)

"""Hard attention from hull caches: code generated from the weights, O(log t) a token."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

import numpy as np

from compiler.errors import UsageError
from executor.checkpoint import Checkpoint
from executor.codegen import generate
from executor.config import Mode
from executor.decode import Arrays, Ids, extend
from hullcache import HullHead


class HeadCache(Protocol):
    """What is asked of one head's cache: two-dimensional keys, tuples of values."""

    def insert(self, kx: float, ky: float, value: tuple[float, ...]) -> None:
        """Append the next position's key and value."""

    def query(self, qx: float, qy: float) -> tuple[float, ...]:
        """Value of the key with the greatest score, ties by the head's mode."""


class HullEngine:
    """See :class:`executor.decode.Engine`.

    Attributes:
        source: the generated Python, for reading.
    """

    def __init__(
        self, checkpoint: Checkpoint, make_cache: Callable[[Mode, int], HeadCache] = HullHead
    ) -> None:
        if checkpoint.config.d_head != 2:
            raise UsageError(
                f"the hull engine needs heads of width 2, this model's are "
                f"{checkpoint.config.d_head} wide; use --engine standard"
            )
        code = generate(checkpoint.config, checkpoint.weights)
        namespace: dict[str, Any] = {
            "array": np.array,
            "feed_table": code.feed_table,
            "step_table": code.step_table,
            "head": code.head,
            "tokens": code.tokens,
        }
        self._heads: dict[str, HeadCache] = {}
        for cache in code.caches:
            head = self._heads[cache.name] = make_cache(cache.mode, len(cache.values))
            namespace[f"insert_{cache.name}"] = head.insert
            namespace[f"query_{cache.name}"] = head.query
        self.source = code.source
        exec(compile(code.source, "<generated from the weights>", "exec"), namespace)
        self._feed: Callable[[int, float], None] = namespace["feed"]
        self._step: Callable[[int, float], int] = namespace["step"]
        self._position = 0

    def feed(self, tokens: Sequence[int]) -> None:
        """Append tokens; logits, and all that only logits need, are not computed."""
        feed = self._feed
        for position, token in enumerate(tokens, start=self._position):
            feed(token, float(position))
        self._position += len(tokens)

    def predict(self, tokens: Sequence[int]) -> list[int]:
        """Append tokens; the id of the greatest logit after each."""
        return [self.step(token) for token in tokens]

    def step(self, token: int) -> int:
        """Append one token; the id of the greatest logit."""
        position = self._position
        self._position = position + 1
        return self._step(token, float(position))

    def extend(self, token: int, stop: Collection[int], limit: int) -> Ids:
        """Append a token and those that follow it."""
        return extend(self.step, token, stop, limit)

    def state(self) -> Arrays | None:
        """See :class:`executor.decode.Keepable`; None with caches that are not hull caches."""
        found: dict[str, Any] = {"position": np.array([self._position], np.int64)}
        for name, head in self._heads.items():
            if not isinstance(head, HullHead):
                return None
            found |= {f"{name}.{part}": array for part, array in head.state().items()}
        return found

    def restore(self, state: Arrays) -> None:
        """See :class:`executor.decode.Keepable`."""
        parts: dict[str, dict[str, Any]] = {name: {} for name in self._heads}
        for key, array in state.items():
            name, dot, part = key.partition(".")
            if dot:
                parts[name][part] = array
        for name, head in self._heads.items():
            assert isinstance(head, HullHead)
            head.restore(parts[name])
        self._position = int(state["position"][0])

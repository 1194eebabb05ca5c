"""Which heads, neurons and slots of a model can matter, read off the zeros of its weights.

A backward pass over the layers: something is live if it can reach what is asked for (the
logits, or the keys and values that later tokens read) through nonzero weights. Everything else
can be left out without changing any result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from executor.checkpoint import Array
from executor.config import Mode, ModelConfig


@dataclass(frozen=True)
class Head:
    """The rows of one head, each (d_head, d_model); ``out[c]`` is what component c of the value
    adds to the stream. Components that do not matter have zero rows in ``value`` and ``out``.
    """

    index: int
    mode: Mode
    query: Array
    key: Array
    value: Array
    out: Array


@dataclass(frozen=True)
class LiveLayer:
    """What of a layer matters.

    Attributes:
        stored: heads whose keys and values some token reads.
        queried: heads whose result matters, a subset of ``stored``.
        neurons: indices of neurons that matter.
        after_attention, after_ffn: slots whose content is read later.
    """

    stored: tuple[Head, ...]
    queried: tuple[Head, ...]
    neurons: tuple[int, ...]
    after_attention: frozenset[int]
    after_ffn: frozenset[int]


def support(rows: Array) -> set[int]:
    """Columns in which any of the rows (n, d) or the row (d) is not zero."""
    return set(np.flatnonzero(np.atleast_2d(rows).any(axis=0)).tolist())


def live_layers(
    config: ModelConfig,
    weights: Mapping[str, Array],
    asked: Iterable[int],
    stored: Sequence[Sequence[Head]] | None = None,
) -> tuple[LiveLayer, ...]:
    """The live part of every layer.

    Args:
        asked: slots of the last residual stream that are read.
        stored: heads of each layer whose keys and values are asked for in any case; None if
            only those are that the asked slots need.
    """
    live = set(asked)
    layers: list[LiveLayer] = []
    for layer in reversed(range(config.n_layers)):
        after_ffn = frozenset(live)
        neurons = _live_neurons(weights, layer, live)
        live |= support(weights[f"gate.{layer}.weight"][list(neurons)])
        live |= support(weights[f"value.{layer}.weight"][list(neurons)])
        after_attention = frozenset(live)
        queried = tuple(_live_heads(config, weights, layer, live))
        kept = tuple(stored[layer]) if stored else queried
        for head in queried:
            live |= support(head.query)
        for head in kept:
            live |= support(head.key) | support(head.value)
        layers.append(LiveLayer(kept, queried, neurons, after_attention, after_ffn))
    return tuple(reversed(layers))


def _live_neurons(weights: Mapping[str, Array], layer: int, live: set[int]) -> tuple[int, ...]:
    written = weights[f"down.{layer}.weight"][sorted(live)].any(axis=0)
    gated = weights[f"gate.{layer}.weight"].any(axis=1)
    valued = weights[f"value.{layer}.weight"].any(axis=1)
    return tuple(np.flatnonzero(written & gated & valued).tolist())


def _live_heads(
    config: ModelConfig, weights: Mapping[str, Array], layer: int, live: set[int]
) -> Iterator[Head]:
    shape = (config.n_heads, config.d_head, config.d_model)
    queries, keys, values = weights[f"attn.{layer}.in_proj_weight"].reshape(3, *shape)
    outs = weights[f"attn.{layer}.out_proj.weight"].T.reshape(shape)
    unread = [slot for slot in range(config.d_model) if slot not in live]
    for index, mode in enumerate(config.head_modes[layer]):
        out = outs[index].copy()
        out[:, unread] = 0.0
        matters = (values[index].any(axis=1) & out.any(axis=1))[:, None]
        if matters.any():
            value, out = values[index] * matters, out * matters
            yield Head(index, mode, queries[index], keys[index], value, out)

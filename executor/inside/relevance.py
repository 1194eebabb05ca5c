"""Which heads and neurons count at a position, in its answer or in what it keeps for later tokens.

A backward pass like that of :mod:`executor.liveness`, but over what happened: a closed neuron hides
whatever it would multiply, and a slot that is erased (by a head that reads its own token, or by an
open neuron) hides what stood there. What counts is a slot that the logits read, and then what put
it there: open neurons with all that they read, heads with their queries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from executor.checkpoint import Array, Checkpoint
from executor.inside.explanation import Attention, FeedForward, Flags, Integers, Layer
from executor.liveness import support


def mark_used(
    checkpoint: Checkpoint, positions: Integers, layers: Sequence[Layer]
) -> tuple[Layer, ...]:
    """The layers with ``used`` and ``kept`` filled in."""
    config, weights = checkpoint.config, checkpoint.weights
    asked = np.zeros((len(positions), config.d_model), np.bool_)
    asked[:, sorted(support(weights["head.weight"]))] = True
    used = _backward(checkpoint, positions, layers, asked, stored=False)
    kept = _backward(checkpoint, positions, layers, np.zeros_like(asked), stored=True)
    return tuple(
        Layer(
            replace(layer.attention, used=answer[0], kept=later[0]),
            replace(layer.feed_forward, used=answer[1], kept=later[1]),
        )
        for layer, answer, later in zip(layers, used, kept, strict=True)
    )


def _backward(
    checkpoint: Checkpoint,
    positions: Integers,
    layers: Sequence[Layer],
    needed: Flags,
    stored: bool,
) -> list[tuple[Flags, Flags]]:
    """Heads (n, H) and neurons (n, F) of each layer that reach what is needed (n, d_model).

    Args:
        stored: keys and values of live heads are needed too.
    """
    weights, marks = checkpoint.weights, []
    for number in reversed(range(len(layers))):
        gate, value = (weights[f"{part}.{number}.weight"] for part in ("gate", "value"))
        neurons, needed = _neurons(layers[number].feed_forward, gate, value, needed)
        parts = weights[f"attn.{number}.in_proj_weight"].reshape(
            3, checkpoint.config.n_heads, 2, checkpoint.config.d_model
        )
        attention = layers[number].attention
        heads, needed = _heads(attention, positions, parts, needed)
        if stored:
            needed[:, parts[1:, attention.live].any(axis=(0, 1, 2))] = True
        marks.append((heads, neurons))
    return marks[::-1]


def _neurons(layer: FeedForward, gate: Array, value: Array, needed: Flags) -> tuple[Flags, Flags]:
    """The neurons that count, and what is needed before them."""
    used = (layer.gates > 0) & _reaches(needed, layer.output)
    slot, factor = _erasure(value, layer.output)
    erases = used & (layer.gates * factor == -1)
    before = needed & ~_in_slots(erases, slot, needed)
    return used, before | _reaches(used & ~erases, ((gate != 0) | (value != 0)).T)


def _heads(
    layer: Attention, positions: Integers, parts: Array, needed: Flags
) -> tuple[Flags, Flags]:
    """The heads that count, and what is needed before them."""
    n, heads = layer.winners.shape
    width = needed.shape[1]
    value, output = parts[2].reshape(-1, width), layer.output.reshape(-1, width)
    used = _reaches(needed, output) & value.any(axis=1)  # (n, 2H), by components
    slot, factor = _erasure(value, output)
    own = np.repeat(layer.winners == positions[:, np.newaxis], 2, axis=1)
    erases = used & own & (factor == -1)
    before = needed & ~_in_slots(erases, slot, needed)
    asking = (used & ~erases).reshape(n, heads, 2).any(axis=2)
    before = before | _reaches(asking, parts[0].any(axis=1).T)
    return used.reshape(n, heads, 2).any(axis=2), before


def _reaches(flags: Flags, rows: NDArray[np.generic]) -> Flags:
    """``flags`` (n, d) and ``rows`` (m, d): whether row m is nonzero where n is flagged: (n, m)."""
    reached: Flags = (flags.astype(np.int64) @ (rows != 0).T.astype(np.int64)) > 0
    return reached


def _erasure(value: Array, output: Array) -> tuple[NDArray[np.intp], Array]:
    """For rows that read one slot and write it alone: that slot, and the product of the two
    weights; the product is 0 for other rows."""
    slot = np.abs(value).argmax(axis=1)
    rows = np.arange(len(value))
    factor = value[rows, slot] * output[rows, slot]
    single = ((value != 0).sum(axis=1) == 1) & ((output != 0).sum(axis=1) == 1)
    return slot, np.where(single, factor, 0.0)


def _in_slots(flags: Flags, slot: NDArray[np.intp], like: Flags) -> Flags:
    """The slots (n, d_model) that the flagged rows (n, m) name."""
    marked = np.zeros_like(like)
    at, which = np.nonzero(flags)
    marked[at, slot[which]] = True
    return marked

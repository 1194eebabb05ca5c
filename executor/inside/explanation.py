"""What went on inside the model at some positions of a sequence: a value, made of arrays.

Position p holds one token, and the model decides there which token comes at p + 1. All arrays have
one row for each explained position, in the order of ``Explanation.positions``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from compiler.names import Names
from executor.checkpoint import Checkpoint
from executor.inside.context import Context

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Attention:
    """All heads of one layer: H of them, each two-dimensional, at n positions.

    Attributes:
        queries: (n, H, 2), what each head asked.
        winners: (n, H), the position that answered; of several with the same score the latest.
        ties: (n, H), how many positions have that score. Heads of mode ``latest`` take the winner's
            value, those of mode ``mean`` the average of all.
        keys: (n, H, 2), the winner's key.
        scores: (n, H), the winner's q·k.
        runners_up: (n, H), the position with the next lower score (the latest of several), -1 if
            all keys score alike.
        leads: (n, H), by how much the winner's score is greater.
        values: (n, H, 2), what was read.
        used: (n, H), whether what was read counts in the logits of this position; not where all
            that reads it are closed neurons, or nothing (:mod:`executor.inside.relevance`).
        kept: (n, H), whether it counts in the keys and values that later tokens may read.
        live: (H,), whether it can count anywhere (:mod:`executor.liveness`).
        modes: of each head.
        output: (H, 2, d_model): ``output[h, c]`` times component c of the value is added to the
            stream.
    """

    queries: Floats
    winners: Integers
    ties: Integers
    keys: Floats
    scores: Floats
    runners_up: Integers
    leads: Floats
    values: Floats
    used: Flags
    kept: Flags
    live: Flags
    modes: tuple[str, ...]
    output: Floats


@dataclass(frozen=True)
class FeedForward:
    """All neurons of one layer: F of them, at n positions.

    Attributes:
        gates: (n, F), before the ReLU: a neuron is open where this is positive.
        values: (n, F), what the gate is multiplied by.
        outputs: (n, F), max(0, gate) * value.
        used, kept: (n, F), as for heads; False for closed neurons.
        live: (F,), whether it can count anywhere.
        output: (F, d_model): times the neuron's output, this is added to the stream.
    """

    gates: Floats
    values: Floats
    outputs: Floats
    used: Flags
    kept: Flags
    live: Flags
    output: Floats


@dataclass(frozen=True)
class Layer:
    """One layer: attention, then feed-forward."""

    attention: Attention
    feed_forward: FeedForward


@dataclass(frozen=True)
class Answer:
    """The greatest logits: k tokens at n positions, the greatest first, of equals the lowest id.

    Attributes:
        tokens: (n, k) ids; the first is what the model writes next.
        logits: (n, k).
        margins: (n,), the greatest logit less the next.
    """

    tokens: Integers
    logits: Floats
    margins: Floats


@dataclass(frozen=True)
class Explanation:
    """The inside of a model at n positions of a sequence of T tokens.

    Attributes:
        positions: (n,), those that are explained.
        tokens: (T,), ids of the whole sequence that was read, prompt and trace.
        n_prompt: how many of them are the prompt.
        layers: in order.
        stream: (n, 2·n_layers + 1, d_model): the slots of the residual stream after so many
            half-layers; 0 is the embedding with the position in it.
        answer: the logits.
        checkpoint: the model.
        context: what each token is, for a run of a program.
    """

    positions: Integers
    tokens: Integers
    n_prompt: int
    layers: tuple[Layer, ...]
    stream: Floats
    answer: Answer
    checkpoint: Checkpoint = field(repr=False)
    context: Context | None = field(repr=False, default=None)

    @property
    def names(self) -> Names | None:
        """What slots, heads and neurons are called, if the model says."""
        return self.checkpoint.names

    def spelling(self, position: int) -> str:
        """The token at a position."""
        return self.checkpoint.vocabulary[int(self.tokens[position])]

    def row(self, position: int) -> int:
        """The row of all arrays for a position.

        Raises:
            ValueError: if that position is not explained.
        """
        rows = np.flatnonzero(self.positions == position)
        if not len(rows):
            raise ValueError(f"position {position} is not among those that are explained")
        return int(rows[0])

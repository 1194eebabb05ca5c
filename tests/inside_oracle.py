"""The torch module's own attention and residual stream, to compare an explanation with.

The weights are those for plain softmax. Nothing here knows of hard attention: weights come from
``nn.MultiheadAttention``, the stream from the module's own forward pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from executor.checkpoint import Checkpoint
from executor.torch_engine import CHUNK, make_model

ROWS = 50
"""Positions whose attention weights are held at once."""


@dataclass(frozen=True)
class TorchRows:
    """Some positions of one layer.

    Attributes:
        rows: which of the positions that were asked for.
        weights: (H, n, T) attention weights, zero for what comes later.
        before, mixed, after: (n, d_model): the stream before and after attention, and before the
            next layer.
    """

    rows: slice
    weights: NDArray[np.float64]
    before: NDArray[np.float64]
    mixed: NDArray[np.float64]
    after: NDArray[np.float64]


class TorchOracle:
    """A module that has read a sequence."""

    def __init__(self, checkpoint: Checkpoint, tokens: Sequence[int]) -> None:
        self.model = make_model(checkpoint)
        self._inputs: list[Tensor] = []
        logits = []
        with torch.inference_mode():
            for start in range(0, len(tokens), CHUNK):
                part = torch.tensor([list(tokens[start : start + CHUNK])])
                logits.append(self.model(part, self._inputs)[0])
        self.logits = torch.cat(logits).numpy()

    def layers(self, positions: Sequence[int]) -> Iterator[tuple[int, TorchRows]]:
        """Every layer, at the positions, some of them at a time."""
        for layer, attention in enumerate(self.model.attn):
            seen = self._inputs[layer]
            for start in range(0, len(positions), ROWS):
                rows = slice(start, start + ROWS)
                at = torch.tensor(list(positions[rows]))
                query = seen[:, at]
                future = torch.arange(seen.shape[1]) > at[:, None]
                with torch.inference_mode():
                    mixed, weights = attention(
                        query, seen, seen, attn_mask=future, average_attn_weights=False
                    )
                    middle = query + mixed
                    gated = torch.relu(self.model.gate[layer](middle))
                    after = middle + self.model.down[layer](gated * self.model.value[layer](middle))
                yield (
                    layer,
                    TorchRows(
                        rows,
                        weights[0].numpy(),
                        query[0].numpy(),
                        middle[0].numpy(),
                        after[0].numpy(),
                    ),
                )

"""The PyTorch module as an engine: its own attention, plain softmax. The only engine with torch.

The layers' inputs are kept, keys and values are projected from them again for every token, so
a token costs O(t) with a large constant: meant for checks and teaching, not for long runs.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from executor.checkpoint import Checkpoint
from executor.decode import Ids, extend
from executor.model import VanillaTransformer

CHUNK = 512
"""Prompt tokens that are read at once."""


def make_model(checkpoint: Checkpoint) -> VanillaTransformer:
    """The module with the checkpoint's weights, in evaluation mode."""
    model = VanillaTransformer(**checkpoint.config.model_arguments())
    state = {
        name: torch.from_numpy(checkpoint.weights[name].copy()) for name in checkpoint.config.shapes
    }
    model.load_state_dict(state)
    return model.eval()


class TorchEngine:
    """See :class:`executor.decode.Engine`."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self._model = make_model(checkpoint)
        self._cache: list[Tensor] = []

    def feed(self, tokens: Sequence[int]) -> None:
        """Append tokens, in chunks."""
        for start in range(0, len(tokens), CHUNK):
            self._forward(tokens[start : start + CHUNK])

    def step(self, token: int) -> int:
        """Append one token; the id of the greatest logit."""
        return self.predict([token])[0]

    def predict(self, tokens: Sequence[int]) -> list[int]:
        """Append tokens, in chunks; the id of the greatest logit after each."""
        chunks = (tokens[start : start + CHUNK] for start in range(0, len(tokens), CHUNK))
        return [int(best) for chunk in chunks for best in self._forward(chunk)[0].argmax(dim=1)]

    def extend(self, token: int, stop: Collection[int], limit: int) -> Ids:
        """Append a token and those that follow it."""
        return extend(self.step, token, stop, limit)

    def _forward(self, tokens: Sequence[int]) -> Tensor:
        with torch.inference_mode():
            logits: Tensor = self._model(torch.tensor([list(tokens)]), self._cache)
        return logits

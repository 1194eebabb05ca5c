"""The decode loop: feed a prompt, append the greatest logit's token, stop at a stop token.

The loop and the engines know ids and nothing else. Swap the weights and the same loop runs
another machine.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol

from compiler.errors import UsageError

if TYPE_CHECKING:
    from executor.checkpoint import Checkpoint

ENGINES = ("hull", "standard", "torch")
"""Names for :func:`make_engine`."""


class Engine(Protocol):
    """A model with the sequence it has read so far, which only ever grows.

    ``feed`` then ``step`` gives what any other division of the same tokens gives: prefill equals
    decode.
    """

    def feed(self, tokens: Sequence[int]) -> None:
        """Append tokens whose logits nobody asks for."""

    def step(self, token: int) -> int:
        """Append one token; the id of the greatest logit after it, the lowest id of a tie."""

    def predict(self, tokens: Sequence[int]) -> list[int]:
        """Append tokens that are known already; what ``step`` would return after each."""


def make_engine(name: str, checkpoint: Checkpoint) -> Engine:
    """A new engine with an empty sequence.

    ``hull``: hard attention from hull caches, O(log t) a token. ``standard``: hard attention by a
    scan of all keys, O(t). ``torch``: the PyTorch module itself, plain softmax, O(t).

    Raises:
        UsageError: for another name, or if the weights are not for this kind of attention.
    """
    if name not in ENGINES:
        raise UsageError(f"no engine {name!r}; choose from {', '.join(ENGINES)}")
    wanted = "softmax" if name == "torch" else "hard"
    if checkpoint.config.attention != wanted:
        raise UsageError(
            f"the engine {name!r} needs weights for {wanted} attention, these are for "
            f"{checkpoint.config.attention}; `transputer build` writes both kinds"
        )
    if name == "hull":
        from executor.hull_engine import HullEngine

        return HullEngine(checkpoint)
    if name == "standard":
        from executor.standard_engine import StandardEngine

        return StandardEngine(checkpoint)
    from executor.torch_engine import TorchEngine

    return TorchEngine(checkpoint)


def decode(
    engine: Engine, prompt: Sequence[int], stop: Collection[int] = (), limit: int | None = None
) -> Iterator[int]:
    """The tokens that follow a prompt, as they come.

    Ends after a token of ``stop`` or after ``limit`` tokens, whichever is first; the last token
    tells which. The engine must be new, or hold what comes before the prompt.

    Raises:
        UsageError: if the prompt is empty (there is nothing to predict from).
    """
    if not prompt:
        raise UsageError("the prompt is empty")
    if limit is not None and limit <= 0:
        return
    engine.feed(prompt[:-1])
    token = prompt[-1]
    count = 0
    step = engine.step
    while limit is None or count < limit:
        token = step(token)
        count += 1
        yield token
        if token in stop:
            return

"""Running a machine of somebody's own: tokens of its vocabulary in, tokens out, to its stop token.

The prompt is the model's own first tokens (its ROM) and what the user gives; nothing but the
decode loop comes between that and what the model writes.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from compiler.errors import LimitError, UsageError
from executor.checkpoint import Checkpoint
from executor.config import AUTO
from executor.decode import Ids, extend_chunks, make_engine
from executor.kept_prompt import feed_prompt
from executor.loading import ModelSource, open_checkpoint
from executor.runner import ASKED, NO_TOKENS, length_limit

PATIENCE = 10_000
"""Tokens after which the command line gives up a run for which nobody asked for more."""


class MachineRun:
    """One run in progress.

    Attributes:
        checkpoint: the model. prompt: the ids it is given. n_tokens: tokens written so far.
        ended: whether the last of them is a stop token.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        prompt: str | Sequence[str],
        *,
        engine: str = AUTO,
        max_tokens: int | None = None,
        limit_words: str = ASKED,
        keep_source: Path | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        """Args:
            prompt: tokens, or a text of tokens with white space between them.
            engine, keep_source, say: see :func:`executor.decode.make_engine`; ``auto`` is
                ``torch`` for weights that are made for softmax.
            max_tokens: written tokens after which to give up. limit_words: what that limit is.

        Raises:
            UsageError: for a model that runs programs, an empty prompt, an unusable engine.
            LimitError: if the prompt alone is longer than the model is exact for.
            TransputerError: for a token that the model does not know.
        """
        config = checkpoint.config
        if config.prompts != "tokens":
            raise UsageError("this model runs programs: give it a program file, not tokens")
        tokens = prompt.split() if isinstance(prompt, str) else list(prompt)
        ids = [*checkpoint.rom, *_encoded(checkpoint, tokens)]
        if not ids:
            raise UsageError("the prompt is empty")
        self.checkpoint, self.n_tokens = checkpoint, 0
        self.ended = False
        self.prompt = array("i", ids)
        self._limit, self._reason = length_limit(checkpoint, len(ids), max_tokens, limit_words)
        if engine == AUTO and config.attention == "softmax":
            engine = "torch"
        options = {} if say is None else {"say": say}
        self._engine = make_engine(engine, checkpoint, keep_source=keep_source, **options)

    def chunks(self) -> Iterator[Ids]:
        """What the model writes, as it comes, empty while it reads its prompt; once only.

        Raises:
            LimitError: if no stop token comes before a limit.
        """
        prompt = self.prompt[:-1]
        for _ in feed_prompt(self._engine, self.checkpoint, prompt, len(prompt)):
            yield NO_TOKENS
        stop = frozenset(self.checkpoint.config.stop_tokens)
        for ids in extend_chunks(self._engine, self.prompt[-1], stop, self._limit):
            self.n_tokens += len(ids)
            self.ended = int(ids[-1]) in stop
            yield ids
        if not self.ended:
            raise LimitError(f"stopped after {self.n_tokens:,} tokens: {self._reason}")


def generate(
    model: ModelSource,
    prompt: str | Sequence[str],
    *,
    engine: str = AUTO,
    max_tokens: int | None = None,
) -> Iterator[str]:
    """The tokens that a machine of your own writes, as they come, its stop token included.

    Args:
        model: a loaded model, or the folder of one, written by ``transputer build --machine``.
        prompt, engine, max_tokens: see :class:`MachineRun`.

    Raises:
        As :class:`MachineRun`; LimitError where there is no stop token after ``max_tokens``.
    """
    run = MachineRun(open_checkpoint(model), prompt, engine=engine, max_tokens=max_tokens)
    for ids in run.chunks():
        yield from (run.checkpoint.vocabulary[token] for token in ids.tolist())


def _encoded(checkpoint: Checkpoint, tokens: Sequence[str]) -> list[int]:
    known = checkpoint.ids
    for number, token in enumerate(tokens, start=1):
        if token not in known:
            some = " ".join(checkpoint.vocabulary[:30])
            more = " ..." if len(known) > 30 else ""
            raise UsageError(
                f"token {number} of the prompt, {token!r}, is not in this machine's vocabulary: "
                f"{some}{more}"
            )
    return [known[token] for token in tokens]

"""The decode loop: feed a prompt, append the greatest logit's token, stop at a stop token.

The loop and the engines know ids and nothing else. Swap the weights and the same loop runs
another machine.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from array import array
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from compiler.errors import TransputerError, UsageError
from executor.config import AUTO as AUTO
from executor.config import ENGINES as ENGINES

if TYPE_CHECKING:
    from pathlib import Path

    from executor.checkpoint import Checkpoint

CHUNK_SECONDS = 0.02
"""How long the decode loop leaves the engine alone, so that output is prompt and so is Ctrl-C."""
LONGEST_CHUNK = 1 << 18
"""Most tokens that an engine is asked for at once: what is made of them fits a cache."""
GROWTH = 4
"""A chunk is at most so many times as long as the one before it."""

Ids = npt.NDArray[np.int32]
Arrays = Mapping[str, npt.NDArray[Any]]


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

    def extend(self, token: int, stop: Collection[int], limit: int) -> Ids:
        """Append ``token``, then what ``step`` returns, and so on.

        Ends when a token of ``stop`` or ``limit`` (at least 1) tokens were produced. The last
        one is produced but not appended yet, as with ``step``.
        """


@runtime_checkable
class Keepable(Engine, Protocol):
    """An engine whose state can be put aside, see :mod:`executor.kept_prompt`."""

    def state(self) -> Arrays | None:
        """All that it knows of the tokens it has read, as plain arrays; None if it cannot tell."""

    def restore(self, state: Arrays) -> None:
        """Become, from new, what the engine of the same model was when it gave this state."""


@runtime_checkable
class Follower(Engine, Protocol):
    """An engine that writes faster than it reads."""

    def follow(self, token: int, written: Ids) -> bool:
        """Append ``token`` and all of ``written`` but its last, which are to be the tokens that
        follow: by writing them again. Whether they are; if not, it has read others."""


def extend(step: Callable[[int], int], token: int, stop: Collection[int], limit: int) -> Ids:
    """``Engine.extend`` for an engine that has nothing faster than its ``step``."""
    produced = array("i")
    for _ in range(limit):
        token = step(token)
        produced.append(token)
        if token in stop:
            break
    return np.frombuffer(produced, np.int32)


def check_engine(name: str, checkpoint: Checkpoint) -> None:
    """Raises UsageError for a name that is none, or if the weights are for another attention."""
    if name not in (AUTO, *ENGINES):
        raise UsageError(f"no engine {name!r}; choose from {', '.join(ENGINES)}")
    wanted = "softmax" if name == "torch" else "hard"
    if checkpoint.config.attention != wanted:
        flag = "with" if wanted == "softmax" else "without"
        raise UsageError(
            f"the engine {name!r} needs weights for {wanted} attention, these are for "
            f"{checkpoint.config.attention}; build {flag} --softmax"
        )


def make_engine(
    name: str,
    checkpoint: Checkpoint,
    *,
    keep_source: Path | None = None,
    say: Callable[[str], None] = warnings.warn,
) -> Engine:
    """A new engine with an empty sequence.

    ``native``: hard attention in C that is generated from the weights. ``hull``: the same in
    Python, with hull caches, O(log t) a token. ``standard``: hard attention by a scan of all keys,
    O(t). ``torch``: the PyTorch module itself, plain softmax, O(t). ``auto``: ``native``, and where
    no C compiler works ``hull``.

    Args:
        keep_source: a folder for the generated C, for reading; ``native`` alone writes any.
        say: told in one line what takes long, and if ``auto`` had to take ``hull``.

    Raises:
        UsageError: for another name, or if the weights are not for this kind of attention.
        NativeUnavailable: for ``native`` without a C compiler.
    """
    check_engine(name, checkpoint)
    if name == "standard":
        from executor.standard_engine import StandardEngine

        return StandardEngine(checkpoint)
    if name == "torch":
        from executor.torch_engine import TorchEngine

        return TorchEngine(checkpoint)
    if name != "hull":
        from executor.native import NativeEngine, NativeUnavailable

        try:
            return NativeEngine(checkpoint, keep_source=keep_source, say=say)
        except NativeUnavailable as error:
            if name != AUTO:
                raise
            return _python_engine(checkpoint, error, say)
    from executor.hull_engine import HullEngine

    return HullEngine(checkpoint)


def _python_engine(
    checkpoint: Checkpoint, error: TransputerError, say: Callable[[str], None]
) -> Engine:
    say(f"{error}; the Python engine takes over (--engine hull: without this message)")
    return make_engine("hull", checkpoint)


def early_maker(checkpoint: Checkpoint, say: Callable[[str], None]) -> Callable[[], Engine]:
    """Begins now what ``auto`` needs, and makes such engines; in the first run with a model they
    do not wait for specialised code, see :mod:`executor.native.tiers`.

    Args:
        say: as for ``make_engine``.

    Raises:
        UsageError: if the weights are not for hard attention.
    """
    check_engine(AUTO, checkpoint)
    from executor.native import NativeUnavailable
    from executor.native.tiers import two_tiers

    def make() -> Engine:
        if early is None:
            return make_engine(AUTO, checkpoint, say=say)
        try:
            return early()
        except NativeUnavailable as error:
            return _python_engine(checkpoint, error, say)

    early = None
    with contextlib.suppress(NativeUnavailable):  # make_engine will say so
        early = two_tiers(checkpoint, say)
    return make


def engine_maker(
    name: str, checkpoint: Checkpoint, say: Callable[[str], None] = warnings.warn
) -> Callable[[], Engine]:
    """For many new engines of one model: what can be shared is made once.

    Raises:
        UsageError, NativeUnavailable: see :func:`make_engine`.
    """
    first = make_engine(name, checkpoint, say=say)
    again = getattr(first, "again", None)
    return again if callable(again) else lambda: make_engine(name, checkpoint, say=say)


class Pace:
    """How many tokens to ask for at once: what takes about ``CHUNK_SECONDS``, and at least one."""

    def __init__(self) -> None:
        self.length = 1

    def took(self, tokens: int, seconds: float) -> None:
        """Learn from the last chunk."""
        fitting = int(tokens * CHUNK_SECONDS / max(seconds, 1e-9))
        self.length = max(1, min(fitting, GROWTH * self.length, LONGEST_CHUNK))


def feed_chunks(engine: Engine, tokens: Sequence[int]) -> Iterator[int]:
    """Feed tokens bit by bit; after each bit, how many have been fed."""
    pace, start = Pace(), 0
    while start < len(tokens):
        began = time.perf_counter()
        chunk = tokens[start : start + pace.length]
        engine.feed(chunk)
        pace.took(len(chunk), time.perf_counter() - began)
        start += len(chunk)
        yield start


def extend_chunks(
    engine: Engine, token: int, stop: Collection[int] = (), limit: int | None = None
) -> Iterator[Ids]:
    """The tokens that follow, in chunks of about ``CHUNK_SECONDS``; ends as :func:`decode` does.

    Args:
        token: the last known token, which the engine has not been fed.
    """
    pace, count = Pace(), 0
    while limit is None or count < limit:
        length = pace.length if limit is None else min(pace.length, limit - count)
        began = time.perf_counter()
        chunk = engine.extend(token, stop, length)
        pace.took(len(chunk), time.perf_counter() - began)
        count += len(chunk)
        token = int(chunk[-1])
        yield chunk
        if token in stop:
            return


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
    for chunk in extend_chunks(engine, prompt[-1], stop, limit):
        yield from chunk.tolist()

"""The first run with a model: plain code at once, specialised code when it has been made beside it.

In: a model of which nothing is in the cache. Out: engines that begin with plain code, which is made
in a fraction of the time, and go over to the specialised code between two chunks of tokens, when
that has caught up. That code is made by a process of its own
(:mod:`executor.native.make_apart`), which goes on when the run ends earlier: the next start finds
it. Whoever makes it locks a file in the cache, so that starts at the same time share one.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from compiler.errors import LimitError
from compiler.store import cache_folders, make_folder
from executor.checkpoint import Checkpoint
from executor.decode import Engine, Ids
from executor.native.build import PART, check_compiler
from executor.native.engine import NativeEngine
from executor.native.errors import NativeUnavailable
from executor.native.kept import making_file
from executor.process import cores

WAIT = "TRANSPUTER_WAIT"
"""Set to anything, this variable lets the first run wait for the specialised code."""
AT_ONCE = 1 << 18
"""Tokens that are read or written at once when an engine takes over."""
GRACE_SECONDS = 1.5
"""Processor time of plain code before it gives way."""
SHARE, NAPS = 0.8, 9
"""Where it gets less of a core than this, it sleeps so many times as long as it has run."""
_START = "import sys; sys.path.insert(0, sys.argv[1]); from executor.native.make_apart import main"


class TwoTiers:
    """See :class:`executor.decode.Engine`: one engine until a better one is there."""

    def __init__(self, first: NativeEngine, ready: Callable[[], NativeEngine | None]) -> None:
        """Args:
        first: a new engine.
        ready: a new engine that gives the same tokens, as soon as there is one; until then None.
            It raises NativeUnavailable if there will be none.
        """
        self._engine = first
        self._given = 0
        """How many of its tokens were given, or the next one too; behind them is what it wrote."""
        self._written: int | None = None
        """The last token that it wrote, if nothing was given since."""
        self._ready: Callable[[], NativeEngine | None] | None = ready
        self._busy = 0.0

    def feed(self, tokens: Sequence[int]) -> None:
        """Append tokens."""
        self._go_over()
        self._engine.feed(tokens)
        self._given, self._written = len(self._engine), None

    def predict(self, tokens: Sequence[int]) -> list[int]:
        """Append tokens; the id of the greatest logit after each."""
        found = self._engine.predict(tokens)
        self._given, self._written = len(self._engine), None
        return found

    def step(self, token: int) -> int:
        """Append one token; the id of the greatest logit."""
        return self.predict([token])[0]

    def extend(self, token: int, stop: Collection[int], limit: int) -> Ids:
        """Append a token and those that follow it."""
        if token != self._written:
            self._given = len(self._engine)
        self._go_over()
        begun, before = time.perf_counter(), time.process_time()
        produced = self._engine.extend(token, stop, limit)
        self._written = int(produced[-1])
        if self._ready is not None:
            self._give_way(time.perf_counter() - begun, time.process_time() - before)
        return produced

    def _give_way(self, seconds: float, busy: float) -> None:
        """Where cores are short, whoever makes the better engine needs them more: in a long run
        what is written until then is worth little."""
        self._busy += busy
        if self._busy > GRACE_SECONDS and busy < SHARE * seconds:
            time.sleep(NAPS * seconds)

    def _go_over(self) -> None:
        try:
            better = self._ready() if self._ready is not None else None
        except NativeUnavailable:
            better = self._ready = None
        if better is None:
            return
        self._ready = None
        with contextlib.suppress(LimitError):  # no memory for two: then the first one goes on
            if self._follow(better):
                self._engine = better

    def _follow(self, better: NativeEngine) -> bool:
        """Bring an engine to where the first one is. What that wrote is written again, which is
        faster than reading it; whether it is the same."""
        first, end = self._engine, len(self._engine)
        for start in range(0, self._given, AT_ONCE):
            better.feed(first.tokens(start, min(start + AT_ONCE, self._given)))
        for start in range(self._given, end, AT_ONCE):
            token, *written = first.tokens(start, min(start + AT_ONCE, end) + 1).tolist()
            if start + AT_ONCE >= end:
                written.append(self._written)
            if not better.follow(token, np.array(written, np.int32)):
                return False
        return True


class Making:
    """Specialised code that is being made for a model, by a process of ours or by somebody's."""

    def __init__(
        self,
        checkpoint: Checkpoint,
        lock: Path,
        say: Callable[[str], None],
        process: subprocess.Popen[bytes] | None = None,
        errors: IO[bytes] | None = None,
    ) -> None:
        """Args:
        lock: the file that is locked until the end.
        say: told in one line if nothing comes of it.
        process, errors: who makes it, if we started it, and what that writes to standard error.
        """
        self._checkpoint, self._lock, self._say = checkpoint, lock, say
        self._process, self._errors = process, errors
        self._ended = False
        self._engine: NativeEngine | None = None

    def engine(self) -> NativeEngine | None:
        """A new engine if the code is there, None as long as it is being made.

        Raises:
            NativeUnavailable: if nothing came of it.
        """
        if not self._ended and self._has_ended():
            self._ended = True
            self._engine = NativeEngine.kept(self._checkpoint)
            if self._engine is None:
                self._say(f"no specialised code was made ({self._why()}); plain code goes on")
        if self._ended and self._engine is None:
            raise NativeUnavailable("no specialised code was made")
        return self._engine.again() if self._engine is not None else None

    def _has_ended(self) -> bool:
        if self._process is not None:
            return self._process.poll() is not None
        try:
            with self._lock.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass  # removed by its maker at the end
        return True

    def _why(self) -> str:
        code = 0 if self._process is None else self._process.returncode
        if code < 0:
            return signal.Signals(-code).name
        if self._errors is None:
            return "by another process"
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), f"exit code {code}")


def begin(checkpoint: Checkpoint, say: Callable[[str], None]) -> Making | None:
    """Have specialised code made, unless somebody does so already.

    None where that is not possible or does not help: the cache cannot be written, there is one
    core, no such engine fits the model, or ``TRANSPUTER_WAIT`` is set.
    """
    if os.environ.get(WAIT) or cores() < 2 or checkpoint.config.d_head != 2:
        return None
    for folder in cache_folders(PART):
        lock = folder / making_file(checkpoint)
        with contextlib.suppress(OSError):
            make_folder(folder)
            with lock.open("ab") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    return Making(checkpoint, lock, say)
                return _start(checkpoint, lock, file.fileno(), say)
    return None


def _start(checkpoint: Checkpoint, lock: Path, locked: int, say: Callable[[str], None]) -> Making:
    """Start the process, which inherits the lock and the model. Raises OSError."""
    errors = tempfile.TemporaryFile()  # noqa: SIM115  (it is read when the process has ended)
    with tempfile.TemporaryFile() as model:
        pickle.dump(checkpoint, model)
        model.seek(0)
        process = subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"{_START}; main()",
                str(Path(__file__).resolve().parents[2]),
                str(lock),
            ],
            stdin=model,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            pass_fds=(locked,),
            start_new_session=True,  # it outlives Ctrl-C and the terminal
        )
    return Making(checkpoint, lock, say, process, errors)


def two_tiers(checkpoint: Checkpoint, say: Callable[[str], None]) -> Callable[[], Engine] | None:
    """What makes engines of a model, the first of them without waiting for specialised code.

    None where :func:`begin` gives none.

    Args:
        say: told in one line what happens, and if nothing comes of it.

    Raises:
        NativeUnavailable: if there is no C compiler. The engines are made when they are asked
            for; that may raise it too, if none works.
    """
    kept = NativeEngine.kept(checkpoint)
    if kept is not None:
        return kept.again
    check_compiler()
    making = begin(checkpoint, say)
    if making is None:
        return None
    say("specialising the native engine (once for each model) beside the run")
    return _Maker(checkpoint, making).engine


class _Maker:
    """Makes engines; the plain one is made once, when it is needed."""

    def __init__(self, checkpoint: Checkpoint, making: Making) -> None:
        self._checkpoint, self._making = checkpoint, making
        self._plain: NativeEngine | None = None

    def engine(self) -> Engine:
        """A new engine. Raises NativeUnavailable."""
        with contextlib.suppress(NativeUnavailable):
            better = self._making.engine()
            if better is not None:
                return better
        if self._plain is None:
            self._plain = NativeEngine(self._checkpoint, say=lambda line: None, specialise=False)
        return TwoTiers(self._plain.again(), self._making.engine)

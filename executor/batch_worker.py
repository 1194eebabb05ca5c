"""A process of a batch: one job after the other from standard input, results to standard output.

The first message is the :class:`executor.batch.Setup`. When the input ends, because whoever
started the process is gone, it ends too, in the midst of a run.
"""

from __future__ import annotations

import os
import pickle
import queue
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import IO, Any

from compiler.errors import LimitError, TransputerError
from executor.batch import BatchJob, BatchResult, Setup, receive, send
from executor.decode import engine_maker
from executor.job import Job, own_input, prepare
from executor.loading import open_checkpoint
from executor.process import say
from executor.runner import Execution, Limits

PREPARED = 8
"""Compiled programs that are remembered: a batch often runs one with many arguments."""


def main() -> None:
    """Serve until the input ends."""
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever else is printed must not come between
    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(sys.stdin.buffer, messages.put), daemon=True).start()
    setup = messages.get()
    worker = Worker(setup)
    while True:
        send(out, pickle.dumps(worker.run(messages.get())))


def _listen(stream: IO[bytes], put: Callable[[Any], None]) -> None:
    try:
        while True:
            put(receive(stream))
    except BaseException:
        os._exit(0)


class Worker:
    """Runs jobs; the model is loaded once."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        kind = "softmax" if setup.engine == "torch" else "hard"
        self._checkpoint = open_checkpoint(setup.model, kind)
        self._make = engine_maker(setup.engine, self._checkpoint, say)
        self._limits = Limits(setup.max_tokens, setup.max_memory)
        self._prepared: dict[str, Job] = {}

    def run(self, job: BatchJob) -> BatchResult:
        """What became of a job; whatever goes wrong is a result too."""
        execution = None
        try:
            ready = self._prepare(job)
            execution = Execution(
                ready.program,
                self._checkpoint,
                ready.program.input_tokens(job.args, job.stdin or own_input(ready.program)),
                engine=self._make,
                limits=self._limits,
                call=ready.prototype,
                keep_trace=self._setup.keep_trace,
            )
            for _ in execution.chunks():
                pass
            result = execution.result()
            return BatchResult(replace(result, _vocabulary=()), None, result.output, result.errors)
        except TransputerError as error:
            reason = error
        except MemoryError:
            reason = LimitError("out of memory")
        except Exception as error:
            reason = TransputerError(
                f"a bug in transputer, please report it: {type(error).__name__}: {error}"
            )
        if execution is None:
            return BatchResult(None, reason)
        reader = execution.reader
        return BatchResult(None, reason, bytes(reader.output), bytes(reader.errors))

    def _prepare(self, job: BatchJob) -> Job:
        if not isinstance(job.program, str | os.PathLike):
            return prepare(job.program, job.call, **self._setup.options)
        name = repr((os.fspath(job.program), job.call))
        ready = self._prepared.get(name)
        if ready is None:
            ready = prepare(job.program, job.call, **self._setup.options)
            if len(self._prepared) >= PREPARED:
                self._prepared.clear()
            self._prepared[name] = ready
        return ready

"""A run written down: the tokens of prompt and trace, and what they are, ready to be explained.

In: a job and its input, or a trace that is there already. Out: a :class:`Record`. A trace from a
file is read by the same weights, token by token; whether they would have written it shows then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from compiler.errors import LimitError, UsageError
from executor.checkpoint import Checkpoint
from executor.decode import AUTO, Ids
from executor.inside.context import Context
from executor.inside.explanation import Explanation
from executor.inside.forward import TOP, Progress, explain_tokens
from executor.job import Job, own_input
from executor.machine_run import MachineRun
from executor.runner import NO_LIMITS, NO_TOKENS, Execution, Limits
from executor.scan import Scanner
from executor.trace import TraceError

Enough = Callable[[Scanner], bool]
"""Whether a run has gone far enough, by what its trace says so far."""


@dataclass(frozen=True)
class Record:
    """All tokens of a run.

    Attributes:
        checkpoint: the model.
        tokens: ids of prompt and trace.
        n_prompt: how many of them are the prompt.
        context: what each token is; None for a model that runs no programs.
        limit: why the trace is not whole, empty if it is or goes as far as was wanted.
    """

    checkpoint: Checkpoint
    tokens: NDArray[np.int64]
    n_prompt: int
    context: Context | None = None
    limit: str = ""

    @property
    def n_trace(self) -> int:
        """Tokens of the trace."""
        return len(self.tokens) - self.n_prompt

    def position(self, number: int) -> int:
        """Where trace token ``number`` is written: the position before its own.

        Args:
            number: from 0, or from the end if negative.

        Raises:
            UsageError: if there is no such token.
        """
        if not -self.n_trace <= number < self.n_trace:
            why = f" ({self.limit})" if self.limit else ""
            raise UsageError(f"the trace has {self.n_trace:,} tokens, no token {number}{why}")
        return self.n_prompt + number % self.n_trace - 1

    def explain(
        self, positions: Sequence[int], top: int = TOP, progress: Progress = lambda done: None
    ) -> Explanation:
        """What goes on at these positions; see :func:`executor.inside.forward.explain_tokens`."""
        explanation = explain_tokens(
            self.checkpoint, self.tokens, positions, self.n_prompt, top, progress
        )
        return replace(explanation, context=self.context)


def record_run(
    job: Job,
    checkpoint: Checkpoint,
    args: Sequence[str],
    stdin: bytes,
    *,
    engine: str = AUTO,
    limits: Limits = NO_LIMITS,
    enough: Enough = lambda scanner: False,
    watch: Callable[[int], None] = lambda n_tokens: None,
    say: Callable[[str], None] | None = None,
) -> Record:
    """Run a program until it ends, ``enough`` says so, or a limit is reached.

    Args:
        engine: ``auto`` is ``torch`` for weights that are made for softmax.
        watch: told the number of tokens so far, now and then.
        say: see :func:`executor.decode.make_engine`.

    Raises:
        As :class:`executor.runner.Execution`; a limit ends the record instead.
    """
    if engine == AUTO and checkpoint.config.attention == "softmax":
        engine = "torch"
    tokens = job.program.input_tokens(args, stdin or own_input(job.program))
    execution = Execution(
        job.program, checkpoint, tokens, engine=engine, limits=limits, call=job.prototype, say=say
    )
    chunks: list[Ids] = []
    limit = ""
    try:
        for chunk in execution.chunks():
            chunks.append(chunk.ids)
            watch(execution.reader.n_tokens)
            if enough(execution.reader):
                break
    except (LimitError, TraceError) as error:
        limit = str(error)
    return _record(job, checkpoint, tokens, np.concatenate((NO_TOKENS, *chunks)), limit)


def record_machine(
    run: MachineRun,
    enough: Callable[[int], bool] = lambda n_tokens: False,
    watch: Callable[[int], None] = lambda n_tokens: None,
) -> Record:
    """The same for a machine that runs no programs; ``enough`` is told the number of tokens."""
    chunks, limit = [np.array(run.prompt, np.int64)], ""
    try:
        for ids in run.chunks():
            chunks.append(ids.astype(np.int64))
            watch(run.n_tokens)
            if enough(run.n_tokens):
                break
    except LimitError as error:
        limit = str(error)
    return Record(run.checkpoint, np.concatenate(chunks), len(run.prompt), None, limit)


def record_trace(
    job: Job,
    checkpoint: Checkpoint,
    args: Sequence[str],
    stdin: bytes,
    chunks: Iterable[Ids],
    enough: Enough = lambda scanner: False,
) -> Record:
    """A trace that is there already, whole or not, up to where ``enough`` says so.

    Raises:
        TraceError: if it is none.
    """
    scanner, read = Scanner(checkpoint.vocabulary, job.program.error_outputs()), []
    for ids in chunks:
        scanner.push(ids)
        read.append(ids)
        if enough(scanner):
            break
    tokens = job.program.input_tokens(args, stdin or own_input(job.program))
    return _record(job, checkpoint, tokens, np.concatenate((NO_TOKENS, *read)), "")


def _record(
    job: Job, checkpoint: Checkpoint, input_tokens: Sequence[str], trace: Ids, limit: str
) -> Record:
    prompt = [*checkpoint.rom, *checkpoint.encode(job.program.tokens)]
    prompt += checkpoint.encode(input_tokens)
    context = Context(job.program, checkpoint, len(prompt), trace)
    tokens = np.concatenate((np.array(prompt, np.int64), trace.astype(np.int64)))
    return Record(checkpoint, tokens, len(prompt), context, limit)

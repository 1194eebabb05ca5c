"""Running a program inside a model: the prompt, the decode loop, and what the trace says.

The model does the computing. This module only puts the prompt together, reads the tokens that
come back, and stops where the model writes ``halt`` or a trap.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from compiler.errors import LimitError, Place, UsageError
from compiler.program import START, Program
from compiler.values import Number
from executor.backtrace import backtrace
from executor.call import I32, Call, Prototype
from executor.checkpoint import Checkpoint
from executor.config import AUTO
from executor.decode import Engine, Ids, extend_chunks, make_engine
from executor.job import Job, ProgramSource, own_input, prepare
from executor.kept_prompt import feed_prompt
from executor.loading import ModelSource, open_checkpoint, refusal
from executor.process import resident_bytes
from executor.resume import RunIdentity, feed_saved, open_run
from executor.scan import Scanner, Written
from executor.trace import Event, Kind, TraceError, read_trace

TRAP_EXIT, LIMIT_EXIT, ERROR_EXIT = 134, 124, 125
"""Exit codes of a run that trapped, reached a limit, or failed in our hands."""

KEPT_TOKENS = 1 << 24
"""Tokens of a trace that are kept without being asked to; two bytes each, as a rule."""

ASKED = "the limit of tokens that was asked for"

NO_TOKENS = np.zeros(0, np.int32)


@dataclass(frozen=True)
class Limits:
    """When to give up: tokens of trace, and bytes of memory that the process holds."""

    tokens: int | None = None
    memory: int | None = None


NO_LIMITS = Limits()


@dataclass(frozen=True)
class Chunk:
    """A piece of a trace: its ids, and what the program wrote meanwhile.

    Attributes:
        ids: the tokens.
        output: the bytes that went to standard output.
        written: stream (``isa.STANDARD_OUTPUT`` or ``STANDARD_ERROR``) and bytes, in order.
    """

    ids: Ids
    output: bytes = b""
    written: tuple[Written, ...] = ()


@dataclass(frozen=True)
class RunResult:
    """What one run did.

    Attributes:
        output, errors: the bytes that the program wrote to standard output and standard error.
        exit_code: the low byte of the value that the program returned or gave to ``exit``, as a
            shell sees it; 0 for a program without one and where ``call=`` returns; 134 after a
            trap.
        trap: the reason of a trap in the words of the WebAssembly suite, else None.
        value: the number that the program or the called function returned, None for none. A
            float has the value that was returned, whatever its type.
        n_prompt, n_trace: tokens of the prompt and of the trace.
        places: after a trap, where it was and the calls that led there, the innermost first.
    """

    output: bytes
    errors: bytes
    exit_code: int
    trap: str | None
    value: Number | None
    n_prompt: int
    n_trace: int
    places: tuple[Place, ...]
    _tokens: tuple[npt.NDArray[Any], ...] | None = field(repr=False)
    _vocabulary: tuple[str, ...] = field(repr=False)

    @property
    def trace(self) -> Iterator[str]:
        """The trace's tokens from the start, as spellings. Kept as two bytes a token.

        Raises:
            UsageError: if there were more than ``KEPT_TOKENS`` and nobody asked to keep them.
        """
        vocabulary = self._vocabulary
        return (vocabulary[token] for chunk in self.chunks for token in chunk.tolist())

    @property
    def chunks(self) -> tuple[Ids, ...]:
        """The same as ids, in the chunks in which they came. Raises as ``trace`` does."""
        if self._tokens is None:
            raise UsageError(
                f"the trace of {self.n_trace:,} tokens was not kept; keep_trace=True keeps it"
            )
        return tuple(chunk.astype(np.int32) for chunk in self._tokens)

    @property
    def events(self) -> Iterator[Event]:
        """The trace by instructions."""
        return read_trace(self.trace)


class Execution:
    """One run in progress: iterate over ``chunks()`` to get the trace as the model writes it.

    >>> execution = Execution(program, checkpoint, program.input_tokens())  # doctest: +SKIP
    >>> for chunk in execution.chunks():  # doctest: +SKIP
    ...     print(chunk.output)
    >>> execution.result().exit_code  # doctest: +SKIP

    Attributes:
        reader: stack, output, unfinished tokens and end of the trace so far.
        vocabulary: spelling of each id.
        n_prompt: tokens of the prompt.
        saved: the run checkpoint that this run goes on from, None for none.
    """

    def __init__(
        self,
        program: Program,
        checkpoint: Checkpoint,
        input_tokens: Sequence[str],
        *,
        engine: str | Callable[[], Engine] = AUTO,
        limits: Limits = NO_LIMITS,
        call: Prototype | None = None,
        keep_trace: bool | None = None,
        resume: Path | None = None,
        keep_source: Path | None = None,
        say: Callable[[str], None] | None = None,
    ) -> None:
        """Args:
            engine: a name, or what makes an engine (:func:`executor.decode.engine_maker`).
            keep_source, say: see :func:`executor.decode.make_engine`.
            limits: where the run stops with a LimitError.
            call: the function that was compiled as the entry, if it is not the program's own.
            keep_trace: whether the result has the trace; None for traces that are not too long.
            resume: a run checkpoint to go on from. Its tokens come first, as if just written.

        Raises:
            UsageError: for an engine that is unknown or not for these weights, or a run checkpoint
                of another run.
            LimitError: if the prompt alone, the memory or the locals are more than the model is
                made for.
            TransputerError: if the model does not know a token of the prompt.
        """
        self._program = program
        self._call = call
        self._config = checkpoint.config
        reason = refusal(self._config, program)
        if reason is not None:
            raise LimitError(reason)
        self.vocabulary = checkpoint.vocabulary
        self._prompt = array("i", [*checkpoint.rom, *checkpoint.encode(program.tokens)])
        self._n_program = len(self._prompt)
        self._prompt.extend(checkpoint.encode(input_tokens))
        self.n_prompt = len(self._prompt)
        self._limit, self._limit_reason = length_limit(checkpoint, self.n_prompt, limits.tokens)
        self._memory = limits.memory
        self._checkpoint = checkpoint
        self.saved = open_run(resume, self.identity) if resume is not None else None
        options = {} if say is None else {"say": say}
        self._engine = (
            make_engine(engine, checkpoint, keep_source=keep_source, **options)
            if isinstance(engine, str)
            else engine()
        )
        self._keep = keep_trace
        self._kept: list[npt.NDArray[Any]] | None = None if keep_trace is False else []
        self._dtype = np.uint16 if checkpoint.config.vocab_size <= 1 << 16 else np.uint32
        self.reader = Scanner(checkpoint.vocabulary, program.error_outputs())

    @cached_property
    def identity(self) -> RunIdentity:
        """Of model and prompt, for run checkpoints."""
        return RunIdentity.of(self._checkpoint, self._prompt)

    def chunks(self) -> Iterator[Chunk]:
        """Run to the end; once only. Chunks are empty while the model reads its prompt.

        Raises:
            LimitError: if a limit, or the longest run of the model, is reached first.
            TraceError: if the model writes what is no trace, after the tokens up to there.
        """
        if self.saved is not None:
            for ids in self.saved.chunks():
                yield from self._read(ids)
        if self.reader.end is None and not self._limit_reached():
            for _ in self._feed():
                yield Chunk(NO_TOKENS)
                self._check_memory()
            rest = None if self._limit is None else self._limit - self.reader.n_tokens
            stop = frozenset(self._config.stop_tokens)
            for ids in extend_chunks(self._engine, self._last, stop, rest):
                yield from self._read(ids)
                if self.reader.end is None:
                    self._check_memory()
        if self.reader.end is None:
            if not self._limit_reached():
                raise TraceError("the model stops where its trace has not ended")
            raise self._stopped(self._limit_reason)

    def _read(self, ids: Ids) -> Iterator[Chunk]:
        """Follow what these tokens say, and hand them on."""
        before, output = self.reader.n_tokens, b""
        wrong: TraceError | None = None
        try:
            output = self.reader.push(ids)
        except TraceError as error:
            wrong = error
            ids = ids[: self.reader.n_tokens - before]
        if self._kept is not None:
            self._kept.append(ids.astype(self._dtype))
            if self._keep is None and self.reader.n_tokens > KEPT_TOKENS:
                self._kept = None
        yield Chunk(ids, output, self.reader.take_written())
        if wrong is not None:
            raise wrong
        most = self._config.max_stack
        if most is not None and self.reader.deepest > most:
            raise self._stopped(f"this model is made for {most} values on the operand stack")

    def _feed(self) -> Iterator[int]:
        """Feed prompt and saved tokens, all but the last, which becomes ``_last``."""
        yield from feed_prompt(self._engine, self._checkpoint, self._prompt[:-1], self._n_program)
        self._last = self._prompt[-1]
        if self.saved is not None:
            self._last = yield from feed_saved(self._engine, self._last, self.saved)

    def _limit_reached(self) -> bool:
        return self._limit is not None and self.reader.n_tokens >= self._limit

    def _check_memory(self) -> None:
        if self._memory is not None and (held := resident_bytes()) > self._memory:
            raise self._stopped(
                f"{held:,} bytes of memory are in use, the limit that was asked for is "
                f"{self._memory:,}"
            )

    def _stopped(self, reason: str) -> LimitError:
        return LimitError(
            f"{self._program.name}: stopped after {self.reader.n_tokens:,} tokens: {reason}"
        )

    def result(self) -> RunResult:
        """What the run did, once it has ended in ``halt`` or a trap."""
        end = self.reader.end
        if end is None:
            raise RuntimeError("the run has not ended")
        trap = self._trap() if end.kind is Kind.TRAP else None
        value = None if trap else self._value()
        code = value if self._call is None or self._exited else 0
        return RunResult(
            output=bytes(self.reader.output),
            errors=bytes(self.reader.errors),
            exit_code=TRAP_EXIT if trap else int(code or 0) & 0xFF,
            trap=trap,
            value=None if self._call is not None and self._exited else value,
            n_prompt=self.n_prompt,
            n_trace=self.reader.n_tokens,
            places=self._places() if trap else (),
            _tokens=None if self._kept is None else tuple(self._kept),
            _vocabulary=self.vocabulary,
        )

    def _trap(self) -> str | None:
        """What the token says; for an ``unreachable`` of the compiler's, what that checks."""
        end, at = self.reader.end, self.reader.instruction
        reason = None if at is None else self._program.trap_reason(at)
        return reason or (end.trap if end else None)

    def _places(self) -> tuple[Place, ...]:
        at, origins = self.reader.instruction, self._program.origins
        if at is None or not all(site < len(origins) for site in (at, *self.reader.calls)):
            return ()
        return tuple(backtrace(self._program, at, self.reader.calls))

    @property
    def _exited(self) -> bool:
        """Whether a module's run ended by ``transputer.exit``, not by its entry's return."""
        at, origins = self.reader.instruction, self._program.origins
        return at is not None and at < len(origins) and origins[at].function != START

    def _value(self) -> Number | None:
        """What is on top of the stack at ``halt``, where the program leaves a value there.

        A module's entry without a result leaves one only through ``transputer.exit``.
        """
        stack, program = self.reader.stack, self._program
        if program.has_result and not stack:
            raise TraceError(f"{program.name}: the trace halts with an empty stack")
        if not stack or not (program.has_result or program.wasm):
            return None
        kind = I32 if self._call is None or self._exited else self._call.result
        if kind is None:
            return None
        words = stack[-1:] if kind.bits <= 32 else stack[-2:]
        if kind.bits > 32 and len(words) < 2:
            raise TraceError(f"{program.name}: the trace halts with half a value")
        return kind.from_bits(sum(word << 32 * half for half, word in enumerate(words)))


def length_limit(
    checkpoint: Checkpoint, n_prompt: int, asked: int | None, words: str = ASKED
) -> tuple[int | None, str]:
    """Length of trace at which to stop, and why there: ``words`` for the one that is ``asked``."""
    longest = checkpoint.config.max_tokens
    if longest is None:
        return asked, words
    reason = f"this model is made for {longest:,} tokens, prompt included"
    if n_prompt >= longest:
        raise LimitError(f"the prompt has {n_prompt:,} tokens; {reason}")
    if asked is None or longest - n_prompt <= asked:
        return longest - n_prompt, reason
    return asked, words


def run(
    program: ProgramSource,
    args: Sequence[str] = (),
    stdin: bytes = b"",
    *,
    call: Call | None = None,
    model: ModelSource = None,
    engine: str = AUTO,
    max_tokens: int | None = None,
    max_memory: int | None = None,
    keep_trace: bool | None = None,
) -> RunResult:
    """Run a program inside the model to its end.

    Args:
        program: a compiled program, or a path or bytes for ``compile_program``.
        args: ``argv[1]`` and so on, for a program that takes arguments.
        stdin: all the input it can read; empty for what a .tok file says itself, if it does.
        call: ``("gcd", 48, 36)`` runs this function of a C file, or export of a .wasm, instead
            of the program's entry; ``value`` of the result is what it returns.
        model: a loaded model, the folder of one, or None for the default machine.
        engine: ``native``, ``hull``, ``standard`` or ``torch``; they give the same tokens.
            ``auto`` is ``native``, or ``hull`` (with a warning) where no C compiler works.
        max_tokens: tokens of trace after which to give up.
        max_memory: bytes of memory, of the whole process, beyond which to give up.
        keep_trace: whether the result has the trace; None for one of up to ``KEPT_TOKENS``.

    Raises:
        CompileError: if the program cannot be compiled exactly.
        LimitError: if a limit or the model's longest run is reached.
        UsageError: for arguments that make no sense.
        TransputerError: for a damaged model, and whatever else is told in one line.
    """
    job = prepare(program, call)
    limits = Limits(max_tokens, max_memory)
    execution = start(
        job, args, stdin, model=model, engine=engine, limits=limits, keep_trace=keep_trace
    )
    for _ in execution.chunks():
        pass
    return execution.result()


def start(
    job: Job,
    args: Sequence[str],
    stdin: bytes,
    *,
    model: ModelSource,
    engine: str,
    limits: Limits = NO_LIMITS,
    keep_trace: bool | None = None,
) -> Execution:
    """An execution of a prepared job, not yet begun; the arguments are those of :func:`run`."""
    return Execution(
        job.program,
        open_checkpoint(model, "softmax" if engine == "torch" else "hard"),
        job.program.input_tokens(args, stdin or own_input(job.program)),
        engine=engine,
        limits=limits,
        call=job.prototype,
        keep_trace=keep_trace,
    )

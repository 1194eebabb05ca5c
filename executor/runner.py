"""Running a program inside a model: the prompt, the decode loop, and what the trace says.

The model does the computing. This module only puts the prompt together, reads the tokens that
come back, and stops where the model writes ``halt`` or a trap.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from compiler.errors import LimitError, UsageError
from compiler.program import Program
from executor.call import I32, Call, Prototype, prototype, split_call
from executor.checkpoint import Checkpoint
from executor.decode import decode, make_engine
from executor.loading import ModelSource, open_checkpoint
from executor.trace import Event, Kind, TraceError, TraceReader, read_trace

TRAP_EXIT, LIMIT_EXIT, ERROR_EXIT = 134, 124, 125
"""Exit codes of a run that trapped, reached a limit, or failed in our hands."""

Path = str | os.PathLike[str]
ProgramSource = Program | Path | bytes | Sequence[Path]
"""A compiled program, or what ``compile_program`` takes: a path, several C files that make one
program, or the bytes of a .wasm."""


@dataclass(frozen=True)
class RunResult:
    """What one run did.

    Attributes:
        output: the bytes that the program wrote.
        exit_code: the low byte of the value that the program returned, as a shell sees it; 0
            for a program without one and for ``call=``; 134 after a trap.
        trap: the reason of a trap in the words of the WebAssembly suite, else None.
        value: the number that the program or the called function returned, None for none.
        n_prompt, n_trace: tokens of the prompt and of the trace.
    """

    output: bytes
    exit_code: int
    trap: str | None
    value: int | None
    n_prompt: int
    n_trace: int
    _tokens: array[int] = field(repr=False)
    _vocabulary: tuple[str, ...] = field(repr=False)

    @property
    def trace(self) -> Iterator[str]:
        """The trace's tokens from the start, as spellings. Kept as two bytes a token."""
        vocabulary = self._vocabulary
        return (vocabulary[token] for token in self._tokens)

    @property
    def events(self) -> Iterator[Event]:
        """The trace by instructions."""
        return read_trace(self.trace)


class Execution:
    """One run in progress: iterate over it to get the events as the model writes them.

    >>> execution = Execution(program, checkpoint, program.input_tokens())  # doctest: +SKIP
    >>> for event in execution:  # doctest: +SKIP
    ...     print(event)
    >>> execution.result().exit_code  # doctest: +SKIP

    Attributes:
        reader: stack, output, unfinished tokens and end of the trace so far.
        n_prompt: tokens of the prompt.
    """

    def __init__(
        self,
        program: Program,
        checkpoint: Checkpoint,
        input_tokens: Sequence[str],
        *,
        engine: str = "hull",
        max_tokens: int | None = None,
        call: Prototype | None = None,
    ) -> None:
        """Args:
            engine: see :func:`executor.decode.make_engine`.
            max_tokens: tokens of trace after which the run stops with a LimitError.
            call: the function that was compiled as the entry, if it is not the program's own.

        Raises:
            UsageError: for an engine that is unknown or not for these weights.
            LimitError: if the prompt alone is longer than the model is made for.
            TransputerError: if the model does not know a token of the prompt.
        """
        self._program = program
        self._call = call
        self._checkpoint = checkpoint
        self._engine = make_engine(engine, checkpoint)
        self._prompt = [
            *checkpoint.rom,
            *checkpoint.encode(program.tokens),
            *checkpoint.encode(input_tokens),
        ]
        self._limits = _limits(checkpoint, len(self._prompt), max_tokens)
        self._tokens = array("H" if checkpoint.config.vocab_size <= 1 << 16 else "L")
        self.reader = TraceReader()
        self.n_prompt = len(self._prompt)

    @property
    def trace(self) -> Iterator[str]:
        """The tokens so far, as spellings."""
        vocabulary = self._checkpoint.vocabulary
        return (vocabulary[token] for token in self._tokens)

    def __iter__(self) -> Iterator[Event]:
        """Run to the end; once only.

        Raises:
            LimitError: if ``max_tokens`` or the longest run is reached first.
            TraceError: if the model writes what is no trace.
        """
        vocabulary = self._checkpoint.vocabulary
        stop = frozenset(self._checkpoint.config.stop_tokens)
        limit = min(self._limits, default=None)
        keep, push = self._tokens.append, self.reader.push
        for token in decode(self._engine, self._prompt, stop, limit):
            keep(token)
            event = push(vocabulary[token])
            if event is not None:
                yield event
        if self.reader.end is None:
            assert limit is not None
            raise LimitError(
                f"{self._program.name}: stopped after {limit} tokens: {self._limits[limit]}"
            )

    def result(self) -> RunResult:
        """What the run did, once it has ended in ``halt`` or a trap."""
        end = self.reader.end
        if end is None:
            raise RuntimeError("the run has not ended")
        trap = end.trap if end.kind is Kind.TRAP else None
        value = None if trap else self._value()
        code = 0 if value is None or self._call else value & 0xFF
        return RunResult(
            output=bytes(self.reader.output),
            exit_code=TRAP_EXIT if trap else code,
            trap=trap,
            value=value,
            n_prompt=self.n_prompt,
            n_trace=len(self._tokens),
            _tokens=self._tokens,
            _vocabulary=self._checkpoint.vocabulary,
        )

    def _value(self) -> int | None:
        """The top of the stack at ``halt``, where the program leaves a value there.

        A module's entry without a result leaves one only through ``transputer.exit``.
        """
        stack, program = self.reader.stack, self._program
        if program.has_result and not stack:
            raise TraceError(f"{program.name}: the trace halts with an empty stack")
        if not stack or not (program.has_result or program.wasm):
            return None
        if self._call is not None:
            return None if self._call.result is None else self._call.result.from_i32(stack[-1])
        return I32.from_i32(stack[-1])


def _limits(checkpoint: Checkpoint, n_prompt: int, max_tokens: int | None) -> dict[int, str]:
    """Lengths of trace at which to stop, and why."""
    limits = {}
    longest = checkpoint.config.max_tokens
    if longest is not None:
        reason = f"this model is made for {longest} tokens, prompt included"
        if n_prompt >= longest:
            raise LimitError(f"the prompt has {n_prompt} tokens; {reason}")
        limits[longest - n_prompt] = reason
    if max_tokens is not None:
        limits.setdefault(max_tokens, "the limit of tokens that was asked for")
    return limits


@dataclass(frozen=True)
class Job:
    """A program ready to run: compiled, and the function that is called, if not its own entry."""

    program: Program
    call: Call | None = None
    prototype: Prototype | None = None


def prepare(
    program: ProgramSource,
    call: Call | None = None,
    *,
    opt: str = "-O2",
    include: Sequence[Path] = (),
    define: Sequence[str] = (),
    clang: Path | None = None,
) -> Job:
    """Compile what is not compiled yet, for its own entry or for a call.

    Args:
        opt, include, define, clang: for C, see ``compile_program``.

    Raises:
        UsageError: for a call that does not fit the function's prototype.
        CompileError: from the compiler.
    """
    from compiler import compile_program, compile_wasm

    def compiled(call: Call | None = None) -> Program:
        if not isinstance(program, Program):
            return compile_program(
                program, call=call, opt=opt, include=include, define=define, clang=clang
            )
        if call is None:
            return program
        if not program.wasm:
            raise UsageError(f"{program.name}: a token program has no functions to call")
        return compile_wasm(program.wasm, program.name, call=call)

    if call is None:
        return Job(compiled())
    name, arguments = split_call(call)
    if isinstance(program, Program | bytes):
        kind = Prototype(name)
    else:
        sources = [program] if isinstance(program, str | os.PathLike) else program
        kind = prototype(sources, name, opt=opt, include=include, define=define, clang=clang)
    kind.check(arguments)
    return Job(compiled(call), call, kind)


def own_input(program: Program) -> bytes:
    """The input that stands in a .tok file, empty for other programs."""
    stdin = program.report.get("stdin", b"")
    return stdin if isinstance(stdin, bytes) else b""


def run(
    program: ProgramSource,
    args: Sequence[str] = (),
    stdin: bytes = b"",
    *,
    call: Call | None = None,
    model: ModelSource = None,
    engine: str = "hull",
    max_tokens: int | None = None,
) -> RunResult:
    """Run a program inside the model to its end.

    Args:
        program: a compiled program, or a path or bytes for ``compile_program``.
        args: ``argv[1]`` and so on, for a program that takes arguments.
        stdin: all the input it can read; empty for what a .tok file says itself, if it does.
        call: ``("gcd", 48, 36)`` runs this function of a C file, or export of a .wasm, instead
            of the program's entry; ``value`` of the result is what it returns.
        model: a loaded model, the folder of one, or None for the default machine.
        engine: ``hull``, ``standard`` or ``torch``; they give the same tokens.
        max_tokens: tokens of trace after which to give up.

    Raises:
        CompileError: if the program cannot be compiled exactly.
        LimitError: if ``max_tokens`` or the model's longest run is reached.
        UsageError: for arguments that make no sense.
        TransputerError: for a damaged model, and whatever else is told in one line.
    """
    job = prepare(program, call)
    execution = start(job, args, stdin, model=model, engine=engine, max_tokens=max_tokens)
    for _ in execution:
        pass
    return execution.result()


def start(
    job: Job,
    args: Sequence[str],
    stdin: bytes,
    *,
    model: ModelSource,
    engine: str,
    max_tokens: int | None,
) -> Execution:
    """An execution of a prepared job, not yet begun; the arguments are those of :func:`run`."""
    return Execution(
        job.program,
        open_checkpoint(model, "softmax" if engine == "torch" else "hard"),
        job.program.input_tokens(args, stdin or own_input(job.program)),
        engine=engine,
        max_tokens=max_tokens,
        call=job.prototype,
    )

"""``transputer run``: the program's own output as it comes, its exit code, traces and limits."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

from compiler.errors import TransputerError, UsageError
from compiler.program import Program
from executor.call import parse_call
from executor.files import PendingFile
from executor.loading import open_checkpoint
from executor.progress import ProgressLine
from executor.runner import Execution, Job, RunResult, own_input, prepare
from executor.trace import Kind


def compile_job(options: argparse.Namespace) -> Job:
    """Compile what a command line names."""
    files = [options.file, *options.more]
    return prepare(
        files if options.more else options.file,
        parse_call(options.call) if options.call else None,
        opt=f"-O{options.opt}",
        include=tuple(options.include),
        define=tuple(options.define),
        clang=options.clang,
    )


def start(options: argparse.Namespace, job: Job, stdin: bytes) -> Execution:
    """Load the model, put the prompt together."""
    return Execution(
        job.program,
        open_checkpoint(options.model, "softmax" if options.engine == "torch" else "hard"),
        job.program.input_tokens(options.args, stdin),
        engine=options.engine,
        max_tokens=options.max_tokens,
        call=job.prototype,
    )


def read_input(file: str | None, program: Program) -> bytes:
    """All input of a program: a file, or our own standard input if the program can read any.

    A terminal is not read: the whole input must be there before the run starts.

    Raises:
        UsageError: if the file cannot be read.
    """
    if file is not None and file != "-":
        try:
            return Path(file).read_bytes()
        except OSError as error:
            raise UsageError(f"{file}: cannot be read: {error.strerror or error}") from None
    own = own_input(program)
    if file is None and (own or "input" not in program.tokens):
        return own
    if sys.stdin is None or (file is None and sys.stdin.isatty()):
        return b""
    return sys.stdin.buffer.read()


class TraceSink:
    """Where a trace goes: nowhere, standard output, or a file that appears when it is whole.

    A context manager; leaving it by an exception, Ctrl-C included, keeps what was written.

    Raises:
        UsageError: if the file cannot be written.
    """

    def __init__(self, target: str | None) -> None:
        self._target = target or ""
        self._pending: PendingFile | None = None
        self._out: BinaryIO | None = sys.stdout.buffer if target == "-" else None

    def __enter__(self) -> Self:
        if self._target and self._out is None:
            try:
                self._pending = PendingFile(self._target)
            except OSError as error:
                raise self._unwritable(error) from None
            self._out = self._pending.file
        return self

    def write(self, line: object) -> None:
        """One instruction's tokens."""
        if self._out is not None:
            self._out.write(f"{line}\n".encode("ascii"))

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._pending is not None:
            try:
                self._pending.keep()
            except OSError as failure:
                raise self._unwritable(failure) from None

    def _unwritable(self, error: OSError) -> UsageError:
        return UsageError(f"{self._target}: cannot be written: {error.strerror or error}")


def run_verb(options: argparse.Namespace) -> int:
    """The verb ``run``; the program's exit code."""
    job = compile_job(options)
    stdin = read_input(options.stdin, job.program)
    execution = start(options, job, stdin)
    only_trace = options.trace == "-"
    with TraceSink(options.trace) as sink:
        _follow(execution, sink, only_trace)
    result = execution.result()
    if result.trap is not None:
        print(f"transputer: trap: {_trap_place(job.program, result)}", file=sys.stderr)
    elif job.call is not None and result.value is not None and not only_trace:
        print(result.value, flush=True)
    if options.check:
        from executor.checking import compare

        checked = compare(job, result, options.args, stdin)
        if not checked.agrees:
            raise TransputerError("\n".join((checked.summary, *checked.differences)))
        print(f"transputer: {checked.summary}", file=sys.stderr)
    return result.exit_code


def _follow(execution: Execution, sink: TraceSink, only_trace: bool) -> None:
    """Run to the end; output, trace and progress as it goes."""
    progress = ProgressLine()
    out = sys.stdout.buffer
    try:
        for event in execution:
            sink.write(event)
            if event.kind is Kind.OUTPUT and not only_trace:
                byte = bytes((event.value,))
                progress.hide(byte)
                out.write(byte)
                out.flush()
            progress.tick(execution.reader.n_tokens)
    except BaseException:
        if execution.reader.pending:  # a partial trace ends in a partial instruction
            sink.write(" ".join(execution.reader.pending))
        raise
    finally:
        progress.hide()


def _trap_place(program: Program, result: RunResult) -> str:
    from executor.replay import replay

    last = None
    for step in replay(program, result.trace):
        last = step
    return f"{result.trap} at {last.where}" if last else f"{result.trap}"

"""``transputer run``: the program's own output as it comes, its exit code, traces and limits."""

from __future__ import annotations

import argparse
import contextlib
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

from compiler.errors import TransputerError, UsageError
from compiler.options import COptions
from compiler.program import Program
from executor.backtrace import called_from
from executor.call import parse_call
from executor.cli_machine import own_machine, run_machine
from executor.config import AUTO
from executor.decode import Engine, Ids, early_maker
from executor.dialogue import Display, converse, reads_input
from executor.job import Job, own_input, prepare
from executor.loading import open_checkpoint
from executor.process import Interrupts, patience, say
from executor.resume import INTERVAL, RunRecorder
from executor.runner import Execution, Limits, RunResult
from executor.trace_file import STDOUT, TraceFile

EngineSource = str | Callable[[], Engine]
"""The name of an engine, or what makes one."""


def compile_job(options: argparse.Namespace) -> Job:
    """Compile what a command line names, and pass on what the C compiler warns of."""
    files = [options.file, *options.more]
    with patience(f"compiling {options.file}; the first time, the C library too"):
        job = prepare(
            files if options.more else options.file,
            None if options.call is None else parse_call(options.call),
            **c_options(options),
        )
    warnings = job.program.report.get("warnings")
    if warnings:
        with contextlib.suppress(OSError):
            print(str(warnings).rstrip(), file=sys.stderr, flush=True)
    return job


def c_options(options: argparse.Namespace) -> COptions:
    """What a command line says about C and C++."""
    return {
        "opt": f"-O{options.opt}",
        "include": tuple(options.include),
        "define": tuple(options.define),
        "flags": options.cflags,
        "clang": options.clang,
        "sysroot": options.sysroot,
        "libc": options.libc,
        "stack_bytes": options.stack,
        "memory_bytes": options.memory,
    }


def begin_engine(options: argparse.Namespace) -> EngineSource:
    """The engine that a command line asks for: its name, or where nobody says how it is made, what
    makes it. That is begun now, beside what comes before the run."""
    if options.engine != AUTO or options.keep_source is not None or options.max_memory is not None:
        return str(options.engine)
    options.model = open_checkpoint(options.model)
    return early_maker(options.model, say)


def start(
    options: argparse.Namespace,
    job: Job,
    stdin: bytes,
    engine: EngineSource,
    *,
    keep_trace: bool = False,
    resume: str | None = None,
) -> Execution:
    """Load the model and make its engine, put the prompt together."""
    checkpoint = open_checkpoint(options.model, "softmax" if options.engine == "torch" else "hard")
    return Execution(
        job.program,
        checkpoint,
        job.program.input_tokens(options.args, stdin),
        engine=engine,
        limits=Limits(options.max_tokens, options.max_memory),
        call=job.prototype,
        keep_trace=keep_trace,
        resume=None if resume is None else Path(resume),
        keep_source=None if options.keep_source is None else Path(options.keep_source),
        say=say,
    )


def read_input(file: str | None, program: Program) -> bytes:
    """All input of a program: a file, or our own standard input, to its end, if the program can
    read any.

    Raises:
        UsageError: if the file cannot be read.
    """
    if file is not None and file != "-":
        return read_file(file)
    own = own_input(program)
    if file is None and (own or not reads_input(program)):
        return own
    if sys.stdin is None:
        return b""
    if sys.stdin.isatty():
        say("type the input; Ctrl-D ends it")
    return sys.stdin.buffer.read()


def read_file(file: str) -> bytes:
    """All of a file. Raises UsageError."""
    try:
        return Path(file).read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{file}: cannot be read: {reason}") from None


def trace_chunks(options: argparse.Namespace, job: Job) -> tuple[tuple[str, ...], Iterable[Ids]]:
    """The vocabulary and a trace by chunks of its ids: as the model writes it, or from a file."""
    if options.trace:
        from executor.trace_file import read_ids

        vocabulary = open_checkpoint(options.model).vocabulary
        return vocabulary, read_ids(options.trace, vocabulary)
    stdin = read_input(options.stdin, job.program)
    execution = start(options, job, stdin, begin_engine(options))
    return execution.vocabulary, (chunk.ids for chunk in execution.chunks())


def run_verb(options: argparse.Namespace) -> int:
    """The verb ``run``; the program's exit code."""
    if options.batch is not None:
        from executor.cli_batch import batch_verb

        return batch_verb(options)
    if options.jobs is not None:
        raise UsageError("--jobs is for many runs: name a file of them with --batch")
    machine = own_machine(options)
    if machine is not None:
        return run_machine(options, machine)
    engine = begin_engine(options)
    job = compile_job(options)
    only_trace = options.trace == STDOUT
    display = Display(output=not only_trace)
    finished = None
    if _at_a_terminal(options, job.program):
        stdin, finished = converse(
            partial(start, options, job, engine=engine), job.program, display
        )
    else:
        stdin = read_input(options.stdin, job.program)
    if finished is not None and not (options.check or options.trace or options.checkpoint):
        execution = finished
    else:
        execution = start(
            options, job, stdin, engine, keep_trace=options.check, resume=options.resume
        )
        _run(options, execution, display)
    result = execution.result()
    if result.trap is not None:
        warn_of_debug_information(job.program)
        say(f"trap: {_trap_place(execution, result)}")
    elif job.call is not None and result.value is not None and not only_trace:
        kind = job.prototype.result if job.prototype else None
        print(kind.text(result.value) if kind else result.value, flush=True)
    if options.check:
        from executor.checking import compare

        checked = compare(job, result, options.args, stdin)
        if not checked.agrees:
            raise TransputerError("\n".join((checked.summary, *checked.differences)))
        say(checked.summary)
    return result.exit_code


def _at_a_terminal(options: argparse.Namespace, program: Program) -> bool:
    """Whether the program reads what somebody types meanwhile."""
    asked = options.stdin is None and options.resume is None and not own_input(program)
    return asked and sys.stdin is not None and sys.stdin.isatty() and reads_input(program)


def _run(options: argparse.Namespace, execution: Execution, display: Display) -> None:
    """Run to the end; output, trace, checkpoints and progress as it goes."""
    if execution.saved is not None:
        say(f"goes on after {execution.saved.n_tokens:,} tokens from {options.resume}")
    with (
        Interrupts() as interrupts,
        TraceFile(options.trace, execution.vocabulary) as trace,
        _recorder(options, execution) as recorder,
    ):
        _follow(execution, trace, recorder, interrupts, display)


def _recorder(
    options: argparse.Namespace, execution: Execution
) -> contextlib.AbstractContextManager[RunRecorder | None]:
    if options.checkpoint is None:
        return contextlib.nullcontext()
    interval = options.checkpoint_every or INTERVAL
    return RunRecorder(options.checkpoint, execution.identity, execution.saved, interval)


def _follow(
    execution: Execution,
    trace: TraceFile,
    recorder: RunRecorder | None,
    interrupts: Interrupts,
    display: Display,
) -> None:
    reader = execution.reader
    saved = execution.saved.n_tokens if execution.saved else 0
    display.restart()
    try:
        for chunk in execution.chunks():
            trace.write(chunk.ids)
            if recorder is not None:
                recorder.write(chunk.ids)
            display.show(chunk.written)
            display.progress.tick(reader.n_tokens, reading=reader.n_tokens == saved)
            interrupts.check()
    finally:
        display.progress.hide()


def _trap_place(execution: Execution, result: RunResult) -> str:
    """The reason of a trap, the instruction that it came from, and the calls that led there."""
    places, index = result.places, execution.reader.instruction
    if places:
        return f"{result.trap} at {places[0].where}{called_from(places)}"
    return f"{result.trap} at instruction {index}" if index is not None else str(result.trap)


def warn_of_debug_information(program: Program) -> None:
    """Say that lines of the source will be missing, where the module's debug information is
    damaged."""
    if program.source_map.problem:
        say(f"{program.name}: {program.source_map.problem}")

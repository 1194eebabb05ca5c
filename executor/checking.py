"""The model against wasmtime, and where they differ, the first instruction that did.

Two references: wasmtime says what the module does (output, trap, value, memory); the token
program interpreter (:mod:`executor.oracle`) says which tokens that takes, and what memory they
leave. The model's trace is followed beside the interpreter's, so a wrong token is found at once,
not at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, zip_longest
from typing import TYPE_CHECKING

from compiler import isa
from compiler.program import Program
from compiler.values import bits_of
from executor.call import I32, Call
from executor.config import AUTO
from executor.job import Job, ProgramSource, own_input, prepare
from executor.loading import ModelSource
from executor.oracle import Oracle
from executor.replay import Replay
from executor.runner import Execution, Limits, RunResult, start
from executor.trace import TABLES, TraceError

if TYPE_CHECKING:
    from executor.reference import ReferenceResult


CONTINUING = frozenset({isa.BRANCH_TAKEN, *TABLES.bytes, *TABLES.digits})
"""Tokens that do not end an instruction."""
ENDED = "(the trace has ended)"
EXHAUSTED = isa.TRAPS["trap.stack_exhausted"]
BATCH = 1 << 12
"""Tokens that are compared at once."""


@dataclass(frozen=True)
class CheckResult:
    """What a comparison found.

    Attributes:
        agrees: no difference was found.
        differences: one text each, the first differing instruction first.
        summary: what was compared, in one line.
        result: the run inside the model; None if it went wrong before its end.
        reference: wasmtime's; None for a token program, which has no module.
    """

    agrees: bool
    differences: tuple[str, ...]
    summary: str
    result: RunResult | None
    reference: ReferenceResult | None


def check(
    program: ProgramSource,
    args: Sequence[str] = (),
    stdin: bytes = b"",
    *,
    call: Call | None = None,
    model: ModelSource = None,
    engine: str = AUTO,
    max_tokens: int | None = None,
    max_memory: int | None = None,
) -> CheckResult:
    """Run a program inside the model and compare everything with wasmtime.

    The arguments, and the errors raised, are those of :func:`executor.run`.
    """
    job = prepare(program, call)
    stdin = stdin or own_input(job.program)
    limits = Limits(max_tokens, max_memory)
    execution = start(job, args, stdin, model=model, engine=engine, limits=limits)
    return check_execution(job, execution, args, stdin)


def check_execution(
    job: Job, execution: Execution, args: Sequence[str], stdin: bytes
) -> CheckResult:
    """Run to the end, or to the first wrong token, and compare."""
    followed = follow(job.program, args, stdin, _chunks(execution))
    if followed.difference:
        summary = f"differs after {execution.reader.n_tokens:,} tokens"
        return CheckResult(False, (followed.difference,), summary, None, None)
    return _compare(job, execution.result(), args, stdin, followed)


def compare(job: Job, result: RunResult, args: Sequence[str], stdin: bytes) -> CheckResult:
    """Compare a finished run, whose trace was kept, with both references."""
    followed = follow(job.program, args, stdin, _batches(result.trace))
    return _compare(job, result, args, stdin, followed)


def _compare(
    job: Job, result: RunResult, args: Sequence[str], stdin: bytes, followed: Followed
) -> CheckResult:
    program = job.program
    differences = [followed.difference] if followed.difference else []
    compared = [f"{result.n_trace:,} tokens"]
    reference = None
    if program.wasm:
        from executor.reference import run_reference

        content = program.input_bytes(args, stdin)
        reference = run_reference(program.wasm, input=content, call=job.call, name=program.name)
        compared.append(f"{len(result.output):,} bytes of output")
        if result.errors or reference.errors:
            compared.append(f"{len(result.errors):,} bytes of errors")
        compared.append("exit code")
        differences += against(result, reference, job)
        # How deep calls can nest is each machine's own, so what was done on the way may differ.
        exhausted = result.trap == reference.trap == EXHAUSTED
        if reference.memory and not exhausted:
            compared.append(f"{len(reference.memory):,} bytes of memory")
            if not followed.difference:
                tokens = program.input_tokens(args, stdin)
                differences += _memory(program, tokens, followed.memory, reference.memory)
    name = "wasmtime" if program.wasm else "the interpreter of token programs"
    verdict = "differs from" if differences else "agrees with"
    summary = f"{verdict} {name}: {', '.join(compared)}"
    return CheckResult(not differences, tuple(differences), summary, result, reference)


@dataclass(frozen=True)
class Followed:
    """A trace followed beside the interpreter of token programs.

    Attributes:
        difference: the first instruction whose tokens are not the interpreter's, as a text; empty
            for none.
        memory: what the interpreter's stores left, which are the trace's if there is no difference.
    """

    difference: str
    memory: bytes


def follow(
    program: Program, args: Sequence[str], stdin: bytes, chunks: Iterable[Sequence[str]]
) -> Followed:
    """Follow a trace, given in chunks, to its end or to the first wrong token."""
    given = program.input_tokens(args, stdin)
    oracle = Oracle(program, given)
    expected = oracle.trace()
    count = 0
    for chunk in chunks:
        right = list(islice(expected, len(chunk)))
        if right != chunk:
            pairs = zip_longest(right, chunk)
            at = next(i for i, (ours, theirs) in enumerate(pairs) if ours != theirs)
            return Followed(_difference(program, given, count + at, chunk[at]), b"")
        count += len(chunk)
    if next(expected, None) is not None:
        return Followed(_difference(program, given, count, ENDED), b"")
    return Followed("", oracle.memory[: oracle.memory_size])


def _difference(program: Program, input_tokens: Sequence[str], at: int, wrong: str) -> str:
    """The instruction of trace token ``at``, where ``wrong`` stands, as a text."""
    expected = Oracle(program, input_tokens).trace()
    state = Replay(program)
    for token in islice(expected, at):
        state.push(token)
    begun = state.reader.pending
    wanted = [*begun, next(expected, ENDED)]
    while wanted[-1] in CONTINUING and (right := next(expected, None)):
        wanted.append(right)
    return (
        f"trace token {at + 1} differs, in {state.next_place}:\n"
        f"  expected: {' '.join(wanted)}\n"
        f"  model:    {' '.join((*begun, wrong))}"
    )


def _chunks(execution: Execution) -> Iterator[list[str]]:
    """The trace as it is written; ends early if it turns out not to be one."""
    vocabulary = execution.vocabulary
    try:
        for chunk in execution.chunks():
            yield [vocabulary[token] for token in chunk.ids.tolist()]
    except TraceError:
        return


def _batches(tokens: Iterator[str]) -> Iterator[list[str]]:
    while batch := list(islice(tokens, BATCH)):
        yield batch


def against(result: RunResult, reference: ReferenceResult, job: Job) -> Iterator[str]:
    """What differs between a run and the reference's, but for the memory; one text each."""
    for stream, written, expected in (
        ("output", result.output, reference.output),
        ("standard error", result.errors, reference.errors),
    ):
        if result.trap == reference.trap == EXHAUSTED:
            shorter = min(len(written), len(expected))
            written, expected = written[:shorter], expected[:shorter]
        if written != expected:
            at = next(i for i, (a, b) in enumerate(zip_longest(written, expected)) if a != b)
            ours, theirs = written[at : at + 16], expected[at : at + 16]
            yield f"{stream} byte {at}: model {ours!r}, wasmtime {theirs!r}"
    if result.trap != reference.trap:
        yield f"trap: model {result.trap or 'none'}, wasmtime {reference.trap or 'none'}"
    elif result.exit_code != reference.exit_code:
        yield f"exit code: model {result.exit_code}, wasmtime {reference.exit_code}"
    else:
        kind = job.prototype.result if job.prototype else I32
        wanted = reference.value
        if kind is not None and wanted is not None:
            wanted = kind.from_bits(bits_of(kind.letter, wanted))
        if kind is not None and repr(result.value) != repr(wanted):
            yield f"value: model {result.value}, wasmtime {wanted}"


def _memory(
    program: Program, input_tokens: Sequence[str], memory: bytes, expected: bytes
) -> Iterator[str]:
    if program.grows:  # what it may grow to stands ready from the beginning, all zeros
        expected = expected.ljust(len(memory), b"\0")
    if len(memory) != len(expected):
        yield f"memory size: model {len(memory)}, wasmtime {len(expected)} bytes"
    if memory == expected:
        return
    at = next((i for i, (a, b) in enumerate(zip(memory, expected, strict=False)) if a != b), None)
    if at is not None:
        by = _last_writer(program, input_tokens, at)
        yield f"memory at {at}: model {memory[at]:#04x}, wasmtime {expected[at]:#04x}, {by}"


def _last_writer(program: Program, input_tokens: Sequence[str], address: int) -> str:
    """Found in the interpreter's trace, which is the model's where this is asked."""
    state = Replay(program)
    writer = None
    for token in Oracle(program, input_tokens).trace():
        step = state.push(token)
        if step is not None and state.stored is not None and address in state.stored:
            writer = step
    return f"last written by {writer.place.where}" if writer else "never written by the program"

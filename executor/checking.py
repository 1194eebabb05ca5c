"""The model against wasmtime, and where they differ, the first instruction that did.

Two references: wasmtime says what the module does (output, trap, value, memory); the token
program interpreter (:mod:`executor.oracle`) says which tokens that takes. The model's trace is
followed beside the interpreter's, so a wrong token is found at once, not at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from compiler import isa
from compiler.program import Program
from executor.call import Call
from executor.loading import ModelSource
from executor.replay import Replay
from executor.runner import Execution, Job, ProgramSource, RunResult, own_input, prepare, start
from executor.trace import TABLES, TraceError

if TYPE_CHECKING:
    from executor.reference import ReferenceResult


CONTINUING = frozenset({isa.BRANCH_TAKEN, *TABLES.bytes, *TABLES.digits})
"""Tokens that do not end an instruction."""


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
    engine: str = "hull",
    max_tokens: int | None = None,
) -> CheckResult:
    """Run a program inside the model and compare everything with wasmtime.

    The arguments, and the errors raised, are those of :func:`executor.run`.
    """
    job = prepare(program, call)
    stdin = stdin or own_input(job.program)
    execution = start(job, args, stdin, model=model, engine=engine, max_tokens=max_tokens)
    return check_execution(job, execution, args, stdin)


def check_execution(
    job: Job, execution: Execution, args: Sequence[str], stdin: bytes
) -> CheckResult:
    """Run to the end, or to the first wrong token, and compare."""
    difference = first_difference(job.program, args, stdin, _tokens(execution))
    if difference is not None:
        summary = f"differs after {execution.reader.n_tokens} tokens"
        return CheckResult(False, (difference,), summary, None, None)
    return compare(job, execution.result(), args, stdin)


def compare(job: Job, result: RunResult, args: Sequence[str], stdin: bytes) -> CheckResult:
    """Compare a finished run with both references."""
    program = job.program
    differences = []
    difference = first_difference(program, args, stdin, result.trace)
    if difference is not None:
        differences.append(difference)
    compared = [f"{result.n_trace} tokens"]
    reference = None
    if program.wasm:
        from executor.reference import run_reference

        reference = run_reference(
            program.wasm,
            input=program.input_bytes(args, stdin),
            call=job.call,
            name=program.name,
        )
        compared.append(f"{len(result.output)} bytes of output, exit code")
        differences += _against(result, reference, job)
        if reference.memory:
            compared.append(f"{len(reference.memory)} bytes of memory")
            differences += _memory(program, result, reference.memory)
    name = "wasmtime" if program.wasm else "the interpreter of token programs"
    verdict = "differs from" if differences else "agrees with"
    summary = f"{verdict} {name}: {', '.join(compared)}"
    return CheckResult(not differences, tuple(differences), summary, result, reference)


def first_difference(
    program: Program, args: Sequence[str], stdin: bytes, tokens: Iterable[str]
) -> str | None:
    """The first instruction whose tokens are not the interpreter's, as a text; None for none."""
    from executor.oracle import trace

    expected = trace(program, program.input_tokens(args, stdin))
    state = Replay(program)
    wanted: list[str] = []
    written: list[str] = []
    for right, token in zip_longest(expected, tokens):
        wanted.append(right or "(the trace has ended)")
        written.append(token or "(the trace has ended)")
        if right is None or right != token:
            while wanted[-1] in CONTINUING and (right := next(expected, None)):
                wanted.append(right)
            return (
                f"trace token {state.reader.n_tokens + 1} differs, in {state.next_place}:\n"
                f"  expected: {' '.join(wanted)}\n"
                f"  model:    {' '.join(written)}"
            )
        if state.push(token) is not None:
            wanted, written = [], []
    return None


def _tokens(execution: Execution) -> Iterator[str]:
    """The trace as it is written; ends early if it turns out not to be one."""
    try:
        for event in execution:
            yield from event.tokens
    except TraceError:
        yield from execution.reader.pending


def _against(result: RunResult, reference: ReferenceResult, job: Job) -> Iterator[str]:
    if result.output != reference.output:
        pairs = zip_longest(result.output, reference.output)
        at = next(i for i, (ours, theirs) in enumerate(pairs) if ours != theirs)
        ours, theirs = result.output[at : at + 16], reference.output[at : at + 16]
        yield f"output byte {at}: model {ours!r}, wasmtime {theirs!r}"
    if result.trap != reference.trap:
        yield f"trap: model {result.trap or 'none'}, wasmtime {reference.trap or 'none'}"
    elif job.call is None and result.exit_code != reference.exit_code:
        yield f"exit code: model {result.exit_code}, wasmtime {reference.exit_code}"
    elif result.value is not None and _bits(result.value) != _bits(reference.value):
        yield f"value: model {result.value}, wasmtime {reference.value}"


def _bits(value: int | None) -> int | None:
    return None if value is None else value & 0xFFFFFFFF


def _memory(program: Program, result: RunResult, expected: bytes) -> Iterator[str]:
    state = Replay(program)
    for token in result.trace:
        state.push(token)
    memory = bytes(state.memory)
    if len(memory) != len(expected):
        yield f"memory size: model {len(memory)}, wasmtime {len(expected)} bytes"
    at = next((i for i, (a, b) in enumerate(zip(memory, expected, strict=False)) if a != b), None)
    if at is not None:
        by = _last_writer(program, result, at)
        yield f"memory at {at}: model {memory[at]:#04x}, wasmtime {expected[at]:#04x}, {by}"


def _last_writer(program: Program, result: RunResult, address: int) -> str:
    state = Replay(program)
    writer = None
    for token in result.trace:
        step = state.push(token)
        if step is not None and state.stored is not None and address in state.stored:
            writer = step
    return f"last written by {writer.where}" if writer else "never written by the program"

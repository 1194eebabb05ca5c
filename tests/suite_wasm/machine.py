"""Runs a token program to its end, in the model or in the interpreter of token programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from compiler import isa
from compiler.errors import LimitError
from compiler.program import Program
from executor.checkpoint import Checkpoint
from executor.oracle import Oracle
from executor.replay import replay
from executor.runner import Execution, Limits
from executor.trace import Kind

ORACLE = "oracle"
MOST_TOKENS = 50_000_000
"""Tokens of a run after which it counts as failed."""


@dataclass(frozen=True)
class Ending:
    """How a run ended.

    Attributes:
        trap: the reason, None for a normal end.
        stack: the operand stack, unsigned.
        n_tokens: of the trace.
        trace: makes the tokens of the trace, as long as it is not too long to be kept.
    """

    trap: str | None
    stack: Sequence[int]
    n_tokens: int
    trace: Callable[[], Iterable[str]]


def run(program: Program, engine: str, checkpoint: Checkpoint | None) -> Ending:
    """Run ``program``, which reads no input.

    Raises:
        LimitError: after ``MOST_TOKENS``.
    """
    if engine == ORACLE or checkpoint is None:
        oracle = Oracle(program, program.input_tokens())
        for number, _ in enumerate(oracle.trace()):
            if number >= MOST_TOKENS:
                raise LimitError(f"{program.name}: no end after {MOST_TOKENS} tokens")
        again = Oracle(program, program.input_tokens())
        return Ending(oracle.trap, oracle.stack, oracle.n_tokens, again.trace)
    execution = Execution(
        program, checkpoint, program.input_tokens(), engine=engine, limits=Limits(MOST_TOKENS)
    )
    for _ in execution.chunks():
        pass
    reader, result = execution.reader, execution.result()
    trap = result.trap
    if trap is not None and reader.instruction is not None:
        trap = program.trap_reason(reader.instruction) or trap
    return Ending(trap, reader.stack, result.n_trace, lambda: result.trace)


def writes_of_last_call(program: Program, trace: Iterable[str]) -> int:
    """How many stores and assignments to globals the last of the program's calls made."""
    count = 0
    for step in replay(program, trace):
        if step.place.function == "(start)":
            count = 0
        elif step.event.kind is Kind.VALUE:
            name = step.instruction.name
            count += name in isa.STORES or name == "global.set"
    return count

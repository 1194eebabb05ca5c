"""A plain interpreter of token programs that says which tokens the model must write.

It reads the same tokens as the model does (the program and the input, without the machine's own
tables) and shares no code with the compiler or the machine, so that a mistake in one of them shows
up as a difference. ``docs/trace-format.md`` specifies what it implements.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compiler import isa
from compiler.errors import LimitError
from compiler.legalise_words import from_words, widths
from compiler.program import Program
from compiler.values import Number, value_of
from executor.oracle_code import Decoded, UndefinedError, decode_prompt
from executor.oracle_rules import RULES, Tokens

TRAP_EXIT_CODE = 134
_CHUNK = 12
"""Memory is noted as written in pieces of 2^12 bytes."""


@dataclass(frozen=True)
class OracleResult:
    """What an execution left.

    Attributes:
        output, errors: the bytes it wrote to standard output and standard error.
        exit_code: low eight bits of the value, 0 if there is none, 134 after a trap.
        trap: the reason, in the words of ``isa.TRAPS`` and ``program.TRAP_REASONS``; None for a
            normal end.
        value: what is on top of the stack at the end, if the program has a result; integers signed.
        memory: address and value of every byte that is not zero.
        steps: instructions executed.
        n_tokens: tokens of the trace.
    """

    output: bytes
    errors: bytes
    exit_code: int
    trap: str | None
    value: Number | None
    memory: dict[int, int]
    steps: int
    n_tokens: int


class Oracle:
    """One execution of a token program.

    Attributes:
        stack: operand stack, unsigned values, top last.
        depth: calls that have not returned.
        index: the instruction that is being executed.
        output, errors: bytes written so far, by stream.
        trap: reason of the trap that ended it.
        steps, n_tokens: instructions executed and tokens written so far.
    """

    def __init__(self, program: Program, input_tokens: Sequence[str]) -> None:
        self.program = program
        self.prompt = [*program.tokens, *input_tokens]
        self.code: Decoded = decode_prompt(program)
        self.memory_size = self.code.memory_size
        self.memory = mmap.mmap(-1, self.memory_size + 4)
        self.touched = {address >> _CHUNK for address in self.code.data}
        for address, value in self.code.data.items():
            self.memory[address] = value
        self.stack: list[int] = []
        self.frames: list[dict[int, int]] = [{}]
        self.calls: list[int] = []
        self.depth = 0
        self.index = 0
        self.output = bytearray()
        self.errors = bytearray()
        self.trap: str | None = None
        self.ended = False
        self.steps = 0
        self.n_tokens = 0

    def trace(self) -> Iterator[str]:
        """The tokens of the trace, as they are written.

        Raises:
            UndefinedError: the program does what has no meaning (reads a local that was never
                written, takes from an empty stack, leaves the code).

        Some 10^6 tokens a second.
        """
        code = [(RULES[name], immediate) for name, immediate in self.code.instructions]
        position = self.index
        while not self.ended:
            if not 0 <= self.index < len(code):
                raise self._undefined("the cursor leaves the code", position)
            position = self.index
            rule, immediate = code[position]
            self.index += 1  # a rule that jumps changes it again
            self.steps += 1
            try:
                tokens: Tokens = rule(self, immediate)
            except (IndexError, KeyError):
                reason = "a value is read that was never written"
                raise self._undefined(reason, position) from None
            self.n_tokens += len(tokens)
            yield from tokens

    def jump(self, offset: int) -> None:
        """Go on ``offset`` tokens from the instruction that is being executed."""
        index, inside = divmod(offset, isa.INSTRUCTION_TOKENS)
        if inside:
            raise self._undefined("a jump into the middle of an instruction", self.index - 1)
        self.index += index - 1

    def enter(self) -> None:
        """One call deeper. What an earlier call left in the locals of this depth is still there."""
        self.depth += 1
        if self.depth == len(self.frames):
            self.frames.append({})

    def input(self, position: int) -> int:
        """The input byte at a position of the prompt, -1 at its end."""
        if position >= len(self.prompt):
            raise self._undefined("the input is read beyond its end", self.index - 1)
        token = self.prompt[position]
        if token == isa.END_OF_INPUT:
            return -1
        if token not in self.code.inputs:
            raise self._undefined(f"the input is read at {token!r}", self.index - 1)
        return self.code.inputs[token]

    def touch(self, address: int) -> None:
        """Note that up to four bytes at ``address`` have been written."""
        self.touched.add(address >> _CHUNK)
        self.touched.add((address + 3) >> _CHUNK)

    def result(self) -> OracleResult:
        """What the execution left; call it at the end of the trace."""
        value: Number | None = None
        if self.program.has_result and self.trap is None and self.stack:
            type_ = self.program.results or "i"
            (bits,) = from_words(type_, self.stack[-widths(type_) :])
            value = value_of(type_, bits)
        code = value & 0xFF if isinstance(value, int) else 0
        return OracleResult(
            output=bytes(self.output),
            errors=bytes(self.errors),
            exit_code=TRAP_EXIT_CODE if self.trap else code,
            trap=self.trap,
            value=value,
            memory=self._nonzero(),
            steps=self.steps,
            n_tokens=self.n_tokens,
        )

    def _nonzero(self) -> dict[int, int]:
        found: dict[int, int] = {}
        for chunk in sorted(self.touched):
            start = chunk << _CHUNK
            content = self.memory[start : min(start + (1 << _CHUNK), self.memory_size)]
            found.update((start + i, value) for i, value in enumerate(content) if value)
        return found

    def _undefined(self, reason: str, position: int) -> UndefinedError:
        """The error of the instruction at ``position``."""
        name, immediate = "no instruction", 0
        if position < len(self.code.instructions):
            name, immediate = self.code.instructions[position]
        return UndefinedError(
            f"{self.program.name}: {reason} (instruction {position}: {name} {immediate:#x})"
        )


def trace(program: Program, input_tokens: Sequence[str], limit: int | None = None) -> Iterator[str]:
    """The expected trace of ``program`` on an input given as tokens (``Program.input_tokens``).

    Args:
        limit: tokens after which to give up.

    Raises:
        LimitError: after ``limit`` tokens without an end.
        UndefinedError: see :meth:`Oracle.trace`.
    """
    yield from _limited(Oracle(program, input_tokens), limit)


def trace_tokens(
    program: Program,
    args: Sequence[str] = (),
    stdin: bytes = b"",
    limit: int | None = None,
) -> Iterator[str]:
    """The expected trace of ``program`` with these arguments and this input; see :func:`trace`."""
    return trace(program, program.input_tokens(args, stdin), limit)


def execute(
    program: Program,
    args: Sequence[str] = (),
    stdin: bytes = b"",
    limit: int | None = None,
) -> OracleResult:
    """Run ``program`` to its end and say what it left; errors as for :func:`trace`."""
    oracle = Oracle(program, program.input_tokens(args, stdin))
    for _ in _limited(oracle, limit):
        pass
    return oracle.result()


def _limited(oracle: Oracle, limit: int | None) -> Iterator[str]:
    if limit is None:
        yield from oracle.trace()
        return
    for number, token in enumerate(oracle.trace()):
        if number >= limit:
            raise LimitError(f"{oracle.program.name}: no end after {limit} tokens")
        yield token

"""What each token of a sequence is: a row of the tables, part of the program, input, or trace.

In: a program, a model, and the tokens of a run. Out: a few words for each position, such as
"written by i32.add at gcd.c:9". They come from the program and the trace, not from the model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compiler import isa
from compiler.errors import UsageError
from compiler.program import Program
from executor.checkpoint import Checkpoint
from executor.scan import Scanner
from executor.trace import TABLES


@dataclass(frozen=True)
class Source:
    """Where a token comes from.

    Attributes:
        part: ``table``, ``program``, ``input`` or ``trace``.
        step: of a trace's token: the number of the executed instruction that it belongs to, as
            ``transputer trace`` counts them; else -1.
        instruction: the program's instruction that the token is part of, or that wrote it, -1 for
            none.
        text: in words.
    """

    part: str
    step: int
    instruction: int
    text: str


class Context:
    """The tokens of one run of a program, by position.

    Attributes:
        program: what runs.
        n_prompt: tokens of tables, program and input.
        ends: for each executed instruction the position of its last token.
        outputs: the positions of the tokens that write to standard output.
        indices: for each executed instruction its number in the program, then that of the next.
    """

    def __init__(
        self, program: Program, checkpoint: Checkpoint, n_prompt: int, trace: NDArray[np.int32]
    ) -> None:
        """Args:
        trace: ids of the trace, without the prompt.
        """
        self.program = program
        self.n_prompt = n_prompt
        self._tables = len(checkpoint.rom)
        self._code = self._tables + program.tokens.index(isa.OPEN) + 1
        self._input = self._tables + len(program.tokens)
        at, self.indices = Scanner(checkpoint.vocabulary).steps_in(trace)
        self.ends = at + n_prompt
        written = np.array([token in TABLES.outputs for token in checkpoint.vocabulary])
        errors = np.isin(self.indices[:-1], sorted(program.error_outputs()))
        self.outputs: list[int] = self.ends[written[trace[at]] & ~errors].tolist()
        self._n_instructions = (self._input - 1 - self._code) // isa.INSTRUCTION_TOKENS

    def tokens_of(self, step: int) -> range:
        """The positions of what an executed instruction wrote.

        Raises:
            UsageError: if there were fewer.
        """
        if not 0 <= step < len(self.ends):
            raise UsageError(f"the trace has {len(self.ends):,} instructions, from 0 on, no {step}")
        first = self.n_prompt if step == 0 else int(self.ends[step - 1]) + 1
        return range(first, int(self.ends[step]) + 1)

    def source(self, position: int) -> Source:
        """Where the token at a position comes from."""
        if position < self._tables:
            return Source("table", -1, -1, "a row of the tables")
        if position < self._input:
            return self._program(position)
        if position < self.n_prompt:
            last = position == self.n_prompt - 1
            number = position - self._input
            return Source("input", -1, -1, "the end of the input" if last else f"input {number}")
        step = int(np.searchsorted(self.ends, position))
        index = int(self.indices[step])
        return Source("trace", step, index, f"written by {self.instruction(index)}")

    def instruction(self, index: int) -> str:
        """An instruction of the program and its place: ``i32.add at gcd.c:9``."""
        if not 0 <= index < self._n_instructions:
            return "no instruction"
        opcode = self.program.tokens[self._at(index)]
        place = self.program.place(index)
        if place.source:
            return f"{opcode} at {place.source}"
        if place.number < 0 or not place.function:
            where = f"in {place.function}" if place.function else f"(instruction {index})"
            return f"{opcode} {where}"
        made_of = "" if place.instruction.startswith(opcode) else f" ({place.instruction})"
        return f"{opcode} at {place.function}+{place.number}{made_of}"

    def line(self, index: int) -> str:
        """The line of the source that an instruction comes from: ``gcd.c:9: a = b;``."""
        place = self.program.place(index)
        return f"{place.source}: {place.text.strip()}" if place.text else ""

    def _at(self, index: int) -> int:
        """The index in the program's tokens of an instruction's opcode."""
        return self._code - self._tables + isa.INSTRUCTION_TOKENS * index

    def _program(self, position: int) -> Source:
        index, part = divmod(position - self._code, isa.INSTRUCTION_TOKENS)
        if position < self._code - 1:
            return Source("program", -1, -1, "initial memory")
        if position == self._code - 1:
            return Source("program", -1, -1, "where the program begins")
        if position == self._input - 1:
            return Source("program", -1, -1, "where the program ends")
        what = "opcode" if part == 0 else f"immediate byte {part - 1}"
        return Source("program", -1, index, f"{what} of {self.instruction(index)}")

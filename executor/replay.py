"""A trace laid beside its program: which instruction wrote which tokens, and the memory.

The trace says what happened (values, depths, relative jumps), the program says which
instruction it was. Nothing is computed here: values come from the trace, and where the two do
not fit together that is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from compiler import isa
from compiler.errors import Place
from compiler.program import Program
from executor.oracle_code import decode_prompt
from executor.trace import Event, Kind, TraceError, TraceReader

if TYPE_CHECKING:
    from executor.watch import MemoryWatch

_CAN_TRAP = frozenset({*isa.LOADS, *isa.STORES, *isa.DIVISIONS, "call"})
DIVISION_TOKENS = 9
SHOWN = 3
"""Stack values that a step tells."""


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a token program: opcode and immediate (unsigned)."""

    name: str
    immediate: int

    def __str__(self) -> str:
        signed = self.immediate - (1 << 32) if self.immediate >> 31 else self.immediate
        return f"{self.name} {signed}"


@dataclass(frozen=True, slots=True)
class Step:
    """One executed instruction.

    Attributes:
        index: its number in the program.
        instruction, place, event: itself, where it is from, its tokens.
        stack: the topmost values that it leaves, at most ``SHOWN``, the top last.
        depth: how many there are in all.
        address: where it reads or writes memory, None if it does not.
    """

    index: int
    instruction: Instruction
    place: Place
    event: Event
    stack: tuple[int, ...] = ()
    depth: int = 0
    address: int | None = None


class Replay:
    """Follows a trace through its program.

    Attributes:
        reader: stack, output and end of the trace so far.
        memory: the linear memory as the trace's stores leave it.
        index: the instruction that comes next.
        n_steps: instructions that have been executed.
        stored: the addresses that the last instruction wrote, None if it was no store.
    """

    def __init__(self, program: Program, at: MemoryWatch | None = None, n_steps: int = 0) -> None:
        """Args:
        at: what is known after ``n_steps`` instructions, to go on from there; None to begin.
        """
        self._program = program
        code = decode_prompt(program)
        self._instructions = tuple(Instruction(*pair) for pair in code.instructions)
        self._places: dict[int, Place] = {}
        self.reader = TraceReader()
        self.memory = bytearray(code.memory_size)
        for address, value in code.data.items():
            self.memory[address] = value
        self.index = 0
        self.n_steps = n_steps
        self.stored: range | None = None
        if at is not None:
            self._go_on(at)

    def _go_on(self, at: MemoryWatch) -> None:
        reader = self.reader
        reader.stack, reader.output, reader.end = [*at.stack], bytearray(at.output), at.end
        reader.n_tokens, reader.call_depth = at.n_tokens, len(at.calls)
        self.memory = bytearray(at.memory.tobytes())
        self.index = -1 if at.instruction is None else at.instruction

    @property
    def next_place(self) -> str:
        """The instruction that comes next and where it is from, for messages."""
        if not 0 <= self.index < len(self._instructions):
            return "no instruction of the program"
        return f"{self._instructions[self.index]}, {self._program.place(self.index).where}"

    def push(self, token: str) -> Step | None:
        """Read one token; the step it completes, if it does.

        Raises:
            TraceError: if the trace is malformed or is not one of this program.
        """
        before = self.reader.stack[-2:]
        event = self.reader.push(token)
        if event is None:
            return None
        step = self.current(event)
        self._check(step)
        self.stored = None
        name, values = step.instruction.name, event.kind is Kind.VALUE
        if values and name in isa.STORES:
            self.stored = self._store(step, before[0])
            step = replace(step, address=self.stored.start)
        elif values and name in isa.LOADS:
            step = replace(step, address=before[-1] + step.instruction.immediate)
        self.index = self._next(event)
        self.n_steps += 1
        return step

    def steps(self, tokens: Iterable[str]) -> Iterator[Step]:
        """The steps that these tokens complete; errors as for :meth:`push`."""
        for token in tokens:
            step = self.push(token)
            if step is not None:
                yield step

    def current(self, event: Event) -> Step:
        """The step that ``event`` makes of the instruction that comes next."""
        if not 0 <= self.index < len(self._instructions):
            raise TraceError(f"trace token {event.position + 1}: the program has ended")
        if self.index not in self._places:
            self._places[self.index] = self._program.place(self.index)
        stack, place = self.reader.stack, self._places[self.index]
        return Step(
            self.index,
            self._instructions[self.index],
            place,
            event,
            tuple(stack[-SHOWN:]),
            len(stack),
        )

    def _check(self, step: Step) -> None:
        event, name = step.event, step.instruction.name
        opcode = isa.OPCODES[name]
        kinds = {
            isa.Shape.VALUE: (Kind.VALUE,),
            isa.Shape.BRANCH: (Kind.BRANCH, Kind.COMMIT) if name == "br_if" else (Kind.BRANCH,),
            isa.Shape.CALL: (Kind.CALL,),
            isa.Shape.RETURN: (Kind.RETURN,),
        }.get(opcode.shape)
        if kinds is None:
            single = {"drop": Kind.COMMIT, "output": Kind.OUTPUT, "halt": Kind.HALT}
            kinds = (single.get(name, Kind.TRAP),)
        if event.kind is Kind.TRAP and name in _CAN_TRAP:
            return
        divides = len(event.tokens) == DIVISION_TOKENS
        fits = event.kind in kinds and event.delta == opcode.delta
        if fits and event.stores == opcode.stores and divides == (name in isa.DIVISIONS):
            return
        raise TraceError(
            f"trace token {event.position + 1}: '{event}' does not come from "
            f"{step.instruction}, {step.place.where}"
        )

    def _store(self, step: Step, address: int) -> range:
        width = isa.STORES[step.instruction.name]
        start = address + step.instruction.immediate
        if start + width > len(self.memory):
            raise TraceError(
                f"trace token {step.event.position + 1}: a store to {start}, outside the "
                f"{len(self.memory)} bytes of memory, that does not trap, {step.place.where}"
            )
        self.memory[start : start + width] = step.event.value.to_bytes(4, "little")[:width]
        return range(start, start + width)

    def _next(self, event: Event) -> int:
        if event.kind in (Kind.BRANCH, Kind.CALL):
            offset = event.signed
        elif event.kind is Kind.RETURN:
            offset = -event.signed
        else:
            return self.index + 1
        index, rest = divmod(offset, isa.INSTRUCTION_TOKENS)
        if rest:
            raise TraceError(f"trace token {event.position + 1}: a jump into an instruction")
        return self.index + index


def replay(program: Program, tokens: Iterable[str]) -> Iterator[Step]:
    """The steps of a trace of ``program``; see :class:`Replay`."""
    return Replay(program).steps(tokens)

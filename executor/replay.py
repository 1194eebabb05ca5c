"""A trace laid beside its program: which instruction wrote which tokens, and the memory.

The trace says what happened (values, depths, relative jumps), the program says which
instruction it was. Nothing is computed here: values come from the trace, and where the two do
not fit together that is an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from compiler import isa
from compiler.program import Origin, Program
from executor.oracle_code import decode_prompt
from executor.trace import Event, Kind, TraceError, TraceReader

_CAN_TRAP = frozenset({*isa.LOADS, *isa.STORES, *isa.DIVISIONS, "call"})
DIVISION_TOKENS = 9


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
    """One executed instruction: its index in the program, itself, its origin, its tokens."""

    index: int
    instruction: Instruction
    origin: Origin | None
    event: Event

    @property
    def where(self) -> str:
        """``main+12: i32.add``, as far as it is known."""
        return place(self.index, self.origin)


def place(index: int, origin: Origin | None) -> str:
    """``main+12: i32.add`` where the origin of instruction ``index`` is known."""
    if origin is None:
        return f"instruction {index}"
    number = f"+{origin.index}" if origin.index >= 0 else ""
    return f"{origin.function}{number}: {origin.instruction}"


class Replay:
    """Follows a trace through its program.

    Attributes:
        reader: stack, output and end of the trace so far.
        memory: the linear memory as the trace's stores leave it.
        index: the instruction that comes next.
        stored: the addresses that the last instruction wrote, None if it was no store.
    """

    def __init__(self, program: Program) -> None:
        self._program = program
        code = decode_prompt(program)
        self._instructions = tuple(Instruction(*pair) for pair in code.instructions)
        self.reader = TraceReader()
        self.memory = bytearray(code.memory_size)
        for address, value in code.data.items():
            self.memory[address] = value
        self.index = 0
        self.stored: range | None = None

    @property
    def next_place(self) -> str:
        """The instruction that comes next and where it is from, for messages."""
        if not 0 <= self.index < len(self._instructions):
            return "no instruction of the program"
        origins = self._program.origins
        origin = origins[self.index] if self.index < len(origins) else None
        instruction = self._instructions[self.index]
        return f"{instruction} ({place(self.index, origin)})"

    def push(self, token: str) -> Step | None:
        """Read one token; the step it completes, if it does.

        Raises:
            TraceError: if the trace is malformed or is not one of this program.
        """
        stack = self.reader.stack[-2:]
        event = self.reader.push(token)
        if event is None:
            return None
        step = self.current(event)
        self._check(step)
        self.stored = None
        if step.instruction.name in isa.STORES and event.kind is Kind.VALUE:
            self.stored = self._store(step, stack[0])
        self.index = self._next(event)
        return step

    def current(self, event: Event) -> Step:
        """The step that ``event`` makes of the instruction that comes next."""
        if not 0 <= self.index < len(self._instructions):
            raise TraceError(f"trace token {event.position + 1}: the program has ended")
        origins = self._program.origins
        origin = origins[self.index] if self.index < len(origins) else None
        return Step(self.index, self._instructions[self.index], origin, event)

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
            f"{step.instruction} ({step.where})"
        )

    def _store(self, step: Step, address: int) -> range:
        width = isa.STORES[step.instruction.name]
        start = address + step.instruction.immediate
        if start + width > len(self.memory):
            raise TraceError(
                f"trace token {step.event.position + 1}: a store to {start}, outside the "
                f"{len(self.memory)} bytes of memory, that does not trap ({step.where})"
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
    state = Replay(program)
    for token in tokens:
        step = state.push(token)
        if step is not None:
            yield step


def pretty_line(number: int, step: Step) -> str:
    """One aligned line: number in the run, place, instruction, tokens, what they mean."""
    what = f"{step.where:<32}  {step.instruction!s:<22}  {step.event!s:<42}"
    return f"{number:>8}  {what}  {_meaning(step)}".rstrip()


def _meaning(step: Step) -> str:
    event = step.event
    match event.kind:
        case Kind.VALUE:
            return f"= {event.signed}"
        case Kind.BRANCH | Kind.CALL:
            return f"to {step.index + event.signed // isa.INSTRUCTION_TOKENS}"
        case Kind.RETURN:
            return f"to {step.index - event.signed // isa.INSTRUCTION_TOKENS}"
        case Kind.TRAP:
            return event.trap
        case _:
            return ""

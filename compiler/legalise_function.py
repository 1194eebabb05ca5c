"""Legalises the body of one function: its instructions, typed, in; the same on i32 alone out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from compiler.errors import UnsupportedError
from compiler.legalise_float import Float
from compiler.legalise_i64 import Int64
from compiler.legalise_words import Effect, Words, slots, widths, word_types
from compiler.wasm_check import Step
from compiler.wasm_opcodes import SIGNATURES, TYPE_NAMES, access_bytes
from compiler.wasm_types import Function, FuncType, Instruction, Module

CallHook = Callable[[Instruction], tuple[Instruction, ...]]
_EFFECTS = ("memory.grow", "i32.div_s", "i32.div_u", "i32.rem_s", "i32.rem_u")
"""Instructions with a result that change something or trap."""
_CARRIED = "ilfd"


def word_type(type_: FuncType) -> FuncType:
    """A function or block type with pairs of words for 64-bit values."""
    return FuncType(word_types(type_.params), word_types(type_.results))


@dataclass(frozen=True)
class Linkage:
    """What the functions of one module become.

    ``module``: the module that the body belongs to. ``call``: the code that calls a function of
    it. ``runtime``: index and type, in the result, of a function of the runtime. ``globals``: first
    word of each global. ``tables``: the table in which a call of a type finds its functions, by
    the old table and type index.
    """

    module: Module
    call: CallHook
    runtime: Callable[[str], tuple[int, FuncType]]
    globals: tuple[int, ...]
    tables: Mapping[tuple[int, int], int]


def legalise_function(linkage: Linkage, function: Function, body: list[Step]) -> Function:
    """The function on words; ``body`` is what ``check_function`` says about it.

    Raises:
        UnsupportedError: a type that is neither an integer nor a float.
    """
    return _Legaliser(linkage, function).run(body)


@dataclass
class _Frame:
    """An open block: words below it, and its type. ``live``: it is part of the result."""

    depth: int
    type: FuncType
    live: bool


class _Legaliser:
    """Walks the body once; the rules for numbers are in classes of their own."""

    def __init__(self, linkage: Linkage, function: Function) -> None:
        self.linkage = linkage
        self.function = function
        self.slots = slots(function.locals)
        self.words = Words(self.slots[-1])
        self.frames = [_Frame(0, FuncType("", word_types(function.type.results)), True)]
        int64 = Int64(self.words, self._runtime)
        self.rules = {**int64.rules(), **Float(self.words, int64).rules()}
        self.steps: dict[str, Callable[[Step], None]] = {
            "block": self._open, "loop": self._open, "if": self._open, "else": self._else,
            "end": self._end, "br": self._jump, "return": self._jump, "br_table": self._jump,
            "unreachable": self._jump, "br_if": self._branch_if, "nop": lambda step: None,
            "call": self._call, "call_indirect": self._call_indirect, "drop": self._drop,
            "select": self._select, "local.get": self._local_get, "local.set": self._local_set,
            "local.tee": self._local_tee, "global.get": self._global_get,
            "global.set": self._global_set,
        }  # fmt: skip

    def run(self, body: list[Step]) -> Function:
        """Legalise the whole body."""
        types = self.function.locals + self.function.type.results
        for type_ in types:
            if type_ not in _CARRIED:
                raise UnsupportedError(
                    f"{TYPE_NAMES[type_]} is not supported",
                    self.linkage.module.place(self.function),
                    "use integers and floats only",
                )
        for step in body:
            self._step(step)
        code, total = self.words.finish()
        return replace(
            self.function, type=word_type(self.function.type), locals="i" * total, code=tuple(code)
        )

    def _step(self, step: Step) -> None:
        op = step.instruction.op
        self.words.offset = step.instruction.offset
        if op in ("block", "loop", "if", "else", "end"):
            self.steps[op](step)
        elif not step.live or not self.frames[-1].live:
            return
        elif op in self.steps:
            self.steps[op](step)
        elif op in self.rules:
            self.rules[op](step.instruction)
        else:
            self._plain(step.instruction)

    def _plain(self, instruction: Instruction) -> None:
        """An instruction on i32 alone, which stays."""
        op = instruction.op
        signature = SIGNATURES[op]
        pops, pushes = len(signature.pops or ""), len(signature.pushes or "")
        if not pushes or op in _EFFECTS:
            self.words.disturb(instruction, pops, pushes)
        else:
            reads = access_bytes(op) or op in ("memory.size", "table.size")
            self.words.compute(instruction, pops, Effect.READ if reads else Effect.PURE)

    def _runtime(self, name: str) -> None:
        index, type_ = self.linkage.runtime(name)
        call = self.words.instruction("call", index)
        self.words.disturb(call, widths(type_.params), widths(type_.results))

    # --- control flow ------------------------------------------------------------------------

    def _open(self, step: Step) -> None:
        live = step.live and self.frames[-1].live
        type_ = word_type(step.instruction.block or FuncType("", ""))
        if live:
            self.words.forget(step.instruction.op == "if")
            self.words.barrier()
            self.words.emit(replace(step.instruction, block=type_))
        self.frames.append(_Frame(self.words.depth - len(type_.params), type_, live))

    def _else(self, step: Step) -> None:
        frame = self.frames[-1]
        if frame.live:
            self.words.reset(frame.depth, len(frame.type.params))
            self.words.emit(step.instruction)

    def _end(self, step: Step) -> None:
        frame = self.frames.pop()
        if frame.live:
            self.words.reset(frame.depth, len(frame.type.results))
            self.words.emit(step.instruction)

    def _jump(self, step: Step) -> None:
        self.words.emit(step.instruction)

    def _branch_if(self, step: Step) -> None:
        self.words.forget(1)
        self.words.barrier()
        self.words.emit(step.instruction)

    # --- calls -------------------------------------------------------------------------------

    def _call(self, step: Step) -> None:
        type_ = self.linkage.module.functions[step.instruction.args[0]].type
        self.words.forget(widths(type_.params))
        for instruction in self.linkage.call(step.instruction):
            self.words.disturb(instruction, 0, 0)
        self.words.add(widths(type_.results))

    def _call_indirect(self, step: Step) -> None:
        type_index, table = step.instruction.args
        type_ = self.linkage.module.types[type_index]
        table = self.linkage.tables[table, type_index]
        call = replace(step.instruction, args=(type_index, table))
        self.words.disturb(call, widths(type_.params) + 1, widths(type_.results))

    # --- variables ---------------------------------------------------------------------------

    def _local_range(self, step: Step) -> range:
        index = step.instruction.args[0]
        return range(self.slots[index], self.slots[index + 1])

    def _local_get(self, step: Step) -> None:
        for local in self._local_range(step):
            self.words.compute(self.words.instruction("local.get", local), 0)

    def _local_set(self, step: Step) -> None:
        for local in reversed(self._local_range(step)):
            self.words.forget(1)
            self.words.emit(self.words.instruction("local.set", local))
        for local in self._local_range(step):
            self.words.assign(local)

    def _local_tee(self, step: Step) -> None:
        self._local_set(step)
        self._local_get(step)

    def _global_range(self, step: Step) -> range:
        index = step.instruction.args[0]
        first = self.linkage.globals[index]
        return range(first, first + widths(self.linkage.module.globals[index].type))

    def _global_get(self, step: Step) -> None:
        for index in self._global_range(step):
            self.words.compute(self.words.instruction("global.get", index), 0, Effect.READ)

    def _global_set(self, step: Step) -> None:
        for index in reversed(self._global_range(step)):
            self.words.disturb(self.words.instruction("global.set", index), 1, 0)

    # --- parametric --------------------------------------------------------------------------

    def _operand(self, step: Step) -> int:
        """Words of the operand of ``drop`` or ``select``."""
        if step.operand not in _CARRIED:
            place = self.linkage.module.place(self.function, step.instruction)
            raise UnsupportedError(f"{TYPE_NAMES[step.operand]} is not supported", place)
        return widths(step.operand)

    def _drop(self, step: Step) -> None:
        for _ in range(self._operand(step)):
            self.words.drop()

    def _select(self, step: Step) -> None:
        words = self.words
        if self._operand(step) == 1:
            words.compute(words.instruction("select"), 3)
            return
        *operands, condition = words.pop_all(5)
        condition = words.atom(condition)
        low_a, high_a, low_b, high_b = operands
        words.push(
            words.apply("select", low_a, low_b, condition),
            words.apply("select", high_a, high_b, condition),
        )

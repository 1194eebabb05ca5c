"""Lowers one WebAssembly function to basic blocks of native instructions.

Input: the typed body (``wasm_check.py``). A wasm local becomes one native local, one of 64 bits
two; operands stay on the operand stack in the same order. Of i64, f32 and f64 only what moves
values is compiled (constants, loads, stores, locals, bit patterns): C compilers copy structs that
way. Memory instructions are in ``lower_memory.py``, indirect calls in ``lower_tables.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from compiler import isa
from compiler.errors import UnsupportedError
from compiler.lower_code import Block, CodeBuilder
from compiler.lower_context import Context, width
from compiler.lower_memory import MemoryLowering
from compiler.lower_segments import SegmentLowering
from compiler.lower_tables import emit_call, emit_indirect, search
from compiler.program import Origin
from compiler.routines import ROUTINES
from compiler.wasm_check import Edge, Step
from compiler.wasm_opcodes import SIGNATURES, TYPE_NAMES
from compiler.wasm_types import Function, Instruction

_EXTEND_SHIFT = {"i32.extend8_s": 24, "i32.extend16_s": 16}
_MOVED = "ilfd"
"""Types whose values can be moved."""
_REMEDY = "use i32 values only"


def lower_function(
    context: Context, function: Function, source: Sequence[Instruction] = ()
) -> list[Block]:
    """Lower the body of ``function`` to blocks, the entry first.

    Args:
        source: the function's code before it was legalised, which messages talk about.

    Raises:
        UnsupportedError: naming the instruction that the machine cannot run.
    """
    return _Lowering(context, function, source).run()


class _Lowering:
    """Walks the typed body once and emits code for each live instruction."""

    def __init__(self, context: Context, function: Function, source: Sequence[Instruction]) -> None:
        self.context = context
        self.function = function
        self.source = {c.offset: (index, c) for index, c in enumerate(source) if c.offset >= 0}
        widths = [width(type_) for type_ in function.locals]
        self.slots = [0, *accumulate(widths)]
        entry = Origin(function.name, "(entry)", -1, function.offset)
        self.code = CodeBuilder(self.slots[-1], entry)
        self.targets: dict[int, int] = {-1: self.code.label()}
        self.else_labels: dict[int, int] = {}
        self.detours: list[tuple[int, Edge, Origin]] = []
        memory = MemoryLowering(context, function, self.code)
        self.rules: dict[str, Callable[[Step], None]] = {
            "block": self._block, "loop": self._loop, "if": self._if, "else": self._else,
            "end": self._end, "br": self._br, "return": self._br, "br_if": self._br_if,
            "br_table": self._br_table, "call": self._call, "call_indirect": self._call_indirect,
            "nop": lambda step: None, "unreachable": self._unreachable,
            "drop": self._drop, "select": self._select, "local.get": self._local_get,
            "local.set": self._local_set, "local.tee": self._local_tee,
            "global.get": self._global_get, "global.set": self._global_set,
            **memory.rules, **SegmentLowering(context, function, self.code, memory).rules,
        }  # fmt: skip

    def run(self) -> list[Block]:
        """Lower the whole function."""
        for type_ in self.function.type.params + self.function.type.results:
            if type_ not in _MOVED:
                self._refuse_type(f"a parameter or result of type {TYPE_NAMES[type_]}")
        for slot in reversed(range(width(self.function.type.params))):
            self.code.emit("local.set", slot)
        for step in self.context.bodies[self.function.index]:
            self.code.origin = self._origin(step)
            if step.instruction.op in ("block", "loop", "if", "else", "end"):
                self.rules[step.instruction.op](step)
            elif step.live and self.code.live:
                self._instruction(step)
        for label, edge, origin in self.detours:
            self.code.origin = origin
            self.code.place(label)
            self._leave(edge)
        return self.code.blocks

    def _origin(self, step: Step) -> Origin:
        """What the source says here: one of its instructions may have become several."""
        offset = step.instruction.offset
        index, instruction = self.source.get(offset, (step.index, step.instruction))
        text = self.context.module.text(instruction)
        return Origin(self.function.name, text, index, offset)

    def _instruction(self, step: Step) -> None:
        op = step.instruction.op
        rule = self.rules.get(op)
        if rule is not None:
            rule(step)
            return
        signature = SIGNATURES[op]
        for type_ in (signature.pops or "") + (signature.pushes or ""):
            if type_ != "i":
                raise self._refuse(step, f"{TYPE_NAMES[type_]} is not supported")
        if op == "i32.const":
            self.code.emit(op, step.instruction.args[0])
        elif op in isa.OPCODES:
            self.code.emit(op)
        elif op in _EXTEND_SHIFT:
            shift = _EXTEND_SHIFT[op]
            self.code.emit_all(
                [("i32.const", shift), ("i32.shl", 0), ("i32.const", shift), ("i32.shr_s", 0)]
            )
        elif op in ROUTINES:
            self.code.emit("call", callee=op)
        else:
            raise self._refuse(step, "this instruction is not supported")

    def _unreachable(self, step: Step) -> None:
        """The legalising pass says in an argument what it checks."""
        args = step.instruction.args
        self.code.emit("unreachable", args[0] if args else 0)

    # --- refusals ----------------------------------------------------------------------------

    def _refuse(self, step: Step, reason: str) -> UnsupportedError:
        return self.context.refuse(self.function, step.instruction, reason, _REMEDY)

    def _refuse_type(self, what: str) -> None:
        place = self.context.module.place(self.function)
        raise UnsupportedError(f"{what} is not supported", place, _REMEDY)

    def _check_operand(self, step: Step) -> None:
        if step.operand not in _MOVED:
            raise self._refuse(step, f"{TYPE_NAMES[step.operand]} is not supported")

    # --- control flow ------------------------------------------------------------------------

    def _block(self, step: Step) -> None:
        self.targets[step.index] = self.code.label()

    def _loop(self, step: Step) -> None:
        self.targets[step.index] = self.code.label()
        if self.code.live:
            self.code.place(self.targets[step.index])

    def _if(self, step: Step) -> None:
        then, otherwise = self.code.label(), self.code.label()
        self.targets[step.index] = self.code.label()
        self.else_labels[step.index] = otherwise
        if self.code.live:
            self.code.branch(then, otherwise)
            self.code.place(then)

    def _else(self, step: Step) -> None:
        self.code.jump(self.targets[step.block])
        self.code.place_if_reached(self.else_labels.pop(step.block))

    def _end(self, step: Step) -> None:
        if step.block in self.else_labels:
            self.code.jump(self.targets[step.block])
            self.code.place_if_reached(self.else_labels.pop(step.block))
        if step.block == -1:
            self.code.place_if_reached(self.targets[-1])
            self.code.emit("return")
        elif self.context.bodies[self.function.index][step.block].instruction.op != "loop":
            self.code.place_if_reached(self.targets[step.block])

    def _leave(self, edge: Edge) -> None:
        """Branch along ``edge``: remove the operands that its block does not keep, and jump."""
        if edge.discard:
            saved = [self.code.scratch() for _ in range(width(edge.keep))]
            for local in reversed(saved):
                self.code.emit("local.set", local)
            for _ in range(width(edge.discard)):
                self.code.emit("drop")
            for local in saved:
                self.code.emit("local.get", local)
        self.code.jump(self.targets[edge.block])

    def _target(self, edge: Edge) -> int:
        """A label that leads along ``edge``, by a detour if operands must be removed."""
        if not edge.discard:
            return self.targets[edge.block]
        self.code.reach(self.targets[edge.block])
        self.detours.append((self.code.label(), edge, self.code.origin))
        return self.detours[-1][0]

    def _br(self, step: Step) -> None:
        self._leave(step.edges[0])

    def _br_if(self, step: Step) -> None:
        following = self.code.label()
        self.code.branch(self._target(step.edges[0]), following)
        self.code.place(following)

    def _br_table(self, step: Step) -> None:
        """A binary search over the runs of equal targets."""
        labels: dict[Edge, int] = {}
        starts: list[tuple[int, int]] = []
        for value, edge in enumerate(step.edges):
            if edge not in labels:
                labels[edge] = self._target(edge)
            if not starts or starts[-1][1] != labels[edge]:
                starts.append((value, labels[edge]))
        if len(starts) == 1:
            self.code.emit("drop")
            self.code.jump(starts[0][1])
            return
        index = self.code.scratch()
        self.code.emit("local.set", index)
        search(self.code, index, starts, self.code.jump)

    # --- calls -------------------------------------------------------------------------------

    def _call(self, step: Step) -> None:
        emit_call(self.context, self.code, self.context.module.functions[step.instruction.args[0]])

    def _call_indirect(self, step: Step) -> None:
        emit_indirect(self.context, self.code, step)

    # --- variables ---------------------------------------------------------------------------

    def _each(self, op: str, first: int, count: int) -> None:
        order = range(count) if op.endswith("get") else reversed(range(count))
        for half in order:
            self.code.emit(op, first + half)

    def _local_get(self, step: Step) -> None:
        self._check_operand(step)
        self._each("local.get", self.slots[step.instruction.args[0]], width(step.operand))

    def _local_set(self, step: Step) -> None:
        self._check_operand(step)
        self._each("local.set", self.slots[step.instruction.args[0]], width(step.operand))

    def _local_tee(self, step: Step) -> None:
        self._check_operand(step)
        if width(step.operand) == 1:
            self.code.emit("local.tee", self.slots[step.instruction.args[0]])
        else:
            self._local_set(step)
            self._local_get(step)

    def _global_get(self, step: Step) -> None:
        self._check_operand(step)
        index = step.instruction.args[0]
        value = self.context.constant_global(index)
        if value is None:
            self._each("global.get", self._global(step), width(step.operand))
        else:
            for half in range(width(step.operand)):
                self.code.emit("i32.const", value >> (32 * half))

    def _global_set(self, step: Step) -> None:
        self._check_operand(step)
        self._each("global.set", self._global(step), width(step.operand))

    def _global(self, step: Step) -> int:
        index = step.instruction.args[0]
        if self.context.initial_value(index) is None:
            reason, remedy = "no initial value is known for this global", "define it in the module"
            raise self.context.refuse(self.function, step.instruction, reason, remedy)
        return self.context.global_slot(index)

    # --- other instructions ------------------------------------------------------------------

    def _drop(self, step: Step) -> None:
        self._check_operand(step)
        self.code.emit_all([("drop", 0)] * width(step.operand))

    def _select(self, step: Step) -> None:
        self._check_operand(step)
        if width(step.operand) == 1:
            self.code.emit("select")
            return
        condition, b_high, b_low, a_high = (self.code.scratch() for _ in range(4))
        for local in (condition, b_high, b_low, a_high):
            self.code.emit("local.set", local)
        self.code.emit_all([("local.get", b_low), ("local.get", condition), ("select", 0)])
        for local in (a_high, b_high, condition):
            self.code.emit("local.get", local)
        self.code.emit("select")

"""Lowers one WebAssembly function to basic blocks of native instructions.

Input: the typed body (``wasm_check.py``). A wasm local becomes one native local, an i64 local two;
operands stay on the operand stack in the same order. Of i64 only what moves values is compiled
here (constants, loads, stores, locals, conversions): C compilers copy structs that way.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

from compiler import isa
from compiler.errors import UnsupportedError
from compiler.lower_code import Block, CodeBuilder
from compiler.lower_context import Context, function_key, width
from compiler.program import Origin
from compiler.routines import ROUTINES
from compiler.wasm_check import Edge, Step
from compiler.wasm_opcodes import SIGNATURES, TYPE_NAMES, access_bytes
from compiler.wasm_types import PAGE_BYTES, Function

_EXTEND_SHIFT = {"i32.extend8_s": 24, "i32.extend16_s": 16}
_HIGH_HALF = 4
"""Offset of the high half of an i64 in memory."""
_BEYOND = 0xFFFFFFFF
"""An offset at which no access fits any memory."""

_REMEDIES = {
    "l": "use 32-bit integers here (int, unsigned); 64-bit arithmetic is not available yet",
    "f": "use integers or fixed-point arithmetic here; floating point is not available yet",
    "d": "use integers or fixed-point arithmetic here; floating point is not available yet",
}
_OTHER_TYPES = "use i32 values only"


def lower_function(context: Context, function: Function) -> list[Block]:
    """Lower the body of ``function`` to blocks, the entry first.

    Raises:
        UnsupportedError: naming the instruction that the machine cannot run.
    """
    return _Lowering(context, function).run()


class _Lowering:
    """Walks the typed body once and emits code for each live instruction."""

    def __init__(self, context: Context, function: Function) -> None:
        self.context = context
        self.function = function
        widths = [width(type_) for type_ in function.locals]
        self.slots = [0, *accumulate(widths)]
        self.code = CodeBuilder(self.slots[-1], Origin(function.name, "(entry)", -1))
        self.targets: dict[int, int] = {-1: self.code.label()}
        self.else_labels: dict[int, int] = {}
        self.detours: list[tuple[int, Edge, Origin]] = []
        self.rules: dict[str, Callable[[Step], None]] = {
            "block": self._block, "loop": self._loop, "if": self._if, "else": self._else,
            "end": self._end, "br": self._br, "return": self._br, "br_if": self._br_if,
            "br_table": self._br_table, "call": self._call, "call_indirect": self._call_indirect,
            "nop": lambda step: None, "unreachable": lambda step: self.code.emit("unreachable"),
            "drop": self._drop, "select": self._select, "local.get": self._local_get,
            "local.set": self._local_set, "local.tee": self._local_tee,
            "global.get": self._global_get, "global.set": self._global_set,
            "memory.size": self._memory_size, "memory.grow": self._memory_grow,
            "i32.wrap_i64": lambda step: self.code.emit("drop"),
            "i64.extend_i32_u": lambda step: self.code.emit("i32.const"),
            "i64.extend_i32_s": self._extend, "i64.const": self._long_const,
            "i64.load": self._long_load, "i64.load32_u": self._long_load_u,
            "i64.store": self._long_store, "i64.store32": self._long_store_low,
        }  # fmt: skip

    def run(self) -> list[Block]:
        """Lower the whole function."""
        for type_ in self.function.type.params + self.function.type.results:
            if type_ not in "il":
                self._refuse_type(type_, f"a parameter or result of type {TYPE_NAMES[type_]}")
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
        text = step.instruction.text
        if step.instruction.op == "call":
            text = f"call {self.context.module.functions[step.instruction.args[0]].name}"
        return Origin(self.function.name, text, step.index)

    def _instruction(self, step: Step) -> None:
        op = step.instruction.op
        if access_bytes(op):
            self._check_memory(step)
        rule = self.rules.get(op)
        if rule is not None:
            rule(step)
            return
        signature = SIGNATURES[op]
        for type_ in (signature.pops or "") + (signature.pushes or ""):
            if type_ != "i":
                raise self._refuse(step, f"{TYPE_NAMES[type_]} is not supported", type_)
        if op in _EXTEND_SHIFT:
            shift = _EXTEND_SHIFT[op]
            self.code.emit_all(
                [("i32.const", shift), ("i32.shl", 0), ("i32.const", shift), ("i32.shr_s", 0)]
            )
        elif op == "i32.const":
            self.code.emit(op, step.instruction.args[0])
        elif access_bytes(op):
            self.code.emit(op, step.instruction.args[1])
        elif op in isa.OPCODES:
            self.code.emit(op)
        elif op in ROUTINES:
            self.code.emit("call", callee=op)
        else:
            raise self._refuse(step, "this instruction is not supported", "i")

    # --- refusals ----------------------------------------------------------------------------

    def _refuse(self, step: Step, reason: str, type_: str) -> UnsupportedError:
        remedy = _REMEDIES.get(type_, _OTHER_TYPES)
        return self.context.refuse(self.function, step.instruction, reason, remedy)

    def _refuse_type(self, type_: str, what: str) -> None:
        place = self.context.module.place(self.function)
        raise UnsupportedError(
            f"{what} is not supported", place, _REMEDIES.get(type_, _OTHER_TYPES)
        )

    def _check_operand(self, step: Step) -> None:
        if step.operand not in "il":
            raise self._refuse(step, f"{TYPE_NAMES[step.operand]} is not supported", step.operand)

    def _check_memory(self, step: Step) -> None:
        memories = self.context.module.memories
        if len(memories) > 1 or memories[0].imported is not None:
            what = "an imported memory" if len(memories) == 1 else "more than one memory"
            remedy = "define one memory in the module itself"
            raise self.context.refuse(
                self.function, step.instruction, f"{what} is not supported", remedy
            )

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
        self._search(index, starts)

    def _search(self, index: int, starts: list[tuple[int, int]]) -> None:
        if len(starts) == 1:
            self.code.jump(starts[0][1])
            return
        middle = len(starts) // 2
        below, above = self.code.label(), self.code.label()
        self.code.emit("local.get", index)
        if starts[middle][0] == 1:
            self.code.branch(above, below)
        else:
            self.code.emit_all([("i32.const", starts[middle][0]), ("i32.lt_u", 0)])
            self.code.branch(below, above)
        for label, part in ((below, starts[:middle]), (above, starts[middle:])):
            self.code.place(label)
            self._search(index, part)

    # --- calls -------------------------------------------------------------------------------

    def _call(self, step: Step) -> None:
        callee = self.context.module.functions[step.instruction.args[0]]
        provided = self.context.provided(callee)
        if provided == "exit":
            self.code.emit("halt")
        elif provided:
            self.code.emit(provided)
        elif callee.imported is not None:
            names, type_ = callee.imported, callee.type
            reason = f"nothing provides the import {names.module}.{names.name} {type_}"
            remedy = "define that function in the program, or remove the call"
            raise self.context.refuse(self.function, step.instruction, reason, remedy)
        else:
            self.code.emit("call", callee=function_key(callee.index))

    def _call_indirect(self, step: Step) -> None:
        reason, remedy = "indirect calls are not supported yet", "call functions by name"
        raise self.context.refuse(self.function, step.instruction, reason, remedy)

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
        if step.operand == "i":
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
        if step.operand == "i":
            self.code.emit("select")
            return
        condition, b_high, b_low, a_high = (self.code.scratch() for _ in range(4))
        for local in (condition, b_high, b_low, a_high):
            self.code.emit("local.set", local)
        self.code.emit_all([("local.get", b_low), ("local.get", condition), ("select", 0)])
        for local in (a_high, b_high, condition):
            self.code.emit("local.get", local)
        self.code.emit("select")

    def _memory_size(self, step: Step) -> None:
        self._check_memory(step)
        self.code.emit("i32.const", self.context.module.memories[0].pages)

    def _memory_grow(self, step: Step) -> None:
        reason = "memory.grow is not supported: the memory of a program has a fixed size"
        remedy = f"declare enough memory (in pages of {PAGE_BYTES} bytes) and do not grow it"
        raise self.context.refuse(self.function, step.instruction, reason, remedy)

    # --- i64: moves and conversions ----------------------------------------------------------

    def _extend(self, step: Step) -> None:
        value = self.code.scratch()
        self.code.emit_all(
            [("local.tee", value), ("local.get", value), ("i32.const", 31), ("i32.shr_s", 0)]
        )

    def _long_const(self, step: Step) -> None:
        value = step.instruction.args[0]
        self.code.emit_all([("i32.const", value), ("i32.const", value >> 32)])

    def _long_load(self, step: Step) -> None:
        offset = step.instruction.args[1]
        address = self.code.scratch()
        self.code.emit_all([("local.tee", address), ("i32.load", offset)])
        self.code.emit("local.get", address)
        self._high_access("i32.load", offset)

    def _long_load_u(self, step: Step) -> None:
        self.code.emit_all([("i32.load", step.instruction.args[1]), ("i32.const", 0)])

    def _long_store(self, step: Step) -> None:
        """Store the high half first: if it lies in the memory so does the low one, so a store
        that traps has written nothing."""
        offset = step.instruction.args[1]
        address, low, high = (self.code.scratch() for _ in range(3))
        constants = self.code.body[-2:]
        known = len(constants) == 2 and all(code.op == "i32.const" for code in constants)
        if known:
            del self.code.body[-2:]
        else:
            self.code.emit_all([("local.set", high), ("local.set", low)])
        halves = (
            [("i32.const", code.imm) for code in constants]
            if known
            else [("local.get", low), ("local.get", high)]
        )
        self.code.emit("local.tee", address)
        self.code.emit(*halves[1])
        self._high_access("i32.store", offset)
        self.code.emit("local.get", address)
        self.code.emit(*halves[0])
        self.code.emit("i32.store", offset)

    def _long_store_low(self, step: Step) -> None:
        self.code.emit_all([("drop", 0), ("i32.store", step.instruction.args[1])])

    def _high_access(self, op: str, offset: int) -> None:
        if offset + _HIGH_HALF >= 1 << 32:
            self.code.emit(op, _BEYOND)
        else:
            self.code.emit(op, offset + _HIGH_HALF)

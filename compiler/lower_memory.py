"""Lowers what touches the linear memory: loads, stores, its size, growing, filling and copying.

The machine checks every access against the size that the prompt says. If the program may grow its
memory that size is the greatest possible, and code emitted here checks against the size of the
moment: an address beyond it becomes -1, at which the machine traps. Of further memories only the
size is of use.
"""

from __future__ import annotations

from collections.abc import Callable

from compiler import isa
from compiler.legalise_i64 import IN_BOUNDS
from compiler.lower_code import MASK, CodeBuilder
from compiler.lower_context import Context
from compiler.wasm_check import Step
from compiler.wasm_opcodes import access_bytes
from compiler.wasm_types import Function

_BEYOND = MASK
"""An offset, or address, at which no access fits any memory."""
_PAGE_BITS = 16


class MemoryLowering:
    """Emits memory instructions into the code of one function."""

    def __init__(self, context: Context, function: Function, code: CodeBuilder) -> None:
        self.context = context
        self.function = function
        self.code = code
        rules: dict[str, Callable[[Step], None]] = {
            "memory.size": self._size, "memory.grow": self._grow, "memory.fill": self._routine,
            "memory.copy": self._routine,
            **dict.fromkeys(isa.LOADS, self._load), **dict.fromkeys(isa.STORES, self._store),
        }  # fmt: skip
        self.rules: dict[str, Callable[[Step], None]] = {
            op: self._checked(rule) for op, rule in rules.items()
        }

    def _checked(self, rule: Callable[[Step], None]) -> Callable[[Step], None]:
        """The rule, for memories that it can work on."""

        def checked(step: Step) -> None:
            args = step.instruction.args if step.instruction.op.startswith("memory.") else (0,)
            self.check_memory(step, *args)
            rule(step)

        return checked

    def check_memory(self, step: Step, *numbers: int) -> None:
        """Raises UnsupportedError if a memory is not the module's own, or must be accessed and is
        not its first."""
        op = step.instruction.op
        reason = ""
        if any(self.context.module.memories[number].imported is not None for number in numbers):
            reason = "an imported memory is not supported"
        elif any(numbers) and op not in ("memory.size", "memory.grow"):
            reason = "access to more than one memory is not supported"
        if reason:
            remedy = "define one memory in the module itself"
            raise self.context.refuse(self.function, step.instruction, reason, remedy)

    # --- bounds of a memory that grows -------------------------------------------------------

    def _bound(self, end: int) -> None:
        """Make the address on the stack -1 unless ``address + end`` is within the memory.

        Only where the memory grows, and only if the machine's own check says less.
        """
        if 0 not in self.context.grows or end > self.context.most_bytes():
            return
        address = self.code.scratch()
        size = self.context.size_global(0)
        self.code.emit_all([
            ("local.tee", address), ("i32.const", _BEYOND), ("local.get", address),
            ("global.get", size), ("i32.const", end), ("i32.sub", 0), ("i32.le_u", 0),
        ])  # fmt: skip
        if end > self.context.initial_bytes():  # the difference may be negative
            self.code.emit_all(
                [("global.get", size), ("i32.const", end), ("i32.ge_u", 0), ("i32.and", 0)]
            )
        self.code.emit("select")

    def _bound_below_value(self, end: int) -> None:
        """The same with one more operand, which is kept, on top of the address."""
        if 0 not in self.context.grows:
            return
        value = self.code.scratch()
        self.code.emit("local.set", value)
        self._bound(end)
        self.code.emit("local.get", value)

    # --- loads and stores --------------------------------------------------------------------

    def _load(self, step: Step) -> None:
        op, (_, offset, *known) = step.instruction.op, step.instruction.args
        if IN_BOUNDS not in known:
            self._bound(offset + access_bytes(op))
        self.code.emit(op, offset)

    def _store(self, step: Step) -> None:
        op, (_, offset, *known) = step.instruction.op, step.instruction.args
        if IN_BOUNDS not in known:
            self._bound_below_value(offset + access_bytes(op))
        self.code.emit(op, offset)

    # --- the memory as a whole ---------------------------------------------------------------

    def emit_size(self, memory: int) -> None:
        """Push the size in bytes."""
        if memory in self.context.grows:
            self.code.emit("global.get", self.context.size_global(memory))
        else:
            self.code.emit("i32.const", self.context.initial_bytes(memory))

    def _size(self, step: Step) -> None:
        self.emit_size(step.instruction.args[0])
        self.code.emit_all([("i32.const", _PAGE_BITS), ("i32.shr_u", 0)])

    def _grow(self, step: Step) -> None:
        """The old size in pages, or -1 where the new one would be beyond the greatest."""
        pages, old, fits = (self.code.scratch() for _ in range(3))
        most = self.context.most_bytes(step.instruction.args[0]) >> _PAGE_BITS
        size = self.context.size_global(step.instruction.args[0])
        self.code.emit("local.set", pages)
        self._size(step)
        self.code.emit_all([
            ("local.set", old),
            ("local.get", pages), ("i32.const", most), ("local.get", old), ("i32.sub", 0),
            ("i32.le_u", 0), ("local.set", fits),
            ("local.get", old), ("local.get", pages), ("i32.add", 0),
            ("i32.const", _PAGE_BITS), ("i32.shl", 0),
            ("global.get", size), ("local.get", fits), ("select", 0), ("global.set", size),
            ("local.get", old), ("i32.const", MASK), ("local.get", fits), ("select", 0),
        ])  # fmt: skip

    def _routine(self, step: Step) -> None:
        """A routine that takes the size of the memory besides the instruction's operands."""
        self.emit_size(0)
        self.code.emit("call", callee=step.instruction.op)

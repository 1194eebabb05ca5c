"""Lowers what concerns segments and the sizes of tables.

Active and declared segments are dropped when a module is instantiated: what initialises from them
finds them empty, so only its bounds check is left. Passive segments are refused where something
initialises from them, and so dropping any segment has no effect.
"""

from __future__ import annotations

from collections.abc import Callable

from compiler.lower_code import MASK, CodeBuilder
from compiler.lower_context import Context
from compiler.lower_memory import MemoryLowering
from compiler.program import OUTSIDE_TABLE
from compiler.wasm_check import Step
from compiler.wasm_types import Function


class SegmentLowering:
    """Emits segment and table instructions into the code of one function."""

    def __init__(
        self, context: Context, function: Function, code: CodeBuilder, memory: MemoryLowering
    ) -> None:
        self.context = context
        self.function = function
        self.code = code
        self.memory = memory
        self.rules: dict[str, Callable[[Step], None]] = {
            "memory.init": self._memory_init, "table.init": self._table_init,
            "data.drop": lambda step: None, "elem.drop": lambda step: None,
            "table.size": self._table_size,
        }  # fmt: skip

    def _memory_init(self, step: Step) -> None:
        segment, memory = step.instruction.args
        self.memory.check_memory(step, memory)
        self._init(step, self.context.module.data[segment].offset is None)
        self.memory.emit_size(memory)

        def trap() -> None:
            self.code.emit_all([("i32.const", 0), ("i32.load", MASK), ("unreachable", 0)])

        self._trap_if_outside(trap)

    def _table_init(self, step: Step) -> None:
        segment, _ = step.instruction.args
        self._init(step, self.context.module.elements[segment].passive)
        self._table_size(step)
        self._trap_if_outside(lambda: self.code.emit("unreachable", OUTSIDE_TABLE))

    def _init(self, step: Step, passive: bool) -> None:
        """Leave the target and, on top, whether source or length is not 0."""
        if passive:
            reason, remedy = "a passive segment is not supported", "use an active segment"
            raise self.context.refuse(self.function, step.instruction, reason, remedy)
        self.code.emit("i32.or")

    def _trap_if_outside(self, trap: Callable[[], None]) -> None:
        """Take target, whether there is something to copy, and size; trap unless nothing is to be
        copied to a place within the size."""
        something, size = self.code.scratch(), self.code.scratch()
        self.code.emit_all([
            ("local.set", size), ("local.set", something), ("local.get", size), ("i32.gt_u", 0),
            ("local.get", something), ("i32.or", 0),
        ])  # fmt: skip
        outside, within = self.code.label(), self.code.label()
        self.code.branch(outside, within)
        self.code.place(outside)
        trap()
        self.code.place(within)

    def _table_size(self, step: Step) -> None:
        """No table that is compiled ever changes its size."""
        number = step.instruction.args[-1]
        table = self.context.module.tables[number]
        if table.imported is not None:
            reason, remedy = "an imported table is not supported", "define it in the module itself"
            raise self.context.refuse(self.function, step.instruction, reason, remedy)
        self.code.emit("i32.const", table.size)

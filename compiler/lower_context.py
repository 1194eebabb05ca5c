"""What lowering one function must know about the module: globals, memory, names of callees."""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler.errors import UnsupportedError
from compiler.wasm_check import Step
from compiler.wasm_types import Function, Instruction, Module

IMPORTS = {"output": ("i", ""), "input": ("i", "i"), "exit": ("i", "")}
"""Functions that module ``transputer`` provides: name, and types of parameters and results."""
IMPORT_MODULE = "transputer"


def width(types: str) -> int:
    """Operand-stack entries that values of these types take: an i64 is a low and a high half."""
    return len(types) + types.count("l")


def function_key(index: int) -> str:
    """Key of a WebAssembly function among native functions (routines have names with a dot)."""
    return f"f{index}"


@dataclass
class Context:
    """Module-wide facts, and the native globals handed out so far.

    ``bodies``: the typed body of every function that the entry reaches. ``written``: the globals
    that those functions write; all others are constants. ``slots``: native global of each
    WebAssembly global (its low half) that is in use.
    """

    module: Module
    bodies: dict[int, list[Step]]
    written: frozenset[int]
    slots: dict[int, int] = field(default_factory=dict)
    used_slots: int = 0

    def refuse(
        self, function: Function, instruction: Instruction, reason: str, remedy: str
    ) -> UnsupportedError:
        """The error for an instruction that cannot be compiled."""
        return UnsupportedError(reason, self.module.place(function, instruction), remedy)

    def constant_global(self, index: int) -> int | None:
        """Value of global ``index`` if it never changes, as the unsigned integer of its bits."""
        return None if index in self.written else self.initial_value(index)

    def initial_value(self, index: int) -> int | None:
        """Initial value of a global, ``None`` if it is imported or not a plain constant."""
        init = self.module.globals[index].init
        while init is not None and init.op == "global.get":
            if init.value >= index:
                return None
            index = init.value
            init = self.module.globals[index].init
        return init.value if init is not None and init.op.endswith(".const") else None

    def global_slot(self, index: int) -> int:
        """The native global that holds (the low half of) WebAssembly global ``index``."""
        if index not in self.slots:
            self.slots[index] = self.used_slots
            self.used_slots += width(self.module.globals[index].type)
        return self.slots[index]

    def provided(self, function: Function) -> str:
        """Name of the ``transputer`` import that ``function`` is, empty if it is none."""
        names = function.imported
        if names is None or names.module != IMPORT_MODULE or names.name not in IMPORTS:
            return ""
        wanted = IMPORTS[names.name]
        return names.name if (function.type.params, function.type.results) == wanted else ""

"""What lowering one function must know about the module: globals, memory, names of callees."""

from __future__ import annotations

from dataclasses import dataclass, field

from compiler import isa
from compiler.errors import Place, UnsupportedError
from compiler.wasm_check import Step
from compiler.wasm_types import PAGE_BYTES, Constant, Function, FuncType, Instruction, Module

IMPORTS = {
    "output": ("i", "", "output", 0),
    "error": ("i", "", "output", isa.STANDARD_ERROR),
    "input": ("i", "i", "input", 0),
    "exit": ("i", "", "halt", 0),
}
"""Functions that module ``transputer`` provides: name, types of parameters and results, and the
instruction that does it."""
IMPORT_MODULE = "transputer"


Target = Function | str
"""What an index into a table leads to: a function, or the reason of a trap."""


def width(types: str) -> int:
    """Operand-stack entries that values of these types take: those of 64 bits, two halves."""
    return len(types) + types.count("l") + types.count("d")


def function_key(index: int) -> str:
    """Key of a WebAssembly function among native functions (routines have names with a dot)."""
    return f"f{index}"


def constant_address(module: Module, offset: Constant) -> int:
    """Value of the constant expression that says where a segment goes.

    Raises:
        UnsupportedError: it is not known before the run.
    """
    value = offset.evaluate(module.global_values)
    if value is None or value.op != "i32.const":
        raise UnsupportedError(
            "the address of a segment is not a constant",
            Place(module.file),
            "link the program at a fixed address, without imported globals",
        )
    return value.value & 0xFFFFFFFF


@dataclass
class Context:
    """Module-wide facts, and the native globals handed out so far.

    ``bodies``: the typed body of every function that the entry reaches. ``written``: the globals
    that those functions write; all others are constants. ``grows``: the memories that they grow.
    ``exits``: they call ``transputer.exit``. ``slots``: native global of each WebAssembly global
    (its low half) that is in use. ``dispatchers``: table and type of the indirect calls that go
    through a function of their own, by its key. ``runs``: see ``lower_tables.indirect_runs``.
    """

    module: Module
    bodies: dict[int, list[Step]]
    written: frozenset[int]
    grows: tuple[int, ...] = ()
    exits: bool = False
    slots: dict[int, int] = field(default_factory=dict)
    used_slots: int = 0
    dispatchers: dict[str, tuple[int, FuncType]] = field(default_factory=dict)
    runs: dict[tuple[int, FuncType], list[tuple[int, Target]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.used_slots += len(self.grows)

    def size_global(self, memory: int) -> int:
        """The native global that holds the size in bytes of a memory that grows."""
        return self.grows.index(memory)

    def initial_bytes(self, memory: int = 0) -> int:
        """Size of a memory at first, in bytes."""
        return self.module.memories[memory].pages * PAGE_BYTES

    def most_bytes(self, memory: int = 0) -> int:
        """The greatest size that a memory may have, in bytes."""
        if memory not in self.grows:
            return self.initial_bytes(memory)
        declared = self.module.memories[memory].most_pages
        most = isa.MAX_MEMORY_PAGES if declared is None else declared
        return min(most, isa.MAX_MEMORY_PAGES) * PAGE_BYTES

    def dispatcher(self, table: int, type_: FuncType) -> str:
        """Key of the function that makes the indirect calls of this type through this table."""
        key = f"(call_indirect {table} {type_})"
        self.dispatchers[key] = table, type_
        return key

    def refuse(
        self, function: Function, instruction: Instruction, reason: str, remedy: str
    ) -> UnsupportedError:
        """The error for an instruction that cannot be compiled."""
        return UnsupportedError(reason, self.module.place(function, instruction), remedy)

    def constant_global(self, index: int) -> int | None:
        """Value of global ``index`` if it never changes, as the unsigned integer of its bits."""
        return None if index in self.written else self.initial_value(index)

    def initial_value(self, index: int) -> int | None:
        """Initial value of a global, ``None`` if it is imported or not a number."""
        value = self.module.global_values[index]
        return value.value if value is not None and value.op.endswith(".const") else None

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
        params, results, *_ = IMPORTS[names.name]
        return names.name if function.type == FuncType(params, results) else ""

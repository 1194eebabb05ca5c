"""The decoded WebAssembly module: plain frozen values, as the decoder hands them on.

Value types are single letters (see ``wasm_opcodes.VALUE_TYPES``); a list of types is a string, so
``FuncType("il", "i")`` takes an i32 and an i64 and returns an i32. Index spaces put imports first,
as in the binary format.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from compiler.errors import CompileError, Place
from compiler.wasm_opcodes import TYPE_NAMES

PAGE_BYTES = 65536


@dataclass(frozen=True)
class FuncType:
    """Parameter and result types of a function or block."""

    params: str
    results: str

    def __str__(self) -> str:
        params, results = (
            ", ".join(TYPE_NAMES[t] for t in types) for types in (self.params, self.results)
        )
        return f"({params}) -> ({results})"


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a function body.

    ``args``: its immediates as integers: indices, ``(alignment exponent, offset)`` of a memory
    access, branch labels with the default last, a constant as the unsigned integer of its bits.
    ``offset``: byte offset in the file. ``block``: the type of a block, loop or if.
    """

    op: str
    args: tuple[int, ...]
    offset: int
    block: FuncType | None = None

    @property
    def text(self) -> str:
        """As one would write it, with numeric indices: ``i32.load offset=8``."""
        if self.block is not None:
            return self.op
        if self.op in ("i32.const", "i64.const"):
            bits = 32 if self.op == "i32.const" else 64
            value = self.args[0]
            return f"{self.op} {value - (1 << bits) if value >> (bits - 1) else value}"
        if self.op.endswith(".const"):
            return f"{self.op} bits {self.args[0]:#x}"
        if ".load" in self.op or ".store" in self.op:
            return f"{self.op} offset={self.args[1]}" if self.args[1] else self.op
        if self.op.startswith("memory."):
            return self.op
        return " ".join([self.op, *map(str, self.args)])


@dataclass(frozen=True)
class Import:
    """The two names of an imported thing."""

    module: str
    name: str


@dataclass(frozen=True)
class Function:
    """A function, imported or defined.

    ``name``: for messages; never empty. ``locals``: types of parameters and locals. ``unknown``:
    what stopped decoding the body, if it uses a feature whose encoding is not known here; ``code``
    then ends before it. ``offset``: byte offset of the body in the file, -1 for functions that the
    compiler adds.
    """

    index: int
    type: FuncType
    name: str
    locals: str = ""
    code: tuple[Instruction, ...] = ()
    imported: Import | None = None
    unknown: str = ""
    offset: int = -1


@dataclass(frozen=True)
class Constant:
    """A constant expression of one instruction: ``i32.const``, ``global.get``, ``ref.func``, ...

    Of a longer one (the extended-const proposal) ``code`` has all parts, and ``op`` is empty.
    """

    op: str
    value: int = 0
    code: tuple[Constant, ...] = ()

    def evaluate(self, values: Sequence[Constant | None]) -> Constant | None:
        """The ``const``, ``ref.func`` or ``ref.null`` that the expression is equal to.

        ``values`` are those of the globals it may refer to, None where they are not known; the
        result is None if that makes it unknown, or if it is no constant expression.
        """
        stack: list[Constant] = []
        for part in self.code or (self,):
            if part.op == "global.get":
                value = values[part.value] if part.value < len(values) else None
                if value is None:
                    return None
                stack.append(value)
            elif part.op in _ARITHMETIC and len(stack) > 1:
                b, a = stack.pop(), stack.pop()
                bits = 32 if part.op.startswith("i32") else 64
                result = _ARITHMETIC[part.op](a.value, b.value) % (1 << bits)
                stack.append(Constant(f"i{bits}.const", result))
            elif part.op.endswith(".const") or part.op in ("ref.func", "ref.null"):
                stack.append(part)
            else:
                return None
        return stack[0] if len(stack) == 1 else None


_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    f"{type_}.{name}": operation
    for type_ in ("i32", "i64")
    for name, operation in (("add", operator.add), ("sub", operator.sub), ("mul", operator.mul))
}


@dataclass(frozen=True)
class Global:
    """A global variable; ``init`` is ``None`` for an imported one."""

    type: str
    mutable: bool
    init: Constant | None = None
    imported: Import | None = None


@dataclass(frozen=True)
class Memory:
    """A memory; sizes in pages of 64 KiB."""

    pages: int
    most_pages: int | None = None
    imported: Import | None = None


@dataclass(frozen=True)
class Table:
    """A table of references; sizes in entries. ``init``: what all entries are at first, or None."""

    type: str
    size: int
    most: int | None = None
    imported: Import | None = None
    init: Constant | None = None


@dataclass(frozen=True)
class Export:
    """``kind`` is ``func``, ``table``, ``memory`` or ``global``."""

    name: str
    kind: str
    index: int


@dataclass(frozen=True)
class Element:
    """Functions that fill a table. ``offset`` is ``None`` unless the segment is active; one that is
    neither active nor ``passive`` only declares functions."""

    table: int
    offset: Constant | None
    entries: tuple[Constant, ...]
    passive: bool = False


@dataclass(frozen=True)
class Data:
    """Initial bytes of a memory. ``offset`` is ``None`` for a passive segment."""

    memory: int
    offset: Constant | None
    content: bytes


@dataclass(frozen=True)
class Module:
    """A decoded module. ``file`` is the name it goes by in messages."""

    file: str
    types: tuple[FuncType, ...] = ()
    functions: tuple[Function, ...] = ()
    tables: tuple[Table, ...] = ()
    memories: tuple[Memory, ...] = ()
    globals: tuple[Global, ...] = ()
    exports: dict[str, Export] = field(default_factory=dict)
    start: int | None = None
    elements: tuple[Element, ...] = ()
    data: tuple[Data, ...] = ()

    @cached_property
    def global_values(self) -> tuple[Constant | None, ...]:
        """Initial value of each global, None if it is imported or not known."""
        values: list[Constant | None] = []
        for variable in self.globals:
            values.append(variable.init.evaluate(values) if variable.init else None)
        return tuple(values)

    def place(self, function: Function, instruction: Instruction | None = None) -> Place:
        """Where an error in ``function`` is."""
        if instruction is None:
            return Place(self.file, function.name, offset=function.offset)
        text = self.text(instruction)
        return Place(self.file, function.name, text, offset=instruction.offset)

    def text(self, instruction: Instruction) -> str:
        """An instruction as one would write it, a call with the name of the function."""
        if instruction.op == "call" and instruction.args[0] < len(self.functions):
            return f"call {self.functions[instruction.args[0]].name}"
        return instruction.text

    def invalid(self, function: Function, instruction: Instruction, reason: str) -> CompileError:
        """The error for a module that WebAssembly's own validation refuses."""
        at = f"{instruction.text} (byte {instruction.offset})"
        return CompileError(f"invalid module: {reason}", Place(self.file, function.name, at))

"""Links the instances of a script into one module, whose exports are ``NUMBER.NAME``.

What is imported from ``spectest`` is defined in the module itself. What is imported from an
instance that was linked before becomes the same function, table, memory or global as there. What
nothing provides stays an import, and a call that reaches it is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from compiler.wasm_opcodes import access_bytes
from compiler.wasm_types import (
    Constant,
    Export,
    Function,
    FuncType,
    Global,
    Import,
    Instruction,
    Memory,
    Module,
    Table,
)

SPECTEST = "spectest"
MARK, MARK_VALUE = "(mark)", 0x4D61726B
"""A function that every linked module exports, and what it returns: a call of it shows on the stack
that all calls before it have returned."""
_GLOBALS = {
    "global_i32": ("i", Constant("i32.const", 666)),
    "global_i64": ("l", Constant("i64.const", 666)),
    "global_f32": ("f", Constant("f32.const", int.from_bytes(struct.pack("<f", 666.6), "little"))),
    "global_f64": ("d", Constant("f64.const", int.from_bytes(struct.pack("<d", 666.6), "little"))),
}
_PRINTS = {
    "print": "", "print_i32": "i", "print_i64": "l", "print_f32": "f", "print_f64": "d",
    "print_i32_f32": "if", "print_f64_f64": "dd",
}  # fmt: skip
_OPERANDS = {
    "call": ("func",), "ref.func": ("func",), "call_indirect": ("type", "table"),
    "global.get": ("global",), "global.set": ("global",), "memory.size": ("memory",),
    "memory.grow": ("memory",), "memory.fill": ("memory",), "memory.copy": ("memory", "memory"),
}  # fmt: skip
"""Instructions whose immediates are indices, and of what."""


def empty() -> Module:
    """A linked module without any instance."""
    code = (Instruction("i32.const", (MARK_VALUE,), 0), Instruction("end", (), 0))
    mark = Function(0, FuncType("", "i"), MARK, code=code)
    return Module("", functions=(mark,), exports={MARK: Export(MARK, "func", 0)})


def qualified(number: int, name: str) -> str:
    """Export name of what instance ``number`` exports."""
    return f"{number}.{name}"


def link(linked: Module, module: Module, number: int, registered: Mapping[str, int]) -> Module:
    """``linked`` with one more instance.

    Args:
        number: of the new instance.
        registered: numbers of the instances in ``linked``, by the names they are registered under.
    """
    return _Linker(linked, with_spectest(module), number, registered).link()


def with_spectest(module: Module) -> Module:
    """The module with definitions in place of what it imports from ``spectest``."""
    table, memory = Import(SPECTEST, "table"), Import(SPECTEST, "memory")
    return replace(
        module,
        functions=tuple(map(_function, module.functions)),
        tables=tuple(Table("p", 10, 20) if t.imported == table else t for t in module.tables),
        memories=tuple(Memory(1, 2) if m.imported == memory else m for m in module.memories),
        globals=tuple(map(_global, module.globals)),
    )


def _function(function: Function) -> Function:
    """A function that prints does nothing here: the suite does not look at what is printed."""
    names = function.imported
    if names is None or names.module != SPECTEST or _PRINTS.get(names.name) != function.type.params:
        return function
    code = (Instruction("end", (), 0),)
    return replace(function, imported=None, locals=function.type.params, code=code)


def _global(variable: Global) -> Global:
    names = variable.imported
    if names is None or names.module != SPECTEST or names.name not in _GLOBALS:
        return variable
    type_, value = _GLOBALS[names.name]
    return Global(type_, False, value) if type_ == variable.type else variable


@dataclass
class _Linker:
    """Links one module; ``maps``: index in the linked module of each of its things, by kind."""

    linked: Module
    module: Module
    number: int
    registered: Mapping[str, int]
    maps: dict[str, list[int]] = field(default_factory=dict)

    def link(self) -> Module:
        """The linked module with the new instance."""
        linked, module = self.linked, self.module
        self.maps = {"type": [len(linked.types) + k for k in range(len(module.types))]}
        for kind, ours, theirs in (
            ("func", linked.functions, module.functions),
            ("table", linked.tables, module.tables),
            ("memory", linked.memories, module.memories),
            ("global", linked.globals, module.globals),
        ):
            self.maps[kind] = self._places(kind, len(ours), theirs)
        functions = [
            *linked.functions,
            *(self._moved(f) for f in module.functions if self._is_new("func", f.index)),
        ]
        start = self._start(functions)
        return Module(
            file=module.file,
            types=linked.types + module.types,
            functions=tuple(functions),
            tables=linked.tables
            + tuple(
                replace(table, init=self._constant(table.init))
                for k, table in enumerate(module.tables)
                if self._is_new("table", k)
            ),
            memories=linked.memories
            + tuple(m for k, m in enumerate(module.memories) if self._is_new("memory", k)),
            globals=linked.globals
            + tuple(
                replace(variable, init=self._constant(variable.init))
                for k, variable in enumerate(module.globals)
                if self._is_new("global", k)
            ),
            exports=linked.exports | self._exports(),
            start=start,
            elements=linked.elements
            + tuple(
                replace(
                    element,
                    table=self._to("table", element.table),
                    offset=self._constant(element.offset),
                    entries=tuple(entry for e in element.entries if (entry := self._constant(e))),
                )
                for element in module.elements
            ),
            data=linked.data
            + tuple(
                replace(
                    segment,
                    memory=self._to("memory", segment.memory),
                    offset=self._constant(segment.offset),
                )
                for segment in module.data
            ),
        )

    def _places(self, kind: str, size: int, things: Sequence[Any]) -> list[int]:
        """Where each thing of the new module is in the linked one."""
        places = []
        for thing in things:
            names = thing.imported
            found = None
            if names is not None and names.module in self.registered:
                found = self.linked.exports.get(
                    qualified(self.registered[names.module], names.name)
                )
            if found is not None and found.kind == kind:
                places.append(found.index)
            else:
                places.append(size)
                size += 1
        return places

    def _is_new(self, kind: str, index: int) -> bool:
        sizes = {
            "func": len(self.linked.functions), "table": len(self.linked.tables),
            "memory": len(self.linked.memories), "global": len(self.linked.globals),
        }  # fmt: skip
        return self.maps[kind][index] >= sizes[kind]

    def _to(self, kind: str, index: int) -> int:
        """Index in the linked module; segments that are not active may have none."""
        return self.maps[kind][index] if index < len(self.maps[kind]) else index

    def _constant(self, constant: Constant | None) -> Constant | None:
        if constant is None:
            return None
        kind = {"global.get": "global", "ref.func": "func"}.get(constant.op)
        value = constant.value if kind is None else self._to(kind, constant.value)
        code = tuple(part for c in constant.code if (part := self._constant(c)))
        return replace(constant, value=value, code=code)

    def _moved(self, function: Function) -> Function:
        """A function of the new module in the linked one."""
        unknown = function.unknown
        accesses = any(access_bytes(instruction.op) for instruction in function.code)
        if accesses and self.maps["memory"][:1] != [0]:
            unknown = "access to more than one memory is not supported"
        code = tuple(map(self._instruction, function.code))
        return replace(function, index=self._to("func", function.index), code=code, unknown=unknown)

    def _instruction(self, instruction: Instruction) -> Instruction:
        kinds = _OPERANDS.get(instruction.op)
        if kinds is None:
            return instruction
        pairs = zip(kinds, instruction.args, strict=True)
        return replace(instruction, args=tuple(self._to(kind, index) for kind, index in pairs))

    def _exports(self) -> dict[str, Export]:
        found = {}
        for export in self.module.exports.values():
            name = qualified(self.number, export.name)
            found[name] = Export(name, export.kind, self._to(export.kind, export.index))
        return found

    def _start(self, functions: list[Function]) -> int | None:
        """The start function of all instances; one that calls both is appended if there are two."""
        ours, theirs = self.linked.start, self.module.start
        if ours is None or theirs is None:
            return ours if theirs is None else self._to("func", theirs)
        calls = [Instruction("call", (k,), 0) for k in (ours, self._to("func", theirs))]
        code = (*calls, Instruction("end", (), 0))
        functions.append(Function(len(functions), FuncType("", ""), "(both starts)", code=code))
        return len(functions) - 1

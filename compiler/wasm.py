"""Decodes the WebAssembly binary format: bytes in, a :class:`Module` of frozen values out.

The decoder knows WebAssembly 1.0, the name section, and enough of what came later to refuse it by
name, at the latest when a function that uses it is compiled. It checks the encoding strictly, and
every index outside of function bodies; bodies are checked by ``wasm_check.py`` when they are
compiled. Format: https://webassembly.github.io/spec/core/binary/.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from compiler.errors import CompileError, printable
from compiler.wasm_code import constant, function_code, local_types, value_type
from compiler.wasm_reader import Reader
from compiler.wasm_types import (
    Constant,
    Data,
    Element,
    Export,
    Function,
    FuncType,
    Global,
    Import,
    Memory,
    Module,
    Table,
)

__all__ = ["MAGIC", "Module", "decode"]

MAGIC = b"\0asm\1\0\0\0"
_CUSTOM = 0
_ORDER = (1, 2, 3, 4, 5, 13, 6, 7, 8, 9, 12, 10, 11)
"""Section numbers in the order they must have."""
_KINDS = ("func", "table", "memory", "global")
_LONGEST_NAME = 200
_SOURCE_NAMES = {"__original_main": "main", "__main_argc_argv": "main"}
"""What functions are called in C that clang renames, by whether they take arguments."""
_ABI_TAG = re.compile(r"\[abi:\w+\]")
"""What C++ adds to names for the linker alone."""
_MVP = "compile for WebAssembly 1.0 (clang -mcpu=mvp)"


def decode(wasm: bytes, name: str) -> Module:
    """Decode a binary module.

    Args:
        wasm: the file's content.
        name: what to call it in messages.

    Raises:
        CompileError: malformed; the message names ``name`` and the byte offset.
        UnsupportedError: a declaration of an extension that cannot be ignored.

    Complexity: linear in ``len(wasm)``; memory is a fixed multiple of it.
    """
    reader = Reader(wasm, name)
    if wasm[:4] != MAGIC[:4]:
        raise reader.error("the file does not begin with \\0asm", 0)
    if wasm[:8] != MAGIC:
        raise reader.error("unknown version", 4)
    reader.position = 8
    sections = _Sections(name)
    last = -1
    while reader.left:
        start = reader.position
        number = reader.byte()
        section = reader.section(reader.unsigned())
        if number == _CUSTOM:
            sections.custom(section)
            continue
        if number not in _ORDER:
            raise reader.error(f"unknown section {number}", start)
        place = _ORDER.index(number)
        if place <= last:
            raise reader.error(f"section {number} out of order", start)
        last = place
        sections.read(number, section)
        section.finish(f"section {number}")
    return sections.module(reader)


class _Sections:
    """Collects what the sections declare."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.types: list[FuncType] = []
        self.functions: list[Function] = []
        self.tables: list[Table] = []
        self.memories: list[Memory] = []
        self.globals: list[Global] = []
        self.exports: dict[str, Export] = {}
        self.start: int | None = None
        self.elements: list[Element] = []
        self.data: list[Data] = []
        self.data_count: int | None = None
        self.names: dict[int, str] = {}
        self.bodies = 0

    def read(self, number: int, reader: Reader) -> None:
        """Read one section other than a custom one."""
        if number == 8:
            self._start(reader)
        elif number == 12:
            self.data_count = reader.unsigned()
        elif number == 10:
            self._bodies(reader)
        elif number == 13:
            raise reader.unsupported("exception handling", _MVP)
        else:
            items: dict[int, Callable[[Reader], None]] = {
                1: self._type, 2: self._import, 3: self._function, 4: self._table,
                5: self._memory, 6: self._global, 7: self._export, 9: self._element,
                11: self._data,
            }  # fmt: skip
            for _ in range(reader.count("entries")):
                items[number](reader)

    def module(self, reader: Reader) -> Module:
        """The finished module."""
        imports = sum(function.imported is not None for function in self.functions)
        if self.bodies != len(self.functions) - imports:
            raise reader.error(
                f"{len(self.functions) - imports} functions declared, {self.bodies} defined"
            )
        if self.data_count is not None and self.data_count != len(self.data):
            raise reader.error("the data count differs from the number of data segments")
        return Module(
            file=self.name,
            types=tuple(self.types),
            functions=tuple(self._named()),
            tables=tuple(self.tables),
            memories=tuple(self.memories),
            globals=tuple(self.globals),
            exports=self.exports,
            start=self.start,
            elements=tuple(self.elements),
            data=tuple(self.data),
        )

    def _named(self) -> list[Function]:
        names = {e.index: e.name for e in reversed(self.exports.values()) if e.kind == "func"}
        for index, name in self.names.items():
            plain = _ABI_TAG.sub("", name)
            names[index] = _SOURCE_NAMES.get(plain, plain) or names.get(index, "")
        return [replace(f, name=_printable(names.get(f.index) or f.name)) for f in self.functions]

    # --- sections in order of their numbers --------------------------------------------------

    def custom(self, reader: Reader) -> None:
        """A custom section: the function names of ``name``; a malformed one is ignored."""
        if reader.text() != "name":
            return
        try:
            while reader.left:
                number = reader.byte()
                part = reader.section(reader.unsigned())
                if number == 1:
                    for _ in range(part.count("names")):
                        index = part.unsigned()
                        self.names[index] = part.text()
        except CompileError:
            return

    def _type(self, reader: Reader) -> None:
        start = reader.position
        form = reader.byte()
        if form in (0x4E, 0x4F, 0x50, 0x5E, 0x5F):
            raise reader.unsupported("a type of the garbage collection proposal", _MVP, start)
        if form != 0x60:
            raise reader.error(f"malformed function type {form:#04x}", start)
        params, results = (
            "".join(value_type(reader) for _ in range(reader.count("types"))) for _ in range(2)
        )
        self.types.append(FuncType(params, results))

    def _import(self, reader: Reader) -> None:
        names = Import(reader.text(), reader.text())
        start = reader.position
        kind = reader.byte()
        if kind == 0:
            name = f"{names.module}.{names.name}"
            index = len(self.functions)
            self.functions.append(Function(index, self._type_index(reader), name, imported=names))
        elif kind == 1:
            self.tables.append(replace(self._table_type(reader), imported=names))
        elif kind == 2:
            self.memories.append(replace(self._memory_type(reader), imported=names))
        elif kind == 3:
            type_, mutable = self._global_type(reader)
            self.globals.append(Global(type_, mutable, imported=names))
        elif kind == 4:
            raise reader.unsupported("exception handling", _MVP, start)
        else:
            raise reader.error(f"malformed import kind {kind}", start)

    def _function(self, reader: Reader) -> None:
        index = len(self.functions)
        self.functions.append(Function(index, self._type_index(reader), f"func[{index}]"))

    def _table(self, reader: Reader) -> None:
        start = reader.position
        if reader.left and reader.data[start] == 0x40:
            if reader.take(2) != b"\x40\x00":
                raise reader.error("malformed table", start)
            table = self._table_type(reader)
            self.tables.append(replace(table, init=self._constant(reader)))
        else:
            self.tables.append(self._table_type(reader))

    def _memory(self, reader: Reader) -> None:
        self.memories.append(self._memory_type(reader))

    def _global(self, reader: Reader) -> None:
        type_, mutable = self._global_type(reader)
        self.globals.append(Global(type_, mutable, self._constant(reader)))

    def _export(self, reader: Reader) -> None:
        start = reader.position
        name, code = reader.text(), reader.byte()
        if code >= len(_KINDS):
            raise reader.error(f"malformed export kind {code}", start)
        kind = _KINDS[code]
        spaces: dict[str, Sequence[object]] = {
            "func": self.functions, "table": self.tables,
            "memory": self.memories, "global": self.globals,
        }  # fmt: skip
        export = Export(name, kind, self._index(reader, spaces[kind], kind))
        if name in self.exports:
            raise reader.error(f"duplicate export name {_printable(name)}", start)
        self.exports[name] = export

    def _start(self, reader: Reader) -> None:
        start = reader.position
        self.start = self._index(reader, self.functions, "function")
        if self.functions[self.start].type != FuncType("", ""):
            raise reader.error("the start function has parameters or results", start)

    def _element(self, reader: Reader) -> None:
        start = reader.position
        flags = reader.unsigned()
        if flags > 7:
            raise reader.error(f"malformed element segment kind {flags}", start)
        passive, explicit, expressions = flags & 1, flags & 2, flags & 4
        table = self._index(reader, self.tables, "table") if explicit and not passive else 0
        offset = None if passive else self._constant(reader)
        if not passive and table >= len(self.tables):
            raise reader.error(f"unknown table {table}", start)
        if passive or explicit:
            self._element_kind(reader, bool(expressions))
        entries = tuple(
            self._constant(reader)
            if expressions
            else Constant("ref.func", self._index(reader, self.functions, "function"))
            for _ in range(reader.count("elements"))
        )
        self.elements.append(Element(table, offset, entries, bool(passive and not explicit)))

    @staticmethod
    def _element_kind(reader: Reader, expressions: bool) -> None:
        start = reader.position
        if expressions:
            value_type(reader)
        elif reader.byte() != 0:
            raise reader.error("malformed element kind", start)

    def _bodies(self, reader: Reader) -> None:
        first = sum(function.imported is not None for function in self.functions)
        self.bodies = reader.count("function bodies")
        if self.bodies != len(self.functions) - first:
            raise reader.error(
                f"{len(self.functions) - first} functions declared, {self.bodies} defined"
            )
        for index in range(first, len(self.functions)):
            function = self.functions[index]
            body = reader.section(reader.unsigned())
            start = body.position
            types = function.type.params + local_types(body)
            code, unknown = function_code(body, self.types)
            self.functions[index] = replace(
                function, locals=types, code=code, unknown=unknown, offset=start
            )

    def _data(self, reader: Reader) -> None:
        start = reader.position
        flags = reader.unsigned()
        if flags > 2:
            raise reader.error(f"malformed data segment kind {flags}", start)
        memory = reader.unsigned() if flags == 2 else 0
        offset = None if flags == 1 else self._constant(reader)
        if flags != 1 and memory >= len(self.memories):
            raise reader.error(f"unknown memory {memory}", start)
        self.data.append(Data(memory, offset, reader.take(reader.unsigned())))

    # --- parts of entries --------------------------------------------------------------------

    def _index(self, reader: Reader, space: Sequence[object], what: str) -> int:
        start = reader.position
        index = reader.unsigned()
        if index >= len(space):
            raise reader.error(f"unknown {what} {index}", start)
        return index

    def _type_index(self, reader: Reader) -> FuncType:
        return self.types[self._index(reader, self.types, "type")]

    def _constant(self, reader: Reader) -> Constant:
        start = reader.position
        value = constant(reader)
        for part in value.code or (value,):
            if part.op == "global.get" and part.value >= len(self.globals):
                raise reader.error(f"unknown global {part.value}", start)
            if part.op == "ref.func" and part.value >= len(self.functions):
                raise reader.error(f"unknown function {part.value}", start)
        return value

    def _global_type(self, reader: Reader) -> tuple[str, bool]:
        type_ = value_type(reader)
        start = reader.position
        mutable = reader.byte()
        if mutable > 1:
            raise reader.error("malformed mutability", start)
        return type_, bool(mutable)

    def _limits(self, reader: Reader) -> tuple[int, int | None]:
        start = reader.position
        flags = reader.byte()
        if flags in (2, 3):
            raise reader.unsupported("shared memory (threads)", _MVP, start)
        if 4 <= flags <= 15:
            raise reader.unsupported("64-bit memory or custom page sizes", _MVP, start)
        if flags > 1:
            raise reader.error(f"malformed limits {flags}", start)
        least = reader.unsigned()
        most = reader.unsigned() if flags & 1 else None
        if most is not None and most < least:
            raise reader.error("the greatest size is below the smallest", start)
        return least, most

    def _table_type(self, reader: Reader) -> Table:
        return Table(value_type(reader), *self._limits(reader))

    def _memory_type(self, reader: Reader) -> Memory:
        start = reader.position
        least, most = self._limits(reader)
        if max(least, most or 0) > 65536:
            raise reader.error("memory size beyond 65536 pages", start)
        return Memory(least, most)


def _printable(name: str) -> str:
    """A name as it may stand in a message: not too long, control characters escaped."""
    if len(name) > _LONGEST_NAME:
        name = name[: _LONGEST_NAME - 3] + "..."
    return printable(name)

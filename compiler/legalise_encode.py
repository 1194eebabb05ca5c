"""Encodes a module in the WebAssembly binary format: the opposite of ``wasm.py``.

It writes what the legaliser makes, so that any other WebAssembly engine can run it. Format:
https://webassembly.github.io/spec/core/binary/.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

from compiler.errors import Place, UnsupportedError
from compiler.wasm import MAGIC
from compiler.wasm_opcodes import OPCODES, OTHER_REFERENCE, PREFIXED, VALUE_TYPES, WasmOpcode
from compiler.wasm_types import (
    Constant,
    Element,
    Function,
    FuncType,
    Import,
    Instruction,
    Module,
)

_TYPE_CODES = {letter: code for code, letter in VALUE_TYPES.items()}
_KINDS = ("func", "table", "memory", "global")


def encode(module: Module) -> bytes:
    """The module as bytes. Names of functions and other custom sections are left out.

    The immediate of ``unreachable`` is lost. A function without code becomes ``unreachable``,
    without parameters and results if their types are not known here.

    Raises:
        UnsupportedError: a table of typed references, or a global whose value is not known.
    """
    return _Encoder(module).module()


def unsigned(value: int) -> bytes:
    """LEB128 of a number that is not negative."""
    result = bytearray()
    while value >= 0x80:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value)
    return bytes(result)


def signed(value: int) -> bytes:
    """Signed LEB128."""
    result = bytearray()
    while not -0x40 <= value < 0x40:
        result.append(value & 0x7F | 0x80)
        value >>= 7
    result.append(value & 0x7F)
    return bytes(result)


def _vector(items: Sequence[bytes]) -> bytes:
    return unsigned(len(items)) + b"".join(items)


def _text(text: str) -> bytes:
    content = text.encode()
    return unsigned(len(content)) + content


def _codes(types: str) -> bytes:
    return _vector([bytes([_TYPE_CODES[t]]) for t in types])


def _limits(least: int, most: int | None) -> bytes:
    return b"\0" + unsigned(least) if most is None else b"\1" + unsigned(least) + unsigned(most)


def _opcodes() -> dict[str, tuple[bytes, WasmOpcode]]:
    table = {op.name: (bytes([code]), op) for code, op in reversed(OPCODES.items())}
    table |= {op.name: (b"\xfc" + unsigned(code), op) for code, op in PREFIXED.items()}
    return table


class _Encoder:
    """Writes sections; types get their numbers as they are met."""

    def __init__(self, module: Module) -> None:
        self.source = module
        self.types: dict[FuncType, int] = {}
        self.opcodes = _opcodes()
        self.writers: dict[str, Callable[[int], bytes]] = {
            "index": unsigned,
            "i32": lambda value: signed(value - (1 << 32) if value >> 31 else value),
            "i64": lambda value: signed(value - (1 << 64) if value >> 63 else value),
            "f32": lambda value: value.to_bytes(4, "little"),
            "f64": lambda value: value.to_bytes(8, "little"),
            "heaptype": signed,
        }

    def module(self) -> bytes:
        """The whole file."""
        source = self.source
        imports = self._imports()
        own = [function for function in source.functions if function.imported is None]
        bodies = [self._body(function) for function in own]
        sections = [
            (2, _vector(imports)),
            (3, _vector([unsigned(self._type(function.type)) for function in own])),
            (4, _vector(self._tables())),
            (5, _vector([_limits(m.pages, m.most_pages) for m in source.memories
                         if m.imported is None])),
            (6, _vector(self._globals())),
            (7, _vector([_text(e.name) + bytes([_KINDS.index(e.kind)]) + unsigned(e.index)
                         for e in source.exports.values()])),
            (8, b"" if source.start is None else unsigned(source.start)),
            (9, _vector([self._element(element) for element in source.elements])),
            (12, unsigned(len(source.data)) if source.data else b""),
            (10, _vector([unsigned(len(body)) + body for body in bodies])),
            (11, _vector([self._data(number) for number in range(len(source.data))])),
        ]  # fmt: skip
        types = [b"\x60" + _codes(t.params) + _codes(t.results) for t in self.types]
        sections.insert(0, (1, _vector(types)))
        return MAGIC + b"".join(
            bytes([number]) + unsigned(len(content)) + content
            for number, content in sections
            if content not in (b"", b"\0") or (number == 8 and content)
        )

    def _type(self, type_: FuncType) -> int:
        if OTHER_REFERENCE in type_.params + type_.results:
            type_ = FuncType("", "")
        return self.types.setdefault(type_, len(self.types))

    def _imports(self) -> list[bytes]:
        source = self.source
        result: list[bytes] = []
        rows: list[tuple[Import | None, bytes]] = []
        for function in source.functions:
            if function.imported is not None:
                rows.append((function.imported, b"\0" + unsigned(self._type(function.type))))
        for table in source.tables:
            rows.append(
                (table.imported, b"\1" + self._table_type(table.type, table.size, table.most))
            )
        for memory in source.memories:
            rows.append((memory.imported, b"\2" + _limits(memory.pages, memory.most_pages)))
        for variable in source.globals:
            content = bytes([3, _TYPE_CODES[variable.type], variable.mutable])
            rows.append((variable.imported, content))
        for names, content in rows:
            if names is not None:
                result.append(_text(names.module) + _text(names.name) + content)
        return result

    def _table_type(self, type_: str, size: int, most: int | None) -> bytes:
        if type_ == OTHER_REFERENCE:
            raise UnsupportedError("a table of typed references", Place(self.source.file))
        return bytes([_TYPE_CODES[type_]]) + _limits(size, most)

    def _tables(self) -> list[bytes]:
        tables = [table for table in self.source.tables if table.imported is None]
        return [
            (b"" if table.init is None else b"\x40\0")
            + self._table_type(table.type, table.size, table.most)
            + (b"" if table.init is None else self._constant(table.init))
            for table in tables
        ]

    def _globals(self) -> list[bytes]:
        return [
            bytes([_TYPE_CODES[variable.type], variable.mutable]) + self._constant(variable.init)
            for variable in self.source.globals
            if variable.init is not None
        ]

    def _element(self, element: Element) -> bytes:
        """An active segment of any table, or a passive one, by expressions."""
        entries = b"\x70" + _vector([self._constant(entry) for entry in element.entries])
        if element.offset is None:
            return unsigned(5 if element.passive else 7) + entries
        return unsigned(6) + unsigned(element.table) + self._constant(element.offset) + entries

    def _data(self, number: int) -> bytes:
        data = self.source.data[number]
        content = unsigned(len(data.content)) + data.content
        if data.offset is None:
            return unsigned(1) + content
        return unsigned(2) + unsigned(data.memory) + self._constant(data.offset) + content

    def _constant(self, constant: Constant) -> bytes:
        parts = constant.code or (constant,)
        if not parts[0].op:
            raise UnsupportedError("a global without a known value", Place(self.source.file))
        code = [
            Instruction(part.op, (part.value,) if self.opcodes[part.op][1].immediates else (), 0)
            for part in parts
        ]
        return b"".join(map(self._instruction, code)) + b"\x0b"

    # --- functions ---------------------------------------------------------------------------

    def _body(self, function: Function) -> bytes:
        extra = function.locals[len(function.type.params) :]
        groups = [(letter, len(list(group))) for letter, group in groupby(extra)]
        head = _vector([unsigned(n) + bytes([_TYPE_CODES[letter]]) for letter, n in groups])
        if not function.code or function.unknown:
            return head + b"\x00\x0b"
        return head + b"".join(map(self._instruction, function.code))

    def _instruction(self, instruction: Instruction) -> bytes:
        code, opcode = self.opcodes[instruction.op]
        if instruction.op == "unreachable":
            return code
        if instruction.op == "call_indirect":
            type_ = self.source.types[instruction.args[0]]
            return code + unsigned(self._type(type_)) + unsigned(instruction.args[1])
        if instruction.block is not None:
            return code + self._block_type(instruction.block)
        return code + self._immediates(opcode.immediates, instruction.args)

    def _block_type(self, type_: FuncType) -> bytes:
        if not type_.params and len(type_.results) < 2:
            return bytes([_TYPE_CODES[type_.results] if type_.results else 0x40])
        return signed(self._type(type_))

    def _immediates(self, kinds: Iterable[str], args: tuple[int, ...]) -> bytes:
        if tuple(kinds) == ("labels",):
            return unsigned(len(args) - 1) + b"".join(map(unsigned, args))
        if tuple(kinds) == ("memarg",):
            return unsigned(args[0]) + unsigned(args[1])
        return b"".join(self.writers[kind](arg) for kind, arg in zip(kinds, args, strict=True))

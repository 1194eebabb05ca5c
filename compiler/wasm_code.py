"""Decodes instruction sequences: function bodies and constant expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from compiler.errors import UnsupportedError
from compiler.wasm_opcodes import (
    FAMILIES,
    OPCODES,
    OTHER_REFERENCE,
    PREFIXED,
    VALUE_TYPES,
    WasmOpcode,
)
from compiler.wasm_reader import Reader
from compiler.wasm_types import Constant, FuncType, Instruction

MOST_LOCALS = 50_000
"""Locals of one function; the limit of wasmtime and of the browsers."""


def value_type(reader: Reader) -> str:
    """A value type as its letter."""
    start = reader.position
    code = reader.byte()
    if code in VALUE_TYPES:
        return VALUE_TYPES[code]
    if code in (0x63, 0x64):  # a reference with an explicit heap type
        reader.signed(33)
        return OTHER_REFERENCE
    if 0x65 <= code <= 0x74:
        return OTHER_REFERENCE
    raise reader.error(f"malformed value type {code:#04x}", start)


def local_types(reader: Reader) -> str:
    """The declared locals of a function body."""
    types: list[str] = []
    total = 0
    for _ in range(reader.count("local declarations")):
        start = reader.position
        number = reader.unsigned()
        total += number
        if total > MOST_LOCALS:
            raise reader.error(f"too many locals (more than {MOST_LOCALS})", start)
        types.append(value_type(reader) * number)
    return "".join(types)


def function_code(reader: Reader, types: Sequence[FuncType]) -> tuple[tuple[Instruction, ...], str]:
    """The instructions of a body, and what stopped the decoding, if something did."""
    decoder = _Decoder(reader, types)
    code: list[Instruction] = []
    depth = 1
    while depth:
        try:
            instruction = decoder.instruction()
        except UnsupportedError as error:
            reader.position = reader.end
            return tuple(code), error.reason
        if instruction.op in ("block", "loop", "if"):
            depth += 1
        elif instruction.op == "end":
            depth -= 1
        code.append(instruction)
    reader.finish("a function body")
    return tuple(code), ""


def constant(reader: Reader) -> Constant:
    """A constant expression: one instruction and ``end``, or something longer."""
    decoder = _Decoder(reader, ())
    code: list[Instruction] = []
    while not code or code[-1].op != "end":
        code.append(decoder.instruction())
    parts = tuple(Constant(part.op, part.args[0] if part.args else 0) for part in code[:-1])
    if len(parts) != 1:
        return Constant("", code=parts)
    first = code[0]
    if not (first.op.endswith(".const") or first.op in ("global.get", "ref.func", "ref.null")):
        raise reader.error(f"{first.op} in a constant expression", first.offset)
    return parts[0]


class _Decoder:
    """Decodes one instruction after the other."""

    def __init__(self, reader: Reader, types: Sequence[FuncType]) -> None:
        self.reader = reader
        self.types = types
        unsigned = reader.unsigned
        self.readers: dict[str, Callable[[], tuple[int, ...]]] = {
            "index": lambda: (unsigned(),),
            "labels": self._labels,
            "memarg": self._memory_argument,
            "i32": lambda: (reader.signed(32) & 0xFFFFFFFF,),
            "i64": lambda: (reader.signed(64) & 0xFFFFFFFFFFFFFFFF,),
            "f32": lambda: (int.from_bytes(reader.take(4), "little"),),
            "f64": lambda: (int.from_bytes(reader.take(8), "little"),),
            "types": self._select_types,
            "heaptype": lambda: (reader.signed(33),),
        }

    def instruction(self) -> Instruction:
        """The next instruction.

        Raises:
            CompileError: malformed.
            UnsupportedError: an extension whose encoding is not known here.
        """
        start = self.reader.position
        opcode = self._opcode()
        if not opcode.immediates:
            return Instruction(opcode.name, (), start)
        if opcode.immediates == ("block",):
            return Instruction(opcode.name, (), start, self._block_type())
        args: tuple[int, ...] = ()
        for kind in opcode.immediates:
            args += self.readers[kind]()
        return Instruction(opcode.name, args, start)

    def _opcode(self) -> WasmOpcode:
        reader = self.reader
        start = reader.position
        code = reader.byte()
        opcode = OPCODES.get(code)
        if opcode is not None:
            return opcode
        if code == 0xFC:
            number = reader.unsigned()
            if number in PREFIXED:
                return PREFIXED[number]
            raise reader.error(f"unknown opcode 0xfc {number}", start)
        if code in FAMILIES:
            raise reader.unsupported(FAMILIES[code], "compile for WebAssembly 1.0", start)
        raise reader.error(f"unknown opcode {code:#04x}", start)

    def _block_type(self) -> FuncType:
        reader = self.reader
        start = reader.position
        if reader.left and reader.data[start] == 0x40:
            reader.byte()
            return FuncType("", "")
        if reader.left and 0x40 < reader.data[start] < 0x80:
            return FuncType("", value_type(reader))
        index = reader.signed(33)
        if not 0 <= index < len(self.types):
            raise reader.error(f"unknown type {index}", start)
        return self.types[index]

    def _labels(self) -> tuple[int, ...]:
        count = self.reader.count("labels")
        return tuple(self.reader.unsigned() for _ in range(count + 1))

    def _memory_argument(self) -> tuple[int, ...]:
        start = self.reader.position
        align, offset = self.reader.unsigned(), self.reader.unsigned()
        if align >= 64:
            raise self.reader.unsupported("more than one memory", "use one memory", start)
        return align, offset

    def _select_types(self) -> tuple[int, ...]:
        return tuple(ord(value_type(self.reader)) for _ in range(self.reader.count("types")))

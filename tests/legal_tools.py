"""Running a module and its legalised form side by side in wasmtime."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import wasmtime

from compiler import wasm
from compiler.legalise import legalise
from compiler.legalise_encode import encode
from compiler.legalise_words import from_words, to_words
from compiler.wasm_opcodes import SIGNATURES
from compiler.wasm_types import Module

SIZES = {"i": 4, "f": 4, "l": 8, "d": 8}
NAMES = {"i": "i32", "f": "f32", "l": "i64", "d": "f64"}
NAN32, NAN64 = 0x7FC00000, 0x7FF8000000000000
_OUTPUT = 1 << 20
"""Address of the results in :func:`bulk_module`."""

WORD_EDGES = (
    0, 1, 2, 3, 7, 10, 31, 32, 33, 63, 64, 65, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF,
    0x10000,
    0x12345678, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xAAAAAAAA, 0xFFFF8000, 0xFFFFFF80, 0xFFFFFFFE,
    0xFFFFFFFF,
)  # fmt: skip
LONG_EDGES = (
    0, 1, 2, 3, 7, 10, 31, 32, 33, 63, 64, 65, 127, 0x80, 0xFFFF, 0x10000, 0x7FFFFFFF,
    0x80000000, 0xFFFFFFFF,
    1 << 32, (1 << 32) + 1, 0x1FFFFFFFF, 0x7FFFFFFF00000000, (1 << 63) - 1, 1 << 63, (1 << 63) + 1,
    0xFFFFFFFF00000000, 0xFFFFFFFF00000001, 0xFFFFFFFE00000001, 0xFFFF0000FFFF, 0xFFFFFFFFFFFF8000,
    (1 << 64) - 2, (1 << 64) - 1, 10**9 + 7, 10**18, 0x8000000000000000 // 3,
)  # fmt: skip


@cache
def float_edges(exponent_bits: int, fraction_bits: int) -> tuple[int, ...]:
    """Bits of special numbers, both signs: exponents and fractions at their ends."""
    bias, ones = (1 << exponent_bits - 1) - 1, (1 << fraction_bits) - 1
    exponents = {0, 1, 2, bias - 2, bias - 1, bias, bias + 1, bias + 2, 2 * bias - 1, 2 * bias}
    exponents |= {bias + n for n in (22, 23, 24, 30, 31, 32, 51, 52, 53, 62, 63, 64)}
    exponents |= {bias - fraction_bits - 1, bias + fraction_bits}
    fractions = {0, 1, ones, ones - 1, 1 << fraction_bits - 1, ones >> 1}
    values = {e << fraction_bits | f for e in exponents for f in fractions}
    values |= {(2 * bias + 1) << fraction_bits | f for f in (0, 1 << fraction_bits - 1, ones)}
    sign = 1 << exponent_bits + fraction_bits
    return tuple(sorted(values | {value | sign for value in values}))


EDGES = {
    "i": WORD_EDGES, "l": LONG_EDGES, "f": float_edges(8, 23), "d": float_edges(11, 52),
}  # fmt: skip


def random_bits(generator: random.Random, type_: str) -> int:
    """Random bits of a value, of a random magnitude."""
    bits = 8 * SIZES[type_]
    if type_ in "il":
        value = generator.getrandbits(generator.randint(1, bits))
        return -value % (1 << bits) if generator.random() < 0.3 else value
    if generator.random() < 0.2:
        return generator.getrandbits(bits)
    if generator.random() < 0.3:  # few significant bits
        value = generator.randint(-200, 200) / 2 ** generator.randint(0, 8)
    else:
        value = generator.uniform(-2, 2) * 2.0 ** generator.randint(-70, 70)
    return to_bits(value, type_)


def to_bits(value: float, type_: str) -> int:
    """Bits of a float."""
    return int.from_bytes(struct.pack("<f" if type_ == "f" else "<d", value), "little")


def is_nan(bits: int, type_: str) -> bool:
    """Whether these are the bits of a NaN."""
    return bits & (1 << 8 * SIZES[type_] - 1) - 1 > (0x7F800000 if type_ == "f" else 0x7FF << 52)


def legalised(content: bytes) -> bytes:
    """The module on i32 alone, checked to be that."""
    module = legalise(wasm.decode(content, "test.wasm"))
    assert only_words(module)
    return encode(module)


def only_words(module: Module) -> bool:
    """Whether no function has a value, or an instruction, of another type than i32."""
    for function in module.functions:
        types = function.type.params + function.type.results + function.locals
        for code in function.code:
            signature = SIGNATURES.get(code.op)
            if signature is not None:
                types += (signature.pops or "") + (signature.pushes or "")
            if code.block is not None:
                types += code.block.params + code.block.results
        if set(types) - {"i"}:
            return False
    return all(variable.type == "i" for variable in module.globals)


@dataclass
class Instance:
    """An instance of a module; functions are called with and return bits, a 64-bit value as one."""

    store: wasmtime.Store
    exports: Any
    words: bool

    def call(self, name: str, types: str, *values: int) -> int | str | None:
        """The result's bits, or the trap's reason. ``types``: parameters and result, ``ll>l``."""
        params, result = types.split(">")
        arguments: list[int | float] = []
        for type_, value in zip(params, values, strict=True):
            if not self.words and type_ in "fd":
                packed = value.to_bytes(SIZES[type_], "little")
                arguments.append(struct.unpack("<f" if type_ == "f" else "<d", packed)[0])
            elif self.words:
                arguments += [_signed(word, 32) for word in to_words(type_, [value])]
            else:
                arguments.append(_signed(value, 8 * SIZES[type_]))
        try:
            got = self.exports[name](self.store, *arguments)
        except wasmtime.Trap as trap:
            return str(trap.trap_code)
        if not result:
            return None
        if self.words:
            return from_words(result, got if isinstance(got, list) else [got])[0]
        if isinstance(got, float):
            return to_bits(got, result)
        return int(got) % (1 << 8 * SIZES[result])

    def memory(self) -> bytes:
        """The exported memory."""
        return bytes(self.exports["memory"].read(self.store))


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> bits - 1 else value


def instantiate(content: bytes, words: bool) -> Instance:
    """An instance without imports."""
    config = wasmtime.Config()
    config.cranelift_nan_canonicalization = (
        True  # a NaN that arithmetic makes: the positive quiet one
    )
    store = wasmtime.Store(wasmtime.Engine(config))
    module = wasmtime.Module(store.engine, content)
    return Instance(store, wasmtime.Instance(store, module, []).exports(store), words)


def both(wat: str | bytes) -> tuple[Instance, Instance]:
    """The module and its legalised form."""
    content = wat if isinstance(wat, bytes) else bytes(wasmtime.wat2wasm(wat))
    return instantiate(content, False), instantiate(legalised(content), True)


def bulk_module(ops: Sequence[str]) -> str:
    """For each instruction a function that applies it to ``n`` rows of two operands.

    A row is 16 bytes, an operand stands in the first bytes of its half; the result of row k goes to
    address ``_OUTPUT + 8 * k``.
    """
    functions = [
        f"""(func (export "{op}") (param $n i32) (local $i i32)
          (block (loop
            (br_if 1 (i32.ge_u (local.get $i) (local.get $n)))
            ({NAMES[(SIGNATURES[op].pushes or "i")[0]]}.store offset={_OUTPUT}
              (i32.shl (local.get $i) (i32.const 3))
              ({op} {_operands(op)}))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br 0))))"""
        for op in ops
    ]
    return f'(module (memory (export "memory") 32) {" ".join(functions)})'


def _operands(op: str) -> str:
    address = "(i32.shl (local.get $i) (i32.const 4))"
    return " ".join(
        f"({NAMES[type_]}.load offset={8 * number} {address})"
        for number, type_ in enumerate(SIGNATURES[op].pops or "")
    )


def run_bulk(instance: Instance, op: str, rows: Sequence[Sequence[int]]) -> list[int]:
    """The results' bits, row by row."""
    content = b"".join(
        b"".join(value.to_bytes(8, "little") for value in (*row, 0)[:2]) for row in rows
    )
    assert len(content) <= _OUTPUT
    memory = instance.exports["memory"]
    memory.write(instance.store, content, 0)
    instance.exports[op](instance.store, len(rows))
    size = SIZES[(SIGNATURES[op].pushes or "i")[0]]
    out = bytes(memory.read(instance.store, _OUTPUT, _OUTPUT + 8 * len(rows)))
    return [int.from_bytes(out[8 * k : 8 * k + size], "little") for k in range(len(rows))]

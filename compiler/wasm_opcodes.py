"""The WebAssembly opcode table: number to name, kinds of immediates, and operand types.

Written once and read by the decoder, the type checker and the lowering. It holds WebAssembly 1.0,
sign extension, and the later opcodes that a compiler is likely to emit, so that those can be
refused by name. Opcodes of whole later proposals (SIMD, threads, exceptions) have a family only.

Types are single letters: ``i`` i32, ``l`` i64, ``f`` f32, ``d`` f64; ``v`` v128, ``p`` funcref and
``e`` externref appear in declarations only.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

VALUE_TYPES = {0x7F: "i", 0x7E: "l", 0x7D: "f", 0x7C: "d", 0x7B: "v", 0x70: "p", 0x6F: "e"}
"""Binary encoding of a value type: its letter."""
OTHER_REFERENCE = "r"
"""Letter of all reference types of later proposals."""
TYPE_NAMES = {
    "i": "i32", "l": "i64", "f": "f32", "d": "f64", "v": "v128", "p": "funcref", "e": "externref",
    OTHER_REFERENCE: "a typed reference",
}  # fmt: skip


@dataclass(frozen=True)
class WasmOpcode:
    """One opcode.

    ``immediates``: kinds of the immediates, in order (see ``wasm_code.py``). ``pops`` and
    ``pushes``: operand types, or ``None`` where they depend on context (control flow, locals,
    calls, ``drop``, ``select``) or the opcode is later than what the checker knows.
    """

    name: str
    immediates: tuple[str, ...] = ()
    pops: str | None = None
    pushes: str | None = None


_CONTEXTUAL = {
    0x00: ("unreachable",), 0x01: ("nop",), 0x02: ("block", "block"), 0x03: ("loop", "block"),
    0x04: ("if", "block"), 0x05: ("else",), 0x0B: ("end",), 0x0C: ("br", "index"),
    0x0D: ("br_if", "index"), 0x0E: ("br_table", "labels"), 0x0F: ("return",),
    0x10: ("call", "index"), 0x11: ("call_indirect", "index", "index"),
    0x12: ("return_call", "index"), 0x13: ("return_call_indirect", "index", "index"),
    0x1A: ("drop",), 0x1B: ("select",), 0x1C: ("select", "types"),
    0x20: ("local.get", "index"), 0x21: ("local.set", "index"), 0x22: ("local.tee", "index"),
    0x23: ("global.get", "index"), 0x24: ("global.set", "index"),
    0x25: ("table.get", "index"), 0x26: ("table.set", "index"),
    0xD0: ("ref.null", "heaptype"), 0xD1: ("ref.is_null",), 0xD2: ("ref.func", "index"),
}  # fmt: skip

_MEMORY = """
i32.load:i>i i64.load:i>l f32.load:i>f f64.load:i>d
i32.load8_s:i>i i32.load8_u:i>i i32.load16_s:i>i i32.load16_u:i>i
i64.load8_s:i>l i64.load8_u:i>l i64.load16_s:i>l i64.load16_u:i>l i64.load32_s:i>l i64.load32_u:i>l
i32.store:ii> i64.store:il> f32.store:if> f64.store:id>
i32.store8:ii> i32.store16:ii> i64.store8:il> i64.store16:il> i64.store32:il>
"""
_INTEGER_COMPARISONS = "eq ne lt_s lt_u gt_s gt_u le_s le_u ge_s ge_u"
_FLOAT_COMPARISONS = "eq ne lt gt le ge"
_INTEGER_BINARY = "add sub mul div_s div_u rem_s rem_u and or xor shl shr_s shr_u rotl rotr"
_FLOAT_UNARY, _FLOAT_BINARY = (
    "abs neg ceil floor trunc nearest sqrt",
    "add sub mul div min max copysign",
)
_CONVERSIONS = """
i32.wrap_i64:l>i
i32.trunc_f32_s:f>i i32.trunc_f32_u:f>i i32.trunc_f64_s:d>i i32.trunc_f64_u:d>i
i64.extend_i32_s:i>l i64.extend_i32_u:i>l
i64.trunc_f32_s:f>l i64.trunc_f32_u:f>l i64.trunc_f64_s:d>l i64.trunc_f64_u:d>l
f32.convert_i32_s:i>f f32.convert_i32_u:i>f f32.convert_i64_s:l>f f32.convert_i64_u:l>f
f32.demote_f64:d>f
f64.convert_i32_s:i>d f64.convert_i32_u:i>d f64.convert_i64_s:l>d f64.convert_i64_u:l>d
f64.promote_f32:f>d
i32.reinterpret_f32:f>i i64.reinterpret_f64:d>l f32.reinterpret_i32:i>f f64.reinterpret_i64:l>d
i32.extend8_s:i>i i32.extend16_s:i>i i64.extend8_s:l>l i64.extend16_s:l>l i64.extend32_s:l>l
"""
_PREFIXED_FC = """
i32.trunc_sat_f32_s:f>i i32.trunc_sat_f32_u:f>i i32.trunc_sat_f64_s:d>i i32.trunc_sat_f64_u:d>i
i64.trunc_sat_f32_s:f>l i64.trunc_sat_f32_u:f>l i64.trunc_sat_f64_s:d>l i64.trunc_sat_f64_u:d>l
"""
_BULK = (
    ("memory.init:iii>", "index", "index"), ("data.drop:>", "index"),
    ("memory.copy:iii>", "index", "index"), ("memory.fill:iii>", "index"),
    ("table.init:iii>", "index", "index"), ("elem.drop:>", "index"),
    ("table.copy", "index", "index"), ("table.grow", "index"), ("table.size:>i", "index"),
    ("table.fill", "index"),
)  # fmt: skip


def _signed(entry: str, immediates: tuple[str, ...] = ()) -> WasmOpcode:
    name, _, signature = entry.partition(":")
    if not signature:
        return WasmOpcode(name, immediates)
    pops, pushes = signature.split(">")
    return WasmOpcode(name, immediates, pops, pushes)


def _numeric() -> list[str]:
    """Entries ``name:pops>pushes`` of opcodes 0x45 onwards, in order."""

    def group(types: str, names: str, pops: int, result: str = "") -> list[str]:
        return [
            f"{TYPE_NAMES[t]}.{name}:{t * pops}>{result or t}"
            for t in types
            for name in names.split()
        ]

    return [
        *group("i", "eqz", 1, "i"), *group("i", _INTEGER_COMPARISONS, 2, "i"),
        *group("l", "eqz", 1, "i"), *group("l", _INTEGER_COMPARISONS, 2, "i"),
        *group("fd", _FLOAT_COMPARISONS, 2, "i"),
        *group("i", "clz ctz popcnt", 1), *group("i", _INTEGER_BINARY, 2),
        *group("l", "clz ctz popcnt", 1), *group("l", _INTEGER_BINARY, 2),
        *group("f", _FLOAT_UNARY, 1), *group("f", _FLOAT_BINARY, 2),
        *group("d", _FLOAT_UNARY, 1), *group("d", _FLOAT_BINARY, 2),
        *_CONVERSIONS.split(),
    ]  # fmt: skip


def _single_byte() -> dict[int, WasmOpcode]:
    table = {code: WasmOpcode(row[0], row[1:]) for code, row in _CONTEXTUAL.items()}
    memory = enumerate(_MEMORY.split(), start=0x28)
    table.update({code: _signed(entry, ("memarg",)) for code, entry in memory})
    table[0x3F] = _signed("memory.size:>i", ("index",))
    table[0x40] = _signed("memory.grow:i>i", ("index",))
    for code, kind in enumerate("ilfd", start=0x41):
        table[code] = WasmOpcode(f"{TYPE_NAMES[kind]}.const", (TYPE_NAMES[kind],), "", kind)
    table.update({code: _signed(entry) for code, entry in enumerate(_numeric(), start=0x45)})
    return table


OPCODES: dict[int, WasmOpcode] = _single_byte()
"""Opcodes of one byte."""

PREFIXED: dict[int, WasmOpcode] = {
    **{code: _signed(entry) for code, entry in enumerate(_PREFIXED_FC.split())},
    **{code: _signed(row[0], row[1:]) for code, row in enumerate(_BULK, start=8)},
}
"""Opcodes after the prefix 0xFC."""

FAMILIES: dict[int, str] = {
    0x06: "try (exception handling)", 0x07: "catch (exception handling)",
    0x08: "throw (exception handling)", 0x09: "rethrow (exception handling)",
    0x0A: "throw_ref (exception handling)", 0x14: "call_ref (function references)",
    0x15: "return_call_ref (function references)", 0x18: "delegate (exception handling)",
    0x19: "catch_all (exception handling)", 0x1F: "try_table (exception handling)",
    0xD3: "ref.eq (garbage collection)", 0xD4: "ref.as_non_null (function references)",
    0xD5: "br_on_null (function references)", 0xD6: "br_on_non_null (function references)",
    0xFB: "a garbage collection instruction", 0xFD: "a SIMD instruction",
    0xFE: "an atomic instruction",
}  # fmt: skip
"""First byte of an opcode that is not decoded: what to call it."""

_ACCESS = re.compile(r"[if](32|64)\.(?:load|store)(8|16|32)?(?:_[su])?")


def access_bytes(name: str) -> int:
    """Bytes that a load or store of this name accesses, 0 for any other instruction."""
    match = _ACCESS.fullmatch(name)
    return int(match[2] or match[1]) // 8 if match else 0


SIGNATURES: dict[str, WasmOpcode] = {
    op.name: op for op in (*OPCODES.values(), *PREFIXED.values()) if op.pops is not None
}
"""Opcodes whose operand types do not depend on context, by name."""

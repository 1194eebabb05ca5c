"""The decoder: what it reads, and that malformed input is refused with a place and nothing else."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler import wasm
from compiler.errors import CompileError, TransputerError, UnsupportedError
from compiler.pipeline import compile_wasm
from compiler.wasm_opcodes import OPCODES, access_bytes
from compiler.wasm_types import Constant, FuncType, Import
from wat_programs import assembled
from wat_random import Generator

HEADER = b"\0asm\1\0\0\0"
EVERYTHING = """(module $named
  (type $t (func (param i32 i64) (result f32)))
  (import "env" "log" (func $log (param i32)))
  (import "env" "base" (global i32))
  (memory (export "memory") 2 5)
  (table 4 8 funcref)
  (global $g (mut i64) (i64.const -1))
  (global $h i32 (global.get 0))
  (export "run" (func $run))
  (export "g" (global $g))
  (start $init)
  (elem (i32.const 1) $run $init)
  (data (i32.const 8) "ab\\00c")
  (data $passive "xyz")
  (func $init)
  (func $run (param $x i32) (result i32) (local i32 i32 f64)
    (block (result i32)
      (br_table 0 0 (i32.load offset=16 align=2 (local.get $x)) (local.get 1)))))"""


def test_every_part_of_a_module_is_read() -> None:
    module = wasm.decode(assembled(EVERYTHING), "everything.wasm")
    assert module.types[0] == FuncType("il", "f")
    assert [f.name for f in module.functions] == ["log", "init", "run"]
    assert module.functions[0].imported == Import("env", "log")
    assert [(g.type, g.mutable) for g in module.globals] == [
        ("i", False),
        ("l", True),
        ("i", False),
    ]
    assert [g.init for g in module.globals[1:]] == [
        Constant("i64.const", 0xFFFFFFFFFFFFFFFF), Constant("global.get", 0)
    ]  # fmt: skip
    assert (module.memories[0].pages, module.memories[0].most_pages) == (2, 5)
    assert (module.tables[0].type, module.tables[0].size, module.tables[0].most) == ("p", 4, 8)
    assert {name: e.kind for name, e in module.exports.items()} == {
        "memory": "memory", "run": "func", "g": "global"
    }  # fmt: skip
    assert module.start == 1
    assert [entry.value for entry in module.elements[0].entries] == [2, 1]
    assert [(d.offset, d.content) for d in module.data] == [
        (Constant("i32.const", 8), b"ab\0c"), (None, b"xyz")
    ]  # fmt: skip


def test_code_keeps_types_immediates_and_byte_offsets() -> None:
    content = assembled(EVERYTHING)
    run = wasm.decode(content, "everything.wasm").functions[2]
    assert run.locals == "iiid"
    texts = [code.text for code in run.code]
    assert texts == [
        "block", "local.get 0", "i32.load offset=16", "local.get 1", "br_table 0 0", "end", "end"
    ]  # fmt: skip
    assert run.code[0].block == FuncType("", "i")
    assert content[run.code[2].offset] == 0x28


def test_the_opcode_table_has_the_published_numbers() -> None:
    known = {0x28: "i32.load", 0x3E: "i64.store32", 0x45: "i32.eqz", 0x6D: "i32.div_s",
             0x7C: "i64.add", 0x92: "f32.add", 0xA7: "i32.wrap_i64", 0xBF: "f64.reinterpret_i64",
             0xC4: "i64.extend32_s"}  # fmt: skip
    assert {code: OPCODES[code].name for code in known} == known
    assert (access_bytes("i64.load32_u"), access_bytes("f32.store"), access_bytes("i32.add")) == (
        4,
        4,
        0,
    )


def names_section(names: dict[int, bytes]) -> bytes:
    entries = b"".join(bytes([index, len(name)]) + name for index, name in names.items())
    part = bytes([len(names)]) + entries
    content = b"\x04name" + b"\x01" + bytes([len(part)]) + part
    return b"\0" + bytes([len(content)]) + content


def test_names_fall_back_to_exports_and_numbers_and_are_made_printable() -> None:
    text = '(module (func) (func (export "out\\0ain")) (func))'
    functions = wasm.decode(assembled(text), "n.wasm").functions
    assert [f.name for f in functions] == ["func[0]", "out\\nin", "func[2]"]
    named = assembled(text) + names_section({0: b"first", 2: b"\xffbad"})
    assert wasm.decode(named, "n.wasm").functions[0].name == "first"


@pytest.mark.parametrize(
    ("content", "place", "reason"),
    [
        (b"", 0, "does not begin"),
        (b"\0asm", 4, "version"),
        (b"\0asm\2\0\0\0", 4, "version"),
        (HEADER + b"\x01", 9, "unexpected end"),
        (HEADER + b"\x01\x05\x00", 10, "5 bytes announced"),
        (HEADER + b"\x0e\x00", 8, "unknown section"),
        (HEADER + b"\x03\x01\x00\x01\x01\x00", 11, "order"),
        (HEADER + b"\x01\x05\xff\xff\xff\xff\x0f", 10, "4294967295 entries"),
        (HEADER + b"\x01\x80\x80\x80\x80\x80\x00", 9, "too long"),
        (HEADER + b"\x01\x80\x80\x80\x80\x10", 9, "too large"),
        (HEADER + b"\x01\x02\x01\x61", 11, "function type"),
        (HEADER + b"\x01\x04\x01\x60\x01\x13", 13, "value type"),
        (HEADER + b"\x01\x02\x00\x00", 11, "1 unexpected bytes"),
        (HEADER + b"\x03\x02\x01\x05", 11, "unknown type 5"),
        (HEADER + b"\x05\x04\x01\x01\x02\x01", 11, "greatest size"),
        (HEADER + b"\x00\x02\x01\xff", 10, "UTF-8"),
        (HEADER + b"\x07\x05\x01\x01a\x00\x00", 14, "unknown func 0"),
        (HEADER + b"\x0b\x02\x01\x09", 11, "data segment kind"),
        (HEADER + b"\x06\x06\x01\x7f\x00\x45\x0b", 10, "announced"),
        (HEADER + b"\x08\x01\x00", 10, "unknown function 0"),
    ],
)
def test_malformed_modules_are_refused_at_their_byte(
    content: bytes, place: int, reason: str
) -> None:
    with pytest.raises(CompileError) as caught:
        wasm.decode(content, "bad.wasm")
    assert "bad.wasm" in str(caught.value)
    assert f"byte {place}:" in str(caught.value)
    assert reason in caught.value.reason


def body_module(code: bytes, locals_: bytes = b"\x00") -> bytes:
    """A module of one function of type () -> () with this body."""
    body = locals_ + code
    section = b"\x01" + bytes([len(body)]) + body
    return (
        HEADER + b"\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00" + b"\x07\x08\x01\x04main\x00\x00"
        + b"\x0a" + bytes([len(section)]) + section
    )  # fmt: skip


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (b"\x01", "unexpected end"),
        (b"\x0b\x01", "1 unexpected bytes"),
        (b"\xff\x0b", "unknown opcode 0xff"),
        (b"\xfc\x99\x01\x0b", "unknown opcode 0xfc 153"),
        (b"\x02\x05\x0b\x0b", "unknown type 5"),
        (b"\x41\xff\xff\xff\xff\x0f\x1a\x0b", "too large"),
        (b"\x0e\xff\xff\xff\x7f\x0b", "labels announced"),
    ],
)
def test_malformed_code_is_refused(code: bytes, reason: str) -> None:
    with pytest.raises(CompileError, match="bad.wasm.*byte"):
        wasm.decode(body_module(code), "bad.wasm")
    with pytest.raises(CompileError) as caught:
        wasm.decode(body_module(code), "bad.wasm")
    assert reason in caught.value.reason


def test_too_many_locals_are_refused_without_allocating_them() -> None:
    with pytest.raises(CompileError, match="too many locals"):
        wasm.decode(body_module(b"\x0b", b"\x01\xff\xff\xff\xff\x0f\x7f"), "bad.wasm")


@pytest.mark.parametrize(
    ("code", "what"),
    [
        (b"\xfd\x00\x0b", "SIMD"),
        (b"\xfe\x03\x00\x0b", "atomic"),
        (b"\x06\x40\x0b\x0b", "exception handling"),
        (b"\xfb\x00\x0b", "garbage collection"),
    ],
)
def test_later_proposals_are_refused_by_name_only_where_they_are_reached(
    code: bytes, what: str
) -> None:
    content = body_module(code)
    assert what in wasm.decode(content, "new.wasm").functions[0].unknown
    with pytest.raises(UnsupportedError, match=what):
        compile_wasm(content, "new.wasm")


def test_shared_memory_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="threads"):
        wasm.decode(HEADER + b"\x05\x04\x01\x03\x01\x01", "new.wasm")


def test_noise_is_refused_quickly() -> None:
    noise = random.Random(5).randbytes(10_000_000)
    for content in (noise, HEADER + noise):
        with pytest.raises(CompileError):
            wasm.decode(content, "noise.wasm")


@given(st.integers(0, 1 << 30), st.data())
@settings(max_examples=200, deadline=None)
def test_damaged_modules_raise_nothing_but_our_errors(seed: int, data: st.DataObject) -> None:
    text = EVERYTHING if seed % 2 else Generator(random.Random(seed % 20), size=3).module()
    content = bytearray(assembled(text))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        content[at] = data.draw(st.integers(0, 255))
    del content[data.draw(st.integers(8, len(content))) :]
    try:
        compile_wasm(bytes(content), "damaged.wasm")
    except TransputerError as error:
        assert "damaged.wasm" in str(error)

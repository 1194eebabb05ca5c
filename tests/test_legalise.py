"""Legalised modules: types, tables, globals, order of effects, what is refused, and the encoder."""

from __future__ import annotations

import pytest
import wasmtime

from compiler import wasm
from compiler.errors import UnsupportedError
from compiler.legalise import invalid_conversion, legalise, runtime_module
from compiler.legalise_encode import encode
from compiler.legalise_runtime import build_runtime, runtime_binary
from compiler.pipeline import compile_calls
from compiler.wasm_opcodes import SIGNATURES
from compiler.wasm_types import FuncType, Module
from executor.oracle import execute
from legal_tools import both, bulk_module, legalised
from wat_programs import LIMIT, assembled

OUTSIDE = "TrapCode.MEMORY_OUT_OF_BOUNDS"


def module_of(wat: str) -> Module:
    return legalise(wasm.decode(assembled(wat), "test.wat"))


def agree(wat: str, name: str, types: str, *rows: tuple[int, ...]) -> None:
    """Both forms of the module return the same and leave the same memory."""
    original, ours = both(wat)
    for row in rows:
        assert ours.call(name, types, *row) == original.call(name, types, *row), row
    if "(memory" in wat:
        assert ours.memory() == original.memory()


# --- types and tables ------------------------------------------------------------------------

INDIRECT = """(module
  (type $long (func (param i64) (result i32))) (type $words (func (param i32 i32) (result i32)))
  (type $float (func (param f32) (result i32))) (type $word (func (param i32) (result i32)))
  (table 8 funcref)
  (elem (i32.const 1) $long $words $float $word)
  (func $long (param i64) (result i32) (i32.const 100))
  (func $words (param i32 i32) (result i32) (i32.const 200))
  (func $float (param f32) (result i32) (i32.const 300))
  (func $word (param i32) (result i32) (i32.const 400))
  (func (export "long") (param i32) (result i32)
    (call_indirect (type $long) (i64.const 1) (local.get 0)))
  (func (export "words") (param i32) (result i32)
    (call_indirect (type $words) (i32.const 1) (i32.const 0) (local.get 0)))
  (func (export "float") (param i32) (result i32)
    (call_indirect (type $float) (f32.const 1) (local.get 0)))
  (func (export "word") (param i32) (result i32)
    (call_indirect (type $word) (i32.const 1) (local.get 0))))"""


@pytest.mark.parametrize("name", ["long", "words", "float", "word"])
def test_types_that_become_equal_still_differ_in_indirect_calls(name: str) -> None:
    agree(INDIRECT, name, "i>i", *((index,) for index in range(10)))


@pytest.mark.parametrize("name", ["long", "word"])
def test_indirect_calls_inside_the_machine(name: str) -> None:
    module = module_of(INDIRECT)
    reasons = []
    for index in (0, 1, 2, 4, 9):
        result = execute(compile_calls(module, [(name, [index])]), limit=LIMIT)
        reasons.append(result.trap or result.value)
    mismatch = "indirect call type mismatch"
    expected = {
        "long": ["uninitialized element", 100, mismatch, mismatch, "undefined element"],
        "word": ["uninitialized element", mismatch, mismatch, 400, "undefined element"],
    }
    assert reasons == expected[name]


def test_tables_are_copied_only_where_types_become_equal() -> None:
    plain = INDIRECT.replace("$words (func (param i32 i32)", "$words (func (param i32)").replace(
        "$words (param i32 i32)", "$words (param i32)"
    )
    text = plain.replace("(i32.const 1) (i32.const 0)", "(i32.const 1)").replace("f32", "f64")
    text = text.replace("(param f64)", "(param f64 f64)").replace(
        "(f64.const 1)", "(f64.const 1) (f64.const 1)"
    )
    assert len(module_of(text).tables) == 1
    assert len(module_of(INDIRECT).tables) > 1


def test_several_results_and_block_parameters() -> None:
    agree(
        """(module
          (func $three (param i64 f64) (result f64 i64 i32)
            (f64.add (local.get 1) (f64.const 1)) (i64.sub (i64.const 0) (local.get 0))
            (i32.wrap_i64 (i64.shr_u (local.get 0) (i64.const 33))))
          (func (export "f") (param i64 f64) (result i64) (local i32)
            (call $three (local.get 0) (local.get 1)) (local.set 2)
            (block (param f64 i64) (result i64 f64)
              (br_if 0 (i64.const 7) (f64.const 2.5) (local.get 2)) (drop) (drop)
              (loop (param f64 i64) (result i64 f64)
                (i64.add (i64.const 5)) (local.set 0) (local.set 1)
                (local.get 0) (local.get 1)))
            (i64.reinterpret_f64) (i64.xor)))""",
        "f", "ld>l", (3, 0x3FF8000000000000), (1 << 40, 0), ((1 << 64) - 1, 0x4009 << 48),
    )  # fmt: skip


def test_numbers_of_functions_stay_and_types_are_words() -> None:
    module = module_of(
        """(module (import "env" "host" (func $host (param i64 f32) (result f64)))
          (func (export "f") (param f64 i32 i64) (result f32)
            (drop (call $host (local.get 2) (f32.const 1))) (f32.const 0))
          (func (export "g") (result i64) (i64.mul (i64.const 3) (i64.const 5))))"""
    )
    assert module.functions[0].type == FuncType("iii", "ii")
    assert module.functions[module.exports["f"].index].type == FuncType("iiiii", "i")
    assert [function.index for function in module.functions] == list(range(len(module.functions)))


# --- variables, memory, effects --------------------------------------------------------------


def test_globals() -> None:
    agree(
        """(module (global $a (mut i64) (i64.const 0x123456789)) (global $b f32 (f32.const -2.5))
          (global $c (mut i32) (i32.const 7)) (global $d (mut f64) (f64.const 0.1))
          (global $e i64 (i64.const -1))
          (func (export "f") (param i64) (result i64)
            (global.set $a (i64.add (global.get $a) (local.get 0)))
            (global.set $d (f64.add (global.get $d) (f64.promote_f32 (global.get $b))))
            (global.set $c (i32.add (global.get $c) (i32.wrap_i64 (global.get $e))))
            (i64.add (i64.reinterpret_f64 (global.get $d))
              (i64.add (global.get $a) (i64.extend_i32_s (global.get $c))))))""",
        "f", "l>l", (1,), (0xFFFFFFFF,), (1 << 63,),
    )  # fmt: skip


@pytest.mark.parametrize(
    "op", ["i64.store", "f64.store", "i64.store32", "i64.store16", "f32.store"]
)
def test_a_store_that_traps_writes_nothing(op: str) -> None:
    value = "(f64.const -1.1)" if op[0] == "f" else "(i64.const -1)"
    value = value.replace("f64", "f32") if op.startswith("f32") else value
    wat = f"""(module (memory (export "memory") 1)
      (func (export "f") (param i32) ({op} (local.get 0) {value}))
      (func (export "g") (param i32) ({op} offset=0xFFFFFFFD (local.get 0) {value})))"""
    addresses = [(a,) for a in (0, 3, *range(65526, 65540), 0xFFFFFFF8, 0xFFFFFFFC, 0xFFFFFFFF)]
    agree(wat, "f", "i>", *addresses)
    agree(wat, "g", "i>", (0,), (3,))


@pytest.mark.parametrize("op", ["i64.load", "f64.load", "i64.load32_s", "i64.load16_u"])
def test_loads_at_the_edge(op: str) -> None:
    convert = "(i64.reinterpret_f64 " if op[0] == "f" else "(i64.or (i64.const 0) "
    wat = f"""(module (memory (export "memory") 1) (data (i32.const 65520) "0123456789abcdef")
      (func (export "f") (param i32) (result i64) {convert}({op} (local.get 0))))
      (func (export "g") (param i32) (result i64) {convert}({op} offset=4294967293 (local.get 0))))
      (func (export "dropped") (param i32) (result i32) (i32.wrap_i64 {convert}
        ({op} (local.get 0))))))"""
    addresses = [(a,) for a in (0, 1, *range(65519, 65540), 0xFFFFFFFC)]
    agree(wat, "f", "i>l", *addresses)
    agree(wat, "g", "i>l", (0,), (3,))
    agree(wat, "dropped", "i>i", *addresses)


def test_operands_are_taken_before_later_effects() -> None:
    """A value on the stack is what it was when it was pushed."""
    agree(
        """(module (memory (export "memory") 1) (global $g (mut i64) (i64.const 5))
          (func $change (result i64)
            (i64.store (i32.const 8) (i64.const 99)) (global.set $g (i64.const 77)) (i64.const 1))
          (func (export "f") (param i64) (result i64)
            (i64.store (i32.const 8) (local.get 0))
            (i64.add (i64.load (i32.const 8)) (call $change))
            (i64.add (global.get $g) (call $change)) (i64.xor)
            (i64.add (local.get 0) (local.tee 0 (i64.const 1000))) (i64.xor)
            (i64.sub (local.get 0) (if (result i64) (i32.const 1)
              (then (local.set 0 (i64.const 3)) (local.get 0)) (else (i64.const 4)))) (i64.xor)
            (i64.mul (i64.load (i32.const 8))
              (block (result i64) (i64.store (i32.const 8) (i64.const 12)) (i64.const 3)))
            (i64.add)))""",
        "f", "l>l", (5,), (1 << 40,),
    )  # fmt: skip


def test_effects_between_operands_that_are_not_needed() -> None:
    agree(
        """(module (memory (export "memory") 1) (global $g (mut i64) (i64.const 5))
          (func (export "f") (param i32 i64) (result i64)
            (local.get 0) (i64.store (i32.const 8) (local.get 1)) (local.get 0) (i32.add) (drop)
            (local.get 1) (global.set $g (i64.const 3)) (local.get 1) (i64.add)
            (i32.wrap_i64) (local.get 0) (local.set 0 (i32.const 9)) (local.get 0) (i32.sub)
            (i32.add) (drop)
            (local.get 0) (i64.store (i32.const 24) (i64.const 7)) (i64.extend_i32_s)
            (i64.add (global.get $g))))""",
        "f", "il>l", (5, 1 << 40), (0x80000000, 3),
    )  # fmt: skip


def test_a_store_of_what_it_overwrites() -> None:
    agree(
        """(module (memory (export "memory") 1) (data (i32.const 16) "0123456789abcdefghijklmn")
          (func (export "f") (param i32)
            (i64.store (local.get 0) (i64.load (i32.const 20)))
            (i64.store (i32.const 28) (i64.rotl (i64.load (i32.const 24)) (i64.const 32)))))""",
        "f", "i>", (16,), (24,), (22,),
    )  # fmt: skip


def test_code_that_cannot_be_reached() -> None:
    agree(
        """(module (func (export "f") (param i64) (result i64)
          (block (result i64)
            (br 0 (i64.add (local.get 0) (i64.const 1)))
            (i64.mul) (block (result f64) (f64.const 1) (br 1 (i64.const 2))) (drop) (drop)
            (if (result i64) (then (i64.const 1)) (else (unreachable))) (i64.add))
          (if (result i64) (i64.eqz (local.get 0))
            (then (return (i64.const 11)) (loop (br 0)))
            (else (i64.const 12)))
          (i64.add)))""",
        "f", "l>l", (0,), (1,),
    )  # fmt: skip


def test_functions_on_words_alone_stay_as_they_are() -> None:
    source = wasm.decode(
        assembled(
            """(module (memory 1) (func (export "f") (param i32 i32) (result i32) (local i32)
              (local.set 2 (i32.load offset=8 (i32.add (local.get 0) (i32.const 4))))
              (block (loop (br_if 1 (i32.eqz (local.tee 2 (i32.sub (local.get 2) (i32.const 1)))))
                (i32.store (local.get 1) (select (local.get 0) (local.get 1) (local.get 2)))
                (br 0)))
              (i32.div_u (local.get 0) (call 0 (local.get 1) (local.get 2)))))"""
        ),
        "test.wat",
    )
    assert legalise(source).functions[0].code == source.functions[0].code


# --- traps, refusals -------------------------------------------------------------------------


def test_reasons_of_traps_inside_the_machine() -> None:
    module = module_of(
        """(module
          (func (export "zero") (drop (i64.div_s (i64.const 1) (i64.const 0))))
          (func (export "zero_rest") (drop (i64.rem_u (i64.const 0x100000000) (i64.const 0))))
          (func (export "overflow") (drop
            (i64.div_s (i64.const 0x8000000000000000) (i64.const -1))))
          (func (export "far") (drop (i32.trunc_f64_s (f64.const 1e10)))))"""
    )
    reasons = {
        name: execute(compile_calls(module, [(name, [])]), limit=LIMIT).trap
        for name in ("zero", "zero_rest", "overflow", "far")
    }
    assert reasons == {
        "zero": "integer divide by zero",
        "zero_rest": "integer divide by zero",
        "overflow": "integer overflow",
        "far": "integer overflow",
    }


def test_the_conversion_of_a_nan_has_its_own_immediate() -> None:
    module = module_of('(module (func (export "f") (drop (i32.trunc_f32_s (f32.const nan)))))')
    traps = [c.args for f in module.functions for c in f.code if c.op == "unreachable"]
    assert (invalid_conversion(),) in traps


REFUSED = {
    "ref.func": ("(elem declare func 0)", "(drop (ref.func 0))"),
    "table.get": ("(table 1 funcref)", "(drop (table.get (i32.const 0)))"),
    "return_call": ("", "(return_call 0)"),
    "SIMD": ("", "(drop (i32x4.splat (i32.const 1)))"),
    "atomic": ("(memory 1 1)", "(drop (i32.atomic.load (i32.const 0)))"),
    "externref": ("", "(local externref)"),
}


@pytest.mark.parametrize("feature", REFUSED)
def test_other_features_are_refused_by_name(feature: str) -> None:
    fields, body = REFUSED[feature]
    wat = f"""(module {fields} (func $callee)
      (func $culprit (export "f") {body}) (func (export "g")))"""
    source = wasm.decode(assembled(wat), "test.wat")
    with pytest.raises(UnsupportedError, match=feature) as caught:
        legalise(source)
    assert "culprit" in str(caught.value)
    assert legalise(source, [source.exports["g"].index])


def test_a_provided_import_must_have_its_own_type() -> None:
    source = wasm.decode(
        assembled(
            """(module (import "transputer" "output" (func $out (param f32)))
              (func (export "f") (call $out (f32.const 1))))"""
        ),
        "test.wat",
    )
    with pytest.raises(UnsupportedError, match="transputer.output"):
        legalise(source)


# --- encoder and runtime ---------------------------------------------------------------------


def test_encoding_and_decoding_again() -> None:
    module = module_of(INDIRECT)
    again = wasm.decode(encode(module), "test.wat")
    assert encode(again) == encode(module)
    wasmtime.Module(wasmtime.Engine(), legalised(assembled(INDIRECT)))


def test_the_runtime_uses_no_memory_no_globals_and_no_floats() -> None:
    used = {code.op for function in runtime_module().functions for code in function.code}
    assert not [op for op in used if "load" in op or "store" in op or "global" in op]
    assert not [op for op in used if op[0] == "f"]


def test_no_function_of_the_runtime_needs_itself() -> None:
    """The C compiler knows the patterns of 64-bit operations, and could put them back."""
    module = legalise(wasm.decode(assembled(bulk_module(list(runtime_operations()))), "all"))
    calls = {
        function.index: {code.args[0] for code in function.code if code.op == "call"}
        for function in module.functions
    }
    while leaves := [index for index, callees in calls.items() if not callees]:
        for index in leaves:
            del calls[index]
        for callees in calls.values():
            callees.difference_update(leaves)
    assert calls == {}


def runtime_operations() -> set[str]:
    """Instructions that the runtime implements."""
    return {name for name in runtime_module().exports if name in SIGNATURES}


@pytest.mark.long
def test_the_compiled_runtime_is_current() -> None:
    assert build_runtime() == runtime_binary()

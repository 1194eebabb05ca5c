"""Values of all number types that are only moved: constants, variables, memory, bit patterns."""

from __future__ import annotations

import pytest

from compiler.pipeline import compile_calls
from compiler.wasm import decode
from executor.oracle import Oracle
from wat_programs import agreed, assembled

CONSTANTS = {
    "i32": "-2", "i64": "-0x123456789abcdef0", "f32": "-nan:0x234567", "f64": "nan:0x8765432100000",
}  # fmt: skip
BITS = {
    "i32": (0xFFFFFFFE,), "i64": (0x65432110, 0xEDCBA987), "f32": (0xFFA34567,),
    "f64": (0x32100000, 0x7FF87654),
}  # fmt: skip
OTHER = {"i32": "7", "i64": "7", "f32": "7.5", "f64": "7.5"}


def moves(kind: str) -> str:
    """A module that moves a value through everything that can hold one."""
    value, other = f"({kind}.const {CONSTANTS[kind]})", f"({kind}.const {OTHER[kind]})"
    return f"""(module (memory (export "memory") 1)
      (global $g (mut {kind}) {other}) (global $constant {kind} {value})
      (func $swap (param {kind} i32 {kind}) (result {kind} {kind}) (local.get 2) (local.get 0))
      (func $through (param $x {kind}) (result {kind}) (local $y {kind})
        ({kind}.store offset=3 (i32.const 50) (local.get $x))
        (global.set $g ({kind}.load (i32.const 53)))
        (drop (local.tee $y (global.get $g)))
        (call $swap (local.get $y) (i32.const 1) {other})
        (local.set $y) (drop)
        (select (local.get $y) {other} (i32.const 3))
        (block (param {kind}) (result {kind})
          (br_if 0 (i32.const 0))
          (br 0 (select {other} (global.get $constant) (i32.const 0)))))
      (func (export "f") (result {kind} {kind})
        (call $through (global.get $constant)) (global.get $g))
      (func (export "main") (drop (call $through {value}))))"""


@pytest.mark.parametrize("kind", CONSTANTS)
def test_a_value_comes_through_unchanged(kind: str) -> None:
    module = decode(assembled(moves(kind)), "moves")
    program = compile_calls(module, [("f", ()), ("f", ())])
    oracle = Oracle(program, program.input_tokens())
    list(oracle.trace())
    assert tuple(oracle.stack) == BITS[kind] * 4
    agreed(moves(kind))


@pytest.mark.parametrize(("here", "there"), [("i32", "f32"), ("i64", "f64")])
def test_bit_patterns_are_kept(here: str, there: str) -> None:
    constant = f"({here}.const {CONSTANTS[here]})"
    moved = f"({there}.reinterpret_{here} {constant})"
    text = f"""(module (memory (export "memory") 1) (func (export "main")
      ({here}.store (i32.const 8) ({here}.reinterpret_{there} {moved}))
      ({there}.store (i32.const 24) {moved})))"""
    memory = agreed(text).memory
    found = [[memory.get(start + i, 0) for i in range(8)] for start in (8, 24)]
    assert found[0] == found[1]
    assert bytes(found[0]) == b"".join(b.to_bytes(4, "little") for b in (*BITS[here], 0))[:8]


@pytest.mark.parametrize("expression", [
    "(i32.add (i32.const 5) (i32.const -7))", "(i32.sub (i32.const 5) (i32.const 7))",
    "(i32.mul (i32.const 0x10001) (i32.const 0x10001))",
    "(i32.sub (global.get $first) (i32.mul (i32.const 3) (i32.sub (i32.const 1) (i32.const 9))))",
])  # fmt: skip
def test_globals_with_computed_initial_values(expression: str) -> None:
    agreed(
        f"""(module (global $first i32 (i32.const 100)) (global $g (mut i32) {expression})
      (func (export "f") (result i32) (global.set $g (global.get $g)) (global.get $g)))""",
        ("f",),
    )
    agreed(
        f"""(module (global $first i32 (i32.const 100)) (global $g i32 {expression})
      (global $h i32 (global.get $g)) (func (export "f") (result i32) (global.get $h)))""",
        ("f",),
    )


def test_sixty_four_bits_are_computed_modulo_two_to_the_sixty_fourth() -> None:
    text = """(module
      (global $g i64 (i64.sub (i64.const 1)
        (i64.mul (i64.const 0x100000001) (i64.const 0x7fffffff))))
      (memory (export "memory") 1)
      (func (export "main") (i64.store (i32.const 0) (global.get $g))))"""
    agreed(text)

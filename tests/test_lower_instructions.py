"""Every i32 instruction, compiled and run by the oracle, gives what wasmtime gives."""

from __future__ import annotations

import pytest

from compiler import isa
from wat_programs import EDGES, agreed, table_program

BINARY = [*isa.BINARY, *isa.COMPARISONS]
UNARY = ["i32.eqz", "i32.clz", "i32.ctz", "i32.popcnt", "i32.extend8_s", "i32.extend16_s"]
PAIRS = [(a, b) for a in EDGES for b in EDGES]


@pytest.mark.parametrize("op", BINARY)
def test_binary_instruction_on_edge_values(op: str) -> None:
    agreed(table_program(f"({op} (local.get $a) (local.get $b))", PAIRS))


@pytest.mark.parametrize("op", ["i32.add", "i32.sub", "i32.shl", "i32.and", "i32.or", "i32.mul"])
@pytest.mark.parametrize("constant", [0, 1, -1, 5])
def test_binary_instruction_with_a_constant(op: str, constant: int) -> None:
    pairs = [(a, 0) for a in EDGES]
    agreed(table_program(f"({op} (local.get $a) (i32.const {constant}))", pairs))
    agreed(table_program(f"({op} (i32.const {constant}) (local.get $a))", pairs))
    agreed(table_program(f"({op} (i32.const 77) (i32.const {constant}))", pairs[:1]))


@pytest.mark.parametrize("op", UNARY)
def test_unary_instruction_on_every_bit_length(op: str) -> None:
    values = {*EDGES, *(1 << k for k in range(32)), *((1 << k) - 1 for k in range(32))}
    values |= {0xFFFFFFFF ^ value for value in values}
    agreed(table_program(f"({op} (local.get $a))", [(value, 0) for value in sorted(values)]))


def test_select_takes_the_first_operand_if_the_condition_is_not_zero() -> None:
    expression = "(select (i32.const 11) (local.get $a) (local.get $b))"
    agreed(table_program(expression, [(5, b) for b in (0, 1, 256, 0x80000000)]))


LOADS = ["i32.load", "i32.load8_s", "i32.load8_u", "i32.load16_s", "i32.load16_u"]


@pytest.mark.parametrize("op", LOADS)
def test_load_width_and_sign_at_every_alignment(op: str) -> None:
    text = f"""(module (memory (export "memory") 1)
      (data (i32.const 16) "\\01\\80\\ff\\7f\\80\\00\\fe\\81\\7f")
      (func (export "main") (local $i i32)
        (loop $next
          (i32.store (i32.mul (local.get $i) (i32.const 4))
            ({op} offset=3 (i32.add (local.get $i) (i32.const 9))))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $next (i32.lt_u (local.get $i) (i32.const 15))))))"""
    agreed(text)


@pytest.mark.parametrize("op", ["i32.store", "i32.store8", "i32.store16"])
def test_store_writes_only_its_bytes(op: str) -> None:
    text = f"""(module (memory (export "memory") 1)
      (data (i32.const 0) "\\11\\11\\11\\11\\11\\11\\11\\11\\11\\11\\11\\11")
      (func (export "main")
        ({op} offset=2 (i32.const 1) (i32.const 0xA1B2C3D4))
        ({op} (i32.const 65532) (i32.const 0xFFFFFFFF))))"""
    agreed(text)


BOUNDS = [
    (op, width, address, offset)
    for op, width in [*((n, w) for n, (w, _) in isa.LOADS.items()), *isa.STORES.items()]
    for address, offset in [
        (65536 - width, 0), (65537 - width, 0), (65535, 0), (65536, 0), (0, 65536 - width),
        (0, 65537 - width), (0xFFFFFFFF, 0), (0xFFFFFFFF, 1), (1, 0xFFFFFFFF), (0xFFFFFFFC, 4),
    ]
]  # fmt: skip


@pytest.mark.parametrize(("op", "width", "address", "offset"), BOUNDS)
def test_access_traps_exactly_beyond_the_memory(
    op: str, width: int, address: int, offset: int
) -> None:
    access = f"{op} offset={offset} (i32.const {address})"
    body = f"({access} (i32.const -1))" if op in isa.STORES else f"(drop ({access}))"
    result = agreed(f'(module (memory (export "memory") 1) (func (export "main") {body}))')
    inside = address + offset + width <= 65536
    assert result.trap == (None if inside else isa.TRAPS["trap.out_of_bounds"])


def test_memory_of_no_pages_traps() -> None:
    text = '(module (memory 0) (func (export "main") (drop (i32.load8_u (i32.const 0)))))'
    assert agreed(text).trap == "out of bounds memory access"


def test_memory_size_is_the_declared_size() -> None:
    text = '(module (memory 3 7) (func (export "main") (result i32) (memory.size)))'
    assert agreed(text).value == 3


def test_input_ends_in_minus_one_and_output_takes_the_low_byte() -> None:
    text = """(module
      (import "transputer" "input" (func $in (param i32) (result i32)))
      (import "transputer" "output" (func $out (param i32)))
      (func (export "main") (result i32) (local $i i32) (local $c i32)
        (block $end
          (loop $next
            (local.set $c (call $in (local.get $i)))
            (br_if $end (i32.lt_s (local.get $c) (i32.const 0)))
            (call $out (i32.add (local.get $c) (i32.const 0x100)))
            (local.set $i (i32.add (local.get $i) (i32.const 1)))
            (br $next)))
        (local.get $c)))"""
    result = agreed(text, stdin=bytes(range(256)))
    assert (result.output, result.value) == (bytes(range(256)), -1)
    assert agreed(text).output == b""


def test_the_two_streams_are_kept_apart() -> None:
    text = """(module
      (import "transputer" "output" (func $out (param i32)))
      (import "transputer" "error" (func $err (param i32)))
      (func (export "main")
        (call $out (i32.const 65)) (call $err (i32.const 66)) (call $out (i32.const 0x143))))"""
    result = agreed(text)
    assert (result.output, result.errors) == (b"AC", b"B")


def test_exit_ends_the_run_with_its_code() -> None:
    text = """(module
      (import "transputer" "exit" (func $exit (param i32)))
      (import "transputer" "output" (func $out (param i32)))
      (func $f (i32.const 5) (call $exit (i32.const 77)) (call $out) (drop (i32.const 1)))
      (func (export "_start") (call $f) (call $out (i32.const 65))))"""
    result = agreed(text)
    assert (result.value, result.exit_code, result.output) == (77, 77, b"")


def test_a_program_that_may_exit_and_does_not_ends_with_zero() -> None:
    text = """(module
      (import "transputer" "exit" (func $exit (param i32)))
      (func (export "_start") (if (i32.const 0) (then (call $exit (i32.const 3))))))"""
    assert agreed(text).exit_code == 0

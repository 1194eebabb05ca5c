"""Control flow, calls, globals and traps: the oracle agrees with wasmtime."""

from __future__ import annotations

import pytest

from compiler import isa
from wat_programs import agreed, compiled

FIBONACCI = """(module
  (func $fib (export "fib") (param $n i32) (result i32) (local $a i32) (local $b i32)
    (if (i32.lt_u (local.get $n) (i32.const 2)) (then (return (local.get $n))))
    (local.set $a (call $fib (i32.sub (local.get $n) (i32.const 1))))
    (local.set $b (call $fib (i32.sub (local.get $n) (i32.const 2))))
    (i32.add (local.get $a) (local.get $b))))"""
ACKERMANN = """(module
  (func $a (export "a") (param $m i32) (param $n i32) (result i32)
    (if (result i32) (local.get $m)
      (then (if (result i32) (local.get $n)
        (then (call $a (i32.sub (local.get $m) (i32.const 1))
          (call $a (local.get $m) (i32.sub (local.get $n) (i32.const 1)))))
        (else (call $a (i32.sub (local.get $m) (i32.const 1)) (i32.const 1)))))
      (else (i32.add (local.get $n) (i32.const 1))))))"""


def test_recursion() -> None:
    assert agreed(FIBONACCI, ("fib", 13)).value == 233
    assert agreed(ACKERMANN, ("a", 2, 3)).value == 9


def test_locals_read_before_they_are_written_are_zero_in_every_call() -> None:
    text = """(module
      (func $leave (param i32) (result i32) (local i32 i32 i32)
        (local.set 1 (i32.const 111)) (local.set 2 (local.get 0)) (local.set 3 (i32.const 333))
        (i32.add (local.get 1) (i32.add (local.get 2) (local.get 3))))
      (func $read (param i32) (result i32) (local i32 i32 i32)
        (if (local.get 0) (then (local.set 2 (i32.const 5))))
        (loop $l
          (local.set 1 (i32.add (local.get 1) (local.get 3)))
          (local.set 3 (i32.add (local.get 3) (i32.const 1)))
          (br_if $l (i32.lt_u (local.get 3) (i32.const 4))))
        (i32.add (i32.mul (local.get 1) (i32.const 100)) (local.get 2)))
      (func (export "f") (param i32) (result i32)
        (drop (call $leave (i32.const 7)))
        (i32.add (call $read (local.get 0)) (call $read (i32.const 0)))))"""
    assert agreed(text, ("f", 0)).value == 1200
    assert agreed(text, ("f", 1)).value == 1205


def test_only_locals_that_may_be_read_first_are_zeroed() -> None:
    text = """(module (func (export "f") (param i32) (result i32) (local i32 i32)
      (local.set 1 (i32.mul (local.get 0) (local.get 0)))
      (if (local.get 0) (then (local.set 2 (i32.const 9))))
      (i32.add (i32.add (local.get 1) (local.get 1)) (local.get 2))))"""
    zeroed = [o for o in compiled(text, ("f", 3)).origins if o.instruction == "(zero local)"]
    assert len(zeroed) == 2  # one constant and one assignment


@pytest.mark.parametrize("index", [0, 1, 2, 3, 4, 5, 6, 7, 100, -1])
def test_br_table_reaches_its_target_and_unwinds(index: int) -> None:
    text = """(module (func (export "f") (param i32) (result i32)
      (i32.const 1000)
      (block $d (result i32)
        (block $c (result i32) (i32.const 30)
          (block $b (result i32) (i32.const 20)
            (block $a (result i32) (i32.const 5) (i32.const 6) (i32.const 7)
              (br_table $a $b $b $c $a $d $d (local.get 0)))
            (i32.add (i32.const 1)) (br $b))
          (i32.add))
        (i32.add (i32.const 3)))
      (i32.add)))"""
    agreed(text, ("f", index))


@pytest.mark.parametrize("size", [0, 1, 2, 57])
def test_br_table_of_any_size(size: int) -> None:
    blocks = "(block " * (size + 1)
    labels = " ".join(str(label) for label in range(size + 1))
    ends = " ".join(f"(return (i32.const {1000 + k})))" for k in range(size + 1))
    text = f"""(module (func $f (param i32) (result i32)
        {blocks} (br_table {labels} (local.get 0)) {ends} (i32.const 1))
      (func (export "main") (result i32) (local $i i32) (local $s i32)
        (loop $l
          (local.set $s (i32.add (i32.mul (local.get $s) (i32.const 31)) (call $f (local.get $i))))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $l (i32.le_u (local.get $i) (i32.const {size + 1}))))
        (local.get $s)))"""
    agreed(text)


def test_conditional_branch_with_values_below_keeps_the_right_ones() -> None:
    text = """(module (func (export "f") (param i32) (result i32)
      (block $out (result i32)
        (i32.const 1) (i32.const 2)
        (i32.const 40) (br_if $out (local.get 0))
        (drop) (i32.add) (i32.const 7) (i32.add))))"""
    assert agreed(text, ("f", 1)).value == 40
    assert agreed(text, ("f", 0)).value == 10


def test_blocks_with_several_parameters_and_results() -> None:
    text = """(module (func $swap (param i32 i32) (result i32 i32) (local.get 1) (local.get 0))
      (func (export "f") (param i32) (result i32)
        (i32.const 3) (i32.const 10)
        (loop $l (param i32 i32) (result i32 i32)
          (call $swap)
          (i32.const 99)
          (if (param i32) (i32.eqz (local.get 0)) (then (drop)) (else (drop)))
          (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
          (i32.const 1) (i32.add)
          (br_if $l (i32.gt_s (local.get 0) (i32.const 0))))
        (i32.sub)))"""
    for n in range(5):
        agreed(text, ("f", n))


def test_return_from_inside_blocks_discards_operands() -> None:
    text = """(module (func $f (param i32) (result i32)
        (i32.const 7) (i32.const 8)
        (block (loop (if (local.get 0) (then (return (i32.const 42)) ))))
        (i32.add))
      (func (export "f") (param i32) (result i32)
        (i32.const 100) (i32.add (call $f (local.get 0)))))"""
    assert [agreed(text, ("f", n)).value for n in (0, 1)] == [115, 142]


@pytest.mark.parametrize("condition", [
    "(local.get 0)", "(i32.eqz (local.get 0))", "(i32.eqz (i32.eqz (local.get 0)))",
    "(i32.lt_s (local.get 0) (i32.const 3))", "(i32.eqz (i32.gt_u (local.get 0) (i32.const 3)))",
    "(i32.ne (local.get 0) (i32.const 0))", "(i32.eq (local.get 0) (i32.const 0))",
    "(i32.const 0)", "(i32.const 5)",
])  # fmt: skip
def test_every_form_of_condition(condition: str) -> None:
    text = f"""(module (func (export "f") (param i32) (result i32) (local i32)
      (if {condition} (then (local.set 1 (i32.const 1))))
      (if {condition}
        (then (local.set 1 (i32.add (local.get 1) (i32.const 10))))
        (else (local.set 1 (i32.add (local.get 1) (i32.const 20)))))
      (block (br_if 0 {condition}) (local.set 1 (i32.add (local.get 1) (i32.const 100))))
      (i32.add (local.get 1) (i32.mul (i32.const 1000) {condition}))))"""
    for n in (0, 1, 3, 4, -1):
        agreed(text, ("f", n))


@pytest.mark.parametrize("op", isa.COMPARISONS)
def test_comparisons_as_conditions_and_inverted(op: str) -> None:
    comparison = f"({op} (local.get 0) (local.get 1))"
    text = f"""(module (func (export "f") (param i32 i32) (result i32) (local i32)
      (if {comparison} (then (local.set 2 (i32.const 1))))
      (block (br_if 0 {comparison}) (local.set 2 (i32.add (local.get 2) (i32.const 10))))
      (block (br_if 0 (i32.eqz {comparison}))
        (local.set 2 (i32.add (local.get 2) (i32.const 100))))
      (i32.add (local.get 2) (i32.mul (i32.const 1000) (i32.eqz {comparison})))))"""
    for a, b in ((1, 2), (2, 1), (3, 3), (-1, 1), (1, -1), (-2, -1), (-1, -2), (-1, -1)):
        agreed(text, ("f", a, b))


def test_a_copy_of_a_local_keeps_the_value_it_was_made_from() -> None:
    text = """(module (func (export "f") (param i32) (result i32) (local i32 i32)
      (local.set 1 (local.get 0))
      (local.set 2 (local.tee 1 (local.get 0)))
      (local.set 0 (i32.add (local.get 0) (i32.const 5)))
      (if (local.get 0) (then (local.set 1 (i32.const 50))))
      (i32.add (i32.mul (local.get 1) (i32.const 100))
        (i32.add (local.get 2) (i32.mul (local.get 0) (i32.const 10000))))))"""
    assert agreed(text, ("f", 3)).value == 80000 + 5000 + 3
    assert agreed(text, ("f", -5)).value == -505


def test_two_kept_values_stay_in_order_above_discarded_ones() -> None:
    text = """(module (func $two (param i32) (result i32 i32)
        (i32.const 9) (i32.const 8) (i32.const 70) (i32.const 7)
        (br_if 0 (local.get 0)) (i32.add) (br 0))
      (func (export "f") (param i32) (result i32) (call $two (local.get 0)) (i32.sub)))"""
    assert agreed(text, ("f", 1)).value == 63
    assert agreed(text, ("f", 0)).value == 8 - 77


def test_globals_keep_their_values_between_calls() -> None:
    text = """(module
      (global $constant i32 (i32.const 1000)) (global $unused i64 (i64.const 5))
      (global $count (mut i32) (i32.const 40)) (global $copy (mut i32) (global.get $constant))
      (func $next (result i32)
        (global.set $count (i32.add (global.get $count) (i32.const 1))) (global.get $count))
      (func (export "main") (result i32)
        (drop (call $next)) (global.set $copy (i32.add (global.get $copy) (i32.const 5)))
        (i32.add (call $next) (i32.add (global.get $copy) (global.get $constant)))))"""
    assert agreed(text).value == 2047


def test_start_function_runs_first() -> None:
    text = """(module (global $g (mut i32) (i32.const 1)) (memory (export "memory") 1)
      (func $init (global.set $g (i32.const 5)) (i32.store (i32.const 8) (i32.const 9)))
      (start $init)
      (func (export "main") (result i32) (i32.add (global.get $g) (i32.load (i32.const 8)))))"""
    assert agreed(text).value == 14


def test_unreachable_and_code_after_it() -> None:
    text = """(module (func (export "f") (param i32) (result i32)
      (block $b (br_if $b (local.get 0)) (unreachable) (br $b))
      (i32.const 3) (return) (unreachable) (drop) (i32.add) (drop)))"""
    assert agreed(text, ("f", 0)).trap == "unreachable"
    assert agreed(text, ("f", 1)).value == 3


@pytest.mark.parametrize(("op", "a", "b", "trap"), [
    ("i32.div_u", 5, 0, "integer divide by zero"), ("i32.div_s", -5, 0, "integer divide by zero"),
    ("i32.rem_u", 5, 0, "integer divide by zero"), ("i32.rem_s", -5, 0, "integer divide by zero"),
    ("i32.div_s", -(1 << 31), -1, "integer overflow"), ("i32.rem_s", -(1 << 31), -1, None),
    ("i32.div_s", 0, 0, "integer divide by zero"), ("i32.rem_u", 0, 0, "integer divide by zero"),
    ("i32.rem_s", -(1 << 31), 0, "integer divide by zero"),
    ("i32.div_s", -(1 << 31), 0, "integer divide by zero"),
])  # fmt: skip
def test_division_traps(op: str, a: int, b: int, trap: str | None) -> None:
    variable = f"""(module (func (export "f") (param i32 i32) (result i32)
      (i32.const 1) ({op} (local.get 0) (local.get 1)) (i32.add)))"""
    assert agreed(variable, ("f", a, b)).trap == trap
    constant = f"""(module (func (export "f") (param i32) (result i32)
      (i32.const 1) ({op} (local.get 0) (i32.const {b})) (i32.add)))"""
    assert agreed(constant, ("f", a)).trap == trap


def test_endless_recursion_exhausts_the_stack() -> None:
    text = """(module (func $f (export "f") (param i32) (result i32)
      (i32.const 1) (i32.add (call $f (local.get 0)))))"""
    result = agreed(text, ("f", 1))
    assert result.trap == "call stack exhausted"
    assert result.steps > isa.MAX_CALL_DEPTH


def test_deep_recursion_below_the_limit_runs() -> None:
    text = """(module (func $f (export "f") (param i32) (result i32)
      (if (result i32) (local.get 0)
        (then (i32.add (i32.const 1) (call $f (i32.sub (local.get 0) (i32.const 1)))))
        (else (i32.const 0)))))"""
    deepest = isa.MAX_CALL_DEPTH - 2
    assert agreed(text, ("f", deepest)).value == deepest


def test_i64_values_are_moved_as_pairs() -> None:
    text = """(module (memory (export "memory") 1) (global $g (mut i64) (i64.const -2))
      (data (i32.const 0) "\\01\\02\\03\\04\\05\\06\\07\\88")
      (func $pass (param i64 i32 i64) (result i64) (local i64)
        (local.set 3 (select (local.get 0) (local.get 2) (local.get 1)))
        (block (result i64) (drop (i32.const 1)) (local.tee 3 (local.get 3))))
      (func (export "main") (result i32) (local i64)
        (i64.store offset=16 (i32.const 8) (i64.load (i32.const 0)))
        (i64.store (i32.const 32) (i64.const 0x1122334455667788))
        (i64.store (i32.const 40)
          (call $pass (i64.load (i32.const 0)) (i32.const 1) (global.get $g)))
        (i64.store (i32.const 48)
          (call $pass (i64.load (i32.const 0)) (i32.const 0) (global.get $g)))
        (global.set $g (i64.extend_i32_s (i32.const -7)))
        (i64.store (i32.const 56) (global.get $g))
        (i64.store32 (i32.const 64) (i64.load32_u (i32.const 4)))
        (i64.store (i32.const 72) (local.get 0))
        (drop (i64.const 1))
        (i32.add (i32.wrap_i64 (i64.load (i32.const 0))) (i32.const 1))))"""
    agreed(text)


@pytest.mark.parametrize("address", [65528, 65529, 65532, 65533, 0xFFFFFFF9])
def test_i64_store_that_traps_writes_nothing(address: int) -> None:
    text = f"""(module (memory (export "memory") 1) (func (export "main")
      (i64.store (i32.const {address}) (i64.const -1))))"""
    result = agreed(text)
    assert (result.trap is None) == (address == 65528)

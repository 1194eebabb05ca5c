"""Indirect calls: the right function, or the right trap, in the words of wasmtime."""

from __future__ import annotations

import pytest

from compiler.errors import CompileError, UnsupportedError
from compiler.program import TRAP_REASONS
from executor.oracle import execute
from wat_programs import agreed, compiled

REASONS = ("undefined element", "uninitialized element", "indirect call type mismatch")
# entries 0 and 5 to 7 are null, 3 has another type, and 1 was overwritten
SMALL = """(module
  (type $unary (func (param i32) (result i32)))
  (table 8 funcref)
  (elem (i32.const 1) $twice $twice $nothing $increment)
  (elem (i32.const 1) $square)
  (func $twice (param i32) (result i32) (i32.mul (local.get 0) (i32.const 2)))
  (func $square (param i32) (result i32) (i32.mul (local.get 0) (local.get 0)))
  (func $increment (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
  (func $nothing)
  (func (export "f") (param i32 i32) (result i32)
    (i32.add (i32.const 1000)
      (call_indirect (type $unary) (local.get 1) (local.get 0)))))"""


@pytest.mark.parametrize("index", [0, 1, 2, 3, 4, 5, 7, 8, 9, 0x7FFFFFFF, -1])
def test_every_index_of_a_table(index: int) -> None:
    agreed(SMALL, ("f", index, 7))


def test_the_traps_name_the_calling_instruction_and_leave_what_was_done() -> None:
    traps = [agreed(SMALL, ("f", index, 7)).trap for index in (8, 0, 3)]
    assert traps == list(REASONS)
    program = compiled(SMALL, ("f", 0, 7))
    places = {o.function for i, o in enumerate(program.origins) if program.trap_reason(i)}
    assert places == {"f"}
    assert all(
        origin.instruction.startswith("call_indirect")
        for number, origin in enumerate(program.origins)
        if program.trap_reason(number)
    )


def large(n: int) -> str:
    """A table of ``n`` entries: functions of two types, and a null in every seventh place."""
    functions = "".join(
        f"(func $g{k} {'(param i32)' if k % 5 else ''} (result i32) (i32.const {100 + k}))"
        for k in range(n)
    )
    entries = " ".join(f"(elem (i32.const {k}) $g{k})" for k in range(n) if k % 7)
    return f"""(module (type $t (func (param i32) (result i32))) (table {n} funcref)
      {entries} {functions}
      (func (export "f") (param i32) (result i32)
        (i32.add (call_indirect (type $t) (i32.const 5) (local.get 0)) (i32.const 1)))
      (func (export "g") (param i32) (result i32)
        (call_indirect (type $t) (i32.const 6) (local.get 0))))"""


@pytest.mark.parametrize("index", [0, 1, 2, 5, 6, 7, 8, 34, 35, 36, 58, 59, 60, 61, -1])
def test_large_tables_go_through_one_function_of_their_type(index: int) -> None:
    text = large(60)
    agreed(text, ("f", index))
    functions = compiled(text, ("f", 1)).report["functions"]
    assert isinstance(functions, dict)
    assert sum(name.startswith("(call_indirect") for name in functions) == 1


def test_a_table_without_matching_functions_and_an_empty_one() -> None:
    for size, entries, reason in ((1, "(elem (i32.const 0) $n)", 3), (2, "", 2), (0, "", 1)):
        text = f"""(module (table {size} funcref) {entries} (func $n)
          (func (export "f") (result i32) (drop (i32.const 3))
            (call_indirect (result i32) (i32.const 0))))"""
        assert agreed(text, ("f",)).trap == TRAP_REASONS[reason]


def test_recursion_through_a_table_and_several_results() -> None:
    text = """(module (table funcref (elem $even $odd $pair))
      (type $t (func (param i32) (result i32)))
      (func $even (type $t) (if (result i32) (i32.eqz (local.get 0)) (then (i32.const 44))
        (else (call_indirect (type $t) (i32.sub (local.get 0) (i32.const 1)) (i32.const 1)))))
      (func $odd (type $t) (if (result i32) (i32.eqz (local.get 0)) (then (i32.const 99))
        (else (call_indirect (type $t) (i32.sub (local.get 0) (i32.const 1)) (i32.const 0)))))
      (func $pair (param i64) (result i32 i64) (i32.const 3) (local.get 0))
      (func (export "f") (param i32) (result i32) (local i32)
        (call_indirect (type $t) (local.get 0) (i32.const 0))
        (call_indirect (param i64) (result i32 i64) (i64.const 0x500000004) (i32.const 2))
        (i32.wrap_i64) (i32.mul) (i32.add)))"""
    assert agreed(text, ("f", 20)).value == 44 + 12
    assert agreed(text, ("f", 21)).value == 99 + 12


def test_runaway_recursion_through_a_table_exhausts_the_stack() -> None:
    text = """(module (table funcref (elem $f))
      (func $f (export "f") (call_indirect (i32.const 0))))"""
    assert execute(compiled(text, ("f",))).trap == "call stack exhausted"


def test_imports_in_a_table() -> None:
    text = """(module (import "transputer" "output" (func $out (param i32)))
      (import "transputer" "exit" (func $exit (param i32)))
      (table funcref (elem $out $exit))
      (func (export "main") (result i32)
        (call_indirect (param i32) (i32.const 65) (i32.const 0))
        (call_indirect (param i32) (i32.const 7) (i32.const 1)) (i32.const 1)))"""
    result = agreed(text)
    assert (result.output, result.value) == (b"A", 7)
    with pytest.raises(UnsupportedError, match=r"env\.f.*\(i32\) -> \(\)") as caught:
        compiled(text.replace('"transputer" "output"', '"env" "f"'))
    assert caught.value.place.function == "main"


def test_only_functions_that_an_indirect_call_may_reach_are_compiled() -> None:
    text = """(module (table funcref (elem $good $bad))
      (func $good (result i32) (i32.const 5))
      (func $bad (param f32) (drop (f32.neg (local.get 0))))
      (func (export "f") (param i32) (result i32) (call_indirect (result i32) (local.get 0))))"""
    assert agreed(text, ("f", 0)).value == 5
    assert agreed(text, ("f", 1)).trap == REASONS[2]


def test_tables_that_are_not_known_are_refused() -> None:
    call = '(func (export "f") (call_indirect (i32.const 0)))'
    with pytest.raises(UnsupportedError, match="imported table") as caught:
        compiled(f'(module (import "env" "t" (table 1 funcref)) {call})', ("f",))
    assert caught.value.place.instruction.startswith("call_indirect")
    imported = '(global $g (import "env" "g") funcref)'
    text = f"(module {imported} (table funcref (elem (global.get $g))) {call})"
    with pytest.raises(UnsupportedError, match="not a constant"):
        compiled(text, ("f",))
    with pytest.raises(CompileError, match="does not fit the table of 1"):
        compiled(f"(module (table 1 funcref) (elem (i32.const 1) $f) (func $f) {call})", ("f",))


def test_a_null_element_replaces_a_function() -> None:
    text = """(module (table 3 funcref)
      (elem (i32.const 0) $f $f $f) (elem (i32.const 1) funcref (ref.null func))
      (func $f (result i32) (i32.const 5))
      (func (export "f") (param i32) (result i32) (call_indirect (result i32) (local.get 0))))"""
    assert [agreed(text, ("f", index)).trap for index in (0, 1, 2)] == [None, REASONS[1], None]


def test_a_table_with_an_initial_value() -> None:
    text = """(module (table 3 funcref (ref.func $f)) (elem (i32.const 1) $g)
      (func $f (result i32) (i32.const 5)) (func $g (result i32) (i32.const 6))
      (func (export "f") (param i32) (result i32) (call_indirect (result i32) (local.get 0))))"""
    assert [agreed(text, ("f", index)).value for index in (0, 1, 2)] == [5, 6, 5]
    with pytest.raises(UnsupportedError, match="65537 initial values"):
        compiled(text.replace("table 3", "table 65537"), ("f", 0))


SEGMENTS = """(module (memory (export "memory") 1) (table 10 funcref)
  (elem $active (i32.const 0) $f) (elem $declared declare func $f) (elem $passive func $f)
  (data $bytes (i32.const 0) "abc") (data $later "abc")
  (func $f)
  (func (export "active") (param i32 i32 i32) (result i32)
    (table.init $active (local.get 0) (local.get 1) (local.get 2)) (table.size 0))
  (func (export "declared") (param i32 i32 i32) (result i32)
    (elem.drop $passive) (elem.drop $declared)
    (table.init $declared (local.get 0) (local.get 1) (local.get 2)) (i32.const 1))
  (func (export "memory_init") (param i32 i32 i32) (result i32)
    (data.drop $bytes) (data.drop $later)
    (memory.init $bytes (local.get 0) (local.get 1) (local.get 2)) (i32.const 1))
  (func (export "passive") (table.init $passive (i32.const 0) (i32.const 0) (i32.const 1)))
  (func (export "later") (memory.init $later (i32.const 0) (i32.const 0) (i32.const 1))))"""


@pytest.mark.parametrize("name", ["active", "declared", "memory_init"])
def test_segments_are_empty_once_the_module_is_instantiated(name: str) -> None:
    size = 65536 if name == "memory_init" else 10
    for source, n in ((0, 0), (0, 1), (1, 0), (0, -1), (-1, 1)):
        for target in (0, size, size + 1, -1):
            agreed(SEGMENTS, (name, target, source, n))


def test_passive_elements_are_refused_where_they_are_used() -> None:
    with pytest.raises(UnsupportedError) as caught:
        compiled(SEGMENTS, ("passive",))
    assert caught.value.place.function == "passive"


def test_passive_data_is_copied() -> None:
    assert agreed(SEGMENTS, ("later",)).trap is None


def test_elements_at_computed_places() -> None:
    text = """(module (global $base i32 (i32.sub (i32.const 5) (i32.const 3))) (table 4 funcref)
      (elem (i32.add (global.get $base) (i32.const 1)) $f)
      (func $f (result i32) (i32.const 5))
      (func (export "f") (param i32) (result i32) (call_indirect (result i32) (local.get 0))))"""
    assert [agreed(text, ("f", index)).trap for index in (2, 3)] == [REASONS[1], None]

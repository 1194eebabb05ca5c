"""Validation of function bodies, and the refusal of what is valid but cannot be run."""

from __future__ import annotations

import pytest

from compiler import wasm
from compiler.errors import CompileError, UnsupportedError, UsageError
from compiler.pipeline import compile_wasm
from compiler.wasm_check import check_function
from test_wasm_decode import body_module
from wat_programs import agreed, assembled, compiled


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        (b"\x6a\x0b", "an operand is missing"),
        (b"\x41\x00\x0b", "left over"),
        (b"\x20\x00\x1a\x0b", "unknown local 0"),
        (b"\x0c\x05\x0b", "unknown label 5"),
        (b"\x10\x07\x0b", "unknown function 7"),
        (b"\x23\x00\x1a\x0b", "unknown global 0"),
        (b"\x41\x00\x28\x02\x00\x1a\x0b", "unknown memory 0"),
        (b"\x3f\x00\x1a\x0b", "unknown memory 0"),
        (b"\x41\x00\x41\x00\x41\x00\xfc\x0c\x02\x00\x0b", "unknown index 2"),
        (b"\xfc\x0d\x01\x0b", "unknown index 1"),
        (b"\xfc\x10\x03\x1a\x0b", "unknown index 3"),
        (b"\x42\x00\x45\x1a\x0b", "i64 where i32 is expected"),
        (b"\x02\x7f\x0b\x1a\x0b", "an operand is missing"),
        (b"\x05\x0b", "else without if"),
        (b"\x41\x00\x04\x7f\x41\x00\x0b\x1a\x0b", "if without else"),
        (b"\x41\x01\x42\x01\x41\x00\x1b\x1a\x0b", "i32 where i64 is expected"),
    ],
)
def test_invalid_code_is_refused_at_its_instruction(code: bytes, reason: str) -> None:
    with pytest.raises(CompileError) as caught:
        compile_wasm(body_module(code), "bad.wasm")
    message = str(caught.value)
    assert "bad.wasm, in function main" in message
    assert reason in message
    assert not isinstance(caught.value, UnsupportedError)


def test_alignment_beyond_the_width_is_refused() -> None:
    text = '(module (memory 1) (func (export "main") (drop (i32.load (i32.const 0)))))'
    content = assembled(text)
    assert content.count(b"\x28\x02\x00") == 1
    with pytest.raises(CompileError, match="larger than natural"):
        compile_wasm(content.replace(b"\x28\x02\x00", b"\x28\x03\x00"), "bad.wasm")


def test_steps_say_what_branches_keep_and_discard() -> None:
    text = """(module (func (export "main") (result i32)
      (i64.const 1) (i32.const 2)
      (block (result i32) (f64.const 0) (i32.const 3) (br_if 0 (i32.const 1)) (br 1))
      (return)))"""
    module = wasm.decode(assembled(text), "t.wasm")
    edges = [step.edges for step in check_function(module, module.functions[0]) if step.edges]
    assert [(e.block, e.keep, e.discard) for (e,) in edges] == [
        (2, "i", "d"),
        (-1, "i", "lid"),
        (-1, "i", "li"),
    ]


def refused(body: str, parts: str = "", signature: str = "") -> UnsupportedError:
    text = f"""(module {parts} (memory 1) (table 1 funcref)
      (func $bad {signature} {body})
      (func (export "main") (call $bad)))"""
    with pytest.raises(UnsupportedError) as caught:
        compiled(text)
    return caught.value


@pytest.mark.parametrize(
    ("body", "instruction", "remedy"),
    [
        ("(drop (table.get (i32.const 0)))", "table.get", "mvp"),
        ("(table.copy (i32.const 0) (i32.const 1) (i32.const 2))", "table.copy", "mvp"),
        ("(drop (ref.null func))", "ref.null", "mvp"),
    ],
)
def test_what_cannot_be_run_is_refused_with_function_and_instruction(
    body: str, instruction: str, remedy: str
) -> None:
    error = refused(body)
    assert error.place.file == "test.wat"
    assert error.place.function == "bad"
    assert error.place.instruction.startswith(instruction)
    assert remedy in str(error)


def test_unknown_imports_are_refused_where_they_are_called() -> None:
    error = refused("(call $f (i32.const 1))", '(import "env" "puts" (func $f (param i32)))')
    assert "env.puts" in str(error)
    assert error.place.instruction == "call f"
    wrong_type = refused("(call $f)", '(import "transputer" "output" (func $f))')
    assert "transputer.output" in str(wrong_type)


def test_imported_globals_are_refused_where_they_are_used() -> None:
    error = refused("(drop (global.get $g))", '(import "env" "g" (global $g i32))')
    assert error.place.instruction == "global.get 0"


def test_unsupported_functions_that_are_not_reached_do_no_harm() -> None:
    text = """(module (import "env" "f" (func $f)) (memory 1) (table 1 funcref)
      (func $bad (result f64) (call $f) (f64.const 1))
      (func (export "bad") (result f64) (call $bad))
      (func (export "main") (result i32)
        (return (i32.const 4)) (drop (call $bad)) (i32.const 5)))"""
    program = compiled(text)
    assert {origin.function for origin in program.origins} == {"(start)", "main"}


def test_the_entry_is_the_first_export_that_fits() -> None:
    body = '(func (export "{}") (result i32) (i32.const {}))'
    both = f"(module {body.format('main', 1)} {body.format('transputer_main', 2)})"
    assert agreed(both).value == 2
    assert compiled(both, entry="main").entry == "main"
    start = '(module (func (export "_start")))'
    assert compiled(start).entry == "_start"
    assert not compiled(start).has_result


def test_entries_and_calls_that_do_not_fit_are_refused() -> None:
    text = """(module (func (export "main") (param i32 i32) (result i32) (i32.const 0))
      (func (export "table") (param funcref)) (memory (export "memory") 1))"""
    with pytest.raises(UnsupportedError, match="--call"):
        compiled(text)
    with pytest.raises(CompileError, match="no function is exported"):
        compiled("(module)")
    with pytest.raises(UsageError, match="2 arguments, 1 given"):
        compiled(text, ("main", 1))
    with pytest.raises(UsageError, match="no function nothing"):
        compiled(text, ("nothing",))
    with pytest.raises(UsageError, match="no function memory"):
        compiled(text, ("memory",))
    with pytest.raises(UsageError, match="not a 32-bit integer"):
        compiled(text, ("main", 1 << 32, 0))
    with pytest.raises(UnsupportedError, match="funcref"):
        compiled(text, ("table", 0))


def test_programs_that_read_arguments_say_so() -> None:
    text = """(module (global (export "transputer_wants_args") i32 (i32.const 1))
      (func (export "main")) (func (export "f")))"""
    assert compiled(text).wants_args
    assert not compiled(text, ("f",)).wants_args

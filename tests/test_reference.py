"""The wasmtime reference: imports, traps, limits and calls mean what they mean to the machine."""

from __future__ import annotations

import threading

import pytest
import wasmtime

from c_programs import compiled
from compiler import isa
from compiler.errors import CompileError, LimitError, UsageError
from executor.checking import check
from executor.reference import run_reference

IMPORTS = """
(import "transputer" "output" (func $output (param i32)))
(import "transputer" "input" (func $input (param i32) (result i32)))
(import "transputer" "exit" (func $exit (param i32)))
"""


def module(body: str) -> bytes:
    return bytes(wasmtime.wat2wasm(f"(module {IMPORTS} {body})"))


def main(code: str, more: str = "") -> bytes:
    return module(f'{more} (func (export "transputer_main") (result i32) {code})')


def test_output_takes_the_low_byte():
    code = "(call $output (i32.const 65)) (call $output (i32.const -1)) (i32.const 0)"
    assert run_reference(main(code)).output == b"A\xff"


def test_input_reads_bytes_and_then_minus_one():
    wasm = main(
        "(call $output (call $input (i32.const 1)))"
        "(i32.sub (call $input (i32.const 0)) (call $input (i32.const 2)))"
    )
    result = run_reference(wasm, input=b"\xfe\x07")
    assert (result.output, result.value, result.exit_code) == (b"\x07", 0xFE + 1, 0xFF)


@pytest.mark.parametrize("k", [3, -1, 1 << 20])
def test_input_beyond_its_end_is_an_error(k):
    with pytest.raises(UsageError, match="input ends at 2"):
        run_reference(main(f"(call $input (i32.const {k}))"), input=b"ab")


def test_exit_code_is_the_low_byte_and_value_the_signed_number():
    result = run_reference(main("(i32.const -2)"))
    assert (result.exit_code, result.value, result.trap) == (254, -2, None)


def test_exit_ends_the_run_at_once():
    result = run_reference(
        main("(call $exit (i32.const 300)) (call $output (i32.const 65)) unreachable")
    )
    assert (result.exit_code, result.value, result.trap, result.output) == (44, 300, None, b"")


@pytest.mark.parametrize(
    ("code", "opcode"),
    [
        ("unreachable", "unreachable"),
        ("(i32.div_s (i32.const 1) (i32.const 0))", "trap.divide_by_zero"),
        ("(i32.rem_u (i32.const 1) (i32.const 0))", "trap.divide_by_zero"),
        ("(i32.div_s (i32.const 0x80000000) (i32.const -1))", "trap.integer_overflow"),
        ("(i32.load (i32.const 65533))", "trap.out_of_bounds"),
        ("(i32.load offset=4294967295 (i32.const 4))", "trap.out_of_bounds"),
        ("(call $forever)", "trap.stack_exhausted"),
    ],
)
def test_traps_have_the_machines_reasons(code, opcode):
    more = (
        '(memory (export "memory") 1)'
        "(func $forever (result i32) (i32.add (i32.const 1) (call $forever)))"
    )
    result = run_reference(main(f"(i32.store8 (i32.const 5) (i32.const 9)) {code}", more))
    assert result.trap == isa.TRAPS[opcode]
    assert result.exit_code == 134
    assert result.value is None
    assert result.memory[:8] == b"\0\0\0\0\0\x09\0\0"


def test_traps_the_machine_lacks_keep_wasmtimes_words():
    wasm = main("(call_indirect (result i32) (i32.const 0))", "(table 1 funcref)")
    assert run_reference(wasm).trap == "uninitialized element"


def test_an_endless_run_reaches_the_limit():
    with pytest.raises(LimitError, match=r"loop\.c: the reference executed 10000 instructions"):
        run_reference(main("(loop $l (br $l)) (i32.const 0)"), fuel=10_000, name="loop.c")


def test_executed_instructions_are_counted():
    short, long = (
        run_reference(main("(i32.const 0)" + "(i32.eqz)" * n)).instructions for n in (1, 11)
    )
    assert long - short == 10


def test_whole_memory_is_kept():
    wasm = main(
        "(i32.store (i32.const 65532) (i32.const 0x01020304)) (i32.const 0)",
        '(memory (export "memory") 1) (data (i32.const 2) "hi")',
    )
    memory = run_reference(wasm).memory
    assert len(memory) == 65536
    assert memory[:5] == b"\0\0hi\0"
    assert memory[-4:] == b"\x04\x03\x02\x01"
    assert run_reference(main("(i32.const 0)")).memory == b""


def test_the_first_known_entry_starts():
    def entry(*names: str) -> int | None:
        functions = (
            f'(func (export "{name}") (result i32) (i32.const {i}))' for i, name in enumerate(names)
        )
        return run_reference(module(" ".join(functions))).value

    assert entry("_start", "main", "transputer_main") == 2
    assert entry("_start", "main") == 1
    assert entry("_start") == 0
    nothing = run_reference(module('(func (export "main"))'))
    assert (nothing.value, nothing.exit_code) == (None, 0)
    named = module('(func (export "other") (result i32) (i32.const 5))')
    assert run_reference(named, entry="other").value == 5
    with pytest.raises(CompileError, match="(?s)no function transputer_main.*other"):
        run_reference(named)


def test_calls_take_signed_and_unsigned_arguments():
    wasm = compiled("unsigned f(unsigned a, int b) { return a / 2 + b; }", exports=("f",))
    assert run_reference(wasm, call=("f", 0xFFFFFFFF, -1)).value == 0x7FFFFFFE
    assert run_reference(wasm, call=("f", -1, -1)).value == 0x7FFFFFFE
    assert run_reference(wasm, call=("f", 2, -4)).value == -3


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (("g", 1), "no exported function g; there are: f, long, pair"),
        (("f",), "takes 1 arguments, 0 were given"),
        (("f", 1, 2), "takes 1 arguments, 2 were given"),
        (("f", 1 << 32), "not a 32-bit integer"),
        (("f", 1.5), "1.5 is no integer, as i32 is"),
        (("f", "x"), "not a call"),
        (("long", 1 << 64), "not a 64-bit integer"),
        (("pair",), "at most one returned"),
    ],
)
def test_calls_that_do_not_fit_are_refused(call, reason):
    wasm = module(
        '(func (export "f") (param i32)) (func (export "long") (param i64))'
        '(func (export "pair") (result i32 i32) (i32.const 1) (i32.const 2))'
    )
    with pytest.raises(UsageError, match=reason):
        run_reference(wasm, call=call)


def test_unknown_imports_and_broken_modules_are_refused():
    text = '(module (import "env" "now" (func $f)) (import "env" "x" KIND) (func (export "main")))'
    unknown = bytes(
        wasmtime.wat2wasm(text.replace("KIND", "(func)").replace('main")', 'main") (call $f)'))
    )
    with pytest.raises(CompileError, match="x.wasm: nothing provides the import env.now"):
        run_reference(unknown, name="x.wasm")
    assert run_reference(bytes(wasmtime.wat2wasm(text.replace("KIND", "(func)")))).exit_code == 0
    with pytest.raises(CompileError, match="wasmtime refuses the module: .*env::x"):
        run_reference(bytes(wasmtime.wat2wasm(text.replace("KIND", "(global i32)"))))
    with pytest.raises(CompileError, match="wasmtime refuses"):
        run_reference(unknown[:20])


def test_calls_nest_as_deep_as_the_machine_allows():
    text = """
    int deep(int n, int a, int b, int c, int d) {
      return n ? deep(n - 1, a + n, b ^ n, c * n, d - n) * 2 + a * b - c * d : a;
    }
    int f(int n) { return deep(n, 1, 2, 3, 4); }"""
    wasm = compiled(text, exports=("f",))
    depth = isa.MAX_CALL_DEPTH - 10
    assert run_reference(wasm, call=("f", depth)).trap is None
    assert run_reference(wasm, call=("f", 10_000_000)).trap == "call stack exhausted"


def test_the_callers_thread_settings_are_left_alone():
    before = threading.stack_size()
    run_reference(main("(i32.const 0)"))
    assert threading.stack_size() == before
    assert threading.active_count() == 1


@pytest.mark.parametrize(
    "make",
    ["f64.div (f64.const 0) (f64.const 0)", "f64.sqrt (f64.const -1)",
     "f64.sub (f64.const inf) (f64.const inf)", "f64.add (f64.const -nan:0x123) (f64.const 1)",
     "f64.promote_f32 (f32.div (f32.const 0) (f32.const 0))"],
)  # fmt: skip
def test_a_nan_that_arithmetic_makes_is_the_positive_quiet_one(make):
    high = f"(i32.wrap_i64 (i64.shr_u (i64.reinterpret_f64 ({make})) (i64.const 32)))"
    wasm = main(high, more='(memory (export "memory") 1)')
    assert run_reference(wasm).value == 0x7FF80000
    assert check(wasm).agrees

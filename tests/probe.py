"""A program that touches every instruction and table row, for tests that break the machine."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from compiler import compile_wasm, isa
from compiler.program import Program
from executor.checkpoint import Checkpoint

OPERANDS = (
    (0xDEADBEEF, 0x12345679),
    (0x0F1E2D3C, 0x4B5A6978),
    (0xFFFFFFFF, 0x80000001),
    (7, 0xFFFFFFF9),
)
INPUT = b"Zq\xff"


@cache
def probe() -> Program:
    """The probe, compiled."""
    import wasmtime

    return compile_wasm(bytes(wasmtime.wat2wasm(_text())), "probe.wat")


def prompt_ids(
    model: Checkpoint, program: Program, args: Sequence[str] = (), stdin: bytes = b""
) -> list[int]:
    """The whole prompt of a run: the model's tables, the program and its input."""
    return [*model.rom, *model.encode([*program.tokens, *program.input_tokens(args, stdin)])]


def _text() -> str:
    """Operands come as arguments, so that nothing is computed at compile time."""
    add = "(global.set $sum (i32.add (global.get $sum) {}))".format
    binary = [
        add(f"({op} (local.get $a) (local.get $b))")
        for op in (*isa.BINARY, *isa.COMPARISONS, *isa.DIVISIONS)
    ]
    shifts = [
        add(f"({op} (local.get $a) (local.get $s))")
        for op in isa.BINARY
        if op[4:7] in ("shl", "shr", "rot")
    ]
    memory = [
        f"({store} offset=3 (i32.mul (local.get $i) (i32.const {n})) (i32.const {0x89ABCDEF >> n}))"
        for n, store in enumerate(isa.STORES)
    ] + [add(f"({load} offset=1 (local.get $i))") for load in isa.LOADS]
    calls = [f"(call $all (i32.const {a}) (i32.const {b}))" for a, b in OPERANDS]
    return f"""(module
      (import "transputer" "output" (func $output (param i32)))
      (import "transputer" "input" (func $input (param i32) (result i32)))
      (memory 1) (data (i32.const 5) "\\01\\80\\ff\\7f")
      (global $sum (mut i32) (i32.const 1))
      (func $all (param $a i32) (param $b i32) {" ".join(binary)})
      (func $shifts (param $a i32) (local $s i32)
        (loop $again
          {" ".join(shifts)}
          (br_if $again (i32.lt_u (local.tee $s (i32.add (local.get $s) (i32.const 1)))
                                  (i32.const 32)))))
      (func $fib (param $n i32) (result i32) (local $kept i32)
        (if (result i32) (i32.lt_u (local.get $n) (i32.const 2))
          (then (local.get $n))
          (else
            (local.set $kept (call $fib (i32.sub (local.get $n) (i32.const 1))))
            (i32.add (local.get $kept)
                     (call $fib (i32.sub (local.get $n) (i32.const 2)))))))
      (func (export "main") (result i32) (local $i i32)
        {" ".join(calls)}
        (call $shifts (i32.const 0x9ABCDEF1))
        (call $shifts (i32.const 0xC6A5E30B))
        (loop $again
          {" ".join(memory)}
          (call $output (i32.add (i32.const 65) (call $input (local.get $i))))
          (local.set $i (i32.add (local.get $i) (i32.const 1)))
          (br_if $again (i32.lt_u (local.get $i) (i32.const 4))))
        (drop (call $fib (i32.const 1)))
        (global.set $sum (i32.add (global.get $sum)
          (select (i32.const 17) (i32.const 23) (i32.eqz (call $fib (i32.const 5))))))
        (i32.add (global.get $sum)
          (select (i32.const 5) (i32.const 9) (i32.ne (global.get $sum) (i32.const 0))))))"""

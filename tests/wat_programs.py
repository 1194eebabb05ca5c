"""Compiling WebAssembly text and comparing the oracle with wasmtime."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import wasmtime

from compiler.pipeline import compile_wasm
from compiler.program import Program
from executor.oracle import OracleResult, execute
from executor.reference import run_reference

LIMIT = 20_000_000
EDGES = (
    0, 1, 2, 3, 7, 8, 31, 32, 33, 0x7F, 0x80, 0xFF, 0x100, 0x7FFF, 0x8000, 0xFFFF, 0x10000,
    0x12345678, 0x7FFFFFFF, 0x80000000, 0x80000001, 0xAAAAAAAA, 0xFFFF8000, 0xFFFFFF80,
    0xFFFFFFFE, 0xFFFFFFFF,
)  # fmt: skip


@cache
def assembled(wat: str) -> bytes:
    """The binary module of a text."""
    return bytes(wasmtime.wat2wasm(wat))


def compiled(
    wat: str, call: Sequence[str | int] | None = None, entry: str | None = None
) -> Program:
    """The token program of a text."""
    return compile_wasm(assembled(wat), "test.wat", call=call, entry=entry)


def agreed(
    wat: str | bytes,
    call: Sequence[str | int] | None = None,
    stdin: bytes = b"",
) -> OracleResult:
    """The oracle's result, after comparing everything about it with wasmtime."""
    wasm = wat if isinstance(wat, bytes) else assembled(wat)
    program = compile_wasm(wasm, "test.wat", call=call)
    ours = execute(program, stdin=stdin, limit=LIMIT)
    theirs = run_reference(
        wasm,
        input=program.input_bytes((), stdin),
        call=None if call is None else tuple(call),
        name="test.wat",
    )
    assert (ours.trap, ours.output, ours.errors) == (theirs.trap, theirs.output, theirs.errors)
    if call is None or ours.trap is not None:
        assert ours.exit_code == theirs.exit_code
    if program.has_result and ours.trap is None:
        assert ours.value == (theirs.value or 0)
    found = {i: byte for i, byte in enumerate(theirs.memory) if byte}
    assert ours.memory == found
    return ours


def byte_string(content: bytes) -> str:
    """Bytes as a string literal of the text format."""
    return '"' + "".join(f"\\{value:02x}" for value in content) + '"'


def words(values: Sequence[int]) -> bytes:
    """32-bit integers, little end first."""
    return b"".join((value & 0xFFFFFFFF).to_bytes(4, "little") for value in values)


def table_program(expression: str, rows: Sequence[tuple[int, int]]) -> str:
    """A program that evaluates ``expression`` on every row and stores it over the row's first word.

    ``expression`` leaves an i32 and may use the locals $a and $b, the two values of the row.
    """
    content = words([value for row in rows for value in row])
    pages = len(content) // 65536 + 1
    return f"""(module (memory (export "memory") {pages})
      (data (i32.const 0) {byte_string(content)})
      (func $f (param $a i32) (param $b i32) (result i32) {expression})
      (func (export "main") (local $i i32)
        (loop $next
          (i32.store (local.get $i) (call $f
            (i32.load (local.get $i)) (i32.load offset=4 (local.get $i))))
          (local.set $i (i32.add (local.get $i) (i32.const 8)))
          (br_if $next (i32.lt_u (local.get $i) (i32.const {len(content)}))))))"""


def table_results(result: OracleResult, n_rows: int) -> list[int]:
    """The words that :func:`table_program` stored."""
    memory = result.memory
    return [
        sum(memory.get(8 * row + byte, 0) << 8 * byte for byte in range(4)) for row in range(n_rows)
    ]

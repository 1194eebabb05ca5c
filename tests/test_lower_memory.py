"""Memories that grow, filling and copying: the oracle agrees with wasmtime."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.errors import CompileError, UnsupportedError
from executor.oracle import execute
from wat_programs import agreed, compiled

OUT_OF_BOUNDS = "out of bounds memory access"
PAGE = 65536


def test_growing_to_the_limit_and_not_beyond() -> None:
    text = """(module (memory 1 4)
      (func (export "f") (param i32) (result i32) (local $sum i32)
        (local.set $sum (memory.grow (local.get 0)))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 10)) (memory.size)))
        (local.set $sum (i32.add (i32.mul (local.get $sum) (i32.const 10))
          (memory.grow (i32.const 1))))
        (i32.add (i32.mul (local.get $sum) (i32.const 10)) (memory.size))))"""
    assert agreed(text, ("f", 0)).value == 1112
    for pages in (1, 2, 3, 4, 5, 1022, PAGE, -1, 0x80000000):
        agreed(text, ("f", pages))


@pytest.mark.parametrize("limits", ["0", "1 1", "2", "0 0", "1022", "3 65536"])
@pytest.mark.parametrize("pages", [0, 1, 1021, 1023, 65535])
def test_sizes_up_to_what_the_machine_has(limits: str, pages: int) -> None:
    text = f"""(module (memory {limits}) (func (export "f") (param i32) (result i32)
      (i32.add (i32.mul (memory.grow (local.get 0)) (i32.const 2000)) (memory.size))))"""
    agreed(text, ("f", pages))


ACCESSES = {
    "i32.load": 4, "i32.load8_u": 1, "i32.load16_s": 2, "i64.load": 8, "i32.store": 4,
    "i32.store8": 1, "i64.store": 8, "i64.store16": 2, "i64.load32_s": 4,
}  # fmt: skip


@pytest.mark.parametrize("pages", [0, 1])
@pytest.mark.parametrize("op", ACCESSES)
def test_the_bounds_move_with_the_size(op: str, pages: int) -> None:
    """The last byte within, the first without, before and after growing by a page."""
    kind, width = op[:3], ACCESSES[op]
    for offset in (0, 5, PAGE + 3, PAGE * 2 - width + 1, PAGE * 3, 0xFFFFFFFF):
        if ".load" in op:
            access = f"(i32.wrap_i64 ({op} offset={offset} (local.get 0)))"
            access = access if kind == "i64" else f"({op} offset={offset} (local.get 0))"
        else:
            value = "(i64.const -2)" if kind == "i64" else "(i32.const -2)"
            access = f"({op} offset={offset} (local.get 0) {value}) (i32.const 1)"
        text = f"""(module (memory (export "memory") {pages} 3)
          (func (export "f") (param i32 i32) (result i32)
            (drop (memory.grow (local.get 1))) {access}))"""
        for grown in (0, 1):
            last = (pages + grown) * PAGE - width - offset
            for address in {max(last, 0), max(last + 1, 0), -1}:
                agreed(text, ("f", address, grown))


def test_a_memory_that_does_not_grow_has_no_checks() -> None:
    body = "(i32.load (local.get 0))"
    head = '(module (memory 1) (func (export "f") (param i32) (result i32)'
    grows, plain = (
        compiled(f"{head} {code}))", ("f", 0))
        for code in (f"(drop (memory.grow (i32.const 0))) {body}", body)
    )
    assert grows.grows and grows.memory_bytes == 1023 * PAGE
    assert not plain.grows and plain.memory_bytes == PAGE
    assert "select" in grows.tokens and "select" not in plain.tokens


BULK = """(module (memory (export "memory") 1)
  (data (i32.const 0) "abcdefghijklmnopqrstuvwxyz0123456789")
  (func (export "fill") (param i32 i32 i32) (result i32)
    (memory.fill (local.get 0) (local.get 1) (local.get 2)) (i32.const 1))
  (func (export "copy") (param i32 i32 i32) (result i32)
    (memory.copy (local.get 0) (local.get 1) (local.get 2)) (i32.const 1)))"""
EDGES = (0, 3, PAGE - 1, PAGE, PAGE + 1, -1)


@settings(max_examples=20)
@given(st.integers(0, 40), st.integers(0, 40), st.integers(0, 40))
def test_filling_and_copying_short_ranges(to: int, other: int, n: int) -> None:
    agreed(BULK, ("copy", to, other, n))
    agreed(BULK, ("fill", to, other * 77, n))


@pytest.mark.parametrize("n", [0, 1, 5, -1])
@pytest.mark.parametrize("to", EDGES)
def test_filling_and_copying_at_the_end_of_the_memory(to: int, n: int) -> None:
    agreed(BULK, ("fill", to, 300, n))
    for other in EDGES:
        agreed(BULK, ("copy", to, other, n))


def test_filling_and_copying_in_a_memory_that_has_grown() -> None:
    text = """(module (memory (export "memory") 0 2) (func (export "f") (param i32 i32) (result i32)
      (drop (memory.grow (local.get 0)))
      (memory.fill (i32.const 65530) (i32.const 3) (i32.const 5))
      (memory.copy (local.get 1) (i32.const 65531) (i32.const 5)) (i32.const 1)))"""
    for pages in (0, 1, 2):
        for to in (0, 65531, 65532, 131067, 131068):
            agreed(text, ("f", pages, to))


def test_a_fill_that_traps_has_written_nothing() -> None:
    result = agreed(BULK, ("fill", PAGE - 8, 7, 9))
    assert result.trap == OUT_OF_BOUNDS
    assert max(result.memory) == 35


def test_words_make_a_long_fill_cheap() -> None:
    result = execute(compiled(BULK, ("fill", 0, 1, 4000)))
    assert result.steps < 4000 * 3


def test_data_must_fit_the_memory_as_it_is_at_first() -> None:
    text = """(module (memory 1 2) (data (i32.const 65536) "x")
      (func (export "f") (drop (memory.grow (i32.const 1)))))"""
    with pytest.raises(CompileError, match="does not fit the memory of 65536 bytes"):
        compiled(text, ("f",))


def test_the_size_of_further_memories() -> None:
    text = """(module (memory (export "memory") 1) (memory $two 2 5)
      (func (export "f") (param i32) (result i32) (i32.store8 (i32.const 9) (i32.const 1))
        (i32.add (i32.mul (memory.grow $two (local.get 0)) (i32.const 100))
          (i32.add (i32.mul (memory.size $two) (i32.const 10)) (memory.size)))))"""
    assert [agreed(text, ("f", pages)).value for pages in (0, 3, 4)] == [221, 251, -79]
    with pytest.raises(UnsupportedError, match="more than one memory"):
        fill = "(memory.fill $two (i32.const 0) (i32.const 0) (i32.const 0))"
        compiled(f'(module (memory 1) (memory $two 1) (func (export "f") {fill}))', ("f",))


def test_the_two_halves_of_an_access_are_checked_once() -> None:
    """The check of the high half is enough; without growing there is none at all."""
    for body in ("(i64.store (local.get 0) (i64.const 5))", "(drop (i64.load (local.get 0)))"):
        text = f"""(module (memory (export "memory") 1)
          (func (export "f") (param i32) (drop (memory.grow (i32.const 1))) {body}))"""
        program = compiled(text, ("f", 0))
        without = compiled(text.replace(body, ""), ("f", 0))
        assert program.tokens.count("select") - without.tokens.count("select") == 1

"""Passive data segments, copying and filling, legalised."""

from __future__ import annotations

import pytest

from compiler import wasm
from compiler.legalise import legalise
from compiler.pipeline import compile_calls
from executor.oracle import execute
from legal_tools import both
from wat_programs import LIMIT, assembled

MODULE = """(module (memory (export "memory") 1)
  (data $text "transputer, in words and bytes")
  (data $empty "")
  (data $active (i32.const 100) "active")
  (func (export "init") (param i32 i32 i32)
    (memory.init $text (local.get 0) (local.get 1) (local.get 2)))
  (func (export "init_empty") (param i32 i32 i32)
    (memory.init $empty (local.get 0) (local.get 1) (local.get 2)))
  (func (export "init_active") (param i32 i32 i32)
    (memory.init $active (local.get 0) (local.get 1) (local.get 2)))
  (func (export "drop") (data.drop $text))
  (func (export "drop_active") (data.drop $active))
  (func (export "copy") (param i32 i32 i32)
    (memory.copy (local.get 0) (local.get 1) (local.get 2)))
  (func (export "fill") (param i32 i32 i32)
    (memory.fill (local.get 0) (local.get 1) (local.get 2))))"""
RANGES = (
    (0, 0, 0), (10, 0, 30), (11, 3, 5), (65536, 30, 0), (65537, 0, 0), (65534, 0, 2), (65534, 0, 3),
    (5, 30, 0), (5, 30, 1), (5, 31, 0), (5, 0, 31), (5, 1, 0xFFFFFFFF), (0xFFFFFFFF, 0, 2),
    (5, 0xFFFFFFFF, 2), (7, 29, 1),
)  # fmt: skip


@pytest.mark.parametrize("name", ["init", "init_empty", "init_active", "copy", "fill"])
@pytest.mark.parametrize("values", RANGES)
def test_ranges(name: str, values: tuple[int, int, int]) -> None:
    original, ours = both(MODULE)
    assert ours.call(name, "iii>", *values) == original.call(name, "iii>", *values)
    assert ours.memory() == original.memory()


def test_a_dropped_segment_is_empty() -> None:
    for instance in both(MODULE):
        assert instance.call("init", "iii>", 0, 1, 2) is None
        assert instance.call("drop", ">") is None
        assert instance.call("drop_active", ">") is None
        assert instance.call("init", "iii>", 0, 0, 0) is None
        assert instance.call("init", "iii>", 0, 1, 0) == "TrapCode.MEMORY_OUT_OF_BOUNDS"


def test_inside_the_machine() -> None:
    module = legalise(wasm.decode(assembled(MODULE), "test.wat"))
    program = compile_calls(module, [("init", (10, 12, 18)), ("drop", ()), ("init", (0, 0, 1))])
    result = execute(program, limit=LIMIT)
    assert result.trap == "out of bounds memory access"
    assert bytes(result.memory[at] for at in range(10, 28)) == b"in words and bytes"

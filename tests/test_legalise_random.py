"""Random modules of all number types, legalised, against themselves in wasmtime."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler import wasm
from compiler.legalise import legalise
from compiler.legalise_words import to_words
from compiler.pipeline import compile_calls
from executor.oracle import execute
from legal_random import Generator
from legal_tools import both, instantiate
from wat_programs import LIMIT, assembled

TRAPS = {
    "INTEGER_DIVISION_BY_ZERO": "integer divide by zero",
    "INTEGER_OVERFLOW": "integer overflow",
    "MEMORY_OUT_OF_BOUNDS": "out of bounds memory access",
    "BAD_SIGNATURE": "indirect call type mismatch",
    "TABLE_OUT_OF_BOUNDS": "undefined element",
    "INDIRECT_CALL_TO_NULL": "uninitialized element",
}
ARGUMENTS = ((0, 0), (1, (1 << 64) - 1), (0x123456789ABCDEF0, 77), ((1 << 63) + 5, 1 << 40))


def check(seed: int, size: int) -> None:
    """One module: results, traps, and the memory that is left."""
    original, ours = both(Generator(random.Random(seed), size).module())
    for arguments in ARGUMENTS:
        expected = original.call("main", "ll>l", *arguments)
        found = ours.call("main", "ll>l", *arguments)
        if expected == "TrapCode.BAD_CONVERSION_TO_INTEGER":
            expected = "TrapCode.UNREACHABLE"
        assert found == expected
        assert ours.memory() == original.memory()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 1 << 32))
def test_random_modules(seed: int) -> None:
    check(seed, 3)


@pytest.mark.parametrize("seed", range(12))
def test_inside_the_machine(seed: int) -> None:
    """Trap, memory, and the high half of the result, which is on top of the stack."""
    content = assembled(Generator(random.Random(seed), 2).module())
    original = instantiate(content, words=False)
    module = legalise(wasm.decode(content, "random.wat"))
    arguments = (0x123456789, 1 << 33)
    program = compile_calls(module, [("main", to_words("ll", arguments))])
    ours = execute(program, limit=LIMIT)
    expected = original.call("main", "ll>l", *arguments)
    if isinstance(expected, str):
        assert TRAPS[expected.removeprefix("TrapCode.")] == ours.trap
    else:
        assert isinstance(expected, int) and ours.trap is None and ours.value is not None
        assert ours.value & 0xFFFFFFFF == expected >> 32
    assert ours.memory == {at: byte for at, byte in enumerate(original.memory()) if byte}


@pytest.mark.long
@pytest.mark.parametrize("block", range(10))
def test_many_random_modules(block: int) -> None:
    for seed in range(40 * block, 40 * block + 40):
        check(seed, 6)

"""Division, remainder and division by powers of two, against Python integers and wasmtime."""

from __future__ import annotations

import itertools
import random

import pytest

from compiler import isa
from executor.oracle import execute
from wat_programs import agreed, compiled, table_program, table_results

LEAST = 1 << 31
EDGES = sorted(
    {0, 1, 2, 3, 5, 7, 10, 255, 256, 257, 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFF00}
    | {(1 << k) + d for k in (4, 8, 15, 16, 23, 24, 30, 31) for d in (-1, 0, 1)}
)


def expected(op: str, a: int, b: int) -> int:
    """Truncating division of Python integers."""
    if op.endswith("_s"):
        a, b = (value - ((value >> 31) << 32) for value in (a, b))
    quotient = abs(a) // abs(b) * (-1 if (a < 0) != (b < 0) else 1)
    return (quotient if ".div" in op else a - quotient * b) & 0xFFFFFFFF


def defined(op: str, a: int, b: int) -> bool:
    """Whether the division does not trap."""
    return b != 0 and not (op == "i32.div_s" and (a, b) == (LEAST, 0xFFFFFFFF))


def random_values(number: int, seed: int) -> list[int]:
    """Values of every bit length alike."""
    generator = random.Random(seed)
    return [generator.getrandbits(generator.randint(1, 32)) for _ in range(number)]


@pytest.mark.parametrize("op", isa.DIVISIONS)
def test_division_of_edge_and_random_pairs(op: str) -> None:
    pairs = [(a, b) for a, b in itertools.product(EDGES, repeat=2)]
    pairs += zip(random_values(2500, seed=1), random_values(2500, seed=2), strict=True)
    pairs = [pair for pair in pairs if defined(op, *pair)]
    result = agreed(table_program(f"({op} (local.get $a) (local.get $b))", pairs))
    assert table_results(result, len(pairs)) == [expected(op, a, b) for a, b in pairs]


@pytest.mark.parametrize("op", isa.DIVISIONS)
@pytest.mark.parametrize("constant", [1, 2, 3, 10, 4096, LEAST, LEAST + 1, 0xFFFFFFFF, 0xFFFFFFF8])
def test_division_by_a_constant(op: str, constant: int) -> None:
    rows = [(a, 0) for a in EDGES if defined(op, a, constant)]
    result = agreed(table_program(f"({op} (local.get $a) (i32.const {constant}))", rows))
    assert table_results(result, len(rows)) == [expected(op, a, constant) for a, _ in rows]


@pytest.mark.parametrize(("op", "constant", "becomes"), [
    ("div_u", 1, ""), ("div_s", 1, ""), ("div_u", 64, "shr_u"), ("rem_u", 64, "and"),
    ("rem_u", 1, "and"), ("div_u", LEAST, "shr_u"), ("div_u", 10, "div_u"), ("rem_s", 64, "rem_s"),
    ("div_s", 64, "div_s"), ("div_u", 0, "div_u"),
])  # fmt: skip
def test_unsigned_division_by_a_power_of_two_is_a_shift(
    op: str, constant: int, becomes: str
) -> None:
    text = f"""(module (func (export "f") (param i32) (result i32)
      (i32.{op} (local.get 0) (i32.const {constant}))))"""
    program = compiled(text, ("f", 1000))
    arithmetic = {"div_u", "div_s", "rem_u", "rem_s", "shr_u", "and"}
    found = [token[4:] for token in program.tokens if token[4:] in arithmetic]
    assert found == ([becomes] if becomes else [])


def test_a_division_takes_nine_tokens() -> None:
    text = """(module (func (export "f") (param i32 i32) (result i32)
      (i32.rem_s (local.get 0) (local.get 1))))"""
    with_division = execute(compiled(text, ("f", -70000, 300)))
    without = execute(compiled(text.replace("rem_s", "xor"), ("f", -70000, 300)))
    assert with_division.value == -100
    assert with_division.n_tokens - without.n_tokens == 4

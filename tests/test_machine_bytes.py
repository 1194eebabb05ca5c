"""Every result byte of the bitwise, shifting and carrying operations, through the exact evaluator.

Operands are set directly where the machine would have fetched them, so that all 65,536 pairs of
bytes (or 16-bit windows) of an operation can be asked at once.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest

from compiler import opcode_points, rom
from compiler.evaluate import Exact, exact
from compiler.evaluate_batch import BatchEvaluator
from compiler.graph import Graph
from compiler.machine import build_graph
from compiler.machine_tokens import rom_tokens

PAIRS = [(a, b) for a in range(256) for b in range(256)]
SAMPLE = random.Random(36).sample(PAIRS, 512)
EXHAUSTIVE = [
    pytest.param(SAMPLE, id="sample"),
    pytest.param(PAIRS, id="all", marks=pytest.mark.long),
]
BITWISE: dict[str, Callable[[int, int], int]] = {
    "i32.and": lambda a, b: a & b,
    "i32.or": lambda a, b: a | b,
    "i32.xor": lambda a, b: a ^ b,
}


@pytest.fixture(scope="module")
def graph() -> Graph:
    return build_graph()


@pytest.fixture(scope="module")
def batch(graph: Graph) -> BatchEvaluator:
    return BatchEvaluator(graph, rom_tokens())


def solve(
    batch: BatchEvaluator, graph: Graph, op: str, follow: Sequence[str], **given: Sequence[Exact]
) -> list[Exact]:
    """The first quantity of ``follow``, with ``op`` at the cursor.

    The graph computes what ``follow`` names; everything else is as given, or zero.
    """
    count = len(next(iter(given.values())))
    x, y = opcode_points.POINTS[op]
    fixed: dict[str, Sequence[Exact]] = {
        name: [0] * count for name in graph.quantities if name not in follow
    }
    fixed |= {"one": [1] * count, "x": [x] * count, "y": [y] * count}
    return batch.solve({**fixed, **given}, follow[0])


@pytest.mark.parametrize("op", BITWISE)
def test_bitwise_operations_on_all_pairs_of_bytes(
    batch: BatchEvaluator, graph: Graph, op: str
) -> None:
    results = solve(
        batch,
        graph,
        op,
        ("result", "common_bits"),
        second_byte=[a for a, _ in PAIRS],
        second_nibble=[a >> 4 for a, _ in PAIRS],
        top_byte=[b for _, b in PAIRS],
        top_nibble=[b >> 4 for _, b in PAIRS],
    )
    assert results == [BITWISE[op](a, b) for a, b in PAIRS]


@pytest.mark.parametrize("carry", [0, 1])
def test_add_and_subtract_all_pairs_of_bytes(
    batch: BatchEvaluator, graph: Graph, carry: int
) -> None:
    """The result counts 256 for the carry; a subtraction adds the complement."""
    given = {
        "second_byte": [a for a, _ in PAIRS],
        "top_byte": [b for _, b in PAIRS],
        "carry": [carry] * len(PAIRS),
    }
    assert solve(batch, graph, "i32.add", ("result",), **given) == [a + b + carry for a, b in PAIRS]
    below = solve(batch, graph, "i32.sub", ("result",), **given)
    assert below == [a - b + 255 + carry for a, b in PAIRS]


def accumulate(batch: BatchEvaluator, graph: Graph, op: str, **given: Sequence[Exact]) -> list[int]:
    """The byte that the three floor heads leave, rounded as the logits round."""
    return [round(value) for value in solve(batch, graph, op, ("accumulator",), **given)]


@pytest.mark.parametrize("pairs", EXHAUSTIVE)
@pytest.mark.parametrize("i", range(4))
def test_product_byte_of_pairs_of_bytes(
    batch: BatchEvaluator, graph: Graph, i: int, pairs: list[tuple[int, int]]
) -> None:
    """Byte i of A·B for all pairs of lowest bytes, the rest of A and B awkward."""
    a = [0x9E3779FF ^ (x << 8 * (i % 2)) for x, _ in pairs]
    b = [0x85EBFFFF ^ (y << 8 * (i // 2)) for _, y in pairs]
    results = accumulate(
        batch,
        graph,
        "i32.mul",
        prefix_i=[Fraction(x % 256 ** (i + 1), 256**i) for x in a],
        prefix_i_less_2=[Fraction(x % 256 ** (i - 1), 256 ** (i - 2)) if i > 1 else 0 for x in a],
        low_half=[y & 0xFFFF for y in b],
        top=b,
    )
    assert results == [(x * y >> 8 * i) & 255 for x, y in zip(a, b, strict=True)]


@pytest.mark.parametrize("pairs", EXHAUSTIVE)
@pytest.mark.parametrize("op", rom.SHIFTS)
@pytest.mark.parametrize("s", range(8))
def test_shifted_byte_of_windows(
    batch: BatchEvaluator, graph: Graph, op: str, s: int, pairs: list[tuple[int, int]]
) -> None:
    """Windows of two operand bytes, by each amount within a byte."""
    row = rom.shift_entry(op, 2, s)
    results = accumulate(
        batch,
        graph,
        op,
        second_byte=[a for a, _ in pairs],
        window_low=[b for _, b in pairs],
        factor=[exact(row.factor)] * len(pairs),
        shift_row=[rom.shift_base(op) + 2 * rom.AMOUNTS + s] * len(pairs),
    )
    left = op in ("i32.shl", "i32.rotl")
    added = round(row.added + rom.HALF)
    windows = [256 * a + b for a, b in pairs]
    assert results == [((w << s >> 8) & 255 if left else (w >> s) & 255) + added for w in windows]


@pytest.mark.parametrize("op", rom.SHIFTS)
def test_table_rows_select_the_right_window(op: str) -> None:
    """Every row, every amount, on operands whose bytes are all different or all ones."""
    for s in range(32):
        for value in (0xFFFFFFFF, 0x80000001, 0x9ABCDEF0, 0xF0123456):
            wide = value - 2**32 if op == "i32.shr_s" else value
            expected = {
                "i32.shl": value << s,
                "i32.shr_u": value >> s,
                "i32.shr_s": wide >> s,
                "i32.rotl": value << s | value >> 32 - s,
                "i32.rotr": value >> s | value << 32 - s,
            }[op]
            for i in range(4):
                row = rom.shift_entry(op, i, s)
                high, low = (byte_of(value, i + o) for o in (row.high_offset, row.low_offset))
                byte = int((256 * high + low) * row.factor) % 256 + row.added + rom.HALF
                assert byte == expected >> 8 * i & 255, (s, i, hex(value))


def byte_of(value: int, index: int) -> int:
    """Byte ``index`` of an operand; the tokens around it read as zero."""
    assert -1 <= index <= 4
    return value >> 8 * index & 255 if 0 <= index < 4 else 0

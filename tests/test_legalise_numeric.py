"""Every i64, f32 and f64 instruction: legalised code against wasmtime, on edges and at random."""

from __future__ import annotations

import random
from itertools import product

import pytest
import wasmtime

from compiler import wasm
from compiler.legalise import legalise
from legal_tools import (
    EDGES,
    LONG_EDGES,
    NAMES,
    SIGNATURES,
    SIZES,
    Instance,
    both,
    bulk_module,
    random_bits,
    run_bulk,
)

RANDOM_ROWS = 400
MOST_EDGE_ROWS = 1500


def _traps(op: str) -> bool:
    return ".div_" in op or ".rem_" in op or ".trunc_f" in op


OPS = [
    op
    for op, signature in SIGNATURES.items()
    if set("lfd") & set((signature.pops or "") + (signature.pushes or ""))
    and not any(part in op for part in ("load", "store", "const"))
]


def _rows(op: str, generator: random.Random, count: int) -> list[tuple[int, ...]]:
    pops = SIGNATURES[op].pops or ""
    rows: list[tuple[int, ...]] = list(product(*(EDGES[type_] for type_ in pops)))
    if len(rows) > MOST_EDGE_ROWS:
        rows = generator.sample(rows, MOST_EDGE_ROWS)
    rows += [tuple(random_bits(generator, type_) for type_ in pops) for _ in range(count)]
    if len(pops) == 2 and pops[0] in "fd":  # numbers close to each other
        sign = 1 << 8 * SIZES[pops[0]] - 1
        for _ in range(count):
            a = random_bits(generator, pops[0])
            other = a ^ generator.getrandbits(generator.choice((1, 3, 24, 30)))
            rows.append((a, other ^ sign * generator.getrandbits(1)))
    return rows


@pytest.fixture(scope="module")
def instances() -> tuple[Instance, Instance]:
    return both(bulk_module(OPS))


@pytest.mark.parametrize("op", [op for op in OPS if not _traps(op)])
def test_results(op: str, instances: tuple[Instance, Instance]) -> None:
    original, ours = instances
    rows = _rows(op, random.Random(op), RANDOM_ROWS)
    expected, found = run_bulk(original, op, rows), run_bulk(ours, op, rows)
    wrong = [
        (op, [hex(value) for value in row], hex(a), hex(b))
        for row, a, b in zip(rows, found, expected, strict=True)
        if a != b
    ]
    assert wrong[:5] == []


@pytest.fixture(scope="module")
def calls() -> tuple[Instance, Instance]:
    functions = []
    for op in filter(_traps, OPS):
        pops, pushes = SIGNATURES[op].pops or "", SIGNATURES[op].pushes or ""
        bits = {"f": "i32", "d": "i64"}
        params = " ".join(bits.get(t, NAMES[t]) for t in pops)
        operands = "".join(
            f"({NAMES[t]}.reinterpret_{bits[t]} (local.get {k}))" if t in bits
            else f"(local.get {k})" for k, t in enumerate(pops)
        )  # fmt: skip
        functions.append(
            f'(func (export "{op}") (param {params}) (result {NAMES[pushes]}) ({op} {operands}))'
        )
    return both(f"(module {' '.join(functions)})")


@pytest.mark.parametrize("op", [op for op in OPS if _traps(op)])
def test_results_and_traps(op: str, calls: tuple[Instance, Instance]) -> None:
    original, ours = calls
    pops, pushes = SIGNATURES[op].pops or "", SIGNATURES[op].pushes or ""
    types = pops.replace("f", "i").replace("d", "l") + ">" + pushes
    rows = _rows(op, random.Random(op), 200)
    for row in random.Random(1).sample(rows, min(len(rows), 500)):
        expected, found = original.call(op, types, *row), ours.call(op, types, *row)
        if expected == "TrapCode.BAD_CONVERSION_TO_INTEGER":
            expected = "TrapCode.UNREACHABLE"  # the immediate that tells them apart is not encoded
        assert found == expected, (op, [hex(value) for value in row])


# --- operands that are known -----------------------------------------------------------------

LONG_OPS = [op for op in OPS if op.startswith("i64.") and SIGNATURES[op].pops == "ll"]
CONSTANTS = (*range(66), 0xFFFE, 0x10001, 0x18001, 0x1FFFF, *LONG_EDGES)


def _with_constants(op: str) -> str:
    """A function that hashes the results of ``op`` on its parameter and each constant.

    The other operand is the parameter, or one of its halves extended; the constant is the second
    operand or the first one.
    """
    result = "({})" if (SIGNATURES[op].pushes or "") == "l" else "(i64.extend_i32_u ({}))"
    forms = []
    for constant in CONSTANTS:
        for other in ("(local.get 0)", "(i64.extend_i32_u (i32.wrap_i64 (local.get 0)))"):
            const = f"(i64.const {constant})"
            if constant or not _traps(op):
                forms.append(f"{op} {other} {const}")
            other = f"(i64.or {other} (i64.const 2))" if _traps(op) else other
            forms.append(f"{op} {const} {other}")
    code = " ".join(f"(i64.rotl (i64.const 7)) {result.format(form)} (i64.xor)" for form in forms)
    return f"""(module (func (export "f") (param i64) (result i64) (i64.const 0) {code})
      (func (export "low") (param i64) (result i32) (i32.const 0)
        {
        code.replace("(i64.rotl (i64.const 7))", "(i32.rotl (i32.const 7))").replace(
            "(i64.xor)", "(i32.wrap_i64) (i32.xor)"
        )
    }))"""


@pytest.mark.parametrize("op", LONG_OPS)
def test_constant_operands(op: str) -> None:
    original, ours = both(_with_constants(op))
    for value in LONG_EDGES:
        assert ours.call("f", "l>l", value) == original.call("f", "l>l", value)
        assert ours.call("low", "l>i", value) == original.call("low", "l>i", value)


@pytest.mark.parametrize("op", ["i64.div_u", "i64.rem_u"])
def test_division_by_constants_of_sixteen_bits(op: str) -> None:
    """By the routine for these, at multiples of the divisor, their neighbours and at random."""
    divisors = (1, 2, 3, 7, 10, 255, 256, 257, 1000, 10_000, 0x7FFF, 0xFFFE, 0xFFFF, 0x10000)
    functions = (
        f'(func (export "by {d}") (param i64) (result i64) ({op} (local.get 0) (i64.const {d})))'
        for d in divisors
    )
    original, ours = both(f"(module {' '.join(functions)})")
    generator = random.Random(op)
    for divisor in divisors:
        values = [generator.getrandbits(generator.randint(1, 64)) for _ in range(60)]
        values += [v // divisor * divisor - k for v in values[:20] for k in (0, 1)]
        values += [divisor << 32, (divisor << 32) - 1, (1 << 64) - 1, *LONG_EDGES]
        for value in values:
            value %= 1 << 64
            name = f"by {divisor}"
            assert ours.call(name, "l>l", value) == original.call(name, "l>l", value), hex(value)


def test_division_by_a_small_constant_needs_no_general_division() -> None:
    """Of 64 bits, printing decimal numbers divides by ten alone."""
    for op in ("i64.div_u", "i64.rem_u"):
        text = f"""(module (func (export "f") (param i64) (result i64)
          ({op} (local.get 0) (i64.const 10))))"""
        names = {
            f.name for f in legalise(wasm.decode(bytes(wasmtime.wat2wasm(text)), "t")).functions
        }
        assert "(i64.div_small)" in names and "(i64.div_u)" not in names

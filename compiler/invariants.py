"""What valid programs never violate on the default machine, and who sees to it.

The analysis of :mod:`compiler.exactness` takes these as given; the tests check them, and the
ranges that follow from them, on every token of real traces.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

from compiler import isa, opcode_points, rom
from compiler.build import Machine
from compiler.exactness import Analysis
from compiler.facts import Case, Facts, Invariant
from compiler.graph import POSITION
from compiler.machine_arithmetic import DIVISION_PAIRS
from compiler.ranges import Range

WORDS = 2.0**32


def machine_facts(machine: Machine, tokens: int, memory_bytes: int) -> Facts:
    """Facts for traces of at most ``tokens`` tokens with this much memory."""
    return Facts(
        tokens,
        tuple(_cases(machine)),
        _invariants(tokens, memory_bytes),
        (*machine.rom, isa.OPEN),
    )


def analyse(machine: Machine, tokens: int, memory_bytes: int = 65536) -> Analysis:
    """The analysis of the default machine: some seconds."""
    return Analysis(machine.graph, machine.plan, machine_facts(machine, tokens, memory_bytes))


def _invariants(tokens: int, memory_bytes: int) -> dict[str, Invariant]:
    farthest = isa.EXACT_ADDRESSES
    known = {
        "depth": Invariant(0, tokens // 5, "a push takes five tokens; no pop of an empty stack"),
        "call_depth": Invariant(0, isa.MAX_CALL_DEPTH - 1, "a deeper call traps"),
        "step": Invariant(-farthest, farthest + 2 * rom.ROM_TOKENS, "jumps inside the program"),
        "cursor": Invariant(-farthest, farthest, "branches stay inside the program"),
        "local_write": Invariant(0, farthest, "the assembler bounds local indices"),
        "local_read": Invariant(0, farthest, "the assembler bounds local indices"),
        "write_address": Invariant(-tokens, memory_bytes, "a store beyond the memory traps"),
        "rest": Invariant(0, WORDS - 1, "the digits so far never exceed the quotient"),
        "winner of division": Invariant(0, 255, "the digits so far leave a rest below 256 units"),
    }
    for pair in DIVISION_PAIRS:
        known[f"rest: {', '.join(pair)} quotient"] = Invariant(
            -WORDS, 0, "divisor times digits <= dividend"
        )
    return known


OPERANDS = {
    "top": Invariant(0, WORDS - 1, "four bytes", 0),
    "second": Invariant(0, WORDS - 1, "four bytes", 0),
}
"""Of instructions that pop one or two values."""
RUNNING = {
    "after_branch": Invariant(0, 1, "quotient digits stand before a division's own tokens only", 0)
}
"""Of all instructions that do not divide."""
COUNT = {f"top: {name}": Invariant(0, 32, "bits of a number", 0) for name in isa.COUNTS}
SHIFT = {"amount": Invariant(0, 31, "five bits of a byte of the operand", 0)}
PRODUCT = {
    "low_half": Invariant(0, 2**16 - 1, "two bytes of an operand", 0),
    "prefix_i": Invariant(0, 256 - 2.0**-24, "the first bytes of an operand, over 256^i", -24),
    "prefix_i_less_2": Invariant(0, 256 - 2.0**-16, "the first one to three bytes", -16),
    "product_high": Invariant(0, 2.0**24, "the upper half of an operand is an integer", -16),
}
"""While a product is written, what is read as its operands are the bytes of operands."""


DIVISION = {
    "scaled_divisor": Invariant(1, 2.0**33, "zero and what is greater are replaced by 2^33", 0),
}
SIGNED_DIVISION = {"rest": Invariant(0, 2.0**31, "no magnitude of a signed number is greater")}


def _cases(machine: Machine) -> Iterator[Case]:
    """By the instruction at the cursor; while input is read; and before the program runs."""
    vocabulary = machine.vocabulary
    inputs = frozenset(map(isa.in_token, range(256)))
    prompt = {isa.OPEN, isa.SEGMENT, isa.MEMORY, *machine.rom, *isa.OPCODES} - _bytes()
    prompt |= {isa.data_token(byte) for byte in range(256)}
    written = frozenset(vocabulary) - inputs - prompt
    for op in isa.OPCODES.values():
        point = opcode_points.POINTS[op.name]
        fixed = dict(zip("xy", map(Range.of, point), strict=True))
        known = dict(list(OPERANDS.items())[: op.pops])
        if op.name in isa.DIVISIONS:
            yield from _division_cases(op.name, fixed, written, known)
            continue
        # A byte is at most the fourth of its value once a program runs.
        near = {"last_other": Range(Fraction(0), Fraction(4), 0)}
        known |= RUNNING
        if op.name in rom.SHIFTS:
            known |= SHIFT
        if op.name in isa.COUNTS:
            known |= COUNT
        if op.name == "i32.mul":
            known |= PRODUCT
        yield Case(op.name, fixed, near, written, known)
        if op.pops == 0:  # the stack is empty until all input is read
            name = f"{op.name}, reading input"
            yield Case(name, fixed, {}, inputs, RUNNING, answered=False)
    yield from _no_opcode(machine)


def _bytes() -> set[str]:
    return {isa.byte_token(value, carry) for value in range(256) for carry in (False, True)}


def _division_cases(
    name: str, fixed: dict[str, Range], written: frozenset[str], known: dict[str, Invariant]
) -> Iterator[Case]:
    """Four digits, each right behind a token that is no byte, then four bytes and the commit."""
    stages = [(256.0**power, 3 - power, 0) for power in (3, 2, 1, 0)]
    stages += [(256.0**4, 4, dist) for dist in range(rom.BYTES + 1)]
    known = known | DIVISION | (SIGNED_DIVISION if name.endswith("_s") else {})
    for weight, digits, dist in stages:
        yield Case(
            f"{name}, weight {weight:g}, byte {dist}",
            {**fixed, "digit_weight": Range.of(weight), "after_branch": Range.of(digits)},
            {"last_other": Range.of(dist)},
            written,
            known,
        )


def _no_opcode(machine: Machine) -> Iterator[Case]:
    """All tokens of a prompt up to the closing brace fetch the first token as instruction."""
    row = machine.graph.embedding[machine.rom[0]]
    fixed = {"x": Range.of(row.get("byte", 0)), "y": Range.of(row.get("nibble", 0))}
    table = frozenset(machine.rom)
    place = {POSITION: Range(Fraction(0), Fraction(len(machine.rom) - 1), 0)}
    unset = {"memory_size": Invariant(0, 0, "in the tables: no token has said the size yet")}
    yield Case("table", {**fixed, **place}, {}, table, unset, answered=False)
    others = frozenset(machine.vocabulary) - (table - _bytes())
    yield Case("no opcode", fixed, tokens=others, answered=False)

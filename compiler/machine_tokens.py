"""The two ends of the machine: what each token embeds, and how each token is scored.

One token after another: the byte families are parabolas 2b·y - b², whose winner is the integer
nearest to the result y; single tokens are linear in the opcode point, the distance to the last
token that is no byte, and the control value.
"""

from __future__ import annotations

from compiler import circle, isa, opcode_points, rom
from compiler.graph import Expr, Graph

PROMPT_CURSOR = isa.EXACT_ADDRESSES
"""The cursor starts this far below zero, so that prompt tokens fetch position 0, a null
instruction, and comes up at the closing brace. Memory addresses in a prompt stay below it."""

ROM_START = "rom"
"""The first token of every prompt: entry 0 of the AND table, and the neutral shift row."""

DUE = 2.0**44
"""Outweighs everything but another multiple of itself."""
CLASS = 2.0**22
"""Outweighs the byte families, which stay below 1022·|y| with |y| < 2^11."""


DIGIT_WEIGHTS = (3, 2, 1, 0)
"""Powers of 256 of the quotient digits in the order in which they are written."""
FIRST = {"low5": 256.0**3}
"""What tokens that are neither bytes nor digits say about the next quotient digit: its weight."""


CONTROL_TOKENS = {
    isa.BRANCH_TAKEN: -1,
    isa.trap_token("trap.out_of_bounds"): -2,
    isa.trap_token("trap.stack_exhausted"): -3,
    isa.trap_token("trap.divide_by_zero"): -4,
    isa.trap_token("trap.integer_overflow"): -5,
}
"""Control value at which a token is written; 1 stands for ``commit(-1,sts=0,bt=0)``."""
FIRST_DIGIT = -6
"""Control value of the first quotient digit; the following ones count down."""


def rom_tokens() -> list[str]:
    """The head of every prompt: ``compiler.rom``'s tables as tokens."""
    table = [isa.byte_token(a & b) for a in range(16) for b in range(16)]
    rows = [row.spelling for row in rom.table_rows()]
    zeros = [row.spelling for row in rom.zeros_rows()]
    neutral = [row.spelling for row in rom.neutral_rows()]
    return [ROM_START, *table[1:], *rows, *zeros, *neutral]


def add_tokens(graph: Graph) -> None:
    """The vocabulary with its embeddings, in the order of the token ids."""
    for value in range(512):
        byte, carry = value % 256, value // 256
        graph.token(isa.byte_token(byte, bool(carry)), carry=carry, **_byte(byte))
    for byte in range(256):
        graph.token(isa.out_token(byte), kind=1, **FIRST, delta=-1, step=isa.INSTRUCTION_TOKENS)
    for weight in DIGIT_WEIGHTS:
        for byte in range(256):
            value, left = byte * 256**weight, 256.0 ** ((weight - 1) % 5)
            spelling = isa.digit_token(weight, byte)
            graph.token(spelling, kind=1, digit=value, low5=left, branch=4 - weight)
    for delta, stores, branched in isa.COMMITS:
        step = {"jump": 1} if branched else {"step": isa.INSTRUCTION_TOKENS}
        spelling = isa.commit_token(delta, stores, branched)
        graph.token(spelling, kind=1, **FIRST, delta=delta, stores=int(stores), **step)
    graph.token(isa.BRANCH_TAKEN, kind=1, **FIRST, branch=1)
    graph.token(isa.CALL_COMMIT, kind=1, **FIRST, jump=1, call_delta=1)
    graph.token(isa.RETURN_COMMIT, kind=1, **FIRST, jump=-1, call_delta=-1)
    for spelling in isa.STOP_TOKENS[1:]:  # the opcode token halt also ends the trace
        graph.token(spelling, kind=1, **FIRST)
    _add_prompt_tokens(graph)
    graph.begin(*rom_tokens())
    graph.stop(*isa.STOP_TOKENS)


def _byte(value: int) -> dict[str, float]:
    mirror = int(f"{value:08b}"[::-1], 2)
    parts = {"byte": value, "nibble": value >> 4, "low5": value & 31}
    return {**parts, "ones": value.bit_count(), "mirror": mirror}


def _add_prompt_tokens(graph: Graph) -> None:
    for name, (x, y) in opcode_points.POINTS.items():
        graph.token(name, kind=1, **FIRST, byte=x, nibble=y)
    graph.token(isa.OPEN, kind=1, **FIRST)
    graph.token(isa.CLOSE, kind=1, **FIRST, step=rom.ROM_TOKENS + 1 + PROMPT_CURSOR)
    graph.token(isa.SEGMENT, kind=1, **FIRST, jump=1)
    graph.token(isa.MEMORY, kind=1, **FIRST, branch=-2)
    for byte in range(256):
        graph.token(isa.data_token(byte), kind=-1, byte=byte, step=1)
    for byte in range(256):
        graph.token(isa.in_token(byte), kind=-2, byte=byte)
    graph.token(isa.END_OF_INPUT, kind=1, **FIRST)
    graph.token(ROM_START, kind=1, **FIRST, step=-PROMPT_CURSOR, stores=-1, branch=-1)
    for row in dict.fromkeys(rom.table_rows()):
        graph.token(
            row.spelling,
            kind=1,
            byte=row.high_offset,
            nibble=row.low_offset,
            carry=row.factor,
            stores=-(1 + row.added),
        )
    for line in rom.zeros_rows():
        values = {"byte": line.zeros, "branch": line.bits, "carry": line.height}
        graph.token(line.spelling, kind=1, **values)


def add_scores(
    graph: Graph, *, result: Expr, digit: Expr, control: Expr, dist: Expr, x: Expr, y: Expr
) -> None:
    """Score every token; those that only a prompt contains score below all others."""

    def linear(test: circle.Classifier) -> Expr:
        return test.x_factor * x + test.y_factor * y + test.constant

    def is_op(name: str) -> Expr:
        return linear(circle.is_point(opcode_points.POINTS[name]))

    for value in range(512):
        spelling = isa.byte_token(value % 256, value >= 256)
        graph.score(spelling, 2 * value * result - value * value)
    for value in range(256):
        chosen = CLASS * (is_op("output") - 1) + 1
        graph.score(isa.out_token(value), 2 * value * result - value * value + chosen)
    closing = DUE * (dist - 4)
    for (delta, stores, branched), test in _commit_tests().items():
        score = closing + CLASS * linear(test)
        if (delta, stores, branched) == (-1, False, False):
            score = score + 5 * DUE * control
        graph.score(isa.commit_token(delta, stores, branched), score)
    for spelling, code in CONTROL_TOKENS.items():
        graph.score(spelling, _chosen(control, code))
    for weight in DIGIT_WEIGHTS:
        for value in range(256):
            score = 2 * value * digit - value * value + _chosen(control, FIRST_DIGIT - (3 - weight))
            graph.score(isa.digit_token(weight, value), score)
    for name, spelling in ((isa.CALL_COMMIT, "call"), (isa.RETURN_COMMIT, "return")):
        graph.score(name, closing + CLASS * (2 * is_op(spelling) - 1))
    for name in ("halt", "unreachable"):
        graph.score(isa.OPCODES[name].ends, DUE * (2 * is_op(name) - 1))


def _chosen(control: Expr, code: int) -> Expr:
    """A parabola: of all codes and 0 the greatest where the control value is ``code``."""
    return DUE * (2 * code * control - code * code)


def _commit_tests() -> dict[tuple[int, bool, bool], circle.Classifier]:
    """For each commit token the test that is at least 1 on the opcodes that end in it."""

    def one(name: str) -> circle.Classifier:
        test = circle.is_point(opcode_points.POINTS[name])
        return circle.Classifier(2 * test.x_factor, 2 * test.y_factor, 2 * test.constant - 1)

    tests = {
        (delta, stores, False): opcode_points.class_classifier((delta, stores))
        for delta, stores in opcode_points.CLASS_ROOM
    }
    tests[-2, True, False] = one("select")
    tests[0, False, False] = one("local.tee")
    tests[0, False, True] = one("br")
    tests[-1, False, True] = one("br_if")
    return tests

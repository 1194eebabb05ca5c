"""The two ends of the base machine: its 35 opcodes, what tokens embed, and how they are scored.

Tokens and their spellings are those of :mod:`compiler.isa`, without what only left-out opcodes
write. Opcodes stand on the upper half of the circle: neighbours that behave alike in some respect
are recognised by one test (:func:`is_pair`), and opcodes that end in the same commit form an arc.
"""

from __future__ import annotations

from compiler import circle, isa
from compiler.graph import Expr, Graph, as_expr

ORDER = (
    "i32.add", "i32.sub",
    "i32.lt_u", "i32.lt_s", "i32.ge_s", "i32.ge_u",
    "i32.gt_u", "i32.gt_s", "i32.le_s", "i32.le_u",
    "i32.eq", "i32.ne",
    "i32.eqz", "i32.load", "i32.load8_u", "i32.load8_s", "i32.load16_u", "i32.load16_s",
    "i32.store8", "i32.store16", "i32.store",
    "local.get", "global.get", "i32.const", "call",
    "br", "br_if",
    "global.set", "local.set", "local.tee", "output",
    "select", "drop", "return", "halt",
)  # fmt: skip
"""The instruction set, in the order of the opcodes on the circle."""

NO_BYTE = 1024.0
"""What tokens that are no bytes hold in the slot of the carry: more than every opcode's y."""

CONTROL = 2.0**40
"""The result of an instruction that writes another token than a byte is a negative multiple of
this: see ``CODES``."""
DUE = 2.0**44
"""Outweighs everything but another multiple of itself."""
CLASS = 2.0**22
"""Outweighs the byte families, which stay below 1022·|y| with |y| < 2^11."""

DROPPED, TAKEN, OUT_OF_BOUNDS, EXHAUSTED = 1, 2, 3, 4
"""Multiples of ``-CONTROL`` as results."""
CODES = {
    isa.commit_token(-1, False, False): (DROPPED, 8, 4),
    isa.BRANCH_TAKEN: (TAKEN, 16, 18),
    isa.trap_token("trap.out_of_bounds"): (OUT_OF_BOUNDS, 24, 40),
    isa.trap_token("trap.stack_exhausted"): (EXHAUSTED, 32, 68),
}
"""Token: its code k, and slope and offset of its score, the line slope·k - offset, in ``DUE``. At
each k the line of the token with that code is the highest, by 2 at least; at 0 all are below 0.
The first line's offset is what a commit that is not due has anyway."""

STOP_TOKENS = (isa.HALT, *list(CODES)[2:])
"""Where a trace ends."""


def _points() -> dict[str, circle.Point]:
    upper = [point for point in circle.points() if point[1] > 0]
    return dict(zip(ORDER, upper, strict=False))


POINTS = _points()
"""Opcode: its point."""


def is_point(name: str) -> circle.Classifier:
    """1 on one opcode, at most 0 on all others and on tokens that are no opcodes."""
    return circle.is_point(POINTS[name])


def is_pair(first: str, second: str) -> circle.Classifier:
    """1 on two neighbours, at most 0 on all other opcodes and on tokens that are no opcodes."""
    if abs(ORDER.index(first) - ORDER.index(second)) != 1:
        raise ValueError(f"{first} and {second} are no neighbours")
    return circle.is_one_of(POINTS[first], POINTS[second])


def add_tokens(graph: Graph) -> None:
    """The vocabulary with its embeddings, in the order of the token ids."""
    for value in range(512):
        spelling = isa.byte_token(value % 256, value >= 256)
        graph.token(spelling, byte=value % 256, carry=value // 256)
    for byte in range(256):
        graph.token(isa.out_token(byte), carry=NO_BYTE, delta=-1, step=isa.INSTRUCTION_TOKENS)
    for delta, stores, branched in isa.COMMITS:
        step = {"jump": 1} if branched else {"step": isa.INSTRUCTION_TOKENS}
        spelling = isa.commit_token(delta, stores, branched)
        graph.token(spelling, carry=NO_BYTE, delta=delta, stores=int(stores), **step)
    graph.token(isa.BRANCH_TAKEN, carry=NO_BYTE, byte=-1)
    graph.token(isa.CALL_COMMIT, carry=NO_BYTE, jump=1, call_delta=1)
    graph.token(isa.RETURN_COMMIT, carry=NO_BYTE, jump=-1, call_delta=-1)
    for spelling in STOP_TOKENS[1:]:
        graph.token(spelling, carry=NO_BYTE)
    for name, (x, y) in POINTS.items():  # among them halt, which also ends the trace
        graph.token(name, byte=x, carry=y)
    graph.token(isa.OPEN)
    graph.token(isa.CLOSE, carry=NO_BYTE, step=1)
    graph.token(isa.SEGMENT, jump=1)
    graph.token(isa.MEMORY, carry=-1)
    for byte in range(256):
        graph.token(isa.data_token(byte), byte=byte, stores=-1, step=1)
    for byte in range(256):
        graph.token(isa.in_token(byte), carry=NO_BYTE)
    graph.token(isa.END_OF_INPUT, carry=NO_BYTE)
    graph.stop(*STOP_TOKENS)


def add_scores(graph: Graph, *, result: Expr, due: Expr, x: Expr, y: Expr) -> None:
    """Score every token; those that only a prompt contains score below all others.

    ``due`` is 4, or a fraction more, when a commit closes the instruction.
    """

    def linear(test: circle.Classifier) -> Expr:
        return test.x_factor * x + test.y_factor * y + test.constant

    def only(name: str) -> Expr:
        return 2 * linear(is_point(name)) - 1

    closing = DUE * (due - 4)
    scores: dict[str, Expr] = {}
    for value in range(512):
        spelling = isa.byte_token(value % 256, value >= 256)
        scores[spelling] = 2 * value * result - value * value
    for value in range(256):
        chosen = CLASS * (linear(is_point("output")) - 1) + 1
        scores[isa.out_token(value)] = 2 * value * result - value * value + chosen
    for (delta, stores, branched), test in _commit_tests().items():
        scores[isa.commit_token(delta, stores, branched)] = closing + CLASS * linear(test)
    scores[isa.CALL_COMMIT] = closing + CLASS * only("call")
    scores[isa.RETURN_COMMIT] = closing + CLASS * only("return")
    scores[isa.HALT] = DUE * only("halt")
    for spelling, (_, slope, offset) in CODES.items():
        otherwise = as_expr(-DUE * offset)
        line = scores.get(spelling, otherwise)
        scores[spelling] = line - (DUE * slope / CONTROL) * result
    for spelling, score in scores.items():
        graph.score(spelling, score)


def _commit_tests() -> dict[tuple[int, bool, bool], circle.Classifier]:
    """For each commit token the test that is at least 1 on the opcodes that end in it."""

    def one(name: str) -> circle.Classifier:
        test = is_point(name)
        return circle.Classifier(2 * test.x_factor, 2 * test.y_factor, 2 * test.constant - 1)

    def arc(delta: int, stores: bool) -> circle.Classifier:
        ops = [isa.OPCODES[name] for name in ORDER]
        inside = {
            op.name
            for op in ops
            if op.shape is isa.Shape.VALUE and (op.delta, op.stores) == (delta, stores)
        }
        others = [point for name, point in POINTS.items() if name not in inside]
        return circle.is_arc([POINTS[name] for name in inside], others)

    classes = ((-1, True), (0, True), (1, True), (-2, False), (-1, False))
    tests = {(delta, stores, False): arc(delta, stores) for delta, stores in classes}
    tests[-2, True, False] = one("select")
    tests[0, False, False] = one("local.tee")
    tests[0, False, True] = one("br")
    tests[-1, False, True] = one("br_if")
    return tests

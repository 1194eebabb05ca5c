"""The instruction set and the token spellings: written once, read by every other module.

A program is a sequence of opcode tokens, each followed by four immediate bytes, little end
first. Executing an instruction writes tokens to the trace: either four value bytes and a
*commit*, or one single token (``drop``, ``output``, ``halt``, a branch that is not taken, a
trap). ``docs/trace-format.md`` is the specification; this module is the table behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

MAX_CALL_DEPTH = 1 << 14
"""Calls nest at most this deep less one; the next call ends in ``trap(stack_exhausted)``."""

EXACT_ADDRESSES = 1 << 26
"""Keys are squares of addresses and positions: below this they are exact in double precision."""

MAX_LOCALS = EXACT_ADDRESSES // MAX_CALL_DEPTH - 1
"""Locals of a function, and globals, share addresses index·MAX_CALL_DEPTH + call depth."""

MAX_MEMORY_PAGES = EXACT_ADDRESSES // 65536 - 1
"""Pages of 64 KiB."""

INSTRUCTION_TOKENS = 5
"""Prompt tokens of an instruction: the opcode and its four immediate bytes."""


class Shape(StrEnum):
    """What an instruction writes to the trace."""

    VALUE = "value"
    """Four bytes and ``commit(delta, sts, 0)``."""
    SINGLE = "single"
    """One token: ``commit(delta, 0, 0)``, ``out(x)``, ``halt`` or ``trap(reason)``."""
    BRANCH = "branch"
    """``branch_taken``, four bytes of relative offset, ``commit(delta, 0, 1)``; ``br_if`` that
    is not taken writes ``commit(-1, 0, 0)`` alone."""
    CALL = "call"
    """Four bytes of relative offset and ``call_commit``."""
    RETURN = "return"
    """Four bytes of relative offset and ``return_commit``."""


@dataclass(frozen=True)
class Opcode:
    """One native instruction.

    ``pops`` and ``pushes`` count operand-stack entries; ``ends`` is the spelling of the token
    that closes the instruction where that is not a commit or an output byte.
    """

    name: str
    shape: Shape
    pops: int
    pushes: int
    ends: str = ""

    @property
    def delta(self) -> int:
        """Change of the stack depth."""
        return self.pushes - self.pops

    @property
    def stores(self) -> bool:
        """Whether the four bytes become the new top of the stack."""
        return self.shape is Shape.VALUE and self.pushes == 1 and self.name != "local.tee"


BINARY = (
    "i32.add", "i32.sub", "i32.mul", "i32.and", "i32.or", "i32.xor",
    "i32.shl", "i32.shr_u", "i32.shr_s", "i32.rotl", "i32.rotr",
)  # fmt: skip
DIVISIONS = ("i32.div_u", "i32.rem_u", "i32.div_s", "i32.rem_s")
"""These write four quotient digits before their four value bytes: at most 9 tokens."""
COMPARISONS = (
    "i32.eq", "i32.ne", "i32.lt_s", "i32.lt_u", "i32.gt_s", "i32.gt_u",
    "i32.le_s", "i32.le_u", "i32.ge_s", "i32.ge_u",
)  # fmt: skip
LOADS = {
    "i32.load": (4, False), "i32.load8_u": (1, False), "i32.load8_s": (1, True),
    "i32.load16_u": (2, False), "i32.load16_s": (2, True),
}  # fmt: skip
"""Load opcode: (bytes read, whether the sign extends)."""
INDEXED = ("local.get", "local.set", "local.tee", "global.get", "global.set")
"""Opcodes whose immediate is an index below ``MAX_LOCALS``."""
COUNTS = ("i32.clz", "i32.ctz", "i32.popcnt")
STANDARD_OUTPUT, STANDARD_ERROR = 1, 2
"""Streams. An ``output`` whose immediate is ``STANDARD_ERROR`` writes there, any other to standard
output; to the model they are the same instruction."""
STORES = {"i32.store": 4, "i32.store8": 1, "i32.store16": 2}
"""Store opcode: bytes written."""
TRAPS = {
    "unreachable": "unreachable",
    "trap.divide_by_zero": "integer divide by zero",
    "trap.integer_overflow": "integer overflow",
    "trap.out_of_bounds": "out of bounds memory access",
    "trap.stack_exhausted": "call stack exhausted",
}
"""Trapping opcode: the reason, in the words of the WebAssembly suite. The machine raises the
others itself; ``unreachable`` is an instruction of the program."""


def trap_token(opcode: str) -> str:
    """Spelling of the token that a trapping opcode (a key of ``TRAPS``) writes."""
    return f"trap({opcode.removeprefix('trap.')})"


def _opcodes() -> tuple[Opcode, ...]:
    value = Shape.VALUE
    rows = [
        Opcode("i32.const", value, 0, 1),
        Opcode("local.get", value, 0, 1),
        Opcode("local.set", value, 1, 0),
        Opcode("local.tee", value, 1, 1),
        Opcode("global.get", value, 0, 1),
        Opcode("global.set", value, 1, 0),
        *(Opcode(name, value, 1, 1) for name in LOADS),
        Opcode("input", value, 1, 1),
        *(Opcode(name, value, 2, 0) for name in STORES),
        *(Opcode(name, value, 2, 1) for name in (*BINARY, *DIVISIONS)),
        Opcode("i32.eqz", value, 1, 1),
        *(Opcode(name, value, 1, 1) for name in COUNTS),
        *(Opcode(name, value, 2, 1) for name in COMPARISONS),
        Opcode("select", value, 3, 1),
        Opcode("drop", Shape.SINGLE, 1, 0),
        Opcode("output", Shape.SINGLE, 1, 0),
        Opcode("br", Shape.BRANCH, 0, 0),
        Opcode("br_if", Shape.BRANCH, 1, 0),
        Opcode("call", Shape.CALL, 0, 0, "call_commit"),
        Opcode("return", Shape.RETURN, 0, 0, "return_commit"),
        Opcode("halt", Shape.SINGLE, 0, 0, "halt"),
        Opcode("unreachable", Shape.SINGLE, 0, 0, trap_token("unreachable")),
    ]
    return tuple(rows)


OPCODES: dict[str, Opcode] = {op.name: op for op in _opcodes()}

# --- token spellings --------------------------------------------------------------------------

OPEN, CLOSE = "{", "}"
BRANCH_TAKEN, CALL_COMMIT, RETURN_COMMIT, HALT = (
    "branch_taken",
    "call_commit",
    "return_commit",
    "halt",
)
SEGMENT = "segment"
"""Prompt only: moves the cursor (the address of the next ``data`` byte) by the signed 32-bit
value of the four bytes before it."""
MEMORY = "memory"
"""Prompt only: the four bytes before it are the size of the memory in bytes."""
END_OF_INPUT = "eof"


def byte_token(value: int, carry: bool = False) -> str:
    """``08``, or ``08'`` with a carry."""
    return f"{value:02x}" + ("'" if carry else "")


def _character(value: int) -> str:
    return chr(value) if 0x21 <= value <= 0x7E else f"{value:02x}"


def out_token(value: int) -> str:
    """``out(A)``, ``out(0a)``: printable ASCII except the space as itself, the rest in hex."""
    return f"out({_character(value)})"


def in_token(value: int) -> str:
    """An input byte, spelled like an output byte: ``in(A)``."""
    return f"in({_character(value)})"


def data_token(value: int) -> str:
    """A byte of initial memory: ``data(41)``, always in hex."""
    return f"data({value:02x})"


def digit_token(weight: int, value: int) -> str:
    """A base-256 quotient digit, the digit of 256^``weight``: ``q3(00)``, always in hex."""
    return f"q{weight}({value:02x})"


def commit_token(delta: int, stores: bool, branched: bool) -> str:
    """``commit(+1,sts=1,bt=0)``."""
    sign = f"{delta:+d}" if delta else "0"
    return f"commit({sign},sts={int(stores)},bt={int(branched)})"


COMMITS: tuple[tuple[int, bool, bool], ...] = (
    (+1, True, False),
    (0, True, False),
    (-1, True, False),
    (-2, True, False),
    (0, False, False),
    (-1, False, False),
    (-2, False, False),
    (0, False, True),
    (-1, False, True),
)
"""Every (delta, sts, bt) that an instruction can end in."""

STOP_TOKENS: tuple[str, ...] = (HALT, *(trap_token(name) for name in TRAPS))

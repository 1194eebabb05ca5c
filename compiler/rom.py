"""The machine's read-only tables: tokens at the head of every prompt, read by position.

Positions 0 to 255 hold the bitwise AND of two nibbles, at 16a + b. Behind them stand the tables
of the shifts and rotates: for each operation, result byte ``i`` and amount ``s``, where the two
operand bytes of the 16-bit window stand, the factor that brings the result byte to the front,
and what is added. Then come the factors 256^-i that a division's result bytes need, the counts
0 to 32, a table of leading zeros, and neutral rows until there are 1,024 positions, to which
attention can count. A prompt always begins with all of it.
"""

from __future__ import annotations

from dataclasses import dataclass

AND_ENTRIES = 256
SHIFTS = ("i32.shl", "i32.shr_u", "i32.shr_s", "i32.rotl", "i32.rotr")
"""``i32.shr_s`` names the table for negative operands; others use the one of ``i32.shr_u``."""

AMOUNTS, BYTES = 32, 4
SHIFT_ENTRIES = AMOUNTS * BYTES
HALF = 0.5 - 2.0**-9
"""Subtracted from a shift's result, a multiple of 2^-8: rounding to the nearest integer then
rounds down."""
FINE_HALF = 0.5 - 2.0**-25
"""The same for the bytes of products, which are multiples of 2^-24."""


def shift_base(op: str) -> int:
    """Position of the first entry of a shift's table."""
    return AND_ENTRIES + SHIFT_ENTRIES * SHIFTS.index(op)


DIVISION_BASE = AND_ENTRIES + SHIFT_ENTRIES * len(SHIFTS)
"""Position of the row for result byte 0 of a division."""
COUNT_BASE = DIVISION_BASE + BYTES
"""Position of the row that adds 0; those that add 1 to 32 follow."""
COUNTS = 33
ROM_TOKENS = 1024
"""Heads that divide a 32-bit number by 2^22 fetch positions up to 2^10 - 1."""


@dataclass(frozen=True)
class ShiftEntry:
    """One row: result byte i is floor((256·high + low)·factor) mod 256 + added.

    ``high`` and ``low`` are the two operand bytes at ``i + high_offset`` and ``i + low_offset``
    (bytes -1 and 4 of an operand read as zero).
    """

    high_offset: int
    low_offset: int
    factor: float
    added: float

    @property
    def spelling(self) -> str:
        """The token, for example ``rom(0,-1,0.0078125,0)``."""
        return f"rom({self.high_offset},{self.low_offset},{self.factor:g},{self.added:g})"


def shift_entry(op: str, i: int, s: int) -> ShiftEntry:
    """The table row for result byte ``i`` of ``op`` by ``s`` bits."""
    whole, part = divmod(s, 8)
    if op in ("i32.shl", "i32.rotl"):
        high, low, factor = i - whole, i - whole - 1, 2.0**part / 256
    else:
        high, low, factor = i + whole + 1, i + whole, 2.0**-part
    added = 0
    if op == "i32.shr_s":
        added = ((0xFFFFFFFF00000000 >> s) >> (8 * i)) & 0xFF
    if op in ("i32.rotl", "i32.rotr"):
        high, low = high % 4, low % 4
    elif (op == "i32.shl" and high < 0) or (op != "i32.shl" and low > 3):
        return ShiftEntry(0, 0, 0.0, added - HALF)
    return ShiftEntry(high - i, low - i, factor, added - HALF)


def division_entry(i: int) -> ShiftEntry:
    """The row for result byte ``i`` of a division: an empty window and the factor 256^-i.

    The byte is a multiple of that factor, and rounding must round it down.
    """
    return ShiftEntry(-1 - i, -1 - i, 256.0**-i, 256.0**-i / 2 - 0.5)


@dataclass(frozen=True)
class ZerosEntry:
    """One row of the table of leading zeros, found not by its position but by a line.

    Of all rows that with the greatest 2·``bits``·q + ``height`` is found: for a number q of n bits
    row n, since lines n and n + 1 cross half a unit below 2^n.
    """

    bits: int
    height: int

    @property
    def zeros(self) -> int:
        """Leading zeros of a 32-bit number with so many bits."""
        return 32 - self.bits

    @property
    def spelling(self) -> str:
        """The token, for example ``zeros(27)``."""
        return f"zeros({self.zeros})"


def zeros_rows() -> list[ZerosEntry]:
    """For numbers of 0 to 32 bits. All other tokens have heights of at most 1."""
    rows = [ZerosEntry(0, 3)]
    for bits in range(1, COUNTS):
        rows.append(ZerosEntry(bits, rows[-1].height + 1 - 2**bits))
    return rows


def table_rows() -> list[ShiftEntry]:
    """All rows behind the AND table that are found by their position, in that order."""
    shifts = [shift_entry(op, i, s) for op in SHIFTS for i in range(BYTES) for s in range(AMOUNTS)]
    divisions = [division_entry(i) for i in range(BYTES)]
    return [*shifts, *divisions, *(ShiftEntry(0, 0, 0.0, n - HALF) for n in range(COUNTS))]


def neutral_rows() -> list[ShiftEntry]:
    """What fills the prompt's head up."""
    used = AND_ENTRIES + len(table_rows()) + COUNTS
    return [ShiftEntry(0, 0, 0.0, -HALF)] * (ROM_TOKENS - used)

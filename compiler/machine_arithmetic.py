"""Arithmetic in five tokens (nine for a division), one result byte at a time.

An accumulator holds a number whose value mod 256, rounded down, is the byte: what products,
shifts and divisions leave there, three attention heads bring below 256.
"""

from __future__ import annotations

from compiler import isa, rom
from compiler.graph import Expr
from compiler.machine_state import State

LOOSE_FLOORS = ((2.0**22, 2.0**-8), (2.0**16, 2.0**-6))
"""Size and slack of the first two floor heads: they bring an accumulator of at most 2^32 below
2^22·(1 + 2^-8), then below 2^16·(1 + 2^-6); they may take one multiple too few, never one too
many. A product's accumulator, below 2^25, has bits down to 2^-25: with these sizes no score of a
position that may win needs more than 53 bits."""

DIVISION_PAIRS = UNSIGNED_DIVISIONS, SIGNED_DIVISIONS = isa.DIVISIONS[:2], isa.DIVISIONS[2:]
"""Neighbours on the circle of opcodes, so that one neuron recognises two of them."""
LARGE_DIVISOR = 2.0**33
"""More than twice every dividend: the digit is 0, and greater divisors need not be told apart."""


class Arithmetic(State):
    """Adds the operations on the two topmost stack values."""

    def index_shift_table(self) -> None:
        """Fetch the row of the shift table; other instructions fetch row 0, which is neutral."""
        g, i = self.graph, self.inputs
        row = g.linear("shift_row")
        for name in rom.SHIFTS:
            table = "i32.shr_u" if name == "i32.shr_s" else name
            index = rom.shift_base(table) + rom.AMOUNTS * self.dist + self.amount
            self.when(name, index, row)
        for pair in DIVISION_PAIRS:
            self.when(pair, rom.DIVISION_BASE + self.dist, row)
        for name, count in self.counts.items():
            self.when(name, rom.COUNT_BASE + count, row, unless=self.dist)
        negative = self.value["second"] - (2.0**31 - 1) + 2.0**33 * (self.is_op("i32.shr_s") - 1)
        table_distance = rom.shift_base("i32.shr_s") - rom.shift_base("i32.shr_u")
        g.step("shift_row: negative", negative, table_distance, row)
        self.high_offset, self.low_offset = g.linear("high_offset"), g.linear("low_offset")
        self.factor = g.linear("factor", integral=False)
        self.accumulator = g.linear("accumulator", integral=False)
        offsets = [(i.byte, self.high_offset), (i.nibble, self.low_offset)]
        g.fetch_position("shift_offsets", row, offsets)
        factors = [(i.carry, self.factor), (-i.stores - 1, self.accumulator)]
        g.fetch_position("shift_factor", row, factors)

    def start_product(self) -> None:
        """Byte i of a product: prefix_i(A)·(B mod 2^16) + prefix_(i-2)(A)·(B / 2^16), mod 256."""
        g, i = self.graph, self.inputs
        value = i.byte + self.prefix
        prefix, prefix_2 = (g.linear(n, integral=False) for n in ("prefix_i", "prefix_i_less_2"))
        first = self.place["second"] - 4
        early = {"second_position": ("second",)}
        g.fetch_position("prefix_i", first + self.dist, [(value, prefix)], early)
        less_2 = first - 1 + self.beyond[0]
        g.fetch_position("prefix_i_less_2", less_2, [(value, prefix_2)], early)
        low_half = g.linear("low_half", integral=False)
        g.fetch_position("low_half", self.place["top"] - 3, [(256 * value, low_half)])
        closed = 2.0**17 * (self.is_op("i32.mul") - 1)
        high_half = (self.value["top"] - low_half) / 2**16
        g.gate("product_low", low_half + closed, prefix, self.accumulator)
        g.gate("product_high", high_half + closed, prefix_2, self.accumulator)
        self.when("i32.mul", -rom.FINE_HALF, self.accumulator)

    def read_operand_bytes(self) -> None:
        """Byte i of both operands and of the immediate, the nibble products, the shift window."""
        g, i = self.graph, self.inputs
        first = self.place["second"] - 4 + self.dist
        names = ("second_byte", "second_nibble", "top_byte", "top_nibble")
        a, a_high, b, b_high = (g.linear(name) for name in names)
        self.a, self.b = a, b
        a_values = [(i.byte, a), (i.nibble, a_high)]
        g.fetch_position("second_byte", first + self.high_offset, a_values)
        b_values = [(i.byte, b), (i.nibble, b_high)]
        g.fetch_position("top_byte", self.place["top"] - 4 + self.dist, b_values)
        low = g.linear("window_low")
        g.fetch_position("window_low", first + self.low_offset, [(i.byte, low)])
        g.gate("shifted", 256 * a + low, self.factor, self.accumulator)
        self.common_bits = g.linear("common_bits")
        high_index = 16 * a_high + b_high
        low_index = 16 * a + b - 16 * high_index
        g.fetch_position("and_high", high_index, [(i.byte, {self.common_bits: 16})])
        g.fetch_position("and_low", low_index, [(i.byte, self.common_bits)])
        self.immediate_byte = g.linear("immediate_byte")
        place = self.cursor + 1 + self.dist
        g.fetch_position("immediate_byte", place, [(i.byte, self.immediate_byte)])

    def divide(self) -> None:
        """Long division to base 256, one digit token at a time, most significant first.

        With the digits so far in Q (each times its weight) and magnitudes a, b, the rest is
        R = a - b·Q; the next digit is floor(R / (b·weight)). Hard attention is scale-free, so
        query (R - d/2 + 1/2, d) on keys (2p, -p²) fetches floor(R / d) for a variable d: the score
        at p beats the one at p - 1 by 2R + 1 - 2dp, which is never zero. Instructions that do
        not divide fetch 0, and so do a division by zero and one whose digits are written. A
        divisor that is zero or large is replaced by one so large that the digit is 0.
        """
        g = self.graph
        self.result = g.linear("result")
        rest, divisor = g.linear("rest"), g.linear("scaled_divisor", integral=False)
        self.dividing = g.linear("dividing")
        products = []
        for pair in DIVISION_PAIRS:
            a: Expr = self.value["second"]
            b: Expr = self.value["top"]
            if pair == SIGNED_DIVISIONS:
                a, b = a - 2 * self.above_half["second"], b - 2 * self.above_half["top"]
            closed = 2.0**33 * (self.is_op(*pair) - 1)
            label = ", ".join(pair)
            self.when(pair, a, rest)
            g.gate(f"rest: {label} quotient", self.quotient + closed, -b, rest)
            g.gate(f"scaled_divisor: {label}", self.digit_weight + closed, b, divisor)
            self.when(pair, 1, self.dividing)
            products.append(f"scaled_divisor: {label}")
        by_zero = self.dividing - self.top_not_zero
        g.gate("scaled_divisor: by zero", by_zero, LARGE_DIVISOR, divisor)
        early = {"scaled_divisor": tuple(products)}
        g.gate("scaled_divisor: large", divisor - LARGE_DIVISOR, -1, divisor, early)
        positive = divisor + 1 - self.dividing
        g.lookup(
            "division",
            query=(rest - 0.5 * positive + 0.5, positive),
            key=(2 * g.position, -g.position_squared),
            values=[(g.position, self.result)],
        )
        self.rest = rest

    def write_division(self) -> None:
        """Once the digits are written: byte i of the signed quotient or rest."""
        g, quotient, rest = self.graph, self.quotient, self.rest
        a_sign, b_sign = self.sign["second"], self.sign["top"]
        rows = [
            ("i32.div_u", quotient, Expr({})),
            ("i32.rem_u", rest, Expr({})),
            ("i32.rem_s", rest, a_sign),
            ("i32.rem_s", 2.0**32 - rest, 1 - a_sign),
            ("i32.div_s", quotient, a_sign + b_sign),
            ("i32.div_s", quotient, 2 - a_sign - b_sign),
            ("i32.div_s", 2.0**32 - quotient, 1 - a_sign + b_sign),
            ("i32.div_s", 2.0**32 - quotient, 1 + a_sign - b_sign),
        ]
        for number, (name, value, unless) in enumerate(rows):
            closed = 2.0**33 * (self.is_op(name) - 1 - unless)
            label = f"dividend byte: {name} {number}"
            g.gate(label, value + closed, self.factor, self.accumulator)

    def reduce_accumulator(self) -> None:
        """Take the accumulator mod 256 with three heads: attention over positions divides.

        Query (x - 1/2, 1) on keys (2p, -p²) fetches the position nearest to x - 1/2.
        """
        g = self.graph
        value = self.accumulator + 0.5
        bytes_of_division = [name for name in g.nodes if name.startswith("dividend byte: ")]
        before = ["shift_factor", "product_low", "product_high", "accumulator: i32.mul"]
        before += bytes_of_division
        for number, (size, slack) in enumerate((*LOOSE_FLOORS, (256.0, 0.0))):
            g.fetch_position(
                f"floor_{number}",
                value / size - 0.5 - slack,
                [(g.position, {self.accumulator: -size})],
                partial={"accumulator": tuple(before)},
            )
            before += [f"floor_{number}"] if number else ["shifted", "floor_0"]

    def compare(self) -> None:
        """Whether second is less or greater than top, signed where the opcode says so."""
        g = self.graph
        sign = self.sign
        difference = g.linear("difference")
        g.gate("difference", 1, self.value["second"] - self.value["top"], difference)
        correction = 2.0**32 * (sign["top"] - sign["second"])
        for name in isa.COMPARISONS:
            if name.endswith("_s"):
                self.when(name, correction, difference)
        self.less, self.greater = g.linear("less"), g.linear("greater")
        g.step("less", -difference, 1, self.less)
        g.step("greater", difference, 1, self.greater)

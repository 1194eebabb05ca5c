"""The machine's state, rebuilt at every token from what earlier tokens left.

Stack depth, cursor and call depth are running sums; the instruction at the cursor, its immediate
and the top of the stack are lookups. :mod:`compiler.machine` begins with the conventions.
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler import isa, opcode_points
from compiler.graph import Expr, Fetched, Graph, Quantity

MOST_DEPTH = 2.0**27
"""Above every stack depth."""


@dataclass(frozen=True)
class Inputs:
    """The embedding's slots. Tokens of different kinds share them.

    byte: value of a byte token; x of an opcode; high offset of a shift row.
    nibble: its high nibble; y of an opcode; low offset of a shift row.
    low5: value modulo 32; of a token that is no byte, the weight of the next quotient digit.
    carry: the carry mark; factor of a shift row; height of a zeros row.
    kind: 0 byte, 1 any other, -1 data, -2 input.
    delta, call_delta: change of stack and call depth. step: change of the cursor.
    jump: sign with which the four bytes before change the cursor.
    stores: 1 if the four bytes before are pushed; -(1 + added) of a table row.
    branch: 1 for branch_taken; 1 to 4 for the quotient digits; slope of a zeros row; -2 for the
        memory-size directive (-1 for the first token of all: no memory, where there is none).
    digit: a quotient digit times its weight.
    ones: how many bits of a byte are 1. mirror: the byte with its bits in reverse.
    """

    byte: Quantity
    nibble: Quantity
    low5: Quantity
    carry: Quantity
    kind: Quantity
    delta: Quantity
    call_delta: Quantity
    step: Quantity
    jump: Quantity
    stores: Quantity
    branch: Quantity
    digit: Quantity
    ones: Quantity
    mirror: Quantity


class State:
    """Builds the part of the graph that every instruction needs.

    ``max_call_depth``: calls nest at most this deep less one.
    """

    def __init__(self, max_call_depth: int = isa.MAX_CALL_DEPTH) -> None:
        self.max_call_depth = max_call_depth
        self.graph = Graph()
        self.inputs = Inputs(*(self.graph.input(name) for name in Inputs.__annotations__))

    def is_op(self, *names: str) -> Expr:
        """1 if the current instruction is one of one or two names, else an integer of at most 0.

        Two names must be neighbours on the circle of opcodes.
        """
        test = opcode_points.test_for(names)
        return test.x_factor * self.x + test.y_factor * self.y + test.constant

    def when(
        self,
        names: str | tuple[str, ...],
        value: Expr | float,
        into: Quantity,
        unless: Expr | float = 0,
    ) -> None:
        """Add ``value`` if the instruction is one of ``names`` and ``unless``, >= 0, is 0."""
        names = (names,) if isinstance(names, str) else names
        label = f"{into.name}: {', '.join(names)}"
        self.graph.gate(label, self.is_op(*names) - unless, value, into)

    def read_previous_bytes(self) -> None:
        """The four bytes before as one number; the distance to the last token that is no byte."""
        g, i = self.graph, self.inputs
        self.word = g.linear("word")
        self.last_byte = g.linear("last_byte")
        self.word_low5 = g.linear("word_low5")
        earlier_digits = g.linear("earlier_digits")
        for back in (1, 2, 3):
            targets = {self.word: 256.0 ** (4 - back)}
            if back == 1:
                targets[self.last_byte] = 1
            values: Fetched = [(i.byte, targets), (i.digit, earlier_digits)]
            g.fetch_position(f"byte_before_{back}", g.position - back, values)
        both = [(i.byte, self.word), (i.low5, self.word_low5)]
        g.fetch_position("byte_before_4", g.position - 4, both)
        self.last_other = g.linear("last_other")
        self.after_branch = g.linear("after_branch")
        g.lookup(
            "last_token_that_is_no_byte",
            query=(1, 0),
            key=(i.kind, 0),
            values=[(g.position, self.last_other), (i.branch, self.after_branch)],
        )
        self.digit_weight = g.linear("digit_weight")
        g.lookup(
            "digit_weight", query=(1, 0), key=(i.kind, 0), values=[(i.low5, self.digit_weight)]
        )
        self.quotient = g.linear("quotient")
        digits = i.digit + earlier_digits
        g.fetch_position("quotient", self.last_other, [(digits, self.quotient)])
        self.dist = g.position - self.last_other
        self.beyond = [g.linear(f"dist_beyond_{k}") for k in (1, 2, 3)]
        for k, quantity in enumerate(self.beyond, start=1):
            g.gate(quantity.name, self.dist - k, 1, quantity)

    def count_bits(self) -> None:
        """Ones, leading and trailing zeros of the four bytes before.

        The rows of the zeros table are lines whose upper envelope has its corners at powers of
        two. Other tokens have slope 0 and a height of at most 1, or are far below: only rows
        have a slope and hold no weight of a digit.
        """
        g, i = self.graph, self.inputs
        mirrored = g.linear("word_mirrored")
        self.word_counts = {name: g.linear(f"word: {name}") for name in isa.COUNTS}
        for back in (1, 2, 3, 4):
            ones = (i.ones, self.word_counts["i32.popcnt"])
            mirror = (i.mirror, {mirrored: 256.0 ** (back - 1)})
            g.fetch_position(f"bits_before_{back}", g.position - back, [ones, mirror])
        height = i.carry - 2.0**34 * i.low5
        for name, number in (("i32.clz", self.word), ("i32.ctz", mirrored)):
            zeros = [(i.byte, self.word_counts[name])]
            g.lookup(f"zeros: {name}", query=(number, 1), key=(2 * i.branch, height), values=zeros)

    def sum_state(self) -> None:
        """Stack depth, call depth, and the cursor, whose jumps are signed 32-bit offsets."""
        g, i = self.graph, self.inputs
        self.depth, self.call_depth = g.running_sums({"depth": i.delta, "call_depth": i.call_delta})
        g.gate("jump", self.word, i.jump, i.step)
        # A step at 2^31 in the word itself would leave 2^63 and a small integer in one sum.
        g.step("jump_sign", self.last_byte - 127, -(2.0**32) * i.jump, i.step)
        self.cursor = g.running_sum("cursor", i.step)

    def sum_byte_prefix(self) -> None:
        """The bytes of the same value before a byte token: b[j-1]/256 + b[j-2]/256² + ...

        Together with the byte itself this is (value mod 256^(j+1)) / 256^j. Tokens that are no
        byte hold byte 0, so a read that would leave the value goes to the token before it.
        """
        g, i = self.graph, self.inputs
        self.prefix = g.linear("prefix", integral=False)
        for k, beyond in enumerate(self.beyond, start=1):
            values = [(i.byte, {self.prefix: 256.0**-k})]
            g.fetch_position(f"prefix_{k}", self.last_other + beyond, values)

    def fetch_instruction(self) -> None:
        """Opcode point and immediate of the instruction at the cursor; the size of the memory."""
        g, i = self.graph, self.inputs
        self.x, self.y = g.linear("x"), g.linear("y")
        g.fetch_position("opcode", self.cursor, [(i.byte, self.x), (i.nibble, self.y)])
        self.immediate = g.linear("immediate")
        next_opcode = self.cursor + isa.INSTRUCTION_TOKENS
        g.fetch_position("immediate", next_opcode, [(self.word, self.immediate)])
        self.memory_size = g.linear("memory_size")
        g.lookup(
            "memory_size",
            query=(-1, 0),
            key=(i.branch, 0),
            values=[(self.word, self.memory_size)],
        )

    def read_stack(self) -> None:
        """Values and positions of the top three stack entries, pushed at the given depths."""
        g = self.graph
        pushed, squared = g.linear("push_depth"), g.linear("push_depth_squared")
        level = self.depth + 1
        g.gate("push_depth", self.inputs.stores, level, pushed)
        stores_only = MOST_DEPTH * (self.inputs.stores - 1)
        g.gate("push_depth_squared", level + stores_only, level, squared)
        key = (2 * pushed, -squared)
        names = ("top", "second", "third")
        self.value = {name: g.linear(name) for name in names[:2]}
        self.place = {name: g.linear(f"{name}_position") for name in names}
        self.above_half = {name: g.linear(f"{name}_above_half") for name in self.value}
        above_half = g.linear("word_above_half")
        g.gate("word_above_half", self.word - 2.0**31, 1, above_half)
        self.amount = g.linear("amount")
        for below, name in enumerate(names):
            values = [(g.position, self.place[name])]
            if name in self.value:
                values.append((self.word, self.value[name]))
            g.lookup(name, query=(level - below, 1), key=key, values=values)
        amount = [(self.word_low5, self.amount), (above_half, self.above_half["top"])]
        g.lookup("amount", query=(level, 1), key=key, values=amount)
        magnitude = [(above_half, self.above_half["second"])]
        g.lookup("second_magnitude", query=(level - 1, 1), key=key, values=magnitude)
        self.counts = {name: g.linear(f"top: {name}") for name in isa.COUNTS}
        for pair in (isa.COUNTS[:2], isa.COUNTS[2:]):
            counts: Fetched = [(self.word_counts[name], self.counts[name]) for name in pair]
            g.lookup(f"counts: {', '.join(pair)}", query=(level, 1), key=key, values=counts)
        self.sign = {name: g.linear(f"{name}_sign") for name in self.value}
        for name, value in self.value.items():
            g.step(f"{name}_sign", value - (2.0**31 - 1), 1, self.sign[name])
        self.top_not_zero = g.linear("top_not_zero")
        g.step("top_not_zero", self.value["top"], 1, self.top_not_zero)

"""The WebAssembly computer, in the graph language.

Every token, prompt or trace, runs the same few steps: rebuild the state from what earlier
tokens left (stack depth, cursor, call depth: running sums; stack, locals, memory: lookups), fetch
the instruction at the cursor, and decide the next token of the trace. A value is written as four
byte tokens and a commit, so the state changes only at commits, and a byte token knows which byte
comes next from its distance to the last token that is not a byte.

Conventions of this file: ``dist`` is that distance, which is also the index of the byte to be
written next (4: the commit is due). ``is_op(name)`` is 1 if the instruction at the cursor is
``name`` and at most 0 otherwise, so ``is_op(name) - k`` gates on an extra condition ``k == 0``.
Addresses are kept plus one, so that key (0, 0) means "writes nothing".
"""

from __future__ import annotations

from dataclasses import dataclass

from compiler import circle, isa, opcode_points, rom
from compiler.graph import Expr, Graph, Quantity
from compiler.machine_tokens import PROMPT_CURSOR, add_scores, add_tokens

MOST_DEPTH = 2.0**27
"""Above every stack depth."""
LOOSE_FLOORS = ((2.0**17, 2.0**-8), (2.0**12, 2.0**-6))
"""Size and slack of the first two floor heads: they bring the accumulator below 2^17·(1 + 2^-8),
then below 2^12·(1 + 2^-6), and may take one multiple too few, never one too many."""
MUL_HALF = 0.5 - 2.0**-25
"""Subtracted from a product's byte, a multiple of 2^-24, so that rounding rounds down."""


@dataclass(frozen=True)
class Inputs:
    """The embedding's slots. Tokens of different kinds share them.

    byte: value of a byte token; x of an opcode; high offset of a shift row.
    nibble: its high nibble; y of an opcode; low offset of a shift row.
    low5: value modulo 32.
    carry: the carry mark; 1 for the end of the input; factor of a shift row.
    kind: 0 byte, 1 any other, -1 data, -2 input.
    delta, call_delta: change of stack and call depth. step: change of the cursor.
    jump: sign with which the four bytes before change the cursor.
    stores: 1 if the four bytes before are pushed; -(1 + added) of a shift row.
    branch: 1 for branch_taken, -1 for the memory-size directive.
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


def build_graph() -> Graph:
    """The whole machine as a graph, with its vocabulary and token scores."""
    return _Builder().build()


class _Builder:
    """Adds the machine to a graph, part by part, in the order of the data flow."""

    def __init__(self) -> None:
        self.graph = Graph()
        self.inputs = Inputs(*(self.graph.input(name) for name in Inputs.__annotations__))

    def build(self) -> Graph:
        """Run all parts and return the graph."""
        add_tokens(self.graph)
        self.read_previous_bytes()
        self.sum_state()
        self.sum_byte_prefix()
        self.fetch_instruction()
        self.read_stack()
        self.address_memory()
        self.address_locals()
        self.choose_operand()
        self.index_shift_table()
        self.start_product()
        self.read_operand_bytes()
        self.compare()
        self.reduce_accumulator()
        self.write_result()
        self.decide_control()
        add_scores(
            self.graph,
            result=self.accumulator + self.result,
            control=self.control,
            dist=self.dist,
            x=self.x,
            y=self.y,
        )
        return self.graph

    # --- what every part needs ---------------------------------------------------------------

    def is_op(self, name: str) -> Expr:
        """1 if the current instruction is ``name``, else an integer of at most 0."""
        test = circle.is_point(opcode_points.POINTS[name])
        return test.x_factor * self.x + test.y_factor * self.y + test.constant

    def when(self, name: str, value: Expr | float, into: Quantity, unless: Expr | float = 0) -> None:
        """Add ``value`` if the instruction is ``name`` and the integer ``unless`` is 0, not above."""
        self.graph.gate(f"{into.name}: {name}", self.is_op(name) - unless, value, into)

    # --- layer 0 and 1: state ----------------------------------------------------------------

    def read_previous_bytes(self) -> None:
        """The four bytes before as one number; the distance to the last token that is no byte."""
        g, i = self.graph, self.inputs
        self.word = g.linear("word")
        self.word_low5 = g.linear("word_low5")
        for back in (1, 2, 3):
            values = [(i.byte, {self.word: 256.0 ** (4 - back)})]
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
        self.dist = g.position - self.last_other
        self.beyond = [g.linear(f"dist_beyond_{k}") for k in (1, 2, 3)]
        for k, quantity in enumerate(self.beyond, start=1):
            g.gate(quantity.name, self.dist - k, 1, quantity)

    def sum_state(self) -> None:
        """Stack depth, call depth, and the cursor, whose jumps are signed 32-bit offsets."""
        g, i = self.graph, self.inputs
        self.depth, self.call_depth = g.running_sums({"depth": i.delta, "call_depth": i.call_delta})
        g.gate("jump", self.word, i.jump, i.step)
        g.step("jump_sign", self.word - (2.0**31 - 1), -(2.0**32) * i.jump, i.step)
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

    # --- layer 2: instruction and operands ---------------------------------------------------

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
        self.amount = g.linear("amount")
        for below, name in enumerate(names):
            values = [(g.position, self.place[name])]
            if name in self.value:
                values.append((self.word, self.value[name]))
            g.lookup(name, query=(level - below, 1), key=key, values=values)
        amount = [(self.word_low5, self.amount)]
        g.lookup("amount", query=(level, 1), key=key, values=amount)
        self.top_not_zero = g.linear("top_not_zero")
        g.step("top_not_zero", self.value["top"], 1, self.top_not_zero)

    def address_memory(self) -> None:
        """Where this token writes memory, and which address the next byte is read from.

        Input bytes live at negative addresses: the token at position p behind the tables has
        address -p - 1. ``input`` turns its index plus its immediate, the length of the program,
        into such an address.
        """
        g, i = self.graph, self.inputs
        top, second = self.value["top"], self.value["second"]
        self.write_address = g.linear("write_address")
        limits = {4: i.kind, 2: i.kind + self.beyond[1], 1: i.kind + self.beyond[0]}
        store = second + self.immediate + self.dist
        for name, width in isa.STORES.items():
            self.when(name, store, self.write_address, unless=limits[width])
        data = self.cursor + PROMPT_CURSOR
        g.gate("data_address", -i.kind, data, self.write_address)
        input_address = rom.ROM_TOKENS - 1 - g.position
        g.gate("input_address", -i.kind - 1, input_address - 2 * data, self.write_address)

        self.read_address = g.linear("read_address")
        g.gate("read_address", 1, top + self.immediate + self.dist + 1, self.read_address)
        self.when("input", -2 * (top + self.immediate + 1), self.read_address)

        self.excess = g.linear("excess")
        for name, (width, _) in isa.LOADS.items():
            self.when(name, top + self.immediate + width - self.memory_size, self.excess)
        for name, width in isa.STORES.items():
            self.when(name, second + self.immediate + width - self.memory_size, self.excess)

        squared = g.linear("write_address_squared")
        g.square("write_address_squared", self.write_address, squared, signed=True)
        self.memory_byte = g.linear("memory_byte")
        found = g.linear("memory_address")
        g.lookup(
            "memory",
            query=(self.read_address, 1),
            key=(2 * self.write_address, -squared),
            values=[(i.byte + 511 * i.carry, self.memory_byte), (self.write_address, found)],
        )
        miss = found - self.read_address
        self.loaded = g.linear("loaded")
        for offset, factor in ((1, 1.0), (0, -2.0), (-1, 1.0)):
            value = factor * self.memory_byte
            g.gate(f"loaded_if_found_{offset:+d}", miss + offset, value, self.loaded)

    def address_locals(self) -> None:
        """Locals, globals and return records in one space: index·depths + call depth."""
        g = self.graph
        write, read = g.linear("local_write"), g.linear("local_read")
        slot = isa.MAX_CALL_DEPTH * (self.immediate + 1)
        for name in ("local.set", "local.tee"):
            self.when(name, slot + self.call_depth, write)
        self.when("global.set", slot, write)
        self.when("call", self.call_depth + 1, write)
        self.when("local.get", slot + self.call_depth, read)
        self.when("global.get", slot, read)
        self.when("return", self.call_depth, read)
        squared = g.linear("local_write_squared")
        g.square("local_write_squared", write, squared)
        place = g.linear("local_position")
        g.lookup(
            "local", query=(read, 1), key=(2 * write, -squared), values=[(g.position, place)]
        )
        self.local_byte = g.linear("local_byte")
        g.fetch_position(
            "local_byte", place - 3 + self.dist, [(self.inputs.byte, self.local_byte)]
        )

    # --- layers 3 to 5: operand bytes --------------------------------------------------------

    def choose_operand(self) -> None:
        """``select`` with a true condition takes its first operand instead of the second."""
        chosen = self.place["third"] - self.place["second"]
        gate = self.is_op("select") + self.top_not_zero - 1
        self.graph.gate(
            "second_position: select",
            gate,
            chosen,
            self.place["second"],
            partial={"second_position": ("second",)},
        )

    def index_shift_table(self) -> None:
        """Fetch the row of the shift table; other instructions fetch row 0, which is neutral."""
        g, i = self.graph, self.inputs
        row = g.linear("shift_row")
        for name in rom.SHIFTS:
            table = "i32.shr_u" if name == "i32.shr_s" else name
            index = rom.shift_base(table) + rom.AMOUNTS * self.dist + self.amount
            self.when(name, index, row)
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
        low_half = g.linear("low_half")
        g.fetch_position("low_half", self.place["top"] - 3, [(256 * value, low_half)])
        closed = 2.0**17 * (self.is_op("i32.mul") - 1)
        high_half = (self.value["top"] - low_half) / 2**16
        g.gate("product_low", low_half + closed, prefix, self.accumulator)
        g.gate("product_high", high_half + closed, prefix_2, self.accumulator)
        self.when("i32.mul", -MUL_HALF, self.accumulator)

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

    def compare(self) -> None:
        """Whether second is less or greater than top, signed where the opcode says so."""
        g = self.graph
        sign = {}
        for name, value in self.value.items():
            sign[name] = g.linear(f"{name}_sign")
            g.step(f"{name}_sign", value - (2.0**31 - 1), 1, sign[name])
        difference = g.linear("difference")
        g.gate("difference", 1, self.value["second"] - self.value["top"], difference)
        correction = 2.0**32 * (sign["top"] - sign["second"])
        for name in isa.COMPARISONS:
            if name.endswith("_s"):
                self.when(name, correction, difference)
        self.less, self.greater = g.linear("less"), g.linear("greater")
        g.step("less", -difference, 1, self.less)
        g.step("greater", difference, 1, self.greater)

    def reduce_accumulator(self) -> None:
        """Take the accumulator mod 256 with three heads: attention over positions divides.

        Query (x - 1/2, 1) on keys (2p, -p²) fetches the position nearest to x - 1/2.
        """
        g = self.graph
        value = self.accumulator + 0.5
        before = ("shift_factor", "product_low", "product_high", "accumulator: i32.mul")
        for number, (size, slack) in enumerate((*LOOSE_FLOORS, (256.0, 0.0))):
            g.fetch_position(
                f"floor_{number}",
                value / size - 0.5 - slack,
                [(g.position, {self.accumulator: -size})],
                partial={"accumulator": before},
            )
            before = (*before, "shifted", f"floor_{number}")

    # --- layer 6: the next token -------------------------------------------------------------

    def write_result(self) -> None:
        """The byte to write next (plus 256 with a carry), for each instruction."""
        g, i, a, b = self.graph, self.inputs, self.a, self.b
        self.result = g.linear("result")
        for name in ("i32.const", "br", "br_if", "call"):
            self.when(name, self.immediate_byte, self.result)
        self.when("return", self.immediate_byte + self.local_byte + i.carry, self.result)
        for name in ("local.get", "global.get"):
            self.when(name, self.local_byte, self.result)
        for name in ("local.set", "local.tee", "global.set", "output", *isa.STORES):
            self.when(name, b, self.result)
        self.when("select", a, self.result)
        self.when("i32.add", a + b + i.carry, self.result)
        self.when("i32.sub", a - b + 255 + i.carry + i.kind, self.result)
        self.when("i32.and", self.common_bits, self.result)
        self.when("i32.or", a + b - self.common_bits, self.result)
        self.when("i32.xor", a + b - 2 * self.common_bits, self.result)
        self.write_loaded()
        less, greater = self.less, self.greater
        outcome = {"lt": less, "gt": greater, "le": 1 - greater, "ge": 1 - less}
        outcome |= {"eq": 1 - less - greater, "ne": less + greater}
        for name in isa.COMPARISONS:
            self.when(name, outcome[name[4:6]], self.result, unless=self.dist)
        self.when("i32.eqz", 1 - self.top_not_zero, self.result, unless=self.dist)

    def write_loaded(self) -> None:
        """Loads: the memory byte below the width, then zero or copies of the sign.

        The byte written last is the token itself, so its sign is at hand; a token that is no
        byte holds 0. The end of the input loads as 511: byte 255 and a carry mark, which then
        repeats itself.
        """
        g, i = self.graph, self.inputs
        beyond = {4: Expr({}), 2: self.beyond[0], 1: self.dist}
        for name, (width, signed) in isa.LOADS.items():
            self.when(name, self.loaded, self.result, unless=beyond[width])
            if signed:
                not_yet = self.dist - width - self.beyond[width - 1] if width > 1 else Expr({})
                at = i.byte - 127 + 2.0**9 * (self.is_op(name) - 1 + not_yet)
                g.step(f"result: {name} sign", at, 255, self.result)
        self.when("input", self.loaded, self.result, unless=self.dist)
        g.gate("result: input at its end", self.is_op("input"), 511 * i.carry, self.result)

    def decide_control(self) -> None:
        """A token instead of a byte: 1 commit(-1), -1 branch_taken, -2 and -3 traps."""
        g = self.graph
        self.control = g.linear("control")
        self.when("drop", 1, self.control)
        self.when("br_if", 1, self.control, unless=self.top_not_zero + self.after_branch)
        self.when("br", -1, self.control, unless=self.after_branch)
        taken = 1 - self.top_not_zero + self.after_branch
        g.gate("control: br_if taken", self.is_op("br_if") - taken, -1, self.control)
        g.step("control: out_of_bounds", self.excess, -2, self.control)
        full = self.call_depth - (isa.MAX_CALL_DEPTH - 2)
        closed = 2.0 * isa.MAX_CALL_DEPTH * (self.is_op("call") - 1)
        g.gate("control: stack_exhausted", full + closed, -3, self.control)

"""The WebAssembly computer, in the graph language.

Every token, prompt or trace, runs the same few steps: rebuild the state from what earlier
tokens left (stack depth, cursor, call depth: running sums; stack, locals, memory: lookups), fetch
the instruction at the cursor, and decide the next token of the trace. A value is written as four
byte tokens and a commit, so the state changes only at commits, and a byte token knows which byte
comes next from its distance to the last token that is not a byte.

Conventions of this file: ``dist`` is that distance, which is also the index of the byte to be
written next (4: the commit is due). ``is_op(name)`` is 1 if the instruction at the cursor is
``name`` and at most 0 otherwise, so ``is_op(name) - k`` gates on an extra condition ``k == 0``.
Memory addresses are kept plus one (input bytes: -p - 1), so that key (0, 0) means "writes nothing".
"""

from __future__ import annotations

from compiler import isa, rom
from compiler.graph import Expr, Graph
from compiler.machine_arithmetic import Arithmetic
from compiler.machine_tokens import FIRST_DIGIT, PROMPT_CURSOR, add_scores, add_tokens
from compiler.machine_words import add_words


def build_graph(max_call_depth: int = isa.MAX_CALL_DEPTH) -> Graph:
    """The whole machine as a graph, with its vocabulary and token scores.

    With a smaller ``max_call_depth`` locals have smaller addresses; nodes and plan are the same.
    """
    return Computer(max_call_depth).build()


class Computer(Arithmetic):
    """Adds the machine to a graph, part by part, in the order of the data flow."""

    def build(self) -> Graph:
        """Run all parts and return the graph."""
        add_tokens(self.graph)
        self.read_previous_bytes()
        self.count_bits()
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
        self.divide()
        self.write_division()
        self.compare()
        self.reduce_accumulator()
        self.write_result()
        self.decide_control()
        add_scores(
            self.graph,
            result=self.accumulator + self.result,
            digit=self.result,
            control=self.control,
            dist=self.dist,
            x=self.x,
            y=self.y,
        )
        add_words(self.graph)
        return self.graph

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
        self.when("input", -2 * (top + self.immediate + 1) - self.dist, self.read_address)

        self.excess = g.linear("excess")
        for name, (width, _) in isa.LOADS.items():
            self.when(name, top + self.immediate + width - self.memory_size, self.excess)
        for name, width in isa.STORES.items():
            self.when(name, second + self.immediate + width - self.memory_size, self.excess)

        squared = g.linear("write_address_squared")
        g.square("write_address_squared", self.write_address, squared, signed=True)
        self.memory_byte = g.linear("memory_byte")
        place = g.linear("memory_address")
        g.lookup(
            "memory",
            query=(self.read_address, 1),
            key=(2 * self.write_address, -squared),
            values=[(i.byte, self.memory_byte), (self.write_address, place)],
        )
        miss = place - self.read_address
        self.found = g.linear("found")
        # A hat of three neurons: 1 where the miss is 0, else 0.
        for offset, factor in ((1, 1.0), (0, -2.0), (-1, 1.0)):
            g.gate(f"found_{offset:+d}", miss + offset, factor, self.found)

    def address_locals(self) -> None:
        """Locals, globals and return records in one space: index·depths + call depth."""
        g = self.graph
        write, read = g.linear("local_write"), g.linear("local_read")
        slot = self.max_call_depth * (self.immediate + 1)
        for name in ("local.set", "local.tee"):
            self.when(name, slot + self.call_depth, write)
        self.when("global.set", slot, write)
        self.when("call", self.call_depth + 1, write)
        self.when("local.get", slot + self.call_depth, read)
        self.when("global.get", slot, read)
        self.when("return", self.call_depth, read)
        squared = g.linear("local_write_squared", integral=False)
        g.square("local_write_squared", write, squared)
        place = g.linear("local_position")
        g.lookup("local", query=(read, 1), key=(2 * write, -squared), values=[(g.position, place)])
        self.local_byte = g.linear("local_byte")
        g.fetch_position("local_byte", place - 3 + self.dist, [(self.inputs.byte, self.local_byte)])

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

    def write_result(self) -> None:
        """The byte to write next (plus 256 with a carry).

        Products, shifts and divisions leave theirs in the accumulator; the logits add the two.
        """
        i, a, b = self.inputs, self.a, self.b
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

        Memory that was never written is zero; input that is not there is all ones. The byte
        written last is the token itself, so its sign is at hand; a token that is no byte holds 0.
        """
        g, i = self.graph, self.inputs
        missing = 1 - self.found
        beyond = {4: Expr({}), 2: self.beyond[0], 1: self.dist}
        for name, (width, signed) in isa.LOADS.items():
            self.when(name, self.memory_byte, self.result, unless=beyond[width] + missing)
            if signed:
                not_yet = self.dist - width - self.beyond[width - 1] if width > 1 else Expr({})
                at = i.byte - 127 + 2.0**9 * (self.is_op(name) - 1 + not_yet)
                g.step(f"result: {name} sign", at, 255, self.result)
        self.when("input", self.memory_byte, self.result, unless=self.dist + missing)
        g.gate("result: end of input", self.is_op("input") - self.found, 255, self.result)

    def decide_control(self) -> None:
        """A token instead of a byte: 1 for commit(-1), else ``machine_tokens.CONTROL_TOKENS``."""
        g = self.graph
        self.control = g.linear("control")
        self.when("drop", 1, self.control)
        self.when("br_if", 1, self.control, unless=self.top_not_zero + self.after_branch)
        self.when("br", -1, self.control, unless=self.after_branch)
        taken = 1 - self.top_not_zero + self.after_branch
        g.gate("control: br_if taken", self.is_op("br_if") - taken, -1, self.control)
        g.step("control: out_of_bounds", self.excess, -2, self.control)
        full = self.call_depth - (self.max_call_depth - 2)
        closed = 2.0 * self.max_call_depth * (self.is_op("call") - 1)
        g.gate("control: stack_exhausted", full + closed, -3, self.control)
        self.control_division()

    def control_division(self) -> None:
        """Four quotient digits, unless the divisor is zero or the quotient overflows."""
        g, written = self.graph, self.after_branch
        g.gate("control: digit", self.dividing, FIRST_DIGIT - written, self.control)
        done = self.dividing + written - 4
        g.gate("control: digits_done", done, 4 - FIRST_DIGIT, self.control)
        by_zero = self.dividing - self.top_not_zero - written
        g.gate("control: divide_by_zero", by_zero, -4 - FIRST_DIGIT, self.control)
        most_negative = self.rest - 2.0**31  # before the first digit the rest is |a|
        minus_one = self.value["top"] - (2.0**32 - 1)
        closed = 2.0**33 * (self.is_op("i32.div_s") - 1)
        overflow = 1 + most_negative + minus_one - written + closed
        g.gate("control: integer_overflow", overflow, -5 - FIRST_DIGIT, self.control)

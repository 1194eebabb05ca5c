"""The base machine: 35 opcodes in as few slots as the solver can make of them.

It runs the subset of token programs that use its opcodes (``machine_base_tokens.ORDER``), with the
prompts and traces of ``docs/trace-format.md``, traps included. It needs no tables: the prompt is
the program alone.

Every token recomputes the state from what earlier tokens left, as in :mod:`compiler.machine`, with
fewer quantities:

- One write key per token serves the operand stack, locals, globals, return records and memory. What
  is kept over calls has positive addresses, memory has even and the stack odd negative ones; 0
  writes nothing. A token writes at most one of them.
- One read, at ``source``, serves what needs a second operand: ``add``, ``sub`` and ``select``,
  locals, globals, ``return`` and loads. The top of the stack is the other operand.
- What is no byte is told by the slot of the carry, and the distance to the last such token counts
  a quarter more after ``branch_taken``.
- Loads and stores add their immediate to the operand before they fetch it.
- Tokens that are no byte are chosen by results far below zero.

Conventions: ``dist`` is the distance to the last token that is no byte, the index of the byte to
be written next (4: the commit is due). Memory addresses are kept plus one.
"""

from __future__ import annotations

from compiler import circle, isa
from compiler.graph import Expr, Graph, Quantity
from compiler.machine_base_tokens import (
    CONTROL,
    DROPPED,
    EXHAUSTED,
    NO_BYTE,
    OUT_OF_BOUNDS,
    TAKEN,
    add_scores,
    add_tokens,
    is_pair,
    is_point,
)
from compiler.machine_words import add_words
from compiler.schedule import Shape

BASE_SHAPE = Shape(d_model=16, n_heads=8, n_layers=7, d_ffn=25)
"""No plan needs fewer slots in seven layers, nor fewer neurons in that many slots."""

MAX_MEMORY = isa.EXACT_ADDRESSES // 2 - 1
"""Bytes of memory: addresses are doubled, and their squares must be exact."""

FRAMES = 2.0**31
"""Above every frame address that 16 bits of immediate can give."""
LEVELS = 2.0**27
"""Above every stack address and cursor."""
WORDS = 2.0**34
"""Above every sum of an operand, an immediate and a distance."""
NEVER = 2.0**32
"""Added to a key's square, it keeps the key from being found at its address: for the third and
fourth byte of ``i32.store16``, whose first bytes have just been written within six of it."""

Ops = str | tuple[str, str]
"""One opcode, or two neighbours on the circle."""

LOADS: dict[Ops, int] = {
    "i32.load": 4,
    ("i32.load8_u", "i32.load8_s"): 1,
    ("i32.load16_u", "i32.load16_s"): 2,
}
STORES: dict[Ops, int] = {"i32.store": 4, "i32.store8": 1, "i32.store16": 2}
WIDE_STORES = ("i32.store16", "i32.store")


def build_base_graph() -> Graph:
    """The base machine as a graph, with its vocabulary and token scores."""
    return BaseComputer().build()


class BaseComputer:
    """Adds the machine to a graph, part by part, in the order of the data flow."""

    def __init__(self) -> None:
        self.graph = Graph()
        names = ("byte", "carry", "stores", "delta", "call_delta", "step", "jump")
        inputs = [self.graph.input(name) for name in names]
        self.byte, self.carry, self.stores, self.delta, self.call_delta, self.step, self.jump = (
            inputs
        )

    def build(self) -> Graph:
        """Run all parts and return the graph."""
        add_tokens(self.graph)
        self.read_previous_bytes()
        self.sum_state()
        self.fetch_instruction()
        self.write_key()
        self.read_stack()
        self.address_memory()
        self.read_source()
        self.compare()
        self.write_result()
        self.write_loaded()
        self.decide_control()
        due = self.graph.linear("due")  # the scores weigh it heavily: it must be a small number
        self.graph.gate("due", 1, 4 * self.dist, due)
        add_scores(self.graph, result=self.result, due=due / 4, x=self.x, y=self.y)
        add_words(self.graph)
        return self.graph

    # --- helpers -----------------------------------------------------------------------------

    def is_op(self, ops: Ops) -> Expr:
        """1 if the current instruction is ``ops`` or one of them, else an integer of at most 0."""
        test: circle.Classifier = is_point(ops) if isinstance(ops, str) else is_pair(*ops)
        return test.x_factor * self.x + test.y_factor * self.y + test.constant

    def when(self, ops: Ops, value: Expr | float, into: Quantity, unless: Expr | float = 0) -> None:
        """Add ``value`` if the instruction is ``ops`` and ``unless``, an integer >= 0, is 0."""
        name = f"{into.name}: {_label(ops)}"
        self.graph.gate(name, self.is_op(ops) - unless, value, into)

    def write(
        self, ops: Ops, address: Expr, unless: Expr | float, *, scale: int = 1, below: float
    ) -> None:
        """Key ``scale * address`` and its square while ``ops`` writes, the address ``below``.

        The square's gate is the address itself, moved below zero where nothing is written.
        """
        self.when(ops, scale * address, self.key, unless)
        opened = self.is_op(ops) - unless - 1
        name = f"key_squared: {_label(ops)}"
        self.graph.gate(name, address + below * opened, scale**2 * address, self.key_squared)

    def running_sums(self, **sums: Expr) -> list[Expr]:
        """Up to two running sums of one head, whose slots may be used again at once.

        A sum is an integer below 2^49, so that what stands in the slot next is exact even if
        it comes in the half-layer that subtracts the sum.
        """
        totals = self.graph.running_sums(sums)
        for name in sums:
            self.graph.quantities[name].integral = True
        return totals

    # --- parts -------------------------------------------------------------------------------

    def read_previous_bytes(self) -> None:
        """The four bytes before as one number; the distance to the last token that is no byte."""
        g = self.graph
        self.word, last_byte = g.linear("word"), g.linear("last_byte")
        for back in (1, 2, 3, 4):
            targets = {self.word: 256.0 ** (4 - back)}
            if back == 1:
                targets[last_byte] = 1
            g.fetch_position(f"byte_before_{back}", g.position - back, [(self.byte, targets)])
        self.last_byte = last_byte
        self.last_other = g.linear("last_other")  # four times a position, less 1 after a branch
        g.lookup(
            "last_token_that_is_no_byte",
            query=(1, 0),
            key=(self.carry, 0),
            values=[(4 * g.position + self.byte, self.last_other)],
        )
        self.dist = g.position - self.last_other / 4

    def sum_state(self) -> None:
        """Stack depth, call depth, and the cursor, whose jumps are signed 32-bit offsets."""
        g = self.graph
        self.depth, self.call_depth = self.running_sums(
            depth=self.delta, call_depth=self.call_delta
        )
        g.gate("jump", self.word, self.jump, self.step)
        g.step("jump_sign", self.last_byte - 127, -(2.0**32) * self.jump, self.step)
        (self.cursor,) = self.running_sums(cursor=self.step)

    def fetch_instruction(self) -> None:
        """Opcode point, immediate, its byte to be written next, and its lower half as an index."""
        g, byte = self.graph, self.byte
        self.x, self.y = g.linear("x"), g.linear("y")
        g.fetch_position("opcode", self.cursor, [(byte, self.x), (self.carry, self.y)])
        self.immediate, self.immediate_byte = g.linear("immediate"), g.linear("immediate_byte")
        self.index = g.linear("index")
        next_opcode = self.cursor + isa.INSTRUCTION_TOKENS
        g.fetch_position("immediate", next_opcode, [(self.word, self.immediate)])
        place = self.cursor + 1 + self.dist
        g.fetch_position("immediate_byte", place, [(byte, self.immediate_byte)])
        for number in (0, 1):
            values = [(byte, {self.index: 256.0**number})]
            g.fetch_position(f"index_{number}", self.cursor + 1 + number, values)

    def write_key(self) -> None:
        """What this token writes, but for stores; and what is read besides the top of the stack.

        The value is in the bytes up to this token if it is one, else in those before it.
        """
        g, stores = self.graph, self.stores
        self.key, self.key_squared = g.linear("key"), g.linear("key_squared")
        level = 2 * self.depth + 1
        g.gate("key: push", stores, -level, self.key)
        g.gate("key_squared: push", level + LEVELS * (stores - 1), level, self.key_squared)
        g.gate("key: data", -stores, -2 * self.cursor, self.key)
        data = self.cursor + LEVELS * (-stores - 1)
        g.gate("key_squared: data", data, 4 * self.cursor, self.key_squared)
        slot = isa.MAX_CALL_DEPTH * (self.index + 1)
        local, record = slot + self.call_depth, self.call_depth
        self.write(("local.set", "local.tee"), local, stores, below=FRAMES)
        self.write("global.set", slot, stores, below=FRAMES)
        self.write("call", record + 1, stores, below=FRAMES)
        self.source = g.linear("source")
        self.when("local.get", local, self.source)
        self.when("global.get", slot, self.source)
        self.when("return", record, self.source)
        self.when(("i32.add", "i32.sub"), 2 - level, self.source)
        self.when("select", 4 - level, self.source)  # the third, for a true condition
        g.gate("source: memory", -self.carry, self.word, self.source)  # its size, read later

    def read_stack(self) -> None:
        """The two topmost values, plus the immediate for a load's or store's address."""
        g = self.graph
        self.top, self.second = g.linear("top"), g.linear("second")
        for load in LOADS:
            self.when(load, self.immediate, self.top)
        for store in (WIDE_STORES, "i32.store8"):
            self.when(store, self.immediate, self.second)
        self.top_position = g.linear("top_position")
        writers = ("push", "data", "local.set|local.tee", "global.set", "call")
        early = {q.name: tuple(f"{q.name}: {w}" for w in writers) for q in self._keys()}
        level = 2 * self.depth + 1
        # On an empty stack, and in the prompt, this token itself is found, and its word may reach
        # back to an opcode or a branch_taken, whose bytes can be negative: -400·2^24 and more. The
        # top must not be negative, for neurons subtract it; so what is not pushed counts more.
        word = self.word + 2.0**23 * (NO_BYTE - self.carry)
        for name, query, values in (
            ("top", -level, [(word, self.top), (g.position, self.top_position)]),
            ("second", 2 - level, [(self.word, self.second)]),
        ):
            key = (2 * self.key, -self.key_squared)
            g.lookup(name, query=(query, 1), key=key, values=values, partial=early)

    def _keys(self) -> tuple[Quantity, Quantity]:
        return self.key, self.key_squared

    def address_memory(self) -> None:
        """Store keys, load sources, and how far an access leaves the memory."""
        g = self.graph
        address = self.second + self.dist
        one_byte = self.carry + self.dist - 1
        self.write(WIDE_STORES, address, self.carry, scale=-2, below=WORDS)
        self.write("i32.store8", address, one_byte, scale=-2, below=WORDS)
        beyond = self.dist - 2 + LEVELS * (self.is_op("i32.store16") - 1)
        g.gate("key_squared: beyond i32.store16", beyond, NEVER, self.key_squared)
        self.place = g.linear("place")  # in units of a position / NO_BYTE, so that it is an integer
        for load in LOADS:
            self.when(load, -2 * (self.top + self.dist + 1), self.source)
            self.when(load, NO_BYTE * (3 - self.dist), self.place)
        for store in (WIDE_STORES, "i32.store8"):
            self.when(store, -2 * (address + 1), self.source)
        g.gate("source: select second", self.is_op("select") - self.top, -2, self.source)
        size, self.excess = g.linear("memory_size"), g.linear("excess")
        g.lookup(  # the directive has the least carry
            "memory_size", query=(-1, 0), key=(self.carry, 0), values=[(self.source, size)]
        )
        first = -self.source / 2 - 1 - self.dist
        for access, width in (LOADS | STORES).items():
            self.when(access, first + width - size, self.excess)

    def read_source(self) -> None:
        """The bytes of both operands; how far from the address wanted the memory's byte is."""
        g = self.graph
        found = g.linear("found")
        behind = NO_BYTE * (g.position + 1) - self.carry
        g.lookup(
            "source",
            query=(self.source, 1),
            key=(2 * self.key, -self.key_squared),
            values=[(behind, self.place), (self.key, found)],
        )
        self.miss = g.linear("miss")
        g.gate("miss: low", self.source - found, 1, self.miss)
        g.gate("miss: high", found - self.source, 1, self.miss)
        self.a, self.b = g.linear("source_byte"), g.linear("top_byte")
        offset = self.dist - 4
        g.fetch_position("source_byte", self.place / NO_BYTE + offset, [(self.byte, self.a)])
        g.fetch_position("top_byte", self.top_position + offset, [(self.byte, self.b)])

    def compare(self) -> None:
        """Whether second is less or greater than top, signed where the opcode says so."""
        g = self.graph
        signs = g.linear("signs")
        g.step("top_sign", self.top - (2.0**31 - 1), 1, signs)
        g.step("second_sign", self.second - (2.0**31 - 1), -1, signs)
        difference = g.linear("difference")
        g.gate("difference", 1, self.second - self.top, difference)
        self.when(("i32.lt_s", "i32.ge_s"), 2.0**32 * signs, difference)
        self.when(("i32.gt_s", "i32.le_s"), 2.0**32 * signs, difference)
        self.less, self.greater = g.linear("less"), g.linear("greater")
        g.step("less", -difference, 1, self.less)
        g.step("greater", difference, 1, self.greater)

    def write_result(self) -> None:
        """The byte to write next (plus 256 with a carry)."""
        self.result = self.graph.linear("result")
        a, b, less, greater = self.a, self.b, self.less, self.greater
        own: list[tuple[Ops, Expr]] = [
            (("i32.const", "call"), self.immediate_byte),
            (("br", "br_if"), self.immediate_byte),
            ("return", self.immediate_byte + a + self.carry),
            (("local.get", "global.get"), a),
            ("select", a),
            (("global.set", "local.set"), b),
            (("local.tee", "output"), b),
            (WIDE_STORES, b),
            ("i32.store8", b),
            ("i32.add", a + b + self.carry),
            ("i32.sub", a - b + 255 + self.carry),
        ]
        for ops, value in own:
            self.when(ops, value, self.result)
        # The token before the first byte is no byte: no carry, but 1 where a subtraction starts.
        no_carry: list[tuple[Ops, float]] = [
            (("i32.add", "i32.sub"), -NO_BYTE),
            ("return", -NO_BYTE),
            ("i32.sub", 1),
        ]
        for ops, number in no_carry:
            name = f"first byte: {_label(ops)}"
            self.graph.gate(name, self.is_op(ops) - self.dist, number, self.result)
        outcomes: list[tuple[Ops, Expr]] = [
            (("i32.lt_u", "i32.lt_s"), less),
            (("i32.ge_s", "i32.ge_u"), 1 - less),
            (("i32.gt_u", "i32.gt_s"), greater),
            (("i32.le_s", "i32.le_u"), 1 - greater),
            ("i32.eq", 1 - less - greater),
            ("i32.ne", less + greater),
        ]
        for ops, outcome in outcomes:
            self.when(ops, outcome, self.result, unless=self.dist)
        self.when("i32.eqz", 1, self.result, unless=self.dist + self.top)

    def write_loaded(self) -> None:
        """Loads: the memory byte below the width, then zero or copies of the sign.

        Memory that was never written is zero. The byte written last is the token itself.
        """
        g = self.graph
        upper = g.linear("upper")  # 1 for bytes 2 and 3
        g.step("upper", self.dist - 1, 1, upper)
        beyond = {4: Expr({}), 2: upper, 1: self.dist}
        for load, width in LOADS.items():
            self.when(load, self.a, self.result, unless=self.miss + beyond[width])
        for name, not_yet in (("i32.load8_s", Expr({})), ("i32.load16_s", 1 - upper)):
            at = self.byte - 127 + 2.0**9 * (self.is_op(name) - 1 - not_yet)
            g.step(f"result: {name} sign", at, 255, self.result)

    def decide_control(self) -> None:
        """A token instead of a byte."""
        g = self.graph
        self.when("drop", -DROPPED * CONTROL, self.result)
        fresh = 4 * self.dist  # 1 or more after branch_taken
        branch = self.is_op(("br", "br_if")) - fresh
        g.gate("branch_taken", branch, -TAKEN * CONTROL, self.result)
        unmet = self.is_op("br_if") - fresh - self.top
        g.gate("branch_not_taken", unmet, (TAKEN - DROPPED) * CONTROL, self.result)
        g.step("out_of_bounds", self.excess, -OUT_OF_BOUNDS * CONTROL, self.result)
        # The immediate's byte is at hand where the call depth is, and a call writes it.
        full = self.call_depth - (isa.MAX_CALL_DEPTH - 2)
        closed = 2.0 * isa.MAX_CALL_DEPTH * (self.is_op("call") - 1)
        g.gate("stack_exhausted", full + closed, -EXHAUSTED * CONTROL, self.immediate_byte)


def _label(ops: Ops) -> str:
    return ops if isinstance(ops, str) else "|".join(ops)

"""i64 instructions on pairs of words, the low half below the high one.

What takes few instructions is written out here; the rest calls functions of the runtime
(``runtime/int64.c``). ``Rules`` maps each instruction to what emits it.
"""

from __future__ import annotations

from collections.abc import Callable

from compiler.legalise_fold import Fold
from compiler.legalise_words import MASK, Effect, Value, Words
from compiler.wasm_opcodes import access_bytes
from compiler.wasm_types import Instruction

Rule = Callable[[Instruction], None]
Pair = tuple[Value, Value]
CallRuntime = Callable[[str], None]
"""Calls the runtime function of that name; its operands are on the stack."""

IN_BOUNDS = 1
"""Third immediate of the load or store of a low half: the access to the high half, which has none,
traps if the low one is out of bounds, and nothing happens between them that would tell."""
_HIGH_HALF = 4
_DIVISIONS = ("i64.div_s", "i64.div_u", "i64.rem_s", "i64.rem_u")
_COMPARISONS = ("lt_s", "lt_u", "gt_s", "gt_u", "le_s", "le_u", "ge_s", "ge_u")


def high_offset(offset: int) -> int:
    """Offset of the high half; where it would leave 32 bits, one at which every access traps."""
    return min(offset + _HIGH_HALF, MASK)


class Int64:
    """Rules for the instructions of i64, for the code ``words`` of one function."""

    def __init__(self, words: Words, runtime: CallRuntime) -> None:
        self.words = words
        self.fold = Fold(words)
        self.runtime = runtime

    def rules(self) -> dict[str, Rule]:
        """Instruction: what emits it."""
        rules: dict[str, Rule] = {
            "i64.const": self._const, "i64.add": self._add, "i64.sub": self._sub,
            "i64.mul": self._mul, "i64.eqz": self._eqz, "i64.eq": self._equal,
            "i64.ne": self._equal, "i64.popcnt": self._popcnt, "i32.wrap_i64": self._wrap,
            "i64.extend_i32_u": self._extend_u, "i64.extend_i32_s": self._extend_s,
            "i64.load": self._load, "i64.store": self._store,
        }  # fmt: skip
        rules |= {f"i64.{name}": self._logic for name in ("and", "or", "xor")}
        rules |= {f"i64.{name}": self._compare for name in _COMPARISONS}
        rules |= {f"i64.{name}": self._shift for name in ("shl", "shr_u", "shr_s", "rotl", "rotr")}
        rules |= {f"i64.{name}": self._call for name in ("clz", "ctz")}
        rules |= dict.fromkeys(_DIVISIONS, self._divide)
        rules |= {f"i64.extend{bits}_s": self._extend_part for bits in (8, 16, 32)}
        for bits in (8, 16, 32):
            rules[f"i64.store{bits}"] = self._narrow_store
            rules[f"i64.load{bits}_s"] = rules[f"i64.load{bits}_u"] = self._narrow_load
        return rules

    # --- operands ----------------------------------------------------------------------------

    def pop(self) -> Pair:
        """Take back the pair on top of the stack."""
        low, high = self.words.pop_all(2)
        return low, high

    def _pop_two(self) -> tuple[Pair, Pair]:
        second = self.pop()
        return self.pop(), second

    def peek(self, below: int = 0) -> int | None:
        """The pair that lies ``below`` words under the top, if it is a constant."""
        high, low = self.words.peek(below), self.words.peek(below + 1)
        return None if low is None or high is None else high << 32 | low

    def _call(self, instruction: Instruction) -> None:
        self.runtime(instruction.op)

    # --- constants, conversions --------------------------------------------------------------

    def _const(self, instruction: Instruction) -> None:
        self.push_constant(instruction.args[0])

    def push_constant(self, value: int) -> None:
        """Push the halves of a constant."""
        self.words.push(self.words.constant(value), self.words.constant(value >> 32))

    def _wrap(self, instruction: Instruction) -> None:
        self.words.drop()

    def _extend_u(self, instruction: Instruction) -> None:
        self.words.push(self.words.constant(0))

    def _extend_s(self, instruction: Instruction) -> None:
        self._push_signed(self.words.pop())

    def _push_signed(self, low: Value) -> None:
        """Push a word and its sign."""
        low = self.words.atom(low)
        self.words.push(low, self.fold.shift("shr_s", low, 31))

    def _extend_part(self, instruction: Instruction) -> None:
        self.words.drop()
        low = self.words.pop()
        if instruction.op != "i64.extend32_s":
            low = self.fold.unary(instruction.op.replace("i64", "i32"), low)
        self._push_signed(low)

    # --- arithmetic --------------------------------------------------------------------------

    def _add(self, instruction: Instruction) -> None:
        a, b = self._pop_two()
        if a[0].constant is not None:
            a, b = b, a
        known = b[0].constant
        fold = self.fold
        if known == 0:
            self.words.push(a[0], fold.binary("add", a[1], b[1]))
        elif known is not None and b[1].constant == MASK:
            less = self.words.constant(-known)
            self._subtract(a, (less, self.words.constant(0)))
        else:
            one = b[0] if b[0].atomic else self.words.atom(a[0])
            other = a[0] if b[0].atomic else b[0]
            low = self.words.atom(fold.binary("add", one, other))
            carry = fold.unary("i32.eqz", low) if known == 1 else fold.binary("lt_u", low, one)
            high = fold.binary("add", a[1], b[1])
            self.words.push(low, fold.binary("add", high, carry))

    def _sub(self, instruction: Instruction) -> None:
        a, b = self._pop_two()
        self._subtract(a, b)

    def _subtract(self, a: Pair, b: Pair) -> None:
        fold = self.fold
        if b[0].constant == 0:
            self.words.push(a[0], fold.binary("sub", a[1], b[1]))
            return
        low_a, low_b = self.words.atom(a[0]), self.words.atom(b[0])
        borrow = fold.truth(low_b) if low_a.constant == 0 else fold.binary("lt_u", low_a, low_b)
        high = fold.binary("sub", a[1], b[1])
        self.words.push(fold.binary("sub", low_a, low_b), fold.binary("sub", high, borrow))

    def _logic(self, instruction: Instruction) -> None:
        name = instruction.op.removeprefix("i64.")
        a, b = self._pop_two()
        self.words.push(*(self.fold.binary(name, x, y) for x, y in zip(a, b, strict=True)))

    def _mul(self, instruction: Instruction) -> None:
        factor = self.peek()
        if factor is not None and factor.bit_count() == 1:
            self.pop()
            self._shift_by("shl", factor.bit_length() - 1)
        elif self._both_small():
            (a, _), (b, _) = self._pop_two()
            self.words.push(a, b)
            self.runtime("i64.mul_wide")
        elif factor is not None and factor >> 16 == 0:
            self.pop()
            self._mul_small(self.pop(), self.words.constant(factor))
        else:
            self.runtime(instruction.op)

    def _mul_small(self, a: Pair, factor: Value) -> None:
        """By a constant of 16 bits: no partial sum overflows a word."""
        fold, low = self.fold, self.words.atom(a[0])
        mask = self.words.constant(0xFFFF)
        below = fold.shift("shr_u", fold.binary("mul", fold.binary("and", low, mask), factor), 16)
        upper = fold.binary("mul", fold.shift("shr_u", low, 16), factor)
        carry = fold.shift("shr_u", fold.binary("add", upper, below), 16)
        high = fold.binary("add", fold.binary("mul", a[1], factor), carry)
        self.words.push(fold.binary("mul", low, factor), high)

    def _both_small(self) -> bool:
        """Whether the high halves of both operands are known to be 0."""
        return self.words.peek(0) == 0 and self.words.peek(2) == 0

    def _divide(self, instruction: Instruction) -> None:
        op = instruction.op
        divisor = self.peek()
        if op.endswith("_u") and self._both_small():
            a, b = self._pop_two()
            self.words.push(a[0], b[0])
            self.words.disturb(self.words.instruction(op.replace("i64", "i32")), 2, 1)
            self.words.push(self.words.constant(0))
        elif op == "i64.div_u" and divisor is not None and divisor.bit_count() == 1:
            self.pop()
            self._shift_by("shr_u", divisor.bit_length() - 1)
        elif op == "i64.rem_u" and divisor is not None and divisor.bit_count() == 1:
            self.pop()
            self.push_constant(divisor - 1)
            self._logic(self.words.instruction("i64.and"))
        elif op.endswith("_u") and divisor is not None and 0 < divisor < 1 << 16:
            self.pop()
            self._divide_small(divisor, remainder=op == "i64.rem_u")
        else:
            self.runtime(op)

    def _divide_small(self, divisor: int, *, remainder: bool) -> None:
        """By a constant of 16 bits; of the remainder only the low halves matter."""
        words, by = self.words, self.words.constant(divisor)
        if not remainder:
            words.push(by)
            self.runtime("i64.div_small")
            return
        low, high = self.pop()
        low = words.atom(low)
        words.push(low, high, by)
        self.runtime("i64.div_small")
        words.drop()
        product = self.fold.binary("mul", words.pop(), by)
        words.push(self.fold.binary("sub", low, product), words.constant(0))

    def _popcnt(self, instruction: Instruction) -> None:
        low, high = (self.fold.unary("i32.popcnt", half) for half in self.pop())
        self.words.push(self.fold.binary("add", low, high), self.words.constant(0))

    # --- comparisons -------------------------------------------------------------------------

    def _eqz(self, instruction: Instruction) -> None:
        self.words.push(self.fold.unary("i32.eqz", self.fold.binary("or", *self.pop())))

    def _equal(self, instruction: Instruction) -> None:
        a, b = self._pop_two()
        fold = self.fold
        if a[1].constant is not None and a[1].constant == b[1].constant:
            self.words.push(fold.binary(instruction.op.removeprefix("i64."), a[0], b[0]))
            return
        low, high = (fold.binary("xor", x, y) for x, y in zip(a, b, strict=True))
        differ = fold.binary("or", low, high)
        self.words.push(
            fold.unary("i32.eqz", differ) if instruction.op == "i64.eq" else fold.truth(differ)
        )

    def _compare(self, instruction: Instruction) -> None:
        name = instruction.op.removeprefix("i64.")
        a, b = self._pop_two()
        self.words.push(self._comparison(name, a, b))

    def _comparison(self, name: str, a: Pair, b: Pair) -> Value:
        """The low halves decide where the high ones are equal; with constants often less."""
        fold = self.fold
        unsigned = name[:2] + "_u"
        known = a[0].constant, b[0].constant, b[1].constant
        pure = a[0].effect is Effect.PURE
        if a[1].constant == 0 and known[2] == 0:
            return fold.binary(unsigned, a[0], b[0])
        edge = 0 if name[:2] in ("lt", "ge") else MASK
        if known[1] == edge and pure:
            return fold.binary(name, a[1], b[1])
        if known[0] == MASK - edge and b[0].effect is Effect.PURE:
            return fold.binary(name, a[1], b[1])
        if known[2] == 0 and name in ("lt_u", "le_u"):
            return fold.binary(
                "and", fold.binary(unsigned, a[0], b[0]), fold.unary("i32.eqz", a[1])
            )
        if known[2] == 0 and name in ("gt_u", "ge_u"):
            return fold.binary("or", fold.binary(unsigned, a[0], b[0]), fold.truth(a[1]))
        highs = self.words.atom(a[1]), self.words.atom(b[1])
        return self.words.apply(
            "select",
            fold.binary(unsigned, a[0], b[0]),
            fold.binary(name, *highs),
            fold.binary("eq", *highs),
        )

    # --- shifts ------------------------------------------------------------------------------

    def _shift(self, instruction: Instruction) -> None:
        name = instruction.op.removeprefix("i64.")
        count = self.words.peek(1)
        self.words.drop()
        if count is None:
            self.runtime(instruction.op)
            return
        self.words.drop()
        if name == "rotr":
            name, count = "rotl", -count
        self._shift_by(name, count % 64)

    def _shift_by(self, name: str, count: int) -> None:
        """Shift the pair on the stack by a constant in [0, 63]."""
        low, high = self.pop()
        swap, count = divmod(count, 32)
        zero, shift = self.words.constant(0), self.fold.shift
        if name == "rotl":
            pair = (high, low) if swap else (low, high)
            if count:
                low, high = self.words.atom(pair[0]), self.words.atom(pair[1])
                pair = self._joined(low, high, count), self._joined(high, low, count)
            self.words.push(*pair)
        elif name == "shl":
            if swap:
                self._discard(high)
                self.words.push(zero, shift("shl", low, count))
            elif count:
                low = self.words.atom(low)
                self.words.push(shift("shl", low, count), self._joined(high, low, count))
            else:
                self.words.push(low, high)
        elif swap:
            self._discard(low)
            high = high if name == "shr_u" else self.words.atom(high)
            fill = zero if name == "shr_u" else shift("shr_s", high, 31)
            self.words.push(shift(name, high, count), fill)
        elif count:
            high = self.words.atom(high)
            self.words.push(self._joined(high, low, 32 - count), shift(name, high, count))
        else:
            self.words.push(low, high)

    def _joined(self, high: Value, low: Value, count: int) -> Value:
        """The high word of ``(high, low) << count``, for a count in [1, 31]."""
        parts = self.fold.shift("shl", high, count), self.fold.shift("shr_u", low, 32 - count)
        return self.fold.binary("or", *parts)

    def _discard(self, value: Value) -> None:
        """Keep what a value does that nobody needs."""
        self.words.push(value)
        self.words.drop()

    # --- memory ------------------------------------------------------------------------------

    def _load(self, instruction: Instruction) -> None:
        align, offset = instruction.args
        align = min(align, 2)
        address = self.words.atom(self.words.pop())
        self.words.push(
            self.words.apply("i32.load", address, args=(align, offset, IN_BOUNDS)),
            self.words.apply("i32.load", address, args=(align, high_offset(offset))),
        )

    def _store(self, instruction: Instruction) -> None:
        """The high half first: if that is within the memory so is the low one."""
        align, offset = instruction.args
        align = min(align, 2)
        address, low, high = self.words.pop_all(3)
        low = self.words.settled(low)  # it is computed before the high half is stored
        address = self.words.atom(address)
        for value, args in (
            (high, (align, high_offset(offset))),
            (low, (align, offset, IN_BOUNDS)),
        ):
            self.words.push(address, value)
            self.words.disturb(self.words.instruction("i32.store", *args), 2, 0)

    def _narrow_load(self, instruction: Instruction) -> None:
        op = instruction.op
        name = "i32.load" if "32_" in op else op.replace("i64", "i32")
        self.words.compute(self.words.instruction(name, *instruction.args), 1, Effect.READ)
        if op.endswith("_u"):
            self.words.push(self.words.constant(0))
        else:
            self._push_signed(self.words.pop())

    def _narrow_store(self, instruction: Instruction) -> None:
        size = access_bytes(instruction.op)
        self.words.drop()
        name = "i32.store" if size == 4 else instruction.op.replace("i64", "i32")
        self.words.disturb(self.words.instruction(name, *instruction.args), 2, 0)

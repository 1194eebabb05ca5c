"""Operations on values that are not code yet, with constants folded: ``x & 0`` is 0."""

from __future__ import annotations

import operator
from collections.abc import Callable

from compiler.legalise_words import MASK, Effect, Value, Words

_FOLDED: dict[str, Callable[[int, int], int]] = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "and": operator.and_,
    "or": operator.or_, "xor": operator.xor,
    "shl": lambda a, b: a << (b & 31), "shr_u": lambda a, b: a >> (b & 31),
    "shr_s": lambda a, b: signed(a) >> (b & 31),
    "eq": operator.eq, "ne": operator.ne, "lt_u": operator.lt, "le_u": operator.le,
    "gt_u": operator.gt, "ge_u": operator.ge,
    "lt_s": lambda a, b: signed(a) < signed(b), "le_s": lambda a, b: signed(a) <= signed(b),
    "gt_s": lambda a, b: signed(a) > signed(b), "ge_s": lambda a, b: signed(a) >= signed(b),
}  # fmt: skip
_NEUTRAL_RIGHT = {
    "add": 0, "sub": 0, "or": 0, "xor": 0, "shl": 0, "shr_u": 0, "shr_s": 0, "mul": 1, "and": MASK,
}  # fmt: skip
_COMMUTATIVE = frozenset({"add", "or", "xor", "and", "mul"})
_ABSORBING = {"and": 0, "mul": 0, "or": MASK}


def signed(word: int) -> int:
    """A word as a number in [-2^31, 2^31)."""
    return word - (1 << 32) if word >> 31 else word


class Fold:
    """i32 operations by their names without the type."""

    def __init__(self, words: Words) -> None:
        self.words = words

    def binary(self, name: str, a: Value, b: Value) -> Value:
        """``a name b``."""
        x, y = a.constant, b.constant
        if x is not None and y is not None:
            return self.words.constant(int(_FOLDED[name](x, y)))
        if x is not None and name in _COMMUTATIVE:
            a, b, x, y = b, a, y, x
        if y is not None:
            if _NEUTRAL_RIGHT.get(name) == y:
                return a
            if _ABSORBING.get(name) == y and a.effect is Effect.PURE:
                return b
            if name == "eq" and y == 0:
                return self.words.apply("i32.eqz", a)
        return self.words.apply(f"i32.{name}", a, b)

    def shift(self, name: str, a: Value, count: int) -> Value:
        """``a name count`` with a count in [0, 31]."""
        if a.constant == 0:
            return a
        return self.binary(name, a, self.words.constant(count))

    def unary(self, op: str, a: Value) -> Value:
        """An instruction with one operand."""
        if op == "i32.eqz" and a.constant is not None:
            return self.words.constant(int(a.constant == 0))
        return self.words.apply(op, a)

    def truth(self, a: Value) -> Value:
        """1 unless ``a`` is 0."""
        return self.binary("ne", a, self.words.constant(0))

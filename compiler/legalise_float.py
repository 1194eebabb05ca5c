"""f32 and f64 instructions: a value is the word, or the two words, of its IEEE 754 bits.

What only changes the sign is written out; the rest calls functions of the runtime
(``runtime/float32.c``, ``runtime/float64.c``, ``runtime/convert.c``).
"""

from __future__ import annotations

from compiler.legalise_fold import Fold
from compiler.legalise_i64 import Int64, Rule
from compiler.legalise_words import Effect, Words
from compiler.wasm_opcodes import SIGNATURES
from compiler.wasm_types import Instruction

_SIGN = 0x80000000
_SIGN_OPERATIONS = ("abs", "neg", "copysign")


class Float:
    """Rules for the instructions of f32 and f64; ``int64`` has those of the pairs they become."""

    def __init__(self, words: Words, int64: Int64) -> None:
        self.words = words
        self.fold = Fold(words)
        self.int64 = int64
        self.int64_rules = int64.rules()

    def rules(self) -> dict[str, Rule]:
        """Instruction: what emits it."""
        rules: dict[str, Rule] = {}
        for op, signature in SIGNATURES.items():
            if set("fd") & set((signature.pops or "") + (signature.pushes or "")):
                rules[op] = self._call
        for type_ in ("f32", "f64"):
            rules |= {f"{type_}.{name}": self._sign for name in _SIGN_OPERATIONS}
        rules |= dict.fromkeys(
            ("i32.reinterpret_f32", "i64.reinterpret_f64", "f32.reinterpret_i32",
             "f64.reinterpret_i64"), self._nothing,
        )  # fmt: skip
        return rules | {
            "f32.const": self._const, "f64.const": self._const, "f32.load": self._load,
            "f32.store": self._store, "f64.load": self.int64_rules["i64.load"],
            "f64.store": self.int64_rules["i64.store"],
        }  # fmt: skip

    def _call(self, instruction: Instruction) -> None:
        self.int64.runtime(instruction.op)

    def _nothing(self, instruction: Instruction) -> None:
        """The bits are the same."""

    def _const(self, instruction: Instruction) -> None:
        if instruction.op == "f64.const":
            self.int64.push_constant(instruction.args[0])
        else:
            self.words.push(self.words.constant(instruction.args[0]))

    def _load(self, instruction: Instruction) -> None:
        self.words.compute(self.words.instruction("i32.load", *instruction.args), 1, Effect.READ)

    def _store(self, instruction: Instruction) -> None:
        self.words.disturb(self.words.instruction("i32.store", *instruction.args), 2, 0)

    def _sign(self, instruction: Instruction) -> None:
        """Change the sign bit, which is in the top word."""
        binary, constant = self.fold.binary, self.words.constant
        type_, name = instruction.op.split(".")
        if name == "copysign":
            sign = binary("and", self.words.pop(), constant(_SIGN))
            if type_ == "f64":
                self.words.push(sign)  # above the low word of its own number, which goes
                self._remove_below_top()
                sign = self.words.pop()
            magnitude = binary("and", self.words.pop(), constant(_SIGN - 1))
            self.words.push(binary("or", magnitude, sign))
        elif name == "abs":
            self.words.push(binary("and", self.words.pop(), constant(_SIGN - 1)))
        else:
            self.words.push(binary("xor", self.words.pop(), constant(_SIGN)))

    def _remove_below_top(self) -> None:
        top = self.words.settled(self.words.pop())
        self.words.drop()
        self.words.push(top)

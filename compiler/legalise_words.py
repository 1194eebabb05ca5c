"""The code of one function while it is legalised: instructions, and 32-bit words on their stack.

All operands are really on the WebAssembly operand stack, in order, so that calls, branches and
blocks need no care. But of every word it is known which instructions push it. An operation on
64-bit values takes its operands back: a word whose code can run later as well is cut out and
becomes a :class:`Value`, any other is put into a scratch local. So ``i64.add`` of two locals costs
no more than its four additions and a comparison, and half of a value that nobody needs, nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from compiler.wasm_types import Instruction

MASK = 0xFFFFFFFF
_LONGEST = 48
"""Instructions of a word that is cut out; longer ones go through a local."""
_DEEPEST = 64
"""Words from the top that are cut out; what lies below goes through locals."""


class Effect(IntEnum):
    """What code that pushes a word may do, besides reading locals."""

    PURE = 0
    READ = 1
    """It reads globals or the memory, and may trap: it runs once, before the next effect."""
    FIXED = 2
    """It must stay where it is."""


@dataclass(frozen=True, slots=True)
class Value:
    """Code that pushes one word and is not part of the function yet."""

    code: tuple[Instruction, ...]
    effect: Effect = Effect.PURE

    @property
    def constant(self) -> int | None:
        """The value in [0, 2^32), if it is a constant."""
        first = self.code[0]
        return first.args[0] if len(self.code) == 1 and first.op == "i32.const" else None

    @property
    def atomic(self) -> bool:
        """Whether it is one instruction that may be repeated."""
        return len(self.code) == 1 and self.code[0].op in ("i32.const", "local.get")


@dataclass(slots=True)
class _Word:
    """A word on the stack, pushed by ``code[start:end]``."""

    start: int
    end: int
    effect: Effect


class Words:
    """Emits the code of a function that has ``n_locals`` locals of its own, all i32."""

    def __init__(self, n_locals: int) -> None:
        self.n_locals = n_locals
        self.code: list[Instruction] = []
        self.offset = 0
        """Byte offset, in the source, of the instruction that is being legalised."""
        self._stack: list[_Word] = []
        self._scratch = n_locals
        self._fixed = 0
        """Words below this index stay where they are."""
        self._unread = 0
        """Of the words below this index those that read stay."""
        self._pinned = 0
        """Code before this position has effects: a word from before to after it stays."""

    # --- values ------------------------------------------------------------------------------

    def instruction(self, op: str, *args: int) -> Instruction:
        """An instruction at the place of the source that is being legalised."""
        return Instruction(op, args, self.offset)

    def constant(self, value: int) -> Value:
        """A constant, modulo 2^32."""
        return Value((self.instruction("i32.const", value & MASK),))

    def apply(self, op: str, *operands: Value, args: tuple[int, ...] = ()) -> Value:
        """``op`` applied to operands; a load if it has immediates ``args``."""
        effect = max((operand.effect for operand in operands), default=Effect.PURE)
        code = tuple(part for operand in operands for part in operand.code)
        code += (self.instruction(op, *args),)
        return Value(code, max(effect, Effect.READ) if args else effect)

    def atom(self, value: Value) -> Value:
        """The same value as something that may be used several times."""
        if value.atomic:
            return value
        self.code += value.code
        return self._save()

    def settled(self, value: Value) -> Value:
        """The same value as something that effects which follow do not change."""
        return value if value.effect is Effect.PURE else self.atom(value)

    def _save(self) -> Value:
        """Move what is on the machine's stack to a new local."""
        local = self._scratch
        self._scratch += 1
        self.code.append(self.instruction("local.set", local))
        return Value((self.instruction("local.get", local),))

    # --- the operand stack -------------------------------------------------------------------

    @property
    def depth(self) -> int:
        """Words on the stack."""
        return len(self._stack)

    def push(self, *values: Value) -> None:
        """Put words on the stack, the last one on top."""
        for value in values:
            start = len(self.code)
            self.code += value.code
            self._stack.append(_Word(start, len(self.code), value.effect))

    def peek(self, below: int = 0) -> int | None:
        """The word ``below`` the top, if it is a constant."""
        word = self._stack[-1 - below]
        if word.end - word.start != 1 or self.code[word.start].op != "i32.const":
            return None
        return self.code[word.start].args[0]

    def pop(self) -> Value:
        """Take the top word back: cut it out, or move it to a local."""
        word = self._stack[-1]
        movable = self._movable(word, len(self._stack) - 1)
        self.forget(1)
        if not movable:
            return self._save()
        if word.start < self._pinned:
            self._pinned -= word.end - word.start
        value = Value(tuple(self.code[word.start : word.end]), word.effect)
        del self.code[word.start : word.end]
        return value

    def _movable(self, word: _Word, index: int) -> bool:
        if word.effect is Effect.FIXED or index < self._fixed:
            return False
        if word.effect is Effect.READ and index < self._unread:
            return False
        return word.end - word.start <= _LONGEST and len(self.code) - word.end <= 4 * _LONGEST

    def pop_all(self, count: int) -> list[Value]:
        """Take several words back; the top one is the last of the list."""
        return [self.pop() for _ in range(count)][::-1]

    def drop(self) -> None:
        """Remove the top word, by an instruction only if its code must run."""
        value = self.pop()
        if value.effect is not Effect.PURE:
            self.code += value.code
            self.emit(self.instruction("drop"))

    # --- instructions in place ---------------------------------------------------------------

    def emit(self, instruction: Instruction) -> None:
        """Append an instruction; what it does to the stack is up to the caller."""
        self.code.append(instruction)
        self._pinned = len(self.code)

    def compute(self, instruction: Instruction, pops: int, effect: Effect = Effect.PURE) -> None:
        """An instruction that replaces ``pops`` words by one where they are."""
        start = self._stack[-pops].start if pops else len(self.code)
        for index in range(len(self._stack) - pops, len(self._stack)):
            word = self._stack[index]
            effect = max(effect, word.effect if self._movable(word, index) else Effect.FIXED)
        if start < self._pinned:
            effect = Effect.FIXED
        self.forget(pops)
        self.code.append(instruction)
        self._stack.append(_Word(start, len(self.code), effect))

    def disturb(self, instruction: Instruction, pops: int, pushes: int) -> None:
        """An instruction with effects: a call, a store, a division."""
        self.forget(pops)
        self._unread = len(self._stack)
        self.emit(instruction)
        self.add(pushes)

    def forget(self, count: int) -> None:
        """The machine's stack has lost ``count`` words."""
        if count:
            del self._stack[-count:]
            self._fixed = min(self._fixed, len(self._stack))
            self._unread = min(self._unread, len(self._stack))

    def add(self, count: int) -> None:
        """The machine's stack has got ``count`` words by other means."""
        end = len(self.code)
        self._stack += [_Word(end, end, Effect.FIXED) for _ in range(count)]

    def reset(self, depth: int, count: int) -> None:
        """After a jump: ``depth`` words, and ``count`` more that a block leaves."""
        del self._stack[depth:]
        self.add(count)
        self.barrier()

    def barrier(self) -> None:
        """Control flow: every word that is on the stack stays where it is."""
        self._fixed = len(self._stack)

    def assign(self, local: int) -> None:
        """Note that ``local`` is about to change: words that read it stay where they are."""
        self._fixed = max(self._fixed, len(self._stack) - _DEEPEST)
        for word in self._stack[self._fixed :]:
            if word.end - word.start > _LONGEST or any(
                code.op == "local.get" and code.args[0] == local
                for code in self.code[word.start : word.end]
            ):
                word.effect = Effect.FIXED

    # --- the end -----------------------------------------------------------------------------

    def finish(self) -> tuple[list[Instruction], int]:
        """The code, and how many locals it has in all.

        A scratch local is set once and read in the same basic block after it; those that are not
        in use at the same time share a number.
        """
        code = _without_detours(self.code, self.n_locals)
        last = {c.args[0]: at for at, c in enumerate(code) if c.op.startswith("local.")}
        free: list[int] = []
        places: dict[int, int] = {}
        total = self.n_locals
        for at, instruction in enumerate(code):
            if not instruction.op.startswith("local.") or instruction.args[0] < self.n_locals:
                continue
            local = instruction.args[0]
            if local not in places:
                places[local] = free.pop() if free else total
                total = max(total, places[local] + 1)
            code[at] = replace(instruction, args=(places[local],))
            if last[local] == at:
                free.append(places[local])
        return code, total


def _without_detours(code: Iterable[Instruction], n_locals: int) -> list[Instruction]:
    """The code without scratch locals that are read right after they are set, and only then.

    Other locals that are read right after they are set become ``local.tee``.
    """
    body = list(code)
    reads = Counter(c.args[0] for c in body if c.op == "local.get")
    result: list[Instruction] = []
    for instruction in body:
        last = result[-1] if result else None
        if (
            last is None
            or (last.op, instruction.op) != ("local.set", "local.get")
            or last.args != instruction.args
        ):
            result.append(instruction)
        elif last.args[0] >= n_locals and reads[last.args[0]] == 1:
            result.pop()
        else:
            result[-1] = replace(last, op="local.tee")
            reads[last.args[0]] -= 1
    return result


def widths(types: str) -> int:
    """Words that values of these types take."""
    return len(types) + types.count("l") + types.count("d")


def word_types(types: str) -> str:
    """The types of those words."""
    return "i" * widths(types)


def to_words(types: str, values: Sequence[int]) -> tuple[int, ...]:
    """Words of values of these types, given their bits: arguments for a legalised function.

    >>> to_words("ld", [-1, 0x3FF0000000000000])
    (4294967295, 4294967295, 0, 1072693248)
    """
    return tuple(
        value >> 32 * half & MASK
        for type_, value in zip(types, values, strict=True)
        for half in range(widths(type_))
    )


def from_words(types: str, words: Sequence[int]) -> tuple[int, ...]:
    """Bits of values of these types, given the words that a legalised function returned.

    >>> from_words("il", [1, -2, 3])
    (1, 17179869182)
    """
    starts = slots(types)
    return tuple(
        sum((word & MASK) << 32 * half for half, word in enumerate(words[first:last]))
        for first, last in zip(starts, starts[1:], strict=False)
    )


def slots(types: Sequence[str]) -> list[int]:
    """First word of each value, if they stand in this order."""
    starts = [0]
    for type_ in types:
        starts.append(starts[-1] + widths(type_))
    return starts

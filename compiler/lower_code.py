"""Native code on its way to the token program: basic blocks first, then a list with labels.

Function lowering fills a :class:`CodeBuilder` with blocks; ``lower_optimise.py`` improves them;
``lower_layout.py`` turns them into a :class:`NativeFunction`, which ``assemble.py`` encodes.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from compiler.program import Origin

MASK = 0xFFFFFFFF

INVERSE = {
    "i32.eq": "i32.ne", "i32.ne": "i32.eq",
    "i32.lt_s": "i32.ge_s", "i32.ge_s": "i32.lt_s", "i32.gt_s": "i32.le_s", "i32.le_s": "i32.gt_s",
    "i32.lt_u": "i32.ge_u", "i32.ge_u": "i32.lt_u", "i32.gt_u": "i32.le_u", "i32.le_u": "i32.gt_u",
}  # fmt: skip
"""A comparison: the one that is true exactly when it is false."""

STOPS = frozenset({"return", "halt", "unreachable"})
"""Opcodes after which execution does not go on to the next instruction."""


@dataclass(frozen=True, slots=True)
class Native:
    """One native instruction; ``callee`` is the key of the function that a ``call`` calls.

    Divisions may trap, like loads and stores. ``target`` is the label of a branch (laid-out code
    only).
    """

    op: str
    imm: int
    origin: Origin
    callee: str = ""
    target: int = -1


@dataclass(frozen=True, slots=True)
class Label:
    """A place that branches of the same function go to."""

    number: int


@dataclass(frozen=True)
class NativeFunction:
    """Laid-out code of one function. ``key`` is what calls refer to, ``name`` is for messages."""

    key: str
    name: str
    code: tuple[Native | Label, ...]


@dataclass
class Block:
    """A basic block.

    Without successors the body ends in one of ``STOPS``; with one, ``jump``, it goes on there;
    with two it pops a condition and goes to ``if_true`` or ``if_false``.
    """

    label: int
    body: list[Native] = field(default_factory=list)
    jump: int | None = None
    if_true: int | None = None
    if_false: int | None = None
    origin: Origin | None = None
    """Origin of the branch at the end."""

    def successors(self) -> tuple[int, ...]:
        """Labels of the blocks that may follow."""
        return tuple(
            label for label in (self.jump, self.if_false, self.if_true) if label is not None
        )

    def set_jump(self, label: int) -> None:
        """Go on at ``label``, unconditionally."""
        self.jump, self.if_true, self.if_false = label, None, None

    def set_branch(self, if_true: int, if_false: int) -> None:
        """Pop a condition and go on at one of two labels."""
        self.jump, self.if_true, self.if_false = None, if_true, if_false

    def retarget(self, new: dict[int, int]) -> None:
        """Replace successors that are keys of ``new``."""
        if self.jump is not None:
            self.jump = new.get(self.jump, self.jump)
        if self.if_true is not None and self.if_false is not None:
            self.if_true = new.get(self.if_true, self.if_true)
            self.if_false = new.get(self.if_false, self.if_false)


class CodeBuilder:
    """Appends instructions to the current block and opens and closes blocks.

    After a jump or a stop there is no current block: what is emitted until the next label can
    never run, and is left out. ``n_locals`` grows with :meth:`scratch`.
    """

    def __init__(self, n_locals: int, origin: Origin) -> None:
        self.blocks: list[Block] = []
        self.origin = origin
        self.n_locals = n_locals
        self._labels = 0
        self._reached: set[int] = set()
        self._current: Block | None = None
        self.place(self.label())

    @property
    def live(self) -> bool:
        """Whether there is a current block."""
        return self._current is not None

    @property
    def body(self) -> list[Native]:
        """Instructions of the current block (an empty list if there is none)."""
        return self._current.body if self._current is not None else []

    def label(self) -> int:
        """A new label."""
        self._labels += 1
        return self._labels - 1

    def scratch(self) -> int:
        """A new local."""
        self.n_locals += 1
        return self.n_locals - 1

    def emit(self, op: str, imm: int = 0, callee: str = "") -> None:
        """Append one instruction; one of ``STOPS`` ends the block."""
        if self._current is None:
            return
        self._current.body.append(Native(op, imm & MASK, self.origin, callee))
        if op in STOPS:
            self._current = None

    def emit_all(self, code: Iterable[tuple[str, int]]) -> None:
        """Append several instructions."""
        for op, imm in code:
            self.emit(op, imm)

    def place(self, label: int) -> None:
        """Begin the block ``label``; the current one, if any, goes on there."""
        self.jump(label)
        self._current = Block(label)
        self.blocks.append(self._current)

    def reach(self, label: int) -> None:
        """Note that something will lead to ``label``."""
        self._reached.add(label)

    def place_if_reached(self, label: int) -> None:
        """Begin the block ``label`` unless nothing has led there so far."""
        if self._current is not None or label in self._reached:
            self.place(label)

    def jump(self, label: int) -> None:
        """End the current block: go to ``label``."""
        if self._current is not None:
            self._reached.add(label)
            self._current.set_jump(label)
            self._current.origin = self.origin
        self._current = None

    def branch(self, if_true: int, if_false: int) -> None:
        """End the current block: pop a condition and go to one of two labels."""
        if self._current is not None:
            self._reached.update((if_true, if_false))
            self._current.set_branch(if_true, if_false)
            self._current.origin = self.origin
        self._current = None

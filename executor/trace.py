"""Reading traces: from tokens to events, output bytes and the operand stack.

``docs/trace-format.md`` specifies the format. The reader needs the tokens alone, not the
program; what additionally takes the program (which instruction wrote what, memory) is in
:mod:`executor.replay`. A malformed trace raises ``TraceError``: it is what a model with wrong
weights writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum

from compiler import isa
from compiler.errors import TransputerError


class TraceError(TransputerError):
    """Tokens that are no trace; says at which token and why."""


class Kind(StrEnum):
    """What an instruction did, as far as its tokens tell."""

    VALUE = "value"
    """Four bytes and a commit: a new top of the stack, or a local, global or memory write.
    A division writes the four digits of the quotient first."""
    COMMIT = "commit"
    """A commit alone: ``drop``, or a ``br_if`` that is not taken."""
    OUTPUT = "output"
    BRANCH = "branch"
    CALL = "call"
    RETURN = "return"
    HALT = "halt"
    TRAP = "trap"


@dataclass(frozen=True, slots=True)
class Event:
    """The tokens of one executed instruction.

    Attributes:
        kind: what they amount to.
        tokens: their spellings.
        position: index in the trace of the first of them, from 0.
        value: the four bytes as an unsigned number, the byte of an ``out``, else 0.
        delta: change of the stack depth.
        stores: whether ``value`` became the new top of the stack.
        trap: the reason of a trap, in the words of the WebAssembly suite, else "".
    """

    kind: Kind
    tokens: tuple[str, ...]
    position: int
    value: int = 0
    delta: int = 0
    stores: bool = False
    trap: str = ""

    @property
    def signed(self) -> int:
        """``value`` as a signed 32-bit number."""
        return self.value - (1 << 32) if self.value >> 31 else self.value

    def __str__(self) -> str:
        return " ".join(self.tokens)


@dataclass(frozen=True)
class _Tables:
    """What each spelling means, built from :mod:`compiler.isa`."""

    bytes: dict[str, int]
    digits: dict[str, int]
    """Quotient digits: the power of 256 that they belong to."""
    commits: dict[str, tuple[int, bool, bool]]
    outputs: dict[str, int]
    traps: dict[str, str]


def _tables() -> _Tables:
    return _Tables(
        bytes={isa.byte_token(b, c): b for b in range(256) for c in (False, True)},
        digits={isa.digit_token(k, b): k for k in range(4) for b in range(256)},
        commits={isa.commit_token(*commit): commit for commit in isa.COMMITS},
        outputs={isa.out_token(b): b for b in range(256)},
        traps={isa.trap_token(name): reason for name, reason in isa.TRAPS.items()},
    )


TABLES = _tables()
LONE_COMMIT = (-1, False, False)
BINARY_COMMIT = (-1, True, False)


class TraceReader:
    """Takes a trace token by token and keeps the state that the trace describes.

    Attributes:
        stack: the operand stack, unsigned values, top last.
        output: the bytes written so far; to which stream, only the program tells.
        call_depth: calls that have not returned.
        n_tokens: tokens read.
        end: the ``halt`` or ``trap`` event, None before it.

    ``push`` costs O(1); memory is that of the stack and the output.
    """

    def __init__(self) -> None:
        self.stack: list[int] = []
        self.output = bytearray()
        self.call_depth = 0
        self.n_tokens = 0
        self.end: Event | None = None
        self._pending: list[str] = []
        self._value = 0
        self._n_bytes = 0
        self._n_digits = 0

    @property
    def pending(self) -> tuple[str, ...]:
        """Tokens of an instruction that has not ended yet."""
        return tuple(self._pending)

    def push(self, token: str) -> Event | None:
        """Read one token; the event it completes, if it does.

        Raises:
            TraceError: if no trace goes on like that. The reader is of no use afterwards.
        """
        if self.end is not None:
            raise self._error(token, f"after {self.end}")
        self._pending.append(token)
        self.n_tokens += 1
        byte = TABLES.bytes.get(token)
        if byte is not None:
            if self._n_bytes == 4:
                raise self._error(token, "a fifth byte")
            if 0 < self._n_digits < 4:
                raise self._error(token, "a quotient has four digits")
            self._value |= byte << 8 * self._n_bytes
            self._n_bytes += 1
            return None
        if token == isa.BRANCH_TAKEN and len(self._pending) == 1:
            return None
        if TABLES.digits.get(token) == 4 - len(self._pending):
            self._n_digits += 1
            if self._n_digits == len(self._pending):
                return None
        event = self._event(token)
        self._apply(event)
        self._pending, self._value, self._n_bytes, self._n_digits = [], 0, 0, 0
        return event

    def _event(self, token: str) -> Event:
        """The event that a closing token makes of the pending tokens."""
        tokens = tuple(self._pending)
        position = self.n_tokens - len(tokens)
        branching = tokens[0] == isa.BRANCH_TAKEN
        alone = len(tokens) == 1
        four = self._n_bytes == 4 and not branching
        if (commit := TABLES.commits.get(token)) is not None:
            delta, stores, branched = commit
            if four and not branched and (not self._n_digits or commit == BINARY_COMMIT):
                return Event(Kind.VALUE, tokens, position, self._value, delta, stores)
            if branching and branched and self._n_bytes == 4:
                return Event(Kind.BRANCH, tokens, position, self._value, delta)
            if alone and commit == LONE_COMMIT:
                return Event(Kind.COMMIT, tokens, position, 0, delta)
            raise self._error(token, f"after {self._n_bytes} bytes")
        four = four and not self._n_digits
        if four and token == isa.CALL_COMMIT:
            return Event(Kind.CALL, tokens, position, self._value)
        if four and token == isa.RETURN_COMMIT:
            return Event(Kind.RETURN, tokens, position, self._value)
        if alone and (byte := TABLES.outputs.get(token)) is not None:
            return Event(Kind.OUTPUT, tokens, position, byte, -1)
        if alone and token == isa.HALT:
            return Event(Kind.HALT, tokens, position)
        if alone and (reason := TABLES.traps.get(token)) is not None:
            return Event(Kind.TRAP, tokens, position, trap=reason)
        raise self._error(token, "not expected here")

    def _apply(self, event: Event) -> None:
        kept = len(self.stack) + event.delta - event.stores
        if kept < 0:
            raise self._error(event.tokens[-1], "the stack has too few values")
        del self.stack[kept:]
        if event.stores:
            self.stack.append(event.value)
        if event.kind is Kind.OUTPUT:
            self.output.append(event.value)
        elif event.kind is Kind.CALL:
            self.call_depth += 1
        elif event.kind is Kind.RETURN:
            if self.call_depth == 0:
                raise self._error(event.tokens[-1], "there is no call to return from")
            self.call_depth -= 1
        elif event.kind in (Kind.HALT, Kind.TRAP):
            self.end = event

    def _error(self, token: str, reason: str) -> TraceError:
        before = " ".join(self._pending[:-1][-6:])
        after = f" after {before!r}" if before else ""
        return TraceError(f"trace token {self.n_tokens}: {token!r}{after}: {reason}")


def read_trace(tokens: Iterable[str], partial: bool = False) -> Iterator[Event]:
    """The events of a trace, as its tokens come.

    Args:
        partial: accept a trace that stops before ``halt`` or a trap, as an interrupted run
            leaves it; an unfinished last instruction is dropped.

    Raises:
        TraceError: at the first token that does not fit, or at the end if that comes too early.
    """
    reader = TraceReader()
    for token in tokens:
        event = reader.push(token)
        if event is not None:
            yield event
    if reader.end is None and not partial:
        raise TraceError(f"the trace ends after {reader.n_tokens:,} tokens without halt or trap")


def split_trace(text: str | Iterable[str]) -> Iterator[str]:
    """The tokens of a trace file, of its text or its lines: separated by white space; lines that
    begin with ``# `` are comments."""
    for line in text.splitlines() if isinstance(text, str) else text:
        if not line.startswith("# "):
            yield from line.split()

"""Reading a trace by chunks of ids: the same checks and the same state as ``TraceReader``.

A few NumPy passes over a chunk take the place of a call per token. Whatever is not plainly in
order is read again, token by token, by :class:`executor.trace.TraceReader`, so the two never
disagree on what a trace is, nor in what they say about one that is none.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from compiler import isa
from executor.decode import Ids
from executor.trace import BINARY_COMMIT, LONE_COMMIT, TABLES, Event, TraceError, TraceReader

BYTE, OTHER, BRANCH = 0, 1, 2
DIGITS = (3, 4, 5, 6)
"""Classes of tokens that do not end an instruction: the digits q3, q2, q1, q0 in this order."""
CLOSING = 7
"""The first class of those that do: commits, in the order of ``isa.COMMITS``, then the rest."""
CALL = CLOSING + len(isa.COMMITS)
RETURN, OUT, HALT, TRAP = range(CALL + 1, CALL + 5)
N_CLASSES = TRAP + 1

DIVISION = 8
"""Tokens of a division before its commit."""
LONGEST = DIVISION
"""Most tokens before the one that ends an instruction."""

Array = npt.NDArray[Any]
Written = tuple[int, bytes]
"""A stream (``isa.STANDARD_OUTPUT`` or ``STANDARD_ERROR``) and bytes that were written to it."""


@dataclass(frozen=True)
class ByClass:
    """What each class means: arrays indexed by class."""

    delta: Array
    stores: Array
    jumps: Array
    """1 where the cursor moves on by the value, -1 where back, 0 where there is no jump."""
    fits: Array
    """``fits[class, n]``: an instruction may end so after n tokens."""


def _by_class() -> ByClass:
    delta = np.zeros(N_CLASSES, np.int64)
    stores = np.zeros(N_CLASSES, np.bool_)
    jumps = np.zeros(N_CLASSES, np.int64)
    fits = np.zeros((N_CLASSES, LONGEST + 2), np.bool_)
    for kind, commit in enumerate(isa.COMMITS, start=CLOSING):
        delta[kind], stores[kind], branched = commit
        jumps[kind] = branched
        fits[kind, 5 if branched else 4] = True
        fits[kind, 0] |= commit == LONE_COMMIT
        fits[kind, DIVISION] |= commit == BINARY_COMMIT
    jumps[[CALL, RETURN]] = 1, -1
    fits[[CALL, RETURN], 4] = True
    delta[OUT] = -1
    fits[[OUT, HALT, TRAP], 0] = True
    return ByClass(delta, stores, jumps, fits)


BY_CLASS = _by_class()


class Scanner:
    """Takes a trace chunk by chunk and keeps the state that the trace describes.

    Attributes:
        stack, n_tokens, end: those of :class:`executor.trace.TraceReader`.
        output, errors: the bytes that went to standard output and to standard error.
        calls: the program's instructions whose calls have not returned, the outermost first.
        deepest: the most values that the stack has held.

    ``push`` costs a few nanoseconds a token.
    """

    def __init__(self, vocabulary: tuple[str, ...], errors: Collection[int] = ()) -> None:
        """Args:
        errors: the program's instructions that write to standard error, see
            ``Program.error_outputs``; by default none.
        """
        self._vocabulary = vocabulary
        self._errors = np.array(sorted(errors), np.int64) * isa.INSTRUCTION_TOKENS
        self._class, self._byte = _by_id(vocabulary)
        self.stack: list[int] = []
        self.output = bytearray()
        self.errors = bytearray()
        self._written: list[Written] = []
        self.calls: list[int] = []
        self.deepest = 0
        self.n_tokens = 0
        self.end: Event | None = None
        self._pending: Ids = np.zeros(0, np.int32)
        self._cursor = 0

    @property
    def pending(self) -> tuple[str, ...]:
        """Tokens of an instruction that has not ended yet."""
        return tuple(self._vocabulary[token] for token in self._pending.tolist())

    @property
    def instruction(self) -> int | None:
        """The program's instruction that comes next, or that ended the run; None after a jump to
        no instruction."""
        index, rest = divmod(self._cursor, isa.INSTRUCTION_TOKENS)
        return None if rest or index < 0 else index

    def push(self, ids: Ids) -> bytes:
        """Read tokens; the bytes that they write to standard output.

        Raises:
            TraceError: if no trace goes on like that. ``n_tokens`` then counts the token that did
                not fit, and the scanner is of no use afterwards.
        """
        before = len(self.output)
        if not self._scan(np.concatenate((self._pending, ids)), len(ids)):
            self._read(ids)
        return bytes(self.output[before:])

    def take_written(self) -> tuple[Written, ...]:
        """What has been written to both streams since this was last asked, in order."""
        written = tuple(self._written)
        self._written.clear()
        return written

    def _scan(self, ids: Array, n_new: int) -> bool:
        """Read pending and new tokens, or touch nothing and return False."""
        kinds = self._class.take(ids)
        at = np.flatnonzero(kinds >= CLOSING)
        done = int(at[-1]) + 1 if len(at) else 0
        if self.end is not None or not self._can_begin(ids[done:]):
            return n_new == 0
        if done:
            ends = kinds.take(at)
            if not _well_formed(kinds[:done], at, ends):
                return False
            if (ends[:-1] >= HALT).any() or (ends[-1] >= HALT and done < len(ids)):
                return False
            if not self._apply(ids, at, ends):
                return False
        self._pending = ids[done:]
        self.n_tokens += n_new
        if done and ends[-1] >= HALT:
            self.end = self._ending(int(ids[done - 1]))
        return True

    def _apply(self, ids: Array, at: Array, ends: Array) -> bool:
        """Follow stack, calls, cursor and output, or touch nothing and return False."""
        depth = len(self.stack) + np.cumsum(BY_CLASS.delta.take(ends))
        stores = BY_CLASS.stores.take(ends)
        kept = int((depth - stores).min())
        jumping = np.flatnonzero(BY_CLASS.jumps.take(ends))
        jumped = ends.take(jumping)
        calling = jumped == CALL
        calls = len(self.calls) + np.cumsum(calling.astype(np.int64) - (jumped == RETURN))
        if kept < 0 or (calls.size and calls.min() < 0):
            return False
        self.deepest = max(self.deepest, int(depth.max()))
        cursors = self._cursors(ids, at, ends)
        self._cursor = int(cursors[-1])
        if calls.size:
            sites = cursors.take(jumping[calling]) // isa.INSTRUCTION_TOKENS
            self._call(sites, calls[calling], int(calls.min()), int(calls[-1]))
        outputs = np.flatnonzero(ends == OUT)
        if len(outputs):
            self._write(self._byte.take(ids.take(at.take(outputs))), cursors.take(outputs))
        self._push(ids, at[stores], depth[stores], kept, int(depth[-1]))
        return True

    def _cursors(self, ids: Array, at: Array, ends: Array) -> Array:
        """The cursor, in tokens, before each of these instructions, and after the last one."""
        jumps = BY_CLASS.jumps.take(ends)
        jumping = np.flatnonzero(jumps)
        moves = np.full(len(at) + 1, isa.INSTRUCTION_TOKENS, np.int64)
        moves[0] = self._cursor
        moves[1:][ends >= HALT] = 0
        moves[1:][jumping] = self._values(ids, at.take(jumping)).astype(np.int32) * jumps[jumping]
        return moves.cumsum()

    def steps_in(self, ids: Ids) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Where in these tokens, which go on from here, each instruction ends, and its index, with
        that of the instruction behind them at the end.

        Nothing is checked and nothing changes; ``ids`` begins with a whole instruction.
        """
        kinds = self._class.take(ids)
        at = np.flatnonzero(kinds >= CLOSING)
        return at, self._cursors(ids, at, kinds.take(at)) // isa.INSTRUCTION_TOKENS

    def _call(self, sites: Array, levels: Array, kept: int, depth: int) -> None:
        """At most ``kept`` open calls stay; ``sites[i]`` made the one ``levels[i]`` deep."""
        del self.calls[kept:]
        below = len(self.calls)
        alive = (levels > below) & (levels <= depth)
        made = np.zeros(depth - below, np.int64)
        made[levels[alive] - below - 1] = sites[alive]  # of several, the last one stays
        self.calls += made.tolist()

    def _write(self, data: Array, cursors: Array) -> None:
        """Bytes that instructions at these places write, each to its stream."""
        if not self._errors.size:
            self.output += data.tobytes()
            self._written.append((isa.STANDARD_OUTPUT, data.tobytes()))
            return
        errors = np.isin(cursors, self._errors)
        self.output += data[~errors].tobytes()
        self.errors += data[errors].tobytes()
        for part in np.split(np.arange(len(data)), np.flatnonzero(np.diff(errors)) + 1):
            stream = isa.STANDARD_ERROR if errors[part[0]] else isa.STANDARD_OUTPUT
            self._written.append((stream, data[part].tobytes()))

    def _push(self, ids: Array, at: Array, levels: Array, kept: int, depth: int) -> None:
        """Of the stack, ``kept`` values stay; each level above, up to ``depth``, holds what was
        last stored there (``at[i]`` stored to ``levels[i]``, counted from 1; none is below)."""
        del self.stack[kept:]
        alive = np.flatnonzero(levels <= depth)
        last = np.zeros(depth - len(self.stack), np.int64)
        last[levels.take(alive) - kept - 1] = at.take(alive)  # of several, the last one stays
        self.stack += self._values(ids, last).tolist()

    def _values(self, ids: Array, at: Array) -> npt.NDArray[np.uint32]:
        """The numbers in the four tokens before each place."""
        value = np.zeros(len(at), np.uint32)
        for i in range(4):
            value |= self._byte.take(ids.take(at - 4 + i)).astype(np.uint32) << np.uint32(8 * i)
        return value

    def _can_begin(self, ids: Array) -> bool:
        """Whether an instruction may begin with these tokens, none of which ends one."""
        if len(ids) > LONGEST:
            return False
        reader = TraceReader()
        try:
            for token in ids.tolist():
                reader.push(self._vocabulary[token])
        except TraceError:
            return False
        return True

    def _ending(self, token: int) -> Event:
        event = TraceReader().push(self._vocabulary[token])
        assert event is not None
        return Event(event.kind, event.tokens, self.n_tokens - 1, trap=event.trap)

    def _read(self, ids: Ids) -> None:
        """Read tokens one by one up to the one that is wrong, and say what is."""
        reader = TraceReader()
        reader.stack, reader.call_depth, reader.end = [*self.stack], len(self.calls), self.end
        reader.n_tokens = self.n_tokens - len(self._pending)
        for token in self._pending.tolist():
            reader.push(self._vocabulary[token])
        for good, token in enumerate(ids.tolist()):
            try:
                reader.push(self._vocabulary[token])
            except TraceError:
                self._scan(np.concatenate((self._pending, ids[:good])), good)
                self.n_tokens = reader.n_tokens
                raise
        raise AssertionError("a chunk of a trace that only its single tokens show to be one")


def _well_formed(kinds: Array, at: Array, ends: Array) -> bool:
    """Whether whole instructions, which end at the places ``at`` in ``ends``, are made right.

    The length tells what must stand inside; there are no digits and no ``branch_taken`` but
    those, if they are as many as that makes.
    """
    lengths = np.diff(at, prepend=-1) - 1
    if not BY_CLASS.fits[ends, np.minimum(lengths, LONGEST + 1)].all():
        return False
    special = int(np.count_nonzero(kinds)) - len(at)
    if not special:
        return not ((lengths == DIVISION) | (lengths == 5)).any()
    branches = at[lengths == 5] - 5
    divisions = at[lengths == DIVISION] - DIVISION
    if special != len(branches) + len(DIGITS) * len(divisions):
        return False
    digits = all((kinds[divisions + i] == kind).all() for i, kind in enumerate(DIGITS))
    return digits and bool((kinds[branches] == BRANCH).all())


@lru_cache(maxsize=4)
def _by_id(vocabulary: tuple[str, ...]) -> tuple[Array, Array]:
    """Of every id: its class, and the byte of a value token or of an output, 0 for all others."""
    bytes_, outputs = TABLES.bytes, TABLES.outputs
    byte = [bytes_.get(token, outputs.get(token, 0)) for token in vocabulary]
    classes = np.array([_class(token) for token in vocabulary], np.uint8)
    return classes, np.array(byte, np.uint8)


def _class(token: str) -> int:
    """The class of a spelling."""
    if token in TABLES.bytes:
        return BYTE
    if token in TABLES.digits:
        return DIGITS[3 - TABLES.digits[token]]
    if token in TABLES.commits:
        return CLOSING + isa.COMMITS.index(TABLES.commits[token])
    if token in TABLES.outputs:
        return OUT
    if token in TABLES.traps:
        return TRAP
    named = {isa.BRANCH_TAKEN: BRANCH, isa.CALL_COMMIT: CALL, isa.RETURN_COMMIT: RETURN}
    return (named | {isa.HALT: HALT}).get(token, OTHER)

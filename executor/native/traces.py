"""Several steps in a row, from a token with the greatest key to the next one, in straight lines.

In: :class:`~executor.native.paths.Paths`, which knows the classes. Out: :class:`Trace`. A trace
begins where the path of such a token does. Its other tokens move no sum and no extreme, and fetch
the same token: so all that was found for one of them is still right for the next, and what each
would write of the key 0 of a table only the last one does. Where several tokens may win, and a gate
decides between them, the trace forks. Where something is not as expected *guards* leave the trace,
and the plain code takes that token.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from executor.native.again import FARTHEST
from executor.native.columns import Mask
from executor.native.forks import Fork, split
from executor.native.forms import HERE
from executor.native.outputs import Rival, rivals, write_rivals
from executor.native.tails import Tail

if TYPE_CHECKING:
    from executor.native.paths import Paths, State

MOST_TRACED = 400
"""A trace of more lines is not unrolled."""
MOST_FORKS = 2
"""As many for one token, one behind the other."""
MOST_TRIED = 5
"""Forks that are tried at one place."""
BRANCH, GAIN, SHARE = 4.0, 0.75, 0.4
"""What a branch costs, in statements; what finding a token may cost with one, of what it does
without; and how much that has to be of what the step costs."""


@dataclass(frozen=True)
class Step:
    """What is done for one token, or for what is left of it behind a fork.

    Attributes:
        offset: how many tokens after the first of the trace.
        tail: its lines; the first ``effects`` of them change the state.
        pending: C that writes what was pending after those.
        ending: the fork or the next token.
    """

    offset: int
    tail: Tail
    effects: int
    pending: tuple[str, ...]
    ending: Forked | Written


@dataclass(frozen=True)
class Forked:
    """The end of a step that goes on in two ways."""

    condition: str
    yes: Step
    no: Step


@dataclass(frozen=True)
class Written:
    """The end of a step that writes a token.

    Attributes:
        token: C of it.
        outputs, leaving: what it may be, and with which the trace ends.
        onward: the class of the others, in a group of ``Paths``, and the step for them.
    """

    token: str
    outputs: Mask
    leaving: Mask
    onward: tuple[int, Step] | None


@dataclass(frozen=True)
class Trace:
    """The steps of a trace.

    Attributes:
        leaves: for labels where guards go, the C that is there.
        longest: how many tokens it writes at most.
        complete: whether all that follows begins another trace.
    """

    state: State
    first: Step
    leaves: dict[str, list[str]]
    longest: int
    length: int
    complete: bool

    @property
    def first_length(self) -> int:
        """Lines of C for the first token, on all ways."""
        return sum(len(step.tail.lines) for step in self.steps() if not step.offset)

    def steps(self) -> Iterator[Step]:
        """All steps, on all ways."""
        left = [self.first]
        while left:
            step = left.pop()
            yield step
            match step.ending:
                case Forked(_, yes, no):
                    left += [no, yes]
                case Written(_, _, _, onward):
                    left += [] if onward is None else [onward[1]]

    def endings(self) -> Iterator[tuple[int, Written]]:
        """All written tokens, with the offset of the step."""
        for step in self.steps():
            if isinstance(step.ending, Written):
                yield step.offset, step.ending

    @property
    def n_forks(self) -> int:
        """How many forks it has."""
        return sum(isinstance(step.ending, Forked) for step in self.steps())


def trace_of(paths: Paths, state: State) -> Trace | None:
    """The trace that begins with a state; None if there is none."""
    found = _Builder(paths, state, FARTHEST).trace()
    if found is not None and not found.complete and state[1] in paths.joined:
        return _Builder(paths, state, 1).trace()
    return found


class _Builder:
    """Writes one trace of at most so many tokens."""

    def __init__(self, paths: Paths, state: State, most: int) -> None:
        self._paths, self._state, self._most = paths, state, most
        self._leaves: dict[str, list[str]] = {}
        self._length = self._longest = 0
        self._complete = self._forking = True
        self._found = -1  # where in the list of what is undecided the last fork was

    def trace(self) -> Trace | None:
        """The trace, if its first token is fit for one."""
        tail = self._paths.start_of(self._state)
        tail.several = True
        first = self._step(tail)
        if first is None:
            return None
        return Trace(self._state, first, self._leaves, self._longest, self._length, self._complete)

    def _step(self, tail: Tail) -> Step | None:
        """A token; None if it does what a trace cannot go through."""
        for name in self._paths.program.effects:
            tail.effect(name)
        tail.commit()
        return None if tail.unfit else self._rest(tail, len(tail.lines), tuple(tail.flush()))

    def _rest(
        self, tail: Tail, effects: int, pending: tuple[str, ...] = (), forks: int = 0
    ) -> Step:
        """What comes after the effects, and after some forks."""
        found = self._fork(tail, forks) if self._forking and forks < MOST_FORKS else None
        if found is None:
            token, outputs = write_rivals(tail, self._paths.splits.families)
            self._length += len(tail.lines)
            self._longest = max(self._longest, tail.offset + 1)
            return Step(tail.offset, tail, effects, pending, self._written(tail, token, outputs))
        condition, yes, no = split(tail, found)
        self._length += len(tail.lines)
        ways = Forked(condition, *(self._rest(way, 0, (), forks + 1) for way in (yes, no)))
        return Step(tail.offset, tail, effects, pending, ways)

    def _fork(self, tail: Tail, forks: int) -> Fork | None:
        """The best fork, if one is worth it; if none is, no more are tried for later tokens."""
        left = rivals(tail, self._paths.splits.families)
        if len(left) == 1 or self._length > MOST_TRACED:
            return None
        cost = self._cost(tail, left)
        if cost < SHARE * tail.cost:
            return None
        best, least, index = None, GAIN * cost - BRANCH, -1
        latest = list(enumerate(reversed(tail.undecided)))[:MOST_TRIED]
        for i, one in sorted(latest, key=lambda item: item[0] != self._found):
            _, yes, no = split(tail.twin(), one)
            mean = (self._cost(yes) + self._cost(no)) / 2
            if mean < least:
                best, least, index = one, mean, i
                if i == self._found:
                    break  # as for the token before
        self._found = index
        self._forking = best is not None or forks > 0
        return best

    def _cost(self, tail: Tail, left: Sequence[Rival] = ()) -> int:
        """What it costs to find the next token."""
        trial = tail.twin()
        trial.cost = 0
        write_rivals(trial, self._paths.splits.families, left)
        return trial.cost

    def _written(self, tail: Tail, token: str, outputs: Mask) -> Written:
        """What comes after a token."""
        paths = self._paths
        number = self._onward(outputs)
        if number is None:
            return Written(token, outputs, outputs, None)
        count = tail.offset + 1
        far = not self._state[1] and paths.is_far((number, 0, self._state[2], count))
        if count < self._most and self._length <= MOST_TRACED and not far:
            own = [paths.splits.own[i] for i in paths.groups[number].own]
            onward = outputs & np.logical_or.reduce(own)
            label = f"leave_{'_'.join(map(str, self._state[:3]))}_{len(self._leaves) + 1}"
            lines = [f"{label}:", *tail.flush(), f"p += {count};"]
            self._leaves[label] = lines
            following = tail.following(label)
            following.tokens[HERE[0], -count] = paths.shared.columns.mask(onward)
            step = self._step(following)
            if step is not None:
                return Written(token, outputs, outputs & ~onward, (number, step))
        self._complete = False
        return Written(token, outputs, outputs, None)

    def _onward(self, outputs: Mask) -> int | None:
        """The group of tokens that a trace can go on with."""
        here = self._paths.groups[self._state[0]]
        for number, group in enumerate(self._paths.groups):
            own = [self._paths.splits.own[i] for i in group.own]
            if self._paths.leads_on(here, group) and (outputs & np.logical_or.reduce(own)).any():
                return number
        return None

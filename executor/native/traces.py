"""Several steps in a row, from a token with the greatest key to the next one, in straight lines.

In: :class:`~executor.native.paths.Paths`, which knows the classes. Out: :class:`Trace`. A trace
begins where the path of such a token does. Its other tokens move no sum and no extreme, and fetch
the same token: so all that was found for one of them is still right for the next, and what each
would write of the key 0 of a table only the last one does. Where something is not as expected
*guards* leave the trace, and the plain code takes that token.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from executor.native.again import FARTHEST
from executor.native.columns import Mask
from executor.native.forms import HERE
from executor.native.outputs import write_rivals
from executor.native.tails import Tail

if TYPE_CHECKING:
    from executor.native.paths import Group, Paths, State

MOST_TRACED = 400
"""A trace of more lines is not unrolled."""


@dataclass(frozen=True)
class Step:
    """One token of a trace.

    Attributes:
        tail: its lines; the first ``effects`` of them change the state.
        pending: C that writes what was pending after those.
        token: C of the token that follows.
        outputs, onward: which tokens that may be; with which of them the next step goes on.
    """

    tail: Tail
    effects: int
    pending: tuple[str, ...]
    token: str
    outputs: Mask
    onward: Mask | None


@dataclass(frozen=True)
class Trace:
    """The steps of a trace. If it is not ``complete`` its last token leads to a path."""

    state: State
    steps: tuple[Step, ...]
    complete: bool

    @property
    def length(self) -> int:
        """Lines of C."""
        return sum(len(step.tail.lines) for step in self.steps)


def label(state: State, offset: int) -> str:
    """Where guards of a step go."""
    return f"leave_{'_'.join(map(str, state[:3]))}_{offset}"


def trace_of(paths: Paths, state: State) -> Trace | None:
    """The trace that begins with a state; None if there is none."""
    found = _trace(paths, state, FARTHEST)
    if found is not None and not found.complete and state[1] in paths.joined:
        return _trace(paths, state, 1)
    return found


def _trace(paths: Paths, state: State, most: int) -> Trace | None:
    tail = paths.start_of(state)
    tail.several = True
    steps: list[Step] = []
    length = 0
    while True:
        for name in paths.program.effects:
            tail.effect(name)
        tail.commit()
        effects, pending = len(tail.lines), tuple(tail.flush())
        if tail.unfit:
            break
        token, outputs = write_rivals(tail, paths.splits.families)
        length += len(tail.lines)
        group = _onward(paths, state, outputs)
        if group is None:
            steps.append(Step(tail, effects, pending, token, outputs, None))
            return Trace(state, tuple(steps), True)
        onward = outputs & np.logical_or.reduce([paths.splits.own[i] for i in group.own])
        if len(steps) + 1 >= most or length > MOST_TRACED or _is_far(paths, state, group, steps):
            steps.append(Step(tail, effects, pending, token, outputs, None))
            return Trace(state, tuple(steps), False)
        steps.append(Step(tail, effects, pending, token, outputs, onward))
        tail = tail.following(label(state, len(steps)))
        tail.tokens[HERE[0], -len(steps)] = paths.shared.columns.mask(onward)
    if not steps:
        return None
    steps[-1] = replace(steps[-1], onward=None)
    return Trace(state, tuple(steps), False)


def _onward(paths: Paths, state: State, outputs: Mask) -> Group | None:
    """The group of tokens that a trace can go on with."""
    here = paths.groups[state[0]]
    for group in paths.groups:
        if paths.leads_on(here, group) and any(
            (outputs & paths.splits.own[i]).any() for i in group.own
        ):
            return group
    return None


def _is_far(paths: Paths, state: State, group: Group, steps: list[Step]) -> bool:
    """Whether the next token has a path for all distances from there on."""
    _, y, last, _ = state
    return not y and paths.is_far((paths.groups.index(group), y, last, len(steps) + 1))


def classes_after(paths: Paths, step: Step) -> Iterator[int]:
    """Classes of the tokens with which a step leaves the trace."""
    left = step.outputs if step.onward is None else step.outputs & ~step.onward
    for c, own in enumerate(paths.splits.own):
        if (own & left).any():
            yield c

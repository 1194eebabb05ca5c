"""The paths of specialised code: for every combination of classes that may turn up, its statements.

In: :class:`~executor.native.splits.Splits`. Out: groups of classes of the current token, and for
each group the ends of its paths, the *leaves*. :mod:`executor.native.threads` connects them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from executor.native.again import FARTHEST
from executor.native.columns import Mask
from executor.native.exprs import Expr, Key, Unsuitable
from executor.native.forms import HERE
from executor.native.nodes import Nearest, Weight
from executor.native.outputs import TOKEN, write_rivals
from executor.native.places import gates
from executor.native.positions import Spot
from executor.native.splits import Splits
from executor.native.tails import Tail
from executor.native.traces import MOST_TRACED, Trace, trace_of

MOST_LINES = 24_000
"""No more paths are written after so many lines: they take 5 s to compile."""
MOST_EARLY = 80
"""Longer effects wait until more is known."""
LONG = 60
"""A path of fewer lines is worth its place in any case."""
GAIN = 0.75
"""Longer paths have to be shorter than this, times what they would be without a split."""
CALLS = ("core.status", "table_insert", "table_at", "table_query", "table_settle", "few_",
         "hull_", "VALUE_", "WHOLE_")  # fmt: skip
"""What may fail, or find that a key is not as guessed."""

State = tuple[int, int, int, int]
"""Group of the current token, classes of the fetched and the latest one; how far back that is."""


@dataclass(frozen=True)
class Group:
    """Classes of the current token that have paths in common.

    Attributes:
        own: the classes; several only if what tells them apart is done before (``Paths.early``).
        latest: whether the tokens are those with the greatest key, and thereby the latest.
        dispatch: finds the fetched token.
        surely: the same for a token that came out, with guards: in prompts the place may be ahead.
        prefix: what every path starts with.
        spot: where the fetched token is.
        fetch: equal for groups that fetch at the same position, if sums and tokens are the same;
            None if it depends on other things too.
        still: whether a token changes no sum and no extreme.
    """

    own: tuple[int, ...]
    latest: bool
    dispatch: Tail
    surely: Tail
    prefix: Tail
    spot: Spot
    fetch: Key | None
    still: bool


@dataclass(frozen=True)
class Leaf:
    """The end of a path, the tokens that may come out, and whether it is for all distances from
    its own on.
    """

    tail: Tail
    outputs: Mask
    far: bool

    @property
    def length(self) -> int:
        """Lines of C."""
        return len(self.tail.lines)

    first_length = length


class Paths:
    """All paths of a model.

    Attributes:
        early: for each class of the current token what can be done before more is known.
        joined: classes of the fetched token where a split would not have made paths shorter.
        leaves: by group, class of the fetched token and class of the latest one: by distance.
        traces: instead of paths, by the same.
    """

    def __init__(self, splits: Splits) -> None:
        self.splits, self.program, self.shared = splits, splits.program, splits.shared
        self.early = [self._early(mask) for mask in splits.own]
        great = [i for i, mask in enumerate(splits.own) if self._is_great(mask)]
        early = all(self.early[i].committed.issuperset(self.shared.sums) for i in great)
        if self.shared.restless or not early:
            great = []
        members = [tuple(great)] if great else []
        members += [(i,) for i in range(len(splits.own)) if i not in great]
        self.latest = bool(great)
        self.groups = [self._group(own, self.latest and not i) for i, own in enumerate(members)]
        self.leaves: dict[tuple[int, int, int], dict[int, Leaf]] = {}
        self._made: dict[State, Trace | Leaf] = {}
        self._tried: set[int] = set()
        self.joined: set[int] = set()
        self.traces: dict[tuple[int, int, int], Trace] = {}
        self._walk()

    def group_of(self, own: int) -> int:
        """The group of a class of the current token."""
        return next(i for i, group in enumerate(self.groups) if own in group.own)

    def _is_great(self, mask: Mask) -> bool:
        return self.splits.key is not None and bool(self.splits.greatest[mask].all())

    # Groups

    def _early(self, mask: Mask) -> Tail:
        """Effects that do not depend on what is known later."""
        tail = self.splits.base.child()
        self._assume_current(tail, mask)
        if self.shared.restless or not self._is_great(mask):
            return tail
        tail.retry, tail.guarded = "again", True
        later = {self.splits.place[0]} if self.splits.place is not None else set()
        for name, node in self.program.nodes.items():
            if isinstance(node, Weight) and node.owner not in tail.back:
                later.add(name)
        for name in self.program.effects:
            trial = tail.child()
            trial.effect(name)
            trial.commit_sum(name)
            if not later & trial.touched and len(trial.lines) <= MOST_EARLY:
                tail.effect(name)
                tail.commit_sum(name)
        return tail

    def _assume_current(self, tail: Tail, mask: Mask) -> None:
        tail.tokens[HERE] = self.shared.columns.mask(mask)
        if self._is_great(mask):
            for name in self.splits.extremes:
                tail.back[name] = 0

    def _group(self, own: tuple[int, ...], latest: bool) -> Group:
        tail, splits = self.splits.base.child(), self.splits
        mask = np.logical_or.reduce([splits.own[i] for i in own])
        self._assume_current(tail, mask)
        if latest:
            tail.done = set.intersection(*(self.early[i].done for i in own))
            tail.committed = set.intersection(*(self.early[i].committed for i in own))
            tail.retry = "again"
        quiet = all(tail.linear(tail.added(name)).constant == 0.0 for name in self.shared.sums)
        if splits.place is None:
            still = quiet and not self._is_great(mask)
            return Group(own, latest, tail.child(), tail.child(), tail, HERE, (), still)
        surely = tail.child()
        surely.guarded = latest
        (base, back), fetched = self._find(tail)
        dispatch, prefix = tail.child(), tail.child()
        for one in (surely, dispatch):
            self._fetch_token(one, *self._find(one))
        if surely.done != dispatch.done:
            surely = dispatch
        if not dispatch.done.isdisjoint(self.shared.means):
            raise Unsuitable("what is fetched depends on a mean")
        still = quiet and not self._is_great(mask) and dispatch.done == tail.done
        prefix.guarded = latest
        prefix.done = set(dispatch.done)
        if base != HERE[0] and not base.isdigit():
            prefix.given(base, "place")
        if fetched.terms:
            prefix.given(fetched.terms[0][1], "fetched")
        fetch = self._fetch(tail) if base != HERE[0] and not base.isdigit() else None
        return Group(own, latest, dispatch, surely, prefix, (base, back), fetch, still)

    def _find(self, tail: Tail) -> tuple[Spot, Expr]:
        """Where the fetched token is, and the token."""
        assert self.splits.place is not None
        base, back = tail.spot(self.splits.place[0])
        spot = (base, back + self.splits.place[1])
        return spot, tail.token_at(spot)

    def _fetch_token(self, tail: Tail, spot: Spot, fetched: Expr) -> None:
        """Statements that find both."""
        base = spot[0]
        if base != HERE[0] and not base.isdigit():
            tail.say(f"place = {tail.read(base)};")
        tail.say(f"fetched = {tail.text(fetched)};")

    def _fetch(self, tail: Tail) -> Key | None:
        assert self.splits.place is not None
        node = self.program.nodes[self.splits.place[0]]
        if not isinstance(node, Nearest):
            return None
        query = tail.linear(node.query)
        return query.key if all(name in self.shared.sums for _, name in query.terms) else None

    # Leaves

    def _walk(self) -> None:
        """Write all paths that may be taken, as long as there are not too many."""
        starts = range(len(self.splits.fetched))
        states: list[State] = [(group, 0, 0, 1) for group in range(len(self.groups))]
        for group in range(1 if self.latest else len(self.groups)):
            states += [(group, y, 0, 1) for y in starts[1:]]
        seen, n_lines = set(states), 0
        for state in states:  # grows
            if n_lines > MOST_LINES:
                break  # the plain code does what is left
            group, y, last, distance = state
            if self.groups[group].latest:
                self._join(state)
                last = 0 if y in self.joined else last
                if (group, y, last) in self.traces or (group, y, last) in self.leaves:
                    continue
            if any(d < distance and x.far for d, x in self._at_distances(state)):
                continue
            made = self._made.pop((group, y, last, distance), None)
            made = made or self._make((group, y, last, distance))
            n_lines += made.length
            if isinstance(made, Trace):
                self.traces[group, y, last] = made
                following = self._after_trace(made)
            else:
                self.leaves.setdefault((group, y, last), {})[distance] = made
                following = self._following(state, made.outputs, made.far)
                if not y and not made.far and not self.groups[group].latest:
                    following = chain([(group, y, last, distance + 1)], following)  # in prompts
            for one in following:
                if one not in seen and one[3] <= FARTHEST:
                    seen.add(one)
                    states.append(one)

    def _at_distances(self, state: State) -> Iterable[tuple[int, Leaf]]:
        """The paths of a state's classes, by distance."""
        return self.leaves.get(state[:3], {}).items()

    def _make(self, state: State) -> Trace | Leaf:
        trace = trace_of(self, state) if self.groups[state[0]].latest else None
        return trace or self._leaf(state)

    def _join(self, state: State) -> None:
        """Do not tell apart the latest tokens where that makes paths hardly shorter."""
        group, y, last, _ = state
        classes = self.splits.last[y]
        if len(classes) == 1 or y in self._tried:
            return
        self._tried.add(y)
        part = self._made[state] = self._make(state)
        if part.length < (MOST_TRACED if isinstance(part, Trace) else LONG):
            return
        self.splits.last[y] = [np.logical_or.reduce(classes)]
        self.joined.add(y)
        whole = self._make((group, y, 0, 1))
        if part.first_length >= GAIN * whole.first_length:
            del self._made[state]
            self._made[group, y, 0, 1] = whole
        else:
            self.splits.last[y] = classes
            self.joined.remove(y)

    def _leaf(self, state: State) -> Leaf:
        """Write the path of a state."""
        tail, far = self._path(state)
        leaf = self._end(tail, state, far)
        if leaf.far or not state[1] or leaf.length < LONG:
            return leaf
        group, y, last, distance = state
        other = self._at(self._fetched(group, y), self.splits.last[y][last], distance, False)
        joined = self._end(other, state, True)
        if leaf.length < GAIN * joined.length:
            return leaf
        self.joined.add(y)
        return joined

    def _end(self, tail: Tail, state: State, far: bool) -> Leaf:
        """Effects and output of a path."""
        for name in self.program.effects:
            tail.effect(name)
        tail.commit()
        if may_fail(tail.lines) or self.groups[state[0]].latest:
            tail.say("if (e->core.status.error)")
            tail.say("    goto failed;", 0)
        tail.say("if (!next)", 1)
        tail.say("    goto passed;", 0)
        token, outputs = write_rivals(tail, self.splits.families)
        tail.say(f"{TOKEN} = {token};")
        tail.say(f"next[p++ - start] = {TOKEN};")
        return Leaf(tail, outputs, far)

    def _path(self, state: State) -> tuple[Tail, bool]:
        """The path of a state; and whether it is for all greater distances as well."""
        number, y, last, distance = state
        group, splits, tail = self.groups[number], self.splits, self._fetched(number, y)
        if group.latest:
            mask = self.shared.columns.masks[tail.tokens[HERE]] & splits.last[y][last]
            tail.tokens[HERE] = self.shared.columns.mask(mask)
            return tail, True
        if splits.key is None or tail.back:  # or the token is the latest itself
            return tail, True
        near = self._at(tail, splits.last[y][last], distance, True)
        if y:  # what is fetched most says nothing, and may stay for long
            return near, False
        far = self._at(tail, splits.last[y][last], distance, False)
        return (far, True) if self._possible(near) == self._possible(far) else (near, False)

    def _fetched(self, number: int, y: int) -> Tail:
        """The beginning of a path, with what is known of the fetched token."""
        group = self.groups[number]
        tail = group.prefix.child()
        tail.lines = list(group.prefix.lines)
        tail.tokens.setdefault(group.spot, self.shared.columns.mask(self.splits.fetched[y]))
        tail.closed = self.splits.closed[y]
        return tail

    def start_of(self, state: State) -> Tail:
        """What is known where the path of a state begins."""
        return self._path(state)[0]

    def is_far(self, state: State) -> bool:
        """Whether the path of a state is for all greater distances as well."""
        return self._path(state)[1]

    def leads_on(self, here: Group, there: Group) -> bool:
        """Whether one group's tokens leave all but the distance as it is for the other's."""
        great = not here.still and not here.latest and self.splits.key is not None
        return there.still and there.fetch is not None and there.fetch == here.fetch and not great

    def _after_trace(self, trace: Trace) -> Iterator[State]:
        """What may come after a trace."""
        for offset, written in trace.endings():
            for other, z, i, _ in self._following(trace.state, written.leaving, True):
                yield other, z, i, 1 if self.groups[other].latest else offset + 1

    def _following(self, state: State, outputs: Mask, far: bool) -> Iterator[State]:
        """What may come after a path."""
        number, y, last, distance = state
        for other, group in enumerate(self.groups):
            mask = np.logical_or.reduce([self.splits.own[i] for i in group.own]) & outputs
            if not mask.any():
                continue
            if group.latest or not self.latest:
                for z, classes in enumerate(self.splits.last):
                    for i, one in enumerate(classes):
                        if (one & mask).any() or not self.latest:
                            yield other, z, i, 1
            elif self.groups[number].latest:
                yield other, y, last, 1
            else:
                yield other, y, last, distance if far and other == number else distance + 1

    def _at(self, tail: Tail, last: Mask, distance: int, exactly: bool) -> Tail:
        """Go on where the latest token with the greatest key is known, and how far back it is."""
        inner, splits = tail.child(), self.splits
        inner.lines = list(tail.lines)
        key, other = (self.shared.columns.mask(m) for m in (last, ~splits.greatest))
        for name in splits.extremes:
            if exactly:
                inner.back[name] = distance
            else:
                inner.beyond[name] = distance
        for back in range(1, distance):
            inner.tokens.setdefault((HERE[0], back), other)
        if exactly:
            inner.tokens.setdefault((HERE[0], distance), key)
        else:
            for name, node in self.program.nodes.items():
                if isinstance(node, Weight) and node.owner in splits.extremes:
                    inner.tokens.setdefault(inner.spot(name), key)
        return inner

    def _possible(self, tail: Tail) -> Sequence[tuple[bool, bool]]:
        """For each gate whether it can be open, and whether it can be closed."""
        found = []
        for neuron in gates(self.program):
            values = tail.linear(neuron.gate).range
            found.append((values.high > 0.0, values.low <= 0.0))
        return found


def may_fail(lines: Sequence[str]) -> bool:
    """Whether something may fail in some lines of C."""
    return any(call in line for line in lines for call in CALLS)

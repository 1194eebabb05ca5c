"""What specialised code is split on.

In: a :class:`~executor.native.nodes.Program`. Out: :class:`Splits`. A path splits

- on the class of the current token,
- on the class of a fetched token, at the position whose token most gates depend on,
- on how far back the latest key of an extreme is, as long as the same gates are not possible,
  and on the class of the token there.

:mod:`executor.native.paths` writes the paths.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from executor.checkpoint import Array
from executor.native.again import columns_again
from executor.native.columns import Columns, Mask
from executor.native.demand import seldom_read
from executor.native.families import Family
from executor.native.forms import HERE, Linear
from executor.native.nodes import Extreme, Program, Weight
from executor.native.places import closed_gates, gate_places, key_column, token_classes
from executor.native.positions import FIRST
from executor.native.ranges import Range
from executor.native.shared import Shared
from executor.native.tails import Tail

MOST_CLASSES = 128
FEWEST_GATES = 4
"""A place splits the code if at least so many gates depend on its token."""
MOST_LAST = 6
MOST_ALONE = 16
"""Tokens that are a class of their own."""


class Splits:
    """The splits of one model.

    Attributes:
        own, fetched: classes of the current and of the fetched token, as sets of tokens.
        place: where the fetched token is; None if there is none.
        extremes, key, greatest: extremes with the same key of the token; the tokens it is greatest
            for.
        closed: for each class of the fetched token, neurons that are closed, by their ``id``.
        last: for each class of the fetched token, classes of the latest of those tokens.
    """

    def __init__(
        self,
        program: Program,
        n_tokens: int,
        families: Sequence[Family],
        prefix: Sequence[int] = (),
        holding: bool = True,
    ) -> None:
        """``holding``: whether paths may hold running sums in variables of their own."""
        self.program, self.families = program, families
        self.shared = Shared(program, Columns(n_tokens), self._range, tuple(prefix), holding)
        self._general = Tail(self.shared, 0)
        self.base = Tail(self.shared, max(FIRST, len(prefix)))
        for name in program.nodes:
            self._general.force(name)
        self._choose_extremes()
        self._choose_place()
        self.closed = [frozenset[int]() for _ in self.fetched]
        if self.place is not None:
            self.closed = closed_gates(self.shared, self.place, self.fetched)
        self.last = [self._last_classes(y) for y in range(len(self.fetched))]
        self.column_code = (
            columns_again(self.shared, self.extremes, self.greatest) if self.key is not None else []
        )
        self.shared.dropped = bool(self.column_code)
        paths = [self._fetching(y) for y in range(len(self.fetched))]
        for tail in paths:
            tail.beyond = dict.fromkeys(self.extremes, 0)
        self.shared.late = seldom_read(self.shared, paths)
        others = [self.place] if self.place is not None else []
        self.own = self._own_classes(others)

    def _range(self, value: Linear) -> Range:
        return self._general.linear(value).range

    # What to split on

    def _choose_extremes(self) -> None:
        """Extremes whose greatest key depends on the token alone, all with the same key."""
        read = {node.owner for node in self.program.nodes.values() if isinstance(node, Weight)}
        self.extremes: list[str] = []
        self.key: Array | None = None
        for name, effect in self.program.effects.items():
            if not isinstance(effect, Extreme) or effect.mean or name not in read:
                continue
            column = key_column(self.program, effect)
            if column is None or (self.key is not None and (column != self.key).any()):
                continue
            self.key = column
            self.extremes.append(name)
        if self.key is not None:
            self.greatest = self.key == self.key.max()
            for name in self.extremes:
                self.base.seen[name] = float(self.key.max())

    def _choose_place(self) -> None:
        """The place whose token most gates depend on."""
        self.place, self.fetched = None, [self._all()]
        counts = gate_places(self.program)
        for place in sorted(counts, key=lambda place: -counts[place]):
            node = self.program.nodes.get(place[0])
            fixed = node is None or (isinstance(node, Weight) and node.owner in self.extremes)
            if fixed or counts[place] < FEWEST_GATES:
                continue
            found = token_classes(self.shared, place)
            if 1 < len(found) <= MOST_CLASSES:
                self.place, self.fetched = place, found
                return

    def _last_classes(self, fetched: int) -> list[Mask]:
        """Classes of the latest token with the greatest key, for a class of the fetched one."""
        if self.key is None:
            return [self._all()]
        tail = self._fetching(fetched)
        best = [self.greatest]
        for name, node in self.program.nodes.items():
            if isinstance(node, Weight) and node.owner in self.extremes:
                found = token_classes(self.shared, (name, 0), ranges=tail.range_now)
                found = [mask & self.greatest for mask in found]
                found = [mask for mask in found if mask.any()]
                if len(best) < len(found) <= MOST_LAST:
                    best = found
        return best

    def _fetching(self, fetched: int) -> Tail:
        """A path on which the fetched token is one of a class."""
        tail = self.base.child()
        if self.place is not None:
            base, back = tail.spot(self.place[0])
            mask = self.shared.columns.mask(self.fetched[fetched])
            tail.tokens[base, back + self.place[1]] = mask
        tail.closed = self.closed[fetched]
        return tail

    def _all(self) -> Mask:
        return np.ones(self.shared.columns.n_tokens, np.bool_)

    def _own_classes(self, others: Sequence[tuple[str, int]]) -> list[Mask]:
        found = token_classes(self.shared, HERE, others)
        if not found:
            found = [np.ones(self.shared.columns.n_tokens, np.bool_)]
        ways = [self._producible()]
        if self.key is not None:
            ways.append(self.greatest)
        for way in (*ways, *self._alone()):
            found = [part for mask in found for part in (mask & way, mask & ~way)]
            found = [mask for mask in found if mask.any()]
        return found

    def _alone(self) -> Iterator[Mask]:
        """Tokens with the greatest key that come out by a row of their own, if they are few."""
        tokens = {t for t in self._candidates() if self.key is not None and self.greatest[t]}
        for token in sorted(tokens) if len(tokens) <= MOST_ALONE else []:
            yield np.arange(self.shared.columns.n_tokens) == token

    def _candidates(self) -> Iterator[int]:
        """Tokens that come out by a row of their own."""
        for one in self.program.candidates:
            form = one.token.form
            for column in form.columns.values():
                yield from map(int, set(column + form.const))
            if not form.columns:
                yield int(form.const)

    def _producible(self) -> Mask:
        """Tokens that can come out; others are in prompts only."""
        tokens = [t for family in self.families for t in family.at_corner]
        tokens += [line.token for family in self.families for line in family.winners]
        mask = np.zeros(self.shared.columns.n_tokens, np.bool_)
        mask[[*tokens, *self._candidates()]] = True
        return mask

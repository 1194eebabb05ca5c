"""The current token, earlier ones and their positions, on one path through the step.

The part of :class:`~executor.native.tails.Tail` that deals with the sequence.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from math import floor, frexp
from typing import Any

import numpy as np

from executor.native.exprs import Expr, Key, Make, Units, constant
from executor.native.forms import HERE, MOST_TOKENS, Linear, Place
from executor.native.integers import Integers
from executor.native.nodes import Back, Nearest, Node, Quotient, Weight
from executor.native.ranges import Range
from executor.native.shared import Shared

FIRST = 64
"""Specialised code runs from this position on: it looks back without looking for the start."""
CALL, LOOKUP = 12, 3
"""What a call and a lookup cost, in statements."""
POSITIONS = Range(0.0, float(MOST_TOKENS), 0)

Spot = tuple[str, int]
"""A position: a C variable, and how far back from it; tokens of a trace are behind ``p``."""


class Positions(Integers, ABC):
    """See the module.

    Attributes:
        tokens: for a position, the number of the set of tokens that may be there.
        back: for an extreme, how many positions back its latest key is.
        beyond: for an extreme, how many positions back it is at least.
        retry: where the plain code starts again: at ``again`` where sums are put back first.
        guarded: whether the path is left where a position is not where it is expected.
        touched: positions of the plain code that something asked for.
        offset: how many tokens after the position ``p`` the current one is.
        several: whether this is a step of a trace, in which tokens follow each other.
        from_on: for positions with a guard, from which one on they are where they are read. What
            is evaluated may not make use of it: the guard is there only if the position is read.
        column_of: number, set of tokens and position of atoms that are columns.
    """

    def __init__(self, shared: Shared, first: int) -> None:
        super().__init__(first)
        self.shared, self.first = shared, first
        self.tokens: dict[Spot, int] = {}
        self.back: dict[str, int] = {}
        self.beyond: dict[str, int] = {}
        self.retry, self.guarded = "plain", False
        self.touched: set[str] = set()
        self.offset, self.several = 0, False
        self.column_of: dict[str, tuple[int, int, Spot]] = {}
        self.from_on: dict[str, int] = {}
        self._spots: dict[str, Spot] = {}

    @abstractmethod
    def linear(self, value: Linear) -> Expr:
        """A value of the plain code."""

    @abstractmethod
    def spot_of(self, node: Weight) -> Spot:
        """The position of a record or an extreme."""

    # The current token

    @property
    def here(self) -> Spot:
        """Its position."""
        return (HERE[0], -self.offset)

    @property
    def now(self) -> str:
        """C of its position."""
        return f"p + {self.offset}" if self.offset else "p"

    @property
    def at_present(self) -> tuple[int, ...]:
        """Part of the key of what may be something else for the next token."""
        return (self.offset,) if self.offset else ()

    def guard(self, condition: str) -> None:
        """Leave the trace if something is not as expected; the plain code takes this token."""
        self.say(f"if ({condition})", 2)
        self.say(f"    goto {self.retry};", 0)

    # Tokens

    def column(self, place: Place, column: int) -> Expr:
        """A column for the token at a place."""
        base, back = self.spot(place[0])
        spot = (base, back + place[1])
        mask = self.tokens.get(spot, 0) or self._prefix_mask(spot)
        name = f"C{column}({spot[0]}:{spot[1]}:{mask})"
        known = self._known.get(("column", name))
        if known is not None:
            return known
        values = self.shared.columns.range(column, mask)

        def make(scope: Positions) -> str:
            return scope.shared.columns.number(column, place[0], scope.token(spot))

        if values.low == values.high:
            return constant(values.low)
        self.column_of[name] = column, mask, spot
        units, unit = None, self.shared.columns.unit(column, mask)
        if unit is not None:
            units = Units(unit, lambda s: s.whole_column(place, column, unit, mask, spot), False)
        return self.atom(name, values, make, ("column", name), "", units)

    def whole_column(self, place: Place, column: int, unit: int, mask: int, spot: Spot) -> str:
        """C of a column in units."""
        return self.shared.columns.integer(column, unit, place[0], mask, self.token(spot))

    def _prefix_mask(self, spot: Spot) -> int:
        """The set of tokens of the prefix that may be at a position; 0 if it may be elsewhere."""
        base, back = spot
        places = self.range_of(base) if base != HERE[0] else POSITIONS
        low, high = int(places.low) - back, int(places.high) - back
        if not self.first or low < 0 or high >= len(self.shared.prefix):
            return 0
        mask = np.zeros(self.shared.columns.n_tokens, np.bool_)
        mask[list(self.shared.prefix[low : high + 1])] = True
        return self.shared.columns.mask(mask)

    def token(self, spot: Spot) -> str:
        """C of the token at a position."""
        base, back = spot
        if base == HERE[0] and back <= 0:
            return f"t{-back}" if back else "token"
        return self.text(self.token_at(spot))

    def token_at(self, spot: Spot) -> Expr:
        """The token at an earlier position."""

        def make(scope: Positions) -> str:
            scope.cost += LOOKUP
            return f"e->core.tokens[{scope.at(spot)}]"

        return self.named_token(spot, make)

    def named_token(self, spot: Spot, make: Callable[[Any], str]) -> Expr:
        values = Range(0.0, float(self.shared.columns.n_tokens), 0)
        return self.atom("k", values, make, ("token", spot), "uint32_t")

    # Positions

    def spot(self, name: str) -> Spot:
        """A position of the plain code."""
        if name == HERE[0]:
            return self.here
        self.touched.add(name)
        if name not in self._spots:
            self._spots[name] = self._spot(self.shared.program.nodes[name])
        return self._spots[name]

    def _spot(self, node: Node) -> Spot:
        match node:
            case Back(back):
                return (HERE[0], back - self.offset)
            case Weight(owner, _):
                if owner in self.back:
                    return (HERE[0], self.back[owner])
                return self.spot_of(node)
            case Nearest(query):
                expr = self.linear(query)
                return self._nearest(expr)
            case Quotient(x, y):
                pair = self.linear(x), self.linear(y)
                divisor = pair[1].constant
                if divisor is not None and divisor > 0.0 and frexp(divisor)[0] == 0.5:
                    return self._nearest(self.combine([(1.0 / divisor, pair[0])]))
                call = f"nearest_quotient(&e->core.status, {{0}}, {{1}}, {self.now})"
                key = ("quotient", pair[0].key, pair[1].key, *self.at_present)
                return self.place(key, lambda s: s.call(call, pair))
        raise AssertionError(node)

    def _nearest(self, query: Expr) -> Spot:
        """The position nearest to a number."""
        if query.terms == ((1.0, "position"),):
            return (HERE[0], max(-self.offset, -floor(0.5 + query.const)))
        low, high = (max(0.0, floor(0.5 + end)) for end in (query.range.low, query.range.high))
        if low == high <= self.first:
            return self.fixed(int(low)), 0
        places = Range(min(low, POSITIONS.high), min(high, POSITIONS.high), 0)
        if self.guarded and high > self._surely:
            least = int(low)
            if high > POSITIONS.high / 2 and query.range.grain >= 0:
                least = max(least, self._least)
            make: Make = lambda s: s.up_to_now(query, least)  # noqa: E731
            spot = self.place(("nearest", query.key), make, places)
            self.from_on[spot[0]] = least
            return spot
        now, past = self.now, self.is_past(query)
        key = ("nearest", query.key, *(() if past else self.at_present))
        return self.place(key, lambda s: s.nearest(query, now, past), places)

    @property
    def _surely(self) -> int:
        """A position that the current one is not before."""
        return max(self.first, len(self.shared.prefix)) if self.first else 0

    @property
    def _least(self) -> int:
        """Positions that may be anywhere are expected from there on: looking back needs no care.

        Not so those that are rounded, a fraction of something, which may well be 0.
        """
        return min(FIRST, len(self.shared.prefix))

    def place(self, key: Key, make: Callable[[Any], str], places: Range = POSITIONS) -> Spot:
        if places.low == places.high:
            places = Range(places.low, places.high + 1.0, 0)
        return self.atom("i", places, make, key, "int64_t").terms[0][1], 0

    def at(self, spot: Spot) -> str:
        """C of a position."""
        base, back = spot
        if base.isdigit():
            return str(max(0, int(base) - back))
        name = self.read(base)
        if not back:
            return name
        least = self.first if base == HERE[0] else self.from_on.get(base, self.range_of(base).low)
        return f"{name} - {back}" if back <= least else f"before({name}, {back})"

    def as_double(self, spot: Spot) -> Expr:
        """A position as a number."""
        base, back = spot
        if base.isdigit():
            return constant(float(max(0, int(base) - back)))
        if base == HERE[0] and (back <= self.first or back in self.back.values()):
            return self.combine([(1.0, self.start), (1.0, constant(-float(back)))])
        for owner, least in self.beyond.items():
            latest = self._known.get(("weight", owner))
            if not back and latest is not None and latest.terms == ((1.0, base),):
                return self.combine([(1.0, self.start), (-1.0, self._far(base, least))])
        integer = base if not back else self.alias(f"{base}_{back}", lambda s: s.at(spot))
        values = self.range_of(base) if not back else POSITIONS
        units = Units(0, lambda s: s.read(integer), False)
        return self.atom("d", values, None, ("double", spot), units=units, is_position=True)

    def _far(self, base: str, least: int) -> Expr:
        """How far back a position is, at least so many."""
        values = Range(float(least), float(MOST_TOKENS), 0)
        integer = self.alias(f"far_{base}", lambda s: f"p - {s.read(base)}")
        units = Units(0, lambda s: s.read(integer), False)
        return self.atom("u", values, None, ("far", base), units=units)

    def is_past(self, query: Expr) -> bool:
        """Whether a position is certainly none after the current one."""
        rest = sum((self.range_of(n).scaled(f).high for f, n in query.terms), query.const)
        below = any(
            f == 1.0 and self.is_position(n) and rest - self.range_of(n).high < 0.5
            for f, n in query.terms
        )
        return below or floor(query.range.high + 0.5) <= self._surely

    def nearest(self, query: Expr, now: str, past: bool) -> str:
        """C of the position nearest to a number; ``now`` is the last unless it is past anyway."""
        text = self.rounded(query, add=0.5)
        if not text:
            return f"nearest_position({self.text(query)}, {now})"
        if floor(query.range.low + 0.5) < 0:
            text = f"at_least_0({text})"
        return text if past else f"at_most({text}, {now})"

    def up_to_now(self, query: Expr, least: int) -> str:
        """The same for one from ``least`` to ``p``, with a guard if it is not there.

        So it needs no look at the current position, and is the same for later tokens.
        """
        text = self.rounded(query, add=0.5)
        if not text:
            text = f"nearest_position({self.text(query)}, p + 1)"
        name = self.name("at")
        self.say(f"const int64_t {name} = {text};")
        if floor(query.range.low + 0.5) >= least:
            self.guard(f"{name} > p")
        else:
            less = f" - {least}" if least else ""
            self.guard(f"(uint64_t)({name}{less}) > (uint64_t)(p{less})")
        return name

    def call(self, template: str, arguments: tuple[Expr, ...]) -> str:
        """C of a call."""
        self.cost += CALL
        return template.format(*(self.text(a) for a in arguments))

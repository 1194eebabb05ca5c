"""What all paths of specialised code have in common: the program, its columns, what was decided."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property

import numpy as np
import numpy.typing as npt

from executor.checkpoint import Array
from executor.native.columns import Columns, Mask
from executor.native.dependence import Dependence
from executor.native.forms import HERE, Form, Linear, Place
from executor.native.nodes import (
    Accumulate,
    AddTo,
    AsDouble,
    Cell,
    Extreme,
    Insert,
    Load,
    Product,
    Program,
    Query,
    Sum,
    Weight,
    inner,
)  # fmt: skip
from executor.native.ranges import FINEST, ROUNDED, Range, two
from executor.native.winners import can_tie, can_win

SUM_BOUND = 2.0**45
"""Specialised code runs while running sums are at most this."""


@dataclass
class Shared:
    """What all paths have in common; ``range_of`` is what a value can be for any token."""

    program: Program
    columns: Columns
    range_of: Callable[[Linear], Range]
    prefix: tuple[int, ...] = ()
    """The tokens at the first positions; specialised code runs only if it is they."""
    holding: bool = True
    """Whether paths may hold exact running sums in variables of their own, as integers."""
    keyed: set[str] = field(default_factory=set)
    """Tables whose keys have to be as guessed, for the code to be right."""
    constants: dict[str, str] = field(default_factory=dict)
    """Definitions of constant arrays in C, by name."""

    dropped: bool = False
    """Whether columns are not stored, for they can be computed again from the tokens."""
    refreshed: dict[str, tuple[Linear, ...]] = field(default_factory=dict)
    """Tables whose values at key 0 are computed when something reads them: they are timeless."""

    late: dict[str, dict[int, Linear]] = field(default_factory=dict)
    """Tables with those of their values that are not stored but computed by whoever reads them."""

    exceeded: set[str] = field(default_factory=set)
    """Extremes whose record is written by a function, for it hardly ever is."""
    zeroed: set[str] = field(default_factory=set)
    """Tables to which some path adds the key 0."""
    unwritten: set[str] = field(default_factory=set)
    """Structures into which some path does not insert keys that cannot win."""
    envelopes: dict[tuple[int, float, float], Range] = field(default_factory=dict)
    """What the best of a family of the output head can score, by the interval of its quantity."""
    leads: dict[tuple[int, int, float, float], tuple[float, float]] = field(default_factory=dict)
    """By how much one family can score more than another, and the magnitudes that are added."""
    _timeless: dict[int, tuple[Linear, bool]] = field(default_factory=dict)
    _without: dict[tuple[int, Place], tuple[Linear, Linear]] = field(default_factory=dict)
    _known: dict[str, bool] = field(default_factory=dict)
    _winners: dict[str, Mask] = field(default_factory=dict)

    def is_timeless(self, value: Linear) -> bool:
        """Whether what a table keeps can be computed at any later time.

        That is, from tokens before it and from structures of few keys, of whose records only what
        all tokens with the key have in common is read, and of which no two can tie: the later of
        them would win. So only a new key can change it.
        """
        if id(value) not in self._timeless:
            self._timeless[id(value)] = value, self._is_timeless(value)
        return self._timeless[id(value)][1]

    def _is_timeless(self, value: Linear) -> bool:
        form = value.form
        if form.p or form.square:
            return False
        for (base, back), column in form.columns.items():
            node = self.program.nodes.get(base)
            if base == HERE[0]:
                continue
            query = self.program.nodes.get(node.owner) if isinstance(node, Weight) else None
            if back or not isinstance(query, Query) or not self._is_of_key(query, column):
                return False
        for _, name in value.variables:
            node = self.program.nodes[name]
            if not isinstance(node, Sum | Product | Accumulate):
                return False
            if not all(map(self.is_timeless, inner(node))):
                return False
        return True

    def without(self, value: Linear, place: Place) -> Linear:
        """A value less what depends on the token at a place; the same object each time."""
        known = self._without.get((id(value), place))
        if known is None:
            form = value.form
            rest = {other: column for other, column in form.columns.items() if other != place}
            form = Form(form.const, form.p, form.square, rest)
            known = self._without[id(value), place] = value, Linear(form, value.variables)
        return known[1]

    def winners(self, name: str) -> Mask:
        """Tokens whose record in a structure can be found by a query, now or later."""
        if name not in self._winners:
            self._winners[name] = np.ones(self.columns.n_tokens, np.bool_)
            insert = self.program.effects[name]
            if isinstance(insert, Insert) and insert.keys is not None and self.prefix:
                self._winners[name] = self._can_win(name, insert, insert.keys)
        return self._winners[name]

    def _can_win(self, name: str, insert: Insert, keys: Array) -> Mask:
        which, present = self._keys(insert)
        found = np.zeros(len(keys), np.bool_)
        for query in self._queries(name):
            if query.arguments[1].constant != 1.0:
                return np.ones(self.columns.n_tokens, np.bool_)
            found |= can_win(keys, present, self.range_of(query.arguments[0]))
        return np.asarray(found[which])

    def _queries(self, name: str) -> list[Query]:
        return [
            node
            for node in self.program.nodes.values()
            if isinstance(node, Query) and node.of == name
        ]

    def _keys(self, insert: Insert) -> tuple[npt.NDArray[np.intp], list[int]]:
        """The number of each token's key, and the keys that are there from the start."""
        form = insert.arguments[0].form
        which = np.full(self.columns.n_tokens, form.const)
        if form.columns:
            which = form.table(HERE)
        numbers = which.astype(np.intp)
        return numbers, sorted(set(numbers[list(self.prefix)].tolist()))

    def is_settled(self, name: str) -> bool:
        """Whether all keys of a structure that can win are there from the start."""
        insert = self.program.effects[name]
        assert isinstance(insert, Insert)
        which, present = self._keys(insert)
        return set(which[self.winners(name)].tolist()) <= set(present)

    def _is_of_key(self, query: Query, column: Array) -> bool:
        """Whether what a query finds of a column depends on the keys there are and nothing else."""
        insert = self.program.effects[query.of]
        if not isinstance(insert, Insert) or insert.keys is None or insert.mean:
            return False
        if query.arguments[1].constant != 1.0 or not self.is_timeless(query.arguments[0]):
            return False
        winners = self.winners(query.of)
        if not winners.any():
            return False
        which, present = self._keys(insert)
        values = dict(zip(which[winners].tolist(), column[winners].tolist(), strict=True))
        if any(values[k] != v for k, v in zip(which[winners], column[winners], strict=True)):
            return False
        found = self.range_of(query.arguments[0])
        return found.grain > ROUNDED and not any(
            values[i] != values[j] for i, j in can_tie(insert.keys, present, found, set(values))
        )

    def is_known(self, name: str) -> bool:
        """Whether inserting more keys into a structure of few cannot make a difference.

        All keys that can win are there, and all that is read of a record is the same for all
        tokens with the key.
        """
        if name not in self._known:
            self._known[name] = self.is_settled(name) and self._is_read_by_key(name)
        return self._known[name]

    def is_known_few(self, name: str) -> bool:
        """The same; no for structures of other kinds."""
        effect = self.program.effects.get(name)
        return isinstance(effect, Insert) and effect.kind == "few" and self.is_known(name)

    def _is_read_by_key(self, name: str) -> bool:
        nodes = self.program.nodes
        owners = {n for n, node in nodes.items() if isinstance(node, Query) and node.of == name}
        bases = set()
        for base, node in nodes.items():
            if isinstance(node, Cell) and node.owner in owners:
                return False
            if isinstance(node, Weight) and node.owner in owners:
                bases.add(base)
        if any(isinstance(n, AsDouble | Load) and n.base in bases for n in nodes.values()):
            return False
        parts = [
            Linear(Form(columns={place: column}))
            for value in self.program.values()
            for place, column in value.form.columns.items()
            if place[0] in bases
        ]
        return all(map(self.is_timeless, parts))

    def depends(self, values: Iterable[Linear]) -> list[str]:
        """The structures that timeless values are read from, each once, in order of name."""
        found: set[str] = set()
        for value in values:
            names = [name for _, name in value.variables]
            names += [base for base, _ in value.form.columns if base != HERE[0]]
            for node in map(self.program.nodes.__getitem__, names):
                match node:
                    case Weight(owner, _):
                        query = self.program.nodes.get(owner)
                        if isinstance(query, Query):
                            found.update([query.of, *self.depends(query.arguments)])
                    case _:
                        found.update(self.depends(inner(node)))
        return sorted(found)

    def key_ratio(self, cell: Cell) -> float:
        """What times its key (an integer) a value of a table is; 0 if it is something else.

        Such a table is noted in ``keyed``.
        """
        node = self.program.nodes.get(cell.owner)
        if self.restless or not isinstance(node, Query):
            return 0.0
        insert = self.program.effects[node.of]
        assert isinstance(insert, Insert)
        key, value = insert.arguments[0], cell.value
        if insert.kind != "table" or len(key.variables) != 1 or len(value.variables) != 1:
            return 0.0
        (one, name), (other, same) = key.variables[0], value.variables[0]
        if name != same or not (key.form.is_zero and value.form.is_zero):
            return 0.0
        ratio = 2.0 * other / one
        if Fraction(ratio) * Fraction(one) != 2 * Fraction(other):
            return 0.0
        self.keyed.add(node.of)
        return ratio

    def unit_of(self, name: str, index: int) -> int | None:
        """The unit of the integers that a table keeps for a value; None if it keeps float64s.

        Values are numbered from 1 on. Every value that any token may store is a multiple.
        """
        effect = self.program.effects[name]
        assert isinstance(effect, Insert)
        if effect.kind != "table" or effect.mean:
            return None
        values = self.range_of(effect.values[index - 1])
        return values.grain if values.is_exact and abs(values.grain) <= FINEST else None

    def sum_unit(self, name: str) -> int | None:
        """The unit of the integer that paths hold for a running sum; None if they do not.

        Sums that a path may add to are at most ``SUM_BOUND``.
        """
        effect = self.program.effects[name]
        assert isinstance(effect, AddTo)
        added = self.range_of(effect.value)
        exact = added.grain > ROUNDED and SUM_BOUND + added.size <= two(53 + added.grain)
        return added.grain if self.holding and exact and abs(added.grain) <= FINEST else None

    def values_of(self, name: str) -> tuple[Linear, ...]:
        """What a record of a structure holds."""
        effect = self.program.effects[name]
        assert isinstance(effect, Insert)
        return effect.values

    @cached_property
    def dependence(self) -> Dependence:
        """What of the program depends on what."""
        return Dependence(self.program)

    @property
    def sums(self) -> list[str]:
        """All running sums."""
        return [name for name, e in self.program.effects.items() if isinstance(e, AddTo)]

    @property
    def settled(self) -> list[str]:
        """Tables that may have to compute values that are not there."""
        return sorted(self.refreshed.keys() | self.late.keys())

    @cached_property
    def means(self) -> list[str]:
        """Structures and extremes that count what ties: inserting twice is not the same as once."""
        return [
            name
            for name, effect in self.program.effects.items()
            if isinstance(effect, Insert | Extreme) and effect.mean
        ]

    @property
    def restless(self) -> bool:
        """Whether a path cannot be left for the plain code, which would do its effects again."""
        return bool(self.means)

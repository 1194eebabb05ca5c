"""What all paths of specialised code have in common: the program, its columns, what was decided."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from executor.checkpoint import Array
from executor.native.columns import Columns
from executor.native.forms import HERE, Linear
from executor.native.nodes import (
    Accumulate,
    Cell,
    Extreme,
    Insert,
    Product,
    Program,
    Query,
    Sum,
    Weight,
)  # fmt: skip
from executor.native.ranges import Range


@dataclass
class Shared:
    """What all paths have in common; ``range_of`` is what a value can be for any token."""

    program: Program
    columns: Columns
    range_of: Callable[[Linear], Range]
    prefix: tuple[int, ...] = ()
    """The tokens at the first positions; specialised code runs only if it is they."""
    keyed: set[str] = field(default_factory=set)
    """Tables whose keys have to be as guessed, for the code to be right."""
    constants: dict[str, str] = field(default_factory=dict)
    """Definitions of constant arrays in C, by name."""

    dropped: bool = False
    """Whether columns are not stored, for they can be computed again from the tokens."""
    again: bool = False
    """Whether some path starts again with the plain code."""
    refreshed: dict[str, tuple[Linear, ...]] = field(default_factory=dict)
    """Tables whose values at key 0 are computed when they are needed, at the latest when the next
    token that writes something else begins: until then nothing has changed that they depend on."""

    def timeless(self, name: str) -> bool:
        """Whether what a table keeps for its key 0 can be computed at any later time.

        That is, from tokens before it and from structures of few keys, of whose records only what
        all tokens with the key have in common is read, so that only a new key can change it.
        """
        return all(map(self._is_timeless, self.refreshed[name]))

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
            match self.program.nodes[name]:
                case Sum(terms):
                    inner = [term for _, term in terms]
                case Product(gate, other):
                    inner = [gate, other]
                case Accumulate(start, neurons):
                    inner = [start, *(v for n in neurons for v in (n.gate, n.value))]
                case _:
                    return False
            if not all(map(self._is_timeless, inner)):
                return False
        return True

    def _is_of_key(self, query: Query, column: Array) -> bool:
        """Whether a column is the same for all tokens with the same key."""
        insert = self.program.effects[query.of]
        if not isinstance(insert, Insert) or insert.kind != "few" or insert.mean:
            return False
        index = insert.arguments[0]
        if index.place != HERE or not all(map(self._is_timeless, query.arguments)):
            return False
        keys = index.form.table(HERE)
        first = column[np.unique(keys, return_index=True)[1]]
        return bool((first[np.unique(keys, return_inverse=True)[1].reshape(-1)] == column).all())

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
        self.keyed.add(node.of)
        return 2.0 * other / one

    @property
    def restless(self) -> bool:
        """Whether doing the same effects twice is not the same as once, sums aside."""
        return any(
            effect.mean
            for effect in self.program.effects.values()
            if isinstance(effect, Insert | Extreme)
        )

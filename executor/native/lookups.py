"""Stored values and records, on one path through the step.

The part of :class:`~executor.native.tails.Tail` that reads the state of the engine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import NamedTuple

from executor.native.exprs import Expr, Key, Units
from executor.native.nodes import Cell, Extreme, Insert, Query, Weight
from executor.native.positions import LOOKUP, Positions, Spot
from executor.native.ranges import Range, grain_of, two
from executor.native.shared import Shared
from executor.native.writer import plus

MOST_KEY = 94906265.0
"""The greatest key of a table, as in ``runtime/table.h``."""
Kept = tuple[str, str]
"""Of a cell of a record: which member of it, and C of what is in it."""
Pending = tuple[int, tuple[Kept, ...] | None]
"""An offset and values; None if they are computed when something asks for them."""


class Found(NamedTuple):
    """Where a part of a record is found: what tells it apart, and the query with its arguments."""

    key: Key
    node: Query | None
    arguments: tuple[Expr, ...]


class Lookups(Positions, ABC):
    """See the module.

    Attributes:
        seen: for an extreme, its key: the greatest there is has been seen.
        done, committed: effects that are written, and sums.
        pending: in a trace, tables in which the latest record of the key 0 is still to be written.
        versions: in a trace, how many other records were written to tables.
        unfit: why a trace cannot go through this token; empty if it can.
    """

    def __init__(self, shared: Shared, first: int) -> None:
        super().__init__(shared, first)
        self.seen: dict[str, float] = {}
        self.done: set[str] = set()
        self.committed: set[str] = set()
        self.unfit = ""
        self.pending: dict[str, Pending] = {}
        self.versions: dict[str, int] = {}

    @abstractmethod
    def child(self) -> Lookups:
        """The same to go on with; its lines start anew."""

    @abstractmethod
    def twin(self) -> Lookups:
        """The same to go on with, as long as nothing more is assumed."""

    @abstractmethod
    def effect(self, name: str) -> None:
        """Write what changes the state, once."""

    def load(self, column: int, spot: Spot) -> Expr:
        """What the token at a position stored in a column."""
        effect = f"column {column}"
        store = self.shared.program.effects[effect]
        assert not isinstance(store, Insert | Extreme)
        values = self.shared.range_of(store.value)

        def make(scope: Lookups) -> str:
            scope.effect(effect)
            scope.cost += LOOKUP
            return f"LOAD_{column}({scope.at(spot)})"

        return self.atom("v", values, make, ("load", column, spot))

    def found(self, owner: str) -> Found:
        """What a part of a record is read from, as it is now."""
        node = self.shared.program.nodes.get(owner)
        if not isinstance(node, Query):
            return Found((owner,), None, ())
        arguments = tuple(self.linear(a) for a in node.arguments)
        key = ("query", node.call, *(a.key for a in arguments))
        changes = self.at_present if not self.shared.is_known_few(node.of) else ()
        return Found((*key, *changes), node, arguments)

    def spot_of(self, node: Weight) -> Spot:
        """The position of a record or an extreme."""
        found = self.found(node.owner)
        spot = self.place(("weight", *found.key), lambda s: s.owned(node, found))
        if found.node is not None and found.node.is_table:
            self._keep_token(spot, node, found)
        return spot

    def _keep_token(self, spot: Spot, node: Weight, found: Found) -> None:
        """Read the token at the position of a table's record from the record."""
        text = node.text.replace("AT_", "TOKEN_", 1)
        kept = replace(node, text=text)
        self.named_token(spot, lambda s: s.owned(kept, found))

    def value_of(self, cell: Cell) -> Expr:
        """A value of a record."""
        values = self.shared.range_of(cell.value)
        if cell.count:
            values = values.widened()
        ratio = self.shared.key_ratio(cell) if self.first else 0.0
        if ratio:
            values = Range(-MOST_KEY, MOST_KEY, 0).scaled(ratio)
        index, found = cell.text.replace(cell.owner, ""), self.found(cell.owner)
        key = ("cell", *found.key, index)
        if ratio:
            units = Units(grain_of(ratio), lambda s: s.key_of(cell, found, ratio))
            return self.atom("v", values, None, key, units=units)
        unit = self.shared.unit_of(found.node.of, cell.index) if found.node is not None else None
        if unit is None:
            return self.atom("v", values, lambda s: s.owned(cell, found), key)
        whole = replace(cell, text=cell.text.replace("VALUE_", "WHOLE_"))
        return self.atom("v", values, None, key, units=Units(unit, lambda s: s.owned(whole, found)))

    def key_of(self, cell: Cell, found: Found, ratio: float) -> str:
        """C of a value that is the record's key, in units: of a record that was hit what was asked.

        Of others it is kept, for keys that are as guessed.
        """
        unit = grain_of(ratio)
        kept = f"(int64_t)({plus('', two(-unit), self.owned(cell, found))})"
        hit = self._known.get(("hit of", *found.key))
        if hit is None:
            return kept
        name, asked = self.text(hit), self.rounded(found.arguments[0])
        return f"{name} ? {int(ratio * two(-unit))} * ({asked}) : {kept}"

    def owned(self, cell: Cell | Weight, found: Found) -> str:
        """C of a part of a record, which is there then."""
        owner, text = cell.owner, cell.text
        text += f" / (double){cell.count}" if isinstance(cell, Cell) and cell.count else ""
        if found.node is None:
            self.effect(owner)
            self.cost += 1
            return text
        record = self.atom(
            "r",
            Range(0.0, 1.0, 0),
            lambda s: s.record(found),
            ("record", *found.key),
            "cell *const",
        )
        name = self.text(record)
        for closing in ("[", ")"):
            text = text.replace(owner + closing, name + closing)
        return text

    def record(self, found: Found) -> str:
        """C of a record."""
        node, arguments = found.node, found.arguments
        assert node is not None
        self.effect(node.of)
        is_table = node.is_table and arguments[0].range.grain >= 0
        integer = self.rounded(arguments[0]) if is_table else ""
        if not integer:
            for line in self.written(node.of):
                self.say(line)
            call = self.call(node.call, arguments)
            insert = self.shared.program.effects[node.of]
            assert isinstance(insert, Insert)
            return copied(call, len(insert.values)) if insert.mean else call
        self.cost += LOOKUP
        if not self.several:
            return f"table_at(&e->{node.of}, {integer})"
        version = self.versions.get(node.of, 0)
        hit = self.atom(
            "hit", Range(0.0, 1.0, 0), lambda s: f"table_hit(&e->{node.of}, {integer})",
            ("hit", node.of, arguments[0].key, version), "cell *const",
        )  # fmt: skip
        self._known["hit of", *found.key] = hit
        name, before = self.text(hit), " ".join(self.to_write(node.of))
        return f"{name} ? {name} : ({{ {before} table_missed(&e->{node.of}, {integer}); }})"

    @abstractmethod
    def written(self, name: str) -> list[str]:
        """C that writes what is pending for a table, which then no longer is."""

    @abstractmethod
    def to_write(self, name: str) -> list[str]:
        """The same; it is still pending."""


def copied(record: str, n_values: int) -> str:
    """C of a copy of a record that lives as long as the block: a later query may overwrite it."""
    cells = n_values + 1
    return f"memcpy((cell[{cells}]){{{{0}}}}, {record}, {cells} * sizeof(cell))"

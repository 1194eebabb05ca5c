"""Which values of tables are worth storing: those that many of the paths read.

In: a program, and for each class of the fetched token a :class:`~executor.native.tails.Tail` that
knows the class. Out: values to compute where they are read, by table. Only values that can be
computed at any later time are moved there, so this is about speed alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from executor.native.forms import HERE, Linear
from executor.native.nodes import (
    Accumulate,
    AddTo,
    Cell,
    Extreme,
    Insert,
    Query,
    Store,
    Weight,
    inner,
)
from executor.native.shared import Shared
from executor.native.tails import Tail

READS = 5
"""A value that is stored is read by about so many tokens, where a path reads it."""


def seldom_read(shared: Shared, tails: Sequence[Tail]) -> dict[str, dict[int, Linear]]:
    """Timeless values of tables, by their number in the record, that few classes read."""
    count: Counter[tuple[str, int]] = Counter()
    for tail in tails:
        count.update(_Live(tail).cells)
    found: dict[str, dict[int, Linear]] = {}
    for name, effect in shared.program.effects.items():
        if not isinstance(effect, Insert) or effect.kind != "table":
            continue
        for k, value in enumerate(effect.values, 1):
            seldom = READS * count[name, k] < len(tails) and value.constant is None
            if seldom and shared.is_timeless(value):
                found.setdefault(name, {})[k] = value
    return found


class _Live:
    """What the output and the state of a path depend on, table values apart.

    Attributes:
        cells: structures and numbers of the values that are read.
    """

    def __init__(self, tail: Tail) -> None:
        self.tail, self.program = tail, tail.shared.program
        self.cells: set[tuple[str, int]] = set()
        self._seen: set[str] = set()
        for scored in self.program.families:
            self._read(scored.y, scored.common)
        for one in self.program.candidates:
            self._read(one.score, one.token)
        for effect in self.program.effects.values():
            match effect:
                case Store(value) | AddTo(value):
                    self._read(value)
                case Extreme(score, _, values):
                    self._read(score, *values)
                case Insert():
                    self._read(*effect.arguments)
                    if effect.kind != "table":
                        self._read(*effect.values)

    def _read(self, *values: Linear) -> None:
        for value in values:
            for name in (
                *(name for _, name in value.variables),
                *(base for base, _ in value.form.columns if base != HERE[0]),
            ):
                if name not in self._seen:
                    self._seen.add(name)
                    self._follow(name)

    def _follow(self, name: str) -> None:
        node = self.program.nodes[name]
        match node:
            case Accumulate(start, neurons):
                self._read(start)
                for neuron in neurons:
                    gate = self.tail.linear(neuron.gate)
                    if gate.range.high > 0.0:
                        self._read(*([] if gate.range.low > 0.0 else [neuron.gate]), neuron.value)
            case Cell(owner, _, _, _) | Weight(owner, _):
                query = self.program.nodes.get(owner)
                if isinstance(query, Query):
                    self._read(*query.arguments)
                    if isinstance(node, Cell):
                        self.cells.add((query.of, node.index))
            case _:
                self._read(*inner(node))

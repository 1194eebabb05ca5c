"""The graph of any model of our class, read off its weights: the way back from tensors.

Every slot of the residual stream holds a sum of quantities at every half-layer. What a head or a
neuron adds to a slot goes to the quantity that lives there; where it takes away exactly what
the slot holds, it is an erasure, and the next to write there begins a new quantity. So a machine
built by :mod:`compiler.weights` comes back with the lives of its quantities, though not their
names, and any other model comes back as a graph that computes the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, cast

import numpy as np

from compiler.graph import (
    ONE,
    POSITION,
    POSITION_SQUARED,
    Expr,
    Gate,
    Graph,
    Lookup,
    Node,
    Quantity,
    Term,
)
from compiler.schedule import Plan, Shape
from compiler.weights import Array


def graph_of_weights(
    arrays: Mapping[str, Array],
    vocabulary: Sequence[str],
    n_heads: int,
    n_layers: int,
    position_slots: Sequence[int],
    head_modes: Sequence[Sequence[str]],
) -> tuple[Graph, Plan]:
    """Graph and plan whose weights compute what ``arrays`` (see :mod:`compiler.weights`) do.

    Raises ValueError for heads that are not two-dimensional.
    """
    if arrays["tok.weight"].shape[1] != 2 * n_heads:
        raise ValueError("only heads of width 2 can be read as lookups")
    reader = _Reader(arrays, vocabulary, n_heads, n_layers, position_slots)
    for layer in range(n_layers):
        reader.attention(layer, head_modes[layer])
        reader.feed_forward(layer)
    return reader.finish()


class _Reader:
    """Walks the half-layers; ``content`` is what each slot holds."""

    def __init__(
        self,
        arrays: Mapping[str, Array],
        vocabulary: Sequence[str],
        n_heads: int,
        n_layers: int,
        position_slots: Sequence[int],
    ) -> None:
        self.arrays, self.vocabulary = arrays, vocabulary
        self.graph = Graph()
        d_ffn, width = arrays["gate.0.weight"].shape
        self.shape = Shape(width, n_heads, n_layers, d_ffn)
        self.slots: dict[str, int] = {}
        self.times: dict[str, int] = {}
        self.erased: dict[str, int] = {}
        self.content = [self._input(slot, position_slots) for slot in range(width)]
        self._embed()

    def _input(self, slot: int, position_slots: Sequence[int]) -> Expr:
        """What the embedding and the position put into a slot."""
        column = self.arrays["tok.weight"][:, slot]
        total = Expr({})
        for name, place in zip((POSITION, POSITION_SQUARED), position_slots, strict=True):
            if slot == place:
                total = total + self.graph.quantities[name]
                self.slots[name] = slot
        if np.all(column == 1) and ONE not in self.slots and not total.terms:
            self.slots[ONE] = slot
            return self.graph.one
        if column.any():
            total = total + self.graph.input(f"slot {slot}")
            self.slots[f"slot {slot}"] = slot
        return total

    def _embed(self) -> None:
        table = self.arrays["tok.weight"]
        named = [n for n in self.graph.inputs if n not in (ONE, POSITION, POSITION_SQUARED)]
        for number, spelling in enumerate(self.vocabulary):
            row = {name: float(table[number, self.slots[name]]) for name in named}
            self.graph.token(spelling, **{name: value for name, value in row.items() if value})

    def _row(self, row: Array) -> Expr:
        total = Expr({})
        for slot in np.flatnonzero(row):
            total = total + self.content[slot] * float(row[slot])
        return total

    def attention(self, layer: int, modes: Sequence[str]) -> None:
        """All heads of a layer."""
        width = self.shape.d_model
        rows = [self._row(row) for row in self.arrays[f"attn.{layer}.in_proj_weight"]]
        out = self.arrays[f"attn.{layer}.out_proj.weight"]
        added: dict[int, list[tuple[str, int, float]]] = {}
        pending: list[tuple[str, list[Expr], str]] = []
        time = 2 * layer
        for head, mode in enumerate(modes):
            first = 2 * head
            query, key, value = (rows[first + at : first + at + 2] for at in (0, width, 2 * width))
            own = [one.terms for one in (*query, *key)] == [
                {POSITION: 1}, {ONE: 1}, {POSITION: 2}, {POSITION_SQUARED: -1},
            ]  # fmt: skip
            name = f"head {layer}.{head}"
            live = False
            for part in (0, 1):
                for slot in np.flatnonzero(out[:, first + part]):
                    factor = float(out[slot, first + part])
                    if own and self._erase(int(slot), value[part], factor, time):
                        continue
                    if value[part].terms:
                        added.setdefault(int(slot), []).append((name, part, factor))
                        live = True
            if live:
                pending.append((name, [*query, *key, *value], mode))
        terms = self._terms(added)
        for name, forms, mode in pending:
            node = Lookup(
                name,
                (forms[0], forms[1]),
                (forms[2], forms[3]),
                (forms[4], forms[5]),
                cast(Literal["latest", "mean"], mode),
                tuple(terms[name]),
            )
            self._add(node, time)

    def feed_forward(self, layer: int) -> None:
        """All neurons of a layer."""
        gates, values = (self.arrays[f"{part}.{layer}.weight"] for part in ("gate", "value"))
        down = self.arrays[f"down.{layer}.weight"]
        added: dict[int, list[tuple[str, int, float]]] = {}
        pending: list[tuple[str, Expr, Expr]] = []
        time = 2 * layer + 1
        forms = [(self._row(g), self._row(v)) for g, v in zip(gates, values, strict=True)]
        for neuron, (gate, value) in enumerate(forms):
            name = f"neuron {layer}.{neuron}"
            if not gate.terms or not value.terms:
                continue
            constant = gate.terms[ONE] if set(gate.terms) == {ONE} else 0.0
            live = False
            for slot in np.flatnonzero(down[:, neuron]):
                factor = float(down[slot, neuron])
                if constant > 0 and self._erase(int(slot), value, factor * constant, time):
                    continue
                added.setdefault(int(slot), []).append((name, 0, factor))
                live = True
            if live:
                pending.append((name, gate, value))
        terms = self._terms(added)
        for name, gate, value in pending:
            self._add(Gate(name, gate, value, tuple(terms[name])), time)

    def _erase(self, slot: int, value: Expr, factor: float, time: int) -> bool:
        """Whether the slot is left empty: its content becomes zero."""
        old = self.content[slot]
        if factor != -1 or not value.terms or value.terms != old.terms:
            return False
        self.content[slot] = Expr({})
        self.erased.update({name: time for name in old.terms if self.slots[name] == slot})
        return True

    def _terms(self, added: Mapping[int, list[tuple[str, int, float]]]) -> dict[str, list[Term]]:
        """Terms of each node, into the quantities that live in the slots or begin there."""
        terms: dict[str, list[Term]] = {}
        for slot, parts in added.items():
            target = self._accumulator(slot)
            for name, part, factor in parts:
                terms.setdefault(name, []).append(Term(target, part, factor))
        return terms

    def _accumulator(self, slot: int) -> str:
        for name in self.content[slot].terms:
            if self.slots[name] == slot and name not in (ONE, POSITION, POSITION_SQUARED):
                return name
        count = sum(1 for name in self.slots if name.split(" from")[0] == f"slot {slot}")
        quantity: Quantity = self.graph.linear(f"slot {slot} from {count}")
        self.slots[quantity.name] = slot
        self.content[slot] = self.content[slot] + quantity
        return quantity.name

    def _add(self, node: Node, time: int) -> None:
        self.graph.nodes[node.name] = node
        self.times[node.name] = time

    def finish(self) -> tuple[Graph, Plan]:
        """Scores, and which terms of its quantities each node has read."""
        for number, spelling in enumerate(self.vocabulary):
            self.graph.score(spelling, self._row(self.arrays["head.weight"][number]))
        writers = self.graph.writers()
        for node in self.graph.nodes.values():
            for name in node.reads():
                before = [w for w in writers[name] if self.times[w] < self.times[node.name]]
                if len(before) < len(writers[name]):
                    node.partial[name] = tuple(before)  # type: ignore[index]
        return self.graph, Plan(self.shape, self.times, self.slots, self.erased)

"""From a graph and its plan to named arrays: the weights of a vanilla transformer.

Names and shapes (V tokens, ``d_model``, ``d_ffn``; head h owns rows 2h and 2h+1 of each of the
query, key and value blocks)::

    tok.weight (V, d_model)                  head.weight (V, d_model)
    attn.{l}.in_proj_weight (3*d_model, d_model)
    attn.{l}.out_proj.weight (d_model, d_model)
    gate.{l}.weight, value.{l}.weight (d_ffn, d_model)
    down.{l}.weight (d_model, d_ffn)

There are no biases: the quantity ``one`` is a slot like any other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compiler.graph import POSITION, POSITION_SQUARED, Expr, Gate, Graph, Lookup
from compiler.schedule import Plan, check_plan

Array = NDArray[np.float64]

ERASURE = "erase "
"""Begins the name of a head or neuron that clears slots; their quantities follow, with commas."""


@dataclass(frozen=True)
class Placed:
    """Which head or neuron of its half-layer each node became, and which erase what.

    ``names[time][index]`` names the node in head or neuron ``index`` of half-layer ``time``;
    those that clear slots are called ``ERASURE`` and what they erase.
    """

    names: tuple[tuple[str, ...], ...]


class WeightBuilder:
    """Fills the tensors of one machine. Raises ValueError for a plan that breaks a rule."""

    def __init__(self, graph: Graph, plan: Plan) -> None:
        faults = check_plan(graph, plan)
        if faults:
            raise ValueError("invalid plan: " + "; ".join(faults[:3]))
        self.graph, self.plan, self.shape = graph, plan, plan.shape
        self.modes: list[list[str]] = []
        self.arrays: dict[str, Array] = {}
        names = []
        for layer in range(self.shape.n_layers):
            names.append(self._attention(layer))
            names.append(self._feed_forward(layer))
        self.placed = Placed(tuple(map(tuple, names)))
        self._embedding()
        self._scores()

    def _row(self, expr: Expr) -> Array:
        row = np.zeros(self.shape.d_model)
        for name, coefficient in expr.terms.items():
            row[self.plan.slots[name]] = coefficient
        return row

    def _nodes(self, time: int) -> list[str]:
        return [name for name in self.graph.nodes if self.plan.times[name] == time]

    def _erased(self, time: int) -> list[str]:
        return [name for name, when in self.plan.erased.items() if when == time]

    def _attention(self, layer: int) -> list[str]:
        width, time = self.shape.d_model, 2 * layer
        in_proj, out_proj = np.zeros((3 * width, width)), np.zeros((width, width))
        query, key, value = in_proj[:width], in_proj[width : 2 * width], in_proj[2 * width :]
        modes: list[str] = ["latest"] * self.shape.n_heads
        names = self._nodes(time)
        for head, name in enumerate(names):
            node = self.graph.nodes[name]
            assert isinstance(node, Lookup)
            modes[head] = node.mode
            for part in (0, 1):
                query[2 * head + part] = self._row(node.query[part])
                key[2 * head + part] = self._row(node.key[part])
            for number, expr in enumerate(node.values):
                value[2 * head + number] = self._row(expr)
            for term in node.terms:
                slot = self.plan.slots[term.target]
                out_proj[slot, 2 * head + term.value] += term.coefficient
        erased = self._erased(time)
        position = self._row(self.graph.position)
        for first in range(0, len(erased), 2):
            head = len(names)
            query[2 * head], query[2 * head + 1] = position, self._row(self.graph.one)
            key[2 * head] = 2 * position
            key[2 * head + 1] = -self._row(self.graph.position_squared)
            pair = erased[first : first + 2]
            for number, name in enumerate(pair):
                slot = self.plan.slots[name]
                value[2 * head + number, slot] = 1
                out_proj[slot, 2 * head + number] = -1
            names.append(ERASURE + ", ".join(pair))
        self.arrays[f"attn.{layer}.in_proj_weight"] = in_proj
        self.arrays[f"attn.{layer}.out_proj.weight"] = out_proj
        self.modes.append(modes)
        return names

    def _feed_forward(self, layer: int) -> list[str]:
        width, time = self.shape.d_model, 2 * layer + 1
        gate, value = np.zeros((2, self.shape.d_ffn, width))
        down = np.zeros((width, self.shape.d_ffn))
        names = self._nodes(time)
        for neuron, name in enumerate(names):
            node = self.graph.nodes[name]
            assert isinstance(node, Gate)
            gate[neuron], value[neuron] = self._row(node.gate), self._row(node.value)
            for term in node.terms:
                down[self.plan.slots[term.target], neuron] += term.coefficient
        for name in self._erased(time):
            neuron, slot = len(names), self.plan.slots[name]
            gate[neuron] = self._row(self.graph.one)
            value[neuron, slot] = 1
            down[slot, neuron] = -1
            names.append(f"{ERASURE}{name}")
        self.arrays[f"gate.{layer}.weight"] = gate
        self.arrays[f"value.{layer}.weight"] = value
        self.arrays[f"down.{layer}.weight"] = down
        return names

    def _embedding(self) -> None:
        table = np.zeros((len(self.graph.embedding), self.shape.d_model))
        table[:, self.plan.slots[self.graph.one.name]] = 1
        for token, values in enumerate(self.graph.embedding.values()):
            for name, value in values.items():
                table[token, self.plan.slots[name]] = value
        self.arrays["tok.weight"] = table

    def _scores(self) -> None:
        self.arrays["head.weight"] = np.stack(
            [self._row(expr) for expr in self.graph.logits().values()]
        )

    @property
    def position_slots(self) -> tuple[int, int]:
        """The slots to which the position and its square are added."""
        return self.plan.slots[POSITION], self.plan.slots[POSITION_SQUARED]

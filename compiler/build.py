"""The machine as a value: vocabulary, tables, weights and configuration, ready to run or save."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np

from compiler import isa
from compiler.graph import ONE, POSITION, Expr, Graph, Lookup
from compiler.machine import build_graph
from compiler.machine_tokens import rom_tokens
from compiler.schedule import Plan, load_plan
from compiler.weights import Array, Placed, WeightBuilder

TEMPERATURE = 2.0**46
"""Of the softmax export. The closest decision of the machine, the last floor of a product, has a
score gap of 2^-32; exp(-2^-32·2^46) is zero in double precision."""
MOST_SOFTMAX_TOKENS = 2**13


@dataclass(frozen=True)
class Machine:
    """Everything that a decode loop needs to run programs.

    Attributes:
        vocabulary: token spellings, the index is the id.
        rom: tokens that stand before every program.
        arrays: named weights (see :mod:`compiler.weights`).
        config: plain values: sizes, position slots, head modes, stop token ids, attention.
        placed: what each head and neuron was built from, for inspection.
    """

    vocabulary: tuple[str, ...]
    rom: tuple[str, ...]
    arrays: dict[str, Array]
    config: dict[str, Any]
    placed: Placed
    graph: Graph = field(repr=False)
    plan: Plan = field(repr=False)

    def weights(self) -> dict[str, Array]:
        """The named weights."""
        return self.arrays

    @property
    def ids(self) -> dict[str, int]:
        """Token spelling to id."""
        return {token: number for number, token in enumerate(self.vocabulary)}


def make_machine(graph: Graph, plan: Plan, rom: tuple[str, ...], stop: tuple[str, ...]) -> Machine:
    """Weights and configuration of any graph under any valid plan."""
    builder = WeightBuilder(graph, plan)
    vocabulary = tuple(graph.embedding)
    config = {
        "vocab_size": len(vocabulary),
        "d_model": plan.shape.d_model,
        "n_heads": plan.shape.n_heads,
        "n_layers": plan.shape.n_layers,
        "d_ffn": plan.shape.d_ffn,
        "position_slots": list(builder.position_slots),
        "head_modes": builder.modes,
        "stop_tokens": [vocabulary.index(token) for token in stop],
        "attention": "hard",
        "max_tokens": isa.EXACT_ADDRESSES,
    }
    return Machine(vocabulary, rom, builder.arrays, config, builder.placed, graph, plan)


@lru_cache(maxsize=1)
def build_machine() -> Machine:
    """The default machine: the solved plan's weights, in well under a second."""
    return make_machine(build_graph(), load_plan(), tuple(rom_tokens()), isa.STOP_TOKENS)


def softmax_export(machine: Machine, tokens: int = MOST_SOFTMAX_TOKENS) -> Machine:
    """The same machine for plain softmax, as ``nn.MultiheadAttention`` computes it.

    The query rows carry the temperature (and the square root of 2 by which a two-dimensional
    head divides); where several keys can tie, the keys carry a multiple of the position too
    small to outweigh a score gap of 1 over ``tokens`` tokens.
    """
    arrays = {name: array.copy() for name, array in machine.arrays.items()}
    slots, width = machine.plan.slots, machine.plan.shape.d_model
    tie_break = 1.0 / (2 * tokens)
    for time, names in enumerate(machine.placed.names):
        if time % 2:
            continue
        projection = arrays[f"attn.{time // 2}.in_proj_weight"]
        for head, name in enumerate(names):
            node = machine.graph.nodes.get(name)
            if isinstance(node, Lookup) and node.mode == "latest" and _can_tie(node):
                part, constant = _constant_query(node)
                row = width + 2 * head + part
                projection[row, slots[POSITION]] += tie_break / constant
        projection[:width] *= TEMPERATURE * np.sqrt(2.0)
    return replace(machine, arrays=arrays, config={**machine.config, "attention": "softmax"})


def _can_tie(node: Lookup) -> bool:
    """Keys that are made of the position alone are all different."""
    return POSITION not in node.key[0].terms


def _constant_query(node: Lookup) -> tuple[int, float]:
    """A component of the query that is the same number at every token."""
    for part, expr in enumerate(node.query):
        if _is_constant(expr):
            return part, expr.terms[ONE]
    raise ValueError(f"head {node.name} has no constant query component to break ties with")


def _is_constant(expr: Expr) -> bool:
    return set(expr.terms) == {ONE}

"""The machine as a value: vocabulary, tables, weights and configuration, ready to run or save."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from compiler import isa
from compiler.certificate import load_certificate
from compiler.graph import Graph
from compiler.machine import build_graph
from compiler.schedule import Plan, load_plan
from compiler.weights import Array, Placed, WeightBuilder


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

    @property
    def ids(self) -> dict[str, int]:
        """Token spelling to id (a new dictionary each time)."""
        return {token: number for number, token in enumerate(self.vocabulary)}


def make_machine(graph: Graph, plan: Plan) -> Machine:
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
        "stop_tokens": [vocabulary.index(token) for token in graph.stops],
        "attention": "hard",
        "max_tokens": isa.EXACT_ADDRESSES,
    }
    return Machine(
        vocabulary, tuple(graph.prefix), builder.arrays, config, builder.placed, graph, plan
    )


@lru_cache(maxsize=1)
def build_machine() -> Machine:
    """The default machine: the solved plan's weights, in well under a second."""
    machine = make_machine(build_graph(), load_plan())
    return replace(machine, config=machine.config | {"max_tokens": load_certificate().tokens.value})

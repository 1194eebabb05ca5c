"""Plans: where every head, neuron and quantity of a graph stands in the transformer.

Time is counted in half-layers: 2k is the attention of layer k, 2k+1 its feed-forward; the token
scores read after the last. A half-layer reads the residual stream as the one before left it.
A quantity holds a slot from the half-layer of its first term (inputs: from the embedding) until
it is erased, which costs half a head or one neuron; what is never erased stays to the end.

:mod:`compiler.solve` finds plans with a solver. Solved plans are data in ``compiler/plans``, so
building weights needs none. :func:`check_plan` states every rule a plan must obey.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources

from compiler.graph import ONE, POSITION, POSITION_SQUARED, Graph, Lookup, Node


@dataclass(frozen=True)
class Shape:
    """The transformer that a plan fills."""

    d_model: int = 36
    n_heads: int = 18
    n_layers: int = 7
    d_ffn: int = 36

    @property
    def end(self) -> int:
        """The time at which the token scores read."""
        return 2 * self.n_layers


@dataclass(frozen=True)
class Plan:
    """A placed graph.

    Attributes:
        shape: the transformer it is made for.
        times: half-layer of each node.
        slots: residual slot of each quantity.
        erased: half-layer in which a quantity is erased, for those that are.
    """

    shape: Shape
    times: Mapping[str, int]
    slots: Mapping[str, int]
    erased: Mapping[str, int]

    def to_json(self) -> str:
        """The plan as text, one entry a line so that differences can be read."""
        data = {
            "shape": vars(self.shape),
            "times": dict(self.times),
            "slots": dict(self.slots),
            "erased": dict(self.erased),
        }
        return json.dumps(data, indent=1) + "\n"

    @staticmethod
    def from_json(text: str) -> Plan:
        """Inverse of :meth:`to_json`."""
        data = json.loads(text)
        return Plan(Shape(**data["shape"]), data["times"], data["slots"], data["erased"])


def load_plan(name: str = "default") -> Plan:
    """A solved plan from ``compiler/plans``."""
    path = resources.files("compiler.plans").joinpath(f"{name}.json")
    return Plan.from_json(path.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class Life:
    """When a quantity is in its slot.

    ``birth``: half-layer of the first term, -1 for inputs; ``complete``: of the last term;
    ``last_read``: of the last reader, ``shape.end`` if the token scores read it.
    """

    birth: int
    complete: int
    last_read: int


def lives(graph: Graph, times: Mapping[str, int], end: int) -> dict[str, Life]:
    """The life of every quantity under the given node times."""
    writers, readers, scored = graph.writers(), graph.readers(), graph.scored()
    table = {}
    for name in graph.quantities:
        writes = [times[w] for w in writers[name]]
        reads = [times[r] for r in readers[name]]
        is_input = name in graph.inputs
        table[name] = Life(
            birth=-1 if is_input else min(writes, default=-1),
            complete=max(writes, default=-1),
            last_read=end if name in scored else max(reads, default=-1),
        )
    return table


def check_plan(graph: Graph, plan: Plan) -> list[str]:
    """Every rule that ``plan`` breaks for ``graph``, in words; empty for a valid plan."""
    if set(plan.times) != set(graph.nodes) or set(plan.slots) != set(graph.quantities):
        return ["the plan is for another graph"]
    return [
        *_wrong_times(graph, plan),
        *_wrong_slots(graph, plan),
        *_wrong_capacity(graph, plan),
    ]


def _wrong_times(graph: Graph, plan: Plan) -> Iterator[str]:
    waits = graph.dependencies()
    for node in graph.nodes.values():
        time = plan.times[node.name]
        if not 0 <= time < plan.shape.end or time % 2 != parity(node):
            yield f"{node.name} stands in half-layer {time}"
        for earlier in waits[node.name]:
            if plan.times[earlier] >= time:
                yield f"{node.name} reads what {earlier} has not written yet"


def _wrong_slots(graph: Graph, plan: Plan) -> Iterator[str]:
    by_slot: dict[int, list[str]] = defaultdict(list)
    life = lives(graph, plan.times, plan.shape.end)
    for name, slot in plan.slots.items():
        by_slot[slot].append(name)
        if not 0 <= slot < plan.shape.d_model:
            yield f"{name} is in slot {slot}"
    for name, time in plan.erased.items():
        if time < life[name].last_read or time <= life[name].complete:
            yield f"{name} is erased in half-layer {time} while it is in use"
    yield from _wrong_erasures(plan)
    for names in by_slot.values():
        names.sort(key=lambda name: life[name].birth)
        for old, new in zip(names, names[1:], strict=False):
            both_integral = graph.quantities[old].integral and graph.quantities[new].integral
            free = plan.erased.get(old, plan.shape.end) + (0 if both_integral else 1)
            if life[new].birth < free:
                yield f"{new} is born in a slot that still holds {old}"


def _wrong_erasures(plan: Plan) -> Iterator[str]:
    """Erasures read what is the same at every token: ``one``, and heads the position."""
    times = plan.erased.values()
    for name in (ONE, POSITION, POSITION_SQUARED):
        needed = max((t for t in times if name == ONE or t % 2 == 0), default=-1)
        if plan.erased.get(name, needed) < needed:
            yield f"{name} is erased before the last erasure that reads it"


def _wrong_capacity(graph: Graph, plan: Plan) -> Iterator[str]:
    for time, used in usage(graph, plan).items():
        limit = plan.shape.d_ffn if time % 2 else plan.shape.n_heads
        if used > limit:
            yield f"half-layer {time} needs {used} of {limit} heads or neurons"


def usage(graph: Graph, plan: Plan) -> dict[int, int]:
    """Heads (even) or neurons (odd) that each half-layer needs, erasures included."""
    nodes = [0] * plan.shape.end
    erasures = [0] * plan.shape.end
    for time in plan.times.values():
        nodes[time] += 1
    for time in plan.erased.values():
        erasures[time] += 1
    return {
        time: nodes[time] + (erasures[time] if time % 2 else -(-erasures[time] // 2))
        for time in range(plan.shape.end)
    }


def parity(node: Node) -> int:
    """0 for nodes that are placed in attention half-layers, 1 for feed-forward ones."""
    return 0 if isinstance(node, Lookup) else 1

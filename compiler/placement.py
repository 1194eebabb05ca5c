"""A plan for a graph without a solver, and the smallest shape with one.

In: a graph and the sizes that somebody asks for. Out: a valid plan. The simple placement puts
every head and neuron as early as can be, and a quantity into a slot that was never used while
there is one, else into one whose old content nobody reads any more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from compiler.errors import TransputerError, UsageError
from compiler.graph import ONE, POSITION, POSITION_SQUARED, Graph
from compiler.schedule import Life, Plan, Shape, check_plan, lives, parity, usage

SECONDS = 10.0
"""How long a solver looks for something smaller, for each of its runs."""


SIMPLE = "by the simple placement"


@dataclass(frozen=True)
class Sizes:
    """What a shape is asked to be; None for the least. Heads are two-dimensional.

    Raises:
        UsageError: if the sizes contradict each other.
    """

    d_model: int | None = None
    n_heads: int | None = None
    n_layers: int | None = None
    d_ffn: int | None = None

    def __post_init__(self) -> None:
        if self.d_model is not None and self.d_model % 2:
            raise UsageError(f"d_model {self.d_model} is odd: heads are two-dimensional")
        if self.d_model and self.n_heads and self.d_model != 2 * self.n_heads:
            raise UsageError(
                f"d_model {self.d_model} with {self.n_heads} heads: heads are two-dimensional, so "
                f"d_model is twice the heads; leave one of the two out"
            )

    @property
    def width(self) -> int | None:
        """The d_model that both d_model and heads ask for."""
        return self.d_model or (2 * self.n_heads if self.n_heads else None)


@dataclass(frozen=True)
class Placement:
    """A plan, and how it was found: ``words`` for a message."""

    plan: Plan
    words: str


def place_graph(graph: Graph, sizes: Sizes, seconds: float = SECONDS) -> Placement:
    """A plan in the sizes that are asked for; in what is left open the smallest that is found.

    Fewest layers first, then the narrowest stream, then the fewest neurons.

    Args:
        seconds: for each run of the solver (the ``scheduler`` extra); 0 for the simple placement.

    Raises:
        UsageError: if the graph does not fit.
        GraphError: if it has a cycle.
    """
    times = earliest(graph)
    least = 1 + max(times.values(), default=0) // 2
    layers = sizes.n_layers or least
    if layers < least:
        raise UsageError(f"the machine needs {least} layers, not {layers}: so long is the longest "
                         f"chain of heads and neurons that wait for each other")  # fmt: skip
    simple = simple_plan(graph, times, layers)
    found = _solved(graph, simple, seconds) if seconds else Placement(simple, SIMPLE)
    return replace(found, plan=_widened(found.plan, sizes))


def earliest(graph: Graph) -> dict[str, int]:
    """For each node the first half-layer in which it can stand."""
    waits, times = graph.dependencies(), dict[str, int]()
    for node in graph.ordered():
        time = max((times[name] + 1 for name in waits[node.name]), default=0)
        times[node.name] = time + (time + parity(node)) % 2
    return times


def simple_plan(graph: Graph, times: Mapping[str, int], layers: int) -> Plan:
    """The narrowest plan that the simple placement finds with nodes at these times."""
    everything = len(graph.quantities) + 2 * len(graph.nodes)
    for width in range(2, everything + 3, 2):
        shape = Shape(width, width // 2, layers, everything)
        plan = _Slots(graph, shape, times).plan()
        if plan is not None and not check_plan(graph, plan):
            neurons = max(1, *(n for time, n in usage(graph, plan).items() if time % 2))
            return replace(plan, shape=replace(shape, d_ffn=neurons))
    raise TransputerError("no plan: this is a bug, every quantity had a slot of its own")


class _Slots:
    """Gives quantities slots in the order of their birth."""

    def __init__(self, graph: Graph, shape: Shape, times: Mapping[str, int]) -> None:
        self.graph, self.shape, self.times = graph, shape, times
        self.life = lives(graph, times, shape.end)
        self.slots: dict[str, int] = {}
        self.erased: dict[str, int] = {}
        self.last: dict[int, str] = {}
        self.room = [2 * shape.n_heads] * shape.end
        for time in times.values():
            self.room[time] -= 2

    def plan(self) -> Plan | None:
        """None if there is no room."""
        for name in sorted(self.graph.quantities, key=lambda name: self.life[name].birth):
            slot = len(self.last) if len(self.last) < self.shape.d_model else self._freed(name)
            if slot is None:
                return None
            self.slots[name], self.last[slot] = slot, name
        return Plan(self.shape, dict(self.times), self.slots, self.erased)

    def _freed(self, name: str) -> int | None:
        """A slot whose content can be erased in time, as late as can be."""
        for slot, old in self.last.items():
            life: Life = self.life[old]
            quantities = self.graph.quantities
            both_integral = quantities[old].integral and quantities[name].integral
            latest = self.life[name].birth - (0 if both_integral else 1)
            first = max(life.last_read, life.complete + 1, 0)
            if old in (ONE, POSITION, POSITION_SQUARED):  # erasures read them
                continue
            for time in range(latest, first - 1, -1):
                if time % 2 or self.room[time] > 0:
                    self.room[time] -= 1
                    self.erased[old] = time
                    return slot
        return None


def _solved(graph: Graph, simple: Plan, seconds: float) -> Placement:
    """The smallest plan that the solver finds; the simple one without the solver, or in no time."""
    try:
        from compiler.solve import NoPlanError, smallest
    except ImportError:
        return Placement(
            simple, f"{SIMPLE}; with OR-tools (the extra `scheduler`) it may be smaller"
        )
    widest = replace(simple.shape, d_ffn=simple.shape.d_ffn + len(graph.quantities))
    try:
        size = smallest(graph, seconds, widest, workers=1)
    except NoPlanError:
        return Placement(simple, f"{SIMPLE}; the solver found nothing in {seconds:g} seconds")
    except TransputerError as error:
        raise TransputerError(
            f"the solver's answer is no plan ({error}): this is a bug of ours, not of the machine\n"
            "  --seconds 0 takes the simple placement"
        ) from error
    return Placement(replace(size.plan, shape=size.shape), f"by the solver ({size.proved})")


def _widened(plan: Plan, sizes: Sizes) -> Plan:
    shape = plan.shape
    for what, asked, least in (
        ("d_model", sizes.width, shape.d_model),
        ("d_ffn", sizes.d_ffn, shape.d_ffn),
    ):
        if asked is not None and asked < least:
            heads = f" and {least // 2} heads" if what == "d_model" else ""
            raise UsageError(
                f"{what} {asked} is too small: {least}{heads} is the least that was found"
            )
    width = sizes.width or shape.d_model
    return replace(plan, shape=Shape(width, width // 2, shape.n_layers, sizes.d_ffn or shape.d_ffn))

"""Random small graphs through the exact evaluator, the weights and the engines.

Wherever a run needs at most 53 bits, the engines predict the evaluator's tokens and leave its
numbers in the residual stream, every one exactly. Two certificates say where that is: one for a
single run, from its exact values (:func:`small_graphs.needed_bits`), and the analysis of
:mod:`compiler.exactness`, for all sequences of a length. Graphs just beyond, on which engines do
go wrong, show that neither bound is an empty one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

import pytest
from hypothesis import HealthCheck, event, given, settings

from compiler.build import make_machine
from compiler.evaluate import Values
from compiler.exactness import Analysis
from compiler.facts import Facts
from compiler.graph import Graph
from compiler.ranges import DOUBLE_BITS
from compiler.schedule import Plan, Shape, check_plan, parity
from executor.checkpoint import Checkpoint
from executor.config import ModelConfig
from executor.decode import make_engine
from executor.standard_engine import StandardEngine
from small_graphs import Small, exact_run, is_mean_of_sum, needed_bits, small_graphs


def checkpoint(small: Small) -> Checkpoint:
    machine = make_machine(small.graph, small.plan)
    config = ModelConfig.from_mapping(machine.config)
    return Checkpoint(config, machine.vocabulary, machine.arrays)


def wrong_values(small: Small, rows: Sequence[Values], best: list[str]) -> list[str]:
    """Where an engine differs from the evaluator, in words."""
    model, faults = checkpoint(small), []
    ids = model.encode(small.tokens)
    for name in ("hull", "standard"):
        made = [model.vocabulary[token] for token in make_engine(name, model).predict(ids)]
        if made != best:
            faults.append(f"{name} predicts {made}, not {best}")
    stream = StandardEngine(model).forward(ids)
    for name, slot in small.plan.slots.items():
        if name in small.plan.erased or is_mean_of_sum(small.graph, name):
            continue
        for t, row in enumerate(rows):
            if Fraction(stream[t, slot]) != row[name]:
                faults.append(f"{name} is {stream[t, slot]!r}, not {row[name]}, at {t}")
    return faults


def never_wrong(small: Small) -> bool:
    """Compares the engines with the evaluator where 53 bits are enough; whether they were."""
    assert check_plan(small.graph, small.plan) == []
    rows, best = exact_run(small)
    inside = needed_bits(small, rows) <= DOUBLE_BITS
    event(f"inside the certificate: {inside}")
    if inside:
        assert not wrong_values(small, rows, best)
    return inside


@given(small_graphs())
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_engines_are_exact_where_the_run_needs_53_bits(small: Small) -> None:
    never_wrong(small)


@pytest.mark.long
@pytest.mark.parametrize(
    ("exponent", "nodes"), [(3, 9), (20, 7), (40, 5), (52, 3)], ids=lambda number: str(number)
)
def test_many_graphs_are_exact_and_a_good_share_is_inside(exponent: int, nodes: int) -> None:
    inside = Counter[bool]()

    @given(small_graphs(exponent, nodes))
    @settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
    def run(small: Small) -> None:
        inside[never_wrong(small)] += 1

    run()
    assert inside[True] >= 0.3 * inside.total()
    assert inside[False] or exponent < 20


# --- the analysis: for every sequence of a length ------------------------------------------------


def certified(small: Small) -> bool:
    """Whether the analysis finds 53 bits enough for every sequence of this length."""
    analysis = Analysis(small.graph, small.plan, Facts(tokens=len(small.tokens)))
    return all(need.bits <= DOUBLE_BITS for need in analysis.worst())


def never_wrong_if_certified(small: Small) -> bool:
    """Compares the engines with the evaluator if the analysis says so; whether it did."""
    inside = certified(small)
    event(f"certified: {inside}")
    if inside:
        assert not wrong_values(small, *exact_run(small))
    return inside


@given(small_graphs(exponent=20, means=False))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_engines_are_exact_where_the_analysis_says_so(small: Small) -> None:
    never_wrong_if_certified(small)


@pytest.mark.long
@pytest.mark.parametrize(
    ("exponent", "nodes"), [(3, 9), (20, 7), (40, 5), (52, 3)], ids=lambda number: str(number)
)
def test_many_certified_graphs_are_exact_and_there_are_enough(exponent: int, nodes: int) -> None:
    inside = Counter[bool]()

    @given(small_graphs(exponent, nodes, means=False))
    @settings(max_examples=400, deadline=None, suppress_health_check=list(HealthCheck))
    def run(small: Small) -> None:
        inside[never_wrong_if_certified(small)] += 1

    run()
    assert inside[True] >= 0.3 * inside.total()
    assert inside[False] or exponent < 20


# --- just beyond ---------------------------------------------------------------------------------


def in_own_slots(graph: Graph, tokens: str) -> Small:
    """A graph with one slot for each quantity, every node as early as can be."""
    waits, times = graph.dependencies(), dict[str, int]()
    for node in graph.ordered():
        earliest = max((times[name] + 1 for name in waits[node.name]), default=0)
        times[node.name] = earliest + (earliest + parity(node)) % 2
    width = len(graph.quantities) + len(graph.quantities) % 2
    shape = Shape(width, width // 2, max(times.values()) // 2 + 1, len(graph.nodes))
    slots = {name: slot for slot, name in enumerate(graph.quantities)}
    return Small(graph, Plan(shape, times, slots, {}), tuple(tokens))


def large_product() -> Small:
    """The square of an odd number above 2^26.5."""
    graph = Graph()
    number, square = graph.input("number"), graph.linear("square")
    graph.token("a", number=94906267)
    graph.token("b")
    graph.square("square", number, square)
    graph.score("a", 0.5)
    graph.score("b", square - 94906267**2)
    return in_own_slots(graph, "a")


def large_address() -> Small:
    """The key of the odd address 2^27 + 3 is rounded, and ties with that of its neighbour."""
    graph = Graph()
    written, asked = graph.input("written"), graph.input("asked")
    squared, place = graph.linear("squared"), graph.linear("place")
    graph.token("a", written=2**27 + 2)
    graph.token("b", written=2**27 + 3)
    graph.token("c", asked=2**27 + 2)
    graph.square("squared", written, squared)
    values = [(graph.position, place)]
    graph.lookup("find", query=(asked, 1), key=(2 * written, -squared), values=values)
    graph.score("a", 0.5)
    graph.score("b", place)
    graph.score("c", -1)
    return in_own_slots(graph, "abc")


def fine_sum() -> Small:
    """A running sum of 1/32, which the snapping constant rounds away."""
    graph = Graph()
    total = graph.running_sum("total", graph.one / 32)
    graph.token("a")
    graph.token("b")
    graph.score("a", 2.0**-7)
    graph.score("b", total)
    return in_own_slots(graph, "a")


def fine_value() -> Small:
    """A head's value of 1/16 beside twice a snapped sum, which takes all bits above 1/8."""
    graph = Graph()
    total = graph.running_sum("total", graph.one * 0)
    fine, sums = graph.linear("fine", integral=False), graph.linear("sums", integral=False)
    graph.gate("fine", graph.one / 16, 1, fine)
    value = [(fine + 2 * total, sums)]
    graph.fetch_position("value", graph.position, value)
    graph.token("a")
    graph.token("b")
    graph.score("a", 2.0**-7)
    graph.score("b", sums)
    return in_own_slots(graph, "a")


def crowded_erasure() -> Small:
    """An integer below 2^53 is erased in the half-layer in which another one is born there."""
    graph = Graph()
    graph.input("old")
    other, new = graph.input("other"), graph.linear("new")
    graph.token("a", old=2**53 - 1, other=-(2**53) + 2)
    graph.gate("copy", 1, other, new)
    graph.score("a", new)
    slots = {"one": 0, "position": 1, "position_squared": 2, "old": 3, "other": 4, "new": 3}
    return Small(graph, Plan(Shape(6, 3, 1, 2), {"copy": 1}, slots, {"old": 1}), ("a",))


def rounded_mean() -> Small:
    """In doubles, 1/49 times 49 is not 1."""
    graph = Graph()
    number, mean = graph.input("number"), graph.linear("mean", integral=False)
    graph.token("a", number=1)
    graph.token("b")
    graph.lookup("mean", query=(0, 0), key=(0, 0), values=[(number, mean)], mode="mean")
    graph.score("a", 0)
    graph.score("b", 1 - 49 * mean)
    return in_own_slots(graph, "a" + 48 * "b")


BEYOND = (large_product, large_address, fine_sum, fine_value, crowded_erasure, rounded_mean)


@pytest.mark.parametrize("make", BEYOND)
def test_beyond_53_bits_engines_do_go_wrong(make: Callable[[], Small]) -> None:
    small = make()
    rows, best = exact_run(small)
    assert check_plan(small.graph, small.plan) == []
    assert needed_bits(small, rows) > DOUBLE_BITS
    assert wrong_values(small, rows, best)


@pytest.mark.parametrize("make", BEYOND)
def test_the_analysis_refuses_what_goes_wrong(make: Callable[[], Small]) -> None:
    assert not certified(make())


def test_a_plan_that_erases_what_erasing_heads_read_is_refused() -> None:
    """The head that erases ``number`` asks for its own position, whose slot holds 0 by then."""
    graph = Graph()
    number = graph.input("number")
    one, zero, last = (graph.linear(name) for name in ("count", "zero", "last"))
    graph.token("a", number=5)
    graph.token("b")
    graph.gate("count", graph.position, 1, one)
    graph.gate("zero", one, number, zero)
    graph.gate("last", zero, 1, last)
    for token in "ab":
        graph.score(token, last)
    slots = {"one": 0, "position": 1, "position_squared": 2, "number": 3, "count": 4}
    slots |= {"zero": 1, "last": 3}
    times, erased = {"count": 1, "zero": 3, "last": 5}, {"position": 3, "number": 4}
    small = Small(graph, Plan(Shape(6, 3, 3, 4), times, slots, erased), ("a", "b"))
    assert check_plan(graph, small.plan) or not wrong_values(small, *exact_run(small))

"""Placement of one's own machines: given sizes, no heads or neurons, what nobody reads."""

from __future__ import annotations

import pytest

import own_machines as own
from compiler.errors import UsageError
from compiler.graph import Graph
from compiler.own_machine import build_own_machine
from compiler.placement import Sizes, earliest, place_graph, simple_plan
from compiler.schedule import check_plan
from executor import generate
from executor.loading import checkpoint_of


def test_a_given_shape_is_filled_and_too_small_a_one_is_refused() -> None:
    graph = own.graph("adder")
    shape = place_graph(graph, Sizes(n_heads=18, n_layers=7, d_ffn=36), seconds=0).plan.shape
    assert (shape.d_model, shape.n_heads, shape.n_layers, shape.d_ffn) == (36, 18, 7, 36)
    for sizes, words in (
        (Sizes(d_model=6), "d_model 6 is too small: 10 and 5 heads"),
        (Sizes(n_layers=1), "needs 2 layers, not 1"),
        (Sizes(d_ffn=0), "d_ffn 0 is too small"),
    ):
        with pytest.raises(UsageError, match=words):
            place_graph(graph, sizes, seconds=0)
    for asked in ({"d_model": 7}, {"d_model": 12, "n_heads": 5}):
        with pytest.raises(UsageError, match="two-dimensional"):
            Sizes(**asked)


def table() -> Graph:
    """A machine without heads and neurons: each token has one successor."""
    graph = Graph()
    successor = graph.input("successor")
    for number in range(3):
        graph.token(f"t{number}", successor=(number + 1) % 3)
    graph.score_nearest(successor, {f"t{number}": number for number in range(3)})
    return graph


@pytest.mark.parametrize("seconds", [0, 5])
def test_a_machine_may_have_no_heads_and_no_neurons(seconds: float) -> None:
    checkpoint = checkpoint_of(build_own_machine(table(), seconds=seconds).machine)
    found = generate(checkpoint, "t1", engine="hull")
    assert [next(found) for _ in range(4)] == ["t2", "t0", "t1", "t2"]


def test_solver_is_never_wider_than_the_simple_placement() -> None:
    pytest.importorskip("ortools")
    for graph in (*map(own.graph, own.NAMES), memory_graph()):
        solved = place_graph(graph, Sizes(), seconds=5)
        simple = simple_plan(graph, earliest(graph), solved.plan.shape.n_layers)
        assert check_plan(graph, solved.plan) == []
        assert "proved" in solved.words
        assert solved.plan.shape.d_model <= simple.shape.d_model


def memory_graph() -> Graph:
    """Letters and their latest values; its erasures by heads compete with the position's end."""
    graph = Graph()
    letter, digit, is_digit = map(graph.input, ("letter", "digit", "is_digit"))
    for number, spelling in enumerate("xyz"):
        graph.token(spelling, letter=number)
    for number in range(10):
        graph.token(str(number), digit=number, is_digit=1)
    (before,) = graph.fetch_position("before", graph.position - 1, {"letter before": letter})
    values = {"found": digit, "place": letter}
    found, _ = graph.fetch_written("memory", letter, values, index=before, where=is_digit)
    graph.score_nearest(found, {str(number): number for number in range(10)})
    return graph


def sum_of_an_input(n_idle: int) -> Graph:
    """A mean that begins in the half-layer in which all inputs but one end."""
    graph = Graph()
    graph.token("a", **{graph.input(f"i{n}").name: n for n in range(5)})
    i = [graph.quantities[f"i{n}"] for n in range(5)]
    (found,) = graph.fetch_marked("found", i[0] + i[1] + i[2] + i[3], {"i": i[4]})
    graph.score("a", graph.running_sum("total", i[0]) + found)
    for n in range(n_idle):
        graph.input(f"idle {n}")
        graph.linear(f"spare {n}")
    return graph


@pytest.mark.parametrize("n_idle", [0, 2])
def test_what_nobody_reads_takes_no_room(n_idle: int) -> None:
    pytest.importorskip("ortools")
    place_graph(sum_of_an_input(n_idle), Sizes(), seconds=2)
    own_machine = build_own_machine(sum_of_an_input(n_idle), seconds=2)
    idle = {f"{kind} {n}" for n in range(n_idle) for kind in ("idle", "spare")}
    assert set(own_machine.unread) == idle
    least = build_own_machine(sum_of_an_input(0), seconds=2).machine.plan.shape
    assert own_machine.machine.plan.shape == least

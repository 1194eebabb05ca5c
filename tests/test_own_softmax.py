"""Softmax weights of one's own machines: refused unless proved, and as good as hard attention."""

from __future__ import annotations

import numpy as np
import pytest

import own_machines as own
from compiler.errors import UsageError
from compiler.graph import Graph
from compiler.own_machine import build_own_machine
from compiler.own_softmax import softmax_bounds
from compiler.placement import Sizes, place_graph
from executor.decode import make_engine


def half_way() -> Graph:
    """Asks for a position between two."""
    graph = Graph()
    value = graph.input("value")
    graph.token("a", value=1)
    (found,) = graph.fetch_position("between", graph.position - 0.5, {"found": value})
    graph.score("a", found)
    return graph


def no_constant() -> Graph:
    """A query without a constant part, which no tie-break can use."""
    graph = Graph()
    value = graph.input("value")
    graph.token("a", value=1)
    (found,) = graph.lookup(
        "both", query=(value, graph.position), key=(value, value), values={"found": value}
    )
    graph.score("a", found)
    return graph


@pytest.mark.parametrize(
    ("make", "words"),
    [(half_way, "'between'.*no integers"), (no_constant, "'both'.*the same at every token")],
)
def test_softmax_weights_are_refused_where_nothing_is_proved(make: object, words: str) -> None:
    assert callable(make)
    with pytest.raises(UsageError, match=words):
        build_own_machine(make(), seconds=0, softmax_tokens=100)


def test_softmax_weights_have_a_longest_run() -> None:
    with pytest.raises(UsageError, match="not exact: head"):
        own.built("adder", 2**24)


def test_bounds_say_what_each_head_decides_by() -> None:
    graph, tokens = own.graph("adder"), 2**12
    bounds = softmax_bounds(graph, place_graph(graph, Sizes(), seconds=0).plan, tokens)
    gaps = {bound.name: bound.gap for bound in bounds}
    assert gaps == {"plus_sign": 2.0**-13, "last_mark": 2.0**-13, "first": 1.0, "second": 1.0}


def test_ties_are_told_apart_at_the_longest_run_that_is_proved() -> None:
    """Scores of equal marks in doubles, with the temperature, for the last positions of the run."""
    longest = max(2**n for n in range(8, 24) if _is_proved(own.graph("adder"), 2**n))
    machine = own.built("adder", longest).machine
    time = machine.plan.times["last_mark"]
    head, width = machine.placed.names[time].index("last_mark"), machine.plan.shape.d_model
    rows = machine.arrays[f"attn.{time // 2}.in_proj_weight"]
    slots = machine.plan.slots
    query = rows[2 * head, slots["one"]]
    key = rows[width + 2 * head]
    positions = np.arange(longest - 1000, longest, dtype=np.float64)
    keys = key[slots["mark"]] + key[slots["position"]] * positions
    for scores in ((query * keys) / np.sqrt(2), (query / np.sqrt(2)) * keys):
        assert (np.diff(scores) > 1100).all()
    assert key[slots["mark"]] > key[slots["position"]] * longest


def _is_proved(graph: Graph, tokens: int) -> bool:
    try:
        softmax_bounds(graph, place_graph(graph, Sizes(), seconds=0).plan, tokens)
    except UsageError:
        return False
    return True


def test_softmax_module_agrees_with_hard_attention_on_a_long_run() -> None:
    """Ties of two hundred rows, resolved by the tie-break alone."""
    import torch

    from executor.torch_engine import make_model

    prompt = ["#", ".", "#", ".", "/"]
    checkpoint = own.model("rule110")
    ids = checkpoint.encode(prompt)
    engine = make_engine("hull", checkpoint)
    engine.feed(ids[:-1])
    ids += engine.extend(ids[-1], (), 1200).tolist()
    logits = make_model(own.model("rule110", "torch"))(torch.tensor([ids]))[0]
    assert np.array_equal(logits.argmax(dim=-1).numpy()[len(prompt) - 1 : -1], ids[len(prompt) :])

"""The graph language and its exact evaluator, on small graphs with known answers."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compiler.evaluate import Evaluator
from compiler.evaluate_batch import BatchEvaluator
from compiler.graph import SNAP, Graph


def numbers_graph(values: dict[str, float]) -> tuple[Graph, dict[str, object]]:
    graph = Graph()
    number = graph.input("number")
    for token, value in values.items():
        graph.token(token, number=value)
    return graph, {"number": number}


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=30))
@settings(max_examples=50, deadline=None)
def test_running_sum_is_the_sum(tokens: list[str]) -> None:
    values = {"a": 1, "b": -3, "c": 1000}
    graph, names = numbers_graph(values)
    total = graph.running_sum("total", graph.quantities["number"])
    evaluator = Evaluator(graph)
    for token in tokens:
        evaluator.feed(token)
    assert evaluator.values["total"] - int(SNAP) == sum(values[t] for t in tokens)
    assert set(total.terms) == {"total", "one"}


@given(st.lists(st.sampled_from("abc"), min_size=1, max_size=30))
@settings(max_examples=50, deadline=None)
def test_lookup_finds_the_latest_of_equal_keys(tokens: list[str]) -> None:
    """The position of the last token with the same number as the current one."""
    values = {"a": 0, "b": 1, "c": 7}
    graph, _ = numbers_graph(values)
    number, squared = graph.quantities["number"], graph.linear("squared")
    graph.square("squared", number, squared)
    place = graph.linear("place")
    graph.lookup(
        "find", query=(number, 1), key=(2 * number, -squared), values=[(graph.position, place)]
    )
    evaluator = Evaluator(graph)
    for position, token in enumerate(tokens):
        evaluator.feed(token)
        assert evaluator.values["place"] == position


def test_lookup_of_a_missing_position_takes_the_nearest_and_of_two_the_later() -> None:
    graph, _ = numbers_graph({"a": 5})
    found = {at: graph.linear(f"found_{at}") for at in (-3, 1.5, 9)}
    for at, quantity in found.items():
        graph.fetch_position(f"fetch {at}", graph.one * at, [(graph.position, quantity)])
    evaluator = Evaluator(graph)
    for _ in range(4):
        evaluator.feed("a")
    assert [evaluator.values[q.name] for q in found.values()] == [0, 2, 3]


@given(st.integers(-1000, 1000), st.integers(-1000, 1000))
def test_gate_step_and_square(a: int, b: int) -> None:
    graph = Graph()
    graph.input("a"), graph.input("b")
    qa, qb = graph.quantities["a"], graph.quantities["b"]
    out = {name: graph.linear(name) for name in ("gate", "step", "square")}
    graph.gate("g", qa, qb, out["gate"])
    graph.step("s", qa, qb, out["step"])
    graph.square("q", qa, out["square"], signed=True)
    graph.token("t", a=a, b=b)
    evaluator = Evaluator(graph)
    evaluator.feed("t")
    assert evaluator.values["gate"] == max(a, 0) * b
    assert evaluator.values["step"] == (b if a >= 1 else 0)
    assert evaluator.values["square"] == a * a


def test_mean_averages_all_ties() -> None:
    graph, _ = numbers_graph({"a": 1, "b": 2})
    mean = graph.linear("mean", integral=False)
    graph.lookup(
        "mean", query=(0, 0), key=(0, 0), values=[(graph.quantities["number"], mean)], mode="mean"
    )
    evaluator = Evaluator(graph)
    for token in "abb":
        evaluator.feed(token)
    assert evaluator.values["mean"] == Fraction(5, 3)


def test_scores_choose_the_greatest_and_of_equals_the_first() -> None:
    graph, _ = numbers_graph({"a": 2, "b": 0, "c": 0})
    number = graph.quantities["number"]
    graph.score("c", number - 1)
    graph.score("a", number * 0)
    graph.score("b", number * 0)
    evaluator = Evaluator(graph)
    evaluator.feed("b")
    assert evaluator.best() == "a"
    evaluator.feed("a")
    assert evaluator.best() == "c"


@given(st.lists(st.integers(0, 20), min_size=1, max_size=20))
@settings(max_examples=30, deadline=None)
def test_batch_answers_like_one_case_at_a_time(asked: list[int]) -> None:
    """A table of squares at the head of the context, read by position."""
    graph = Graph()
    number, index = graph.input("number"), graph.input("index")
    for value in range(21):
        graph.token(f"t{value}", number=value * value, index=value)
    answer, doubled = graph.linear("answer"), graph.linear("doubled")
    graph.fetch_position("table", index, [(number, answer)])
    graph.gate("double", answer, 2, doubled)
    context = [f"t{value}" for value in range(21)]
    batch = BatchEvaluator(graph, context).solve({"index": asked}, "doubled")
    assert batch == [2 * value * value for value in asked]


def test_mistakes_in_a_graph_are_refused() -> None:
    graph, names = numbers_graph({"a": 1})
    number = graph.quantities["number"]
    with pytest.raises(ValueError, match="defined twice"):
        graph.linear("number")
    with pytest.raises(ValueError, match="defined twice"):
        graph.token("a", number=2)
    with pytest.raises(ValueError, match="unknown"):
        graph.token("b", colour=2)
    with pytest.raises(ValueError, match="unknown"):
        graph.gate("g", number, Graph().input("elsewhere"), number)
    with pytest.raises(ValueError, match="one or two"):
        graph.fetch_position("f", number, [])
    with pytest.raises(ValueError, match="'zz', which is unknown"):
        graph.score("zz", 1)
    one, two = graph.linear("one_way"), graph.linear("other_way")
    graph.gate("there", one, 1, two)
    graph.gate("back", two, 1, one)
    with pytest.raises(ValueError, match="cycle"):
        graph.ordered()

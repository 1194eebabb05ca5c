"""The graph language: what its helpers compute, and what it says of mistakes."""

from __future__ import annotations

import doctest

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import compiler.expr
import compiler.graph
import compiler.graph_core
from compiler.evaluate import Evaluator, generate
from compiler.graph import Expr, Graph, GraphError, as_expr

HERE = __file__


@pytest.mark.parametrize("module", [compiler.expr, compiler.graph, compiler.graph_core])
def test_examples_in_docstrings_run(module: object) -> None:
    tried = doctest.testmod(module)  # type: ignore[arg-type]
    assert tried.attempted and not tried.failed


@given(
    st.dictionaries(st.integers(-9, 9), st.integers(-50, 50), min_size=2, max_size=6),
    st.integers(-20, 20),
)
def test_function_goes_through_its_points_and_is_flat_outside(
    points: dict[int, float], at: int
) -> None:
    graph = Graph()
    number = graph.input("number")
    graph.token("t", number=at)
    value = graph.function("f", number, points)
    graph.score("t", value)
    evaluator = Evaluator(graph)
    evaluator.feed("t")
    found = sum(c * evaluator.values[name] for name, c in value.terms.items())
    inside = min(max(at, min(points)), max(points))
    if inside in points:
        assert found == pytest.approx(points[inside], abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 99)), min_size=1, max_size=30))
@settings(max_examples=30, deadline=None)
def test_memory_gives_the_latest_value_written_at_an_index(writes: list[tuple[int, int]]) -> None:
    graph = Graph()
    index, value, write = (graph.input(name) for name in ("index", "value", "write"))
    found, place = graph.fetch_written(
        "memory", index, {"found": value, "place": index}, index=index, where=write
    )
    for at in range(7):
        graph.token(f"?{at}", index=at, value=-1)
    for at, number in set(writes):
        graph.token(f"{at}={number}", index=at, value=number, write=1)
    evaluator, memory = Evaluator(graph), dict[int, int]()
    for at, number in writes:
        evaluator.feed(f"{at}={number}")
        memory[at] = number
        for asked, latest in memory.items():
            evaluator.feed(f"?{asked}")
            assert (evaluator.values[found.name], evaluator.values[place.name]) == (latest, asked)


def test_marked_token_is_the_latest_with_the_greatest_mark() -> None:
    graph = Graph()
    mark = graph.input("mark")
    for spelling, value in (("a", 0), ("b", 1), ("c", 2)):
        graph.token(spelling, mark=value)
    (place,) = graph.fetch_marked("marked", mark, {"place": graph.position})
    evaluator = Evaluator(graph)
    places = []
    for token in "ababcacb":
        evaluator.feed(token)
        places.append(evaluator.values[place.name])
    assert places == [0, 1, 1, 3, 4, 4, 6, 6]


def test_counter_of_the_module_text_counts() -> None:
    text = str(compiler.graph.__doc__)
    start = text.index("    from compiler.graph")
    code = "\n".join(line[4:] for line in text[start : text.index("``docs")].splitlines())
    namespace: dict[str, object] = {}
    exec(code, namespace)
    machine = namespace["machine"]
    assert callable(machine)
    assert "".join(generate(machine(), ["6"], [], 8)) == "78901234"


def test_a_token_without_a_score_is_never_written() -> None:
    graph = Graph()
    graph.token("silent")
    graph.token("said")
    graph.score("said", -1000 * graph.one)
    evaluator = Evaluator(graph)
    evaluator.feed("silent")
    assert evaluator.best() == "said"


def _product() -> None:
    graph = Graph()
    graph.input("a") * graph.input("b")  # type: ignore[operator]


def _foreign() -> None:
    Graph().relu("gated", Graph().input("elsewhere"))


def _twice() -> None:
    graph = Graph()
    graph.relu("gated", graph.one)
    graph.fetch_position("gated", graph.position, {"x": graph.one})


@pytest.mark.parametrize(
    ("mistake", "parts"),
    [
        (_product, ["+1·b", "graph.relu"]),
        (_foreign, ["node 'gated'", "'elsewhere'"]),
        (_twice, ["node 'gated' is defined twice", HERE, "line"]),
        (lambda: as_expr(Graph().one == 1), ["False is no number", "graph.function"]),
        (lambda: Graph().one and 1, ["neither true nor false", "graph.relu"]),
        (lambda: Expr({"a": 1}) / 0, ["divided by zero"]),
        (lambda: Graph().one * float("nan"), ["nan"]),
        (lambda: Graph().one + "2", ["'2'"]),  # type: ignore[operator]
        (lambda: Graph().linear("a, b"), ["'a, b'", "commas"]),
        (lambda: Graph().stop("end"), ["stop('end')", "graph.token"]),
        (lambda: Graph().begin("end"), ["begin('end')", "graph.token"]),
        (lambda: Graph().token("a", position=1), ["token 'a'", "'position'"]),
        (lambda: Graph().function("f", Graph().one, {1: 1}), ["function 'f'", "two points"]),
        (lambda: Graph().fetch_position("f", Graph().one, {}), ["lookup 'f'", "one or two"]),
    ],
)  # fmt: skip
def test_mistakes_are_named(mistake: object, parts: list[str]) -> None:
    assert callable(mistake)
    with pytest.raises(GraphError) as error:
        mistake()
    assert all(part in str(error.value) for part in parts), error.value


def test_a_cycle_is_told_with_the_line_of_a_node() -> None:
    graph = Graph()
    one, two = graph.linear("one_way"), graph.linear("other_way")
    graph.gate("there", one, 1, two)
    graph.gate("back", two, 1, one)
    with pytest.raises(GraphError, match="there") as error:
        graph.ordered()
    assert error.value.place is not None and error.value.place.file == HERE

"""Machines of one's own: placed, certified, and run by every engine."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import own_machines as own
from command_line import transputer
from compiler.build import make_machine
from compiler.errors import CompileError, LimitError, UsageError
from compiler.evaluate import Evaluator
from compiler.graph import Expr, Graph, Quantity
from compiler.own_machine import build_own_machine
from compiler.own_softmax import softmax_bounds
from compiler.placement import Sizes, earliest, place_graph, simple_plan
from compiler.prune import useful
from compiler.schedule import check_plan
from executor import generate
from executor.decode import make_engine
from executor.loading import checkpoint_of
from executor.machine_run import PATIENCE
from programs.machines import verbs
from small_graphs import Small, small_graphs

ENGINES = ("hull", "standard", "torch")


def written(name: str, prompt: str, engine: str, limit: int = 400) -> str:
    found = generate(own.model(name, engine), prompt, engine=engine, max_tokens=limit)
    return " ".join(found)


# --- the machines of the tutorial ---------------------------------------------------------------


@pytest.mark.parametrize("engine", ENGINES)
def test_verbs_are_counted_modulo_two(engine: str) -> None:
    words = (*verbs.VERBS, *verbs.OTHERS)
    for seed in range(3):
        chosen = random.Random(seed).choices(words, k=5 * seed + 1)
        sentence = " ".join([*chosen, "."])
        assert written("verbs", sentence, engine) == own.parities(sentence)


@pytest.mark.parametrize("engine", ENGINES)
def test_adder_adds(engine: str) -> None:
    pairs = [(0, 0), (9, 1), (95, 7), (999, 1), (1, 999), (1234567890, 9876543210)]
    pairs += [(random.Random(s).getrandbits(30), random.Random(-s).getrandbits(60)) for s in (1, 2)]
    for a, b in pairs:
        prompt, expected = own.addition(a, b)
        assert written("adder", prompt, engine) == expected
        assert expected.endswith(f"is {' '.join(str(a + b))} done")


@pytest.mark.parametrize("engine", ENGINES)
def test_rule_110_goes_on_row_by_row(engine: str) -> None:
    for first in (".##.#..#...##", "#.#", "##....#", "#"):
        count = 5 * (len(first) + 1)
        expected = own.rows(first, 5).split()
        prompt = f"{' '.join(first)} /"
        found = generate(own.model("rule110", engine), prompt, engine=engine, max_tokens=count)
        assert [next(found) for _ in expected] == expected, first
        with pytest.raises(LimitError, match=f"{count} tokens"):
            next(found)


@pytest.mark.parametrize("engine", ENGINES)
def test_brackets_are_matched_by_a_stack(engine: str) -> None:
    texts = ["", "()", "([{}])[]", "(]", "([)]", "((", ")(", "())", "{" * 12 + "}" * 12]
    texts += ["".join(random.Random(seed).choices("([)]{}", k=8)) for seed in range(10)]
    found = {text: written("brackets", " ".join([*text, "?"]), engine) for text in texts}
    assert found == {text: own.verdict(text) for text in texts}
    assert set(found.values()) == {"balanced", "unclosed", "mismatch"}


def test_a_memory_is_refused_where_a_token_may_write_elsewhere() -> None:
    """``where`` by the tokens, or by neurons of which the analysis knows the range."""

    def memory(where: Callable[[Graph, Quantity], Expr]) -> Graph:
        graph = Graph()
        number = graph.input("number")
        for n in range(3):
            graph.token(str(n), number=n)
        flag = where(graph, number)
        (found,) = graph.fetch_written("m", number, {"v": number}, index=number, where=flag)
        graph.score("1", found)
        return graph

    for good in (
        lambda graph, _: graph.one,
        lambda graph, number: graph.function("is_one", number, {0: 0, 1: 1, 2: 0}),
        lambda graph, number: graph.function("some", number, {0: 0, 1: 1}),
        lambda graph, n: graph.function("any", graph.running_sum("sum", n), {0: 0, 1: 1}),
    ):
        build_own_machine(memory(good), seconds=0)
    for bad, ends in (
        (lambda graph, number: number, "0 to 2"),
        (lambda graph, number: 1 - number, "-1 to 1"),
        (lambda graph, number: number / 2, "0 to 1"),
        (lambda graph, number: graph.relu("twice", 2 * number), "0 to 4"),
        (lambda graph, _: graph.relu("late", graph.position - 10**6), "0 to 4.29"),
    ):
        with pytest.raises(CompileError, match=f"of 'm' has to be 0 or 1.*from {ends}"):
            build_own_machine(memory(bad), seconds=0)


def test_a_number_that_is_no_binary_fraction_is_named() -> None:
    graph = Graph()
    graph.token("a")
    graph.token("b")
    graph.score_nearest(0.1 * graph.position, {"a": 0, "b": 1})
    words = build_own_machine(graph, seconds=0).machine.config["exactness"]
    assert "; 0.2 is no binary fraction" in words


@pytest.mark.parametrize("name", own.NAMES)
def test_the_machines_are_certified_and_small(name: str) -> None:
    machine = own.built(name)
    assert machine.certificate is not None and machine.certificate.value > 10_000_000
    assert machine.machine.config["max_tokens"] == machine.certificate.value
    assert machine.machine.plan.shape.d_model <= 12


def test_the_computer_is_such_a_machine(tmp_path: Path) -> None:
    """Placed anew without a solver, it computes 3 + 5 as the default machine does."""
    code, out, _ = transputer("build", "--machine", own.FOLDER / "computer.py", "--seconds", 0,
                              "--out", tmp_path / "m")  # fmt: skip
    assert code == 0 and "not certified" in out
    width = re.search(r"d_model (\d+)", out)
    assert width and f"into {width[1]} slots" in (own.FOLDER / "../../docs/tutorial.md").read_text()
    tokens = (own.FOLDER.parent / "add.tok").read_text() + " eof"
    done = transputer("run", "--model", tmp_path / "m", "--engine", "hull", "--prompt", tokens)
    program = transputer("run", "--engine", "hull", "--trace", "-", own.FOLDER.parent / "add.tok")
    assert done[0] == 0 and done[1].split() == program[1].split()


# --- placement ----------------------------------------------------------------------------------


@given(small_graphs(exponent=3, means=False))
@settings(max_examples=12, deadline=None)
def test_simple_placement_is_valid_and_computes_the_graph(small: Small) -> None:
    plan = place_graph(small.graph, Sizes(), seconds=0).plan
    assert check_plan(small.graph, plan) == []
    checkpoint = checkpoint_of(make_machine(small.graph, plan))
    engine, oracle = make_engine("standard", checkpoint), Evaluator(small.graph, plan.times)
    for token in small.tokens:
        oracle.feed(token)
        found = engine.step(checkpoint.ids[token])
        best = max(oracle.graph.logits().values(), key=lambda e: _value(e.terms, oracle))
        chosen = oracle.graph.logits()[checkpoint.vocabulary[found]]
        assert _value(chosen.terms, oracle) == pytest.approx(float(_value(best.terms, oracle)))


def _value(terms: dict[str, float], oracle: Evaluator) -> float:
    return float(sum(c * oracle.values[name] for name, c in terms.items()))


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


@given(small_graphs(exponent=3, means=True))
@settings(max_examples=8, deadline=None, database=None)
def test_the_solver_places_any_graph(small: Small) -> None:
    """Whatever of it is read or not, and whatever begins where inputs end."""
    pytest.importorskip("ortools")
    for graph in (small.graph, useful(small.graph)):
        assert check_plan(graph, place_graph(graph, Sizes(), seconds=2).plan) == []


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


def test_build_says_what_it_leaves_out_and_that_nothing_stops(tmp_path: Path) -> None:
    text = "from compiler.graph import Graph\n\ndef machine():\n    g = Graph()\n"
    text += "    g.input('idle')\n    g.token('a')\n    g.score('a', g.one)\n    return g\n"
    file = tmp_path / "forever.py"
    file.write_text(text)
    code, out, _ = transputer("build", "--machine", file, "--seconds", 0, "--out", tmp_path / "m")
    assert code == 0
    assert "left out, as no score depends on it: idle\nno stop token: a run ends at" in out
    run = ("run", "--model", tmp_path / "m", "--engine", "hull", "--prompt", "a")
    code, out, err = transputer(*run)
    assert code == 124 and len(out.split()) == PATIENCE
    assert err == (
        "transputer: error: stopped after 10,000 tokens: it has no stop token; --max-tokens N lets "
        "it write more\n"
    )
    code, out, err = transputer(*run, "--max-tokens", PATIENCE + 1)
    assert code == 124 and len(out.split()) == PATIENCE + 1 and "that was asked for" in err


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


# --- certificates -------------------------------------------------------------------------------


def uncertain() -> Graph:
    """Products of squares of positions, which soon need more bits than a double has."""
    graph = Graph()
    graph.token("a")
    fourth = graph.relu("fourth", graph.position_squared, times=graph.position_squared)
    large = graph.relu("large", 2.0**45 * fourth + 1, times=fourth + 1)
    graph.score("a", large)
    return graph


def test_what_is_not_exact_is_said_to_be_uncertified() -> None:
    machine = build_own_machine(uncertain(), seconds=0)
    assert machine.certificate is None
    assert machine.machine.config["max_tokens"] is None
    assert "not certified" in machine.machine.config["exactness"]
    with pytest.raises(UsageError, match="not certified"):
        build_own_machine(uncertain(), seconds=0, softmax_tokens=100)


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


@pytest.mark.parametrize(
    "examples", [pytest.param(400, marks=pytest.mark.long, id="many"), pytest.param(8, id="few")]
)
def test_softmax_writes_what_hard_attention_does_wherever_it_is_proved(examples: int) -> None:
    """On small random graphs; about half of them are proved, the others refused."""
    import torch

    from executor.torch_engine import make_model

    proved = 0

    @given(small_graphs(exponent=3, means=False))
    @settings(max_examples=examples, deadline=None, database=None)
    def agree(small: Small) -> None:
        nonlocal proved
        try:
            machine = build_own_machine(small.graph, seconds=0, softmax_tokens=2**8).machine
        except UsageError:
            return
        proved += 1
        checkpoint = checkpoint_of(machine)
        tokens = [*small.tokens, *small.graph.embedding, *reversed(small.tokens)]
        rows = make_model(checkpoint)(torch.tensor([checkpoint.encode(tokens)]))[0]
        oracle, logits = Evaluator(machine.graph, machine.plan.times), machine.graph.logits()
        for token, found in zip(tokens, rows.argmax(dim=-1).tolist(), strict=True):
            oracle.feed(token)
            chosen, best = (logits[t] for t in (checkpoint.vocabulary[found], oracle.best()))
            assert _value(chosen.terms, oracle) == _value(best.terms, oracle)

    agree()
    assert proved > examples // 6


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

"""Machines of one's own: certified or not, run by every engine; what is refused or left out."""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import own_machines as own
from command_line import transputer
from compiler.errors import CompileError, LimitError, UsageError
from compiler.graph import Expr, Graph, Quantity
from compiler.own_machine import build_own_machine
from executor import generate
from executor.machine_run import PATIENCE
from programs.machines import verbs

ENGINES = ("hull", "standard", "torch")


def written(name: str, prompt: str, engine: str, limit: int = 400) -> str:
    found = generate(own.model(name, engine), prompt, engine=engine, max_tokens=limit)
    return " ".join(found)


# --- the machines of the tutorial -------------------------------------------------------------


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


# --- what is refused or said ------------------------------------------------------------------


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

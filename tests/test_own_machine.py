"""Machines of one's own: placed, certified, built, run by every engine; mistakes are told."""

from __future__ import annotations

import io
import random
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

import own_machines as own
from command_line import transputer
from compiler.build import build_machine, make_machine
from compiler.draw import bars
from compiler.errors import CompileError, LimitError, UsageError
from compiler.evaluate import Evaluator
from compiler.graph import Graph
from compiler.machine_file import load_machine_file
from compiler.own_machine import build_own_machine
from compiler.own_softmax import softmax_bounds
from compiler.placement import Sizes, earliest, place_graph, simple_plan
from compiler.schedule import check_plan
from executor import generate
from executor.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from executor.decode import make_engine
from executor.loading import checkpoint_of
from executor.trace_file import read_ids
from programs.machines import verbs
from small_graphs import Small, small_graphs

ENGINES = ("hull", "standard", "torch")


def model(name: str, engine: str = "hull") -> Checkpoint:
    return checkpoint_of(own.built(name, 2**12 if engine == "torch" else None).machine)


def written(name: str, prompt: str, engine: str, limit: int = 400) -> str:
    found = generate(model(name, engine), prompt, engine=engine, max_tokens=limit)
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
        found = generate(model("rule110", engine), prompt, engine=engine, max_tokens=count)
        assert [next(found) for _ in expected] == expected, first
        with pytest.raises(LimitError, match=f"{count} tokens"):
            next(found)


@pytest.mark.parametrize("name", own.NAMES)
def test_the_machines_are_certified_and_small(name: str) -> None:
    machine = own.built(name)
    assert machine.certificate is not None and machine.certificate.value > 90_000_000
    assert machine.machine.config["max_tokens"] == machine.certificate.value
    assert machine.machine.plan.shape.d_model <= 10


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
        oracle, logits = Evaluator(small.graph, machine.plan.times), small.graph.logits()
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
    checkpoint = model("rule110")
    ids = checkpoint.encode(prompt)
    engine = make_engine("hull", checkpoint)
    engine.feed(ids[:-1])
    ids += engine.extend(ids[-1], (), 1200).tolist()
    logits = make_model(model("rule110", "torch"))(torch.tensor([ids]))[0]
    assert np.array_equal(logits.argmax(dim=-1).numpy()[len(prompt) - 1 : -1], ids[len(prompt) :])


# --- files --------------------------------------------------------------------------------------

GOOD = """from compiler.graph import Graph

def machine():
    graph = Graph()
    graph.token("a")
    graph.score("a", 1)
"""

MISTAKES = {
    "def machine(:\n": ["line 1", "not valid Python"],
    "x = 1\n": ["no function machine()", "define machine()"],
    GOOD: ["machine() returns NoneType", "return graph"],
    GOOD.replace('"a", 1', '"b", 1') + "    return graph\n": ["line 6", "'b' is unknown"],
    GOOD + "    return graphs\n": ["line 7", "NameError"],
    GOOD + "    graph.one * graph.one\n": ["line 7", "graph.relu"],
    GOOD + "    q = graph.linear('q')\n    graph.gate('n', 1, q, q)\n    return graph\n": [
        "line 8",
        "cycle",
        "n",
    ],
    GOOD + "    q = graph.linear('q')\n    graph.relu('r', q)\n    return graph\n": [
        "line 7",
        "'q' is read, but nothing adds to it",
    ],
    GOOD + "    graph.token('b c')\n    return graph\n": ["'b c'", "white space"],
    GOOD.replace('    graph.score("a", 1)\n', "    return graph\n"): ["no token has a score"],
    GOOD + "    graph.token('b')\n    graph.stop('b')\n    return graph\n": ["'b' has no score"],
    "import nowhere_to_be_found\n": ["line 1", "ModuleNotFoundError"],
    "raise SystemExit\n": ["line 1", "SystemExit"],
}


@pytest.mark.parametrize("source", MISTAKES)
def test_mistakes_in_a_file_are_told_with_its_name_and_line(source: str, tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(source)
    with pytest.raises(CompileError) as error:
        load_machine_file(file)
    text = str(error.value)
    assert all(part in text for part in [str(file), *MISTAKES[source]]), text
    code, out, error_text = transputer("build", "--machine", file, "--out", tmp_path / "m")
    assert (code, out) == (2, "") and text in error_text and "Traceback" not in error_text


def test_a_file_may_import_its_neighbour(tmp_path: Path) -> None:
    (tmp_path / "neighbour_words.py").write_text("WORD = 'a'\n")
    source = GOOD.replace('"a"', "WORD") + "    return graph\n"
    (tmp_path / "mine.py").write_text("from neighbour_words import WORD\n" + source)
    assert list(load_machine_file(tmp_path / "mine.py").embedding) == ["a"]


# --- the command line ---------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("own")
    save_checkpoint(model("adder"), path / "adder")
    return path


def test_built_folder_runs_from_prompt_file_and_input(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt, expected = own.addition(12, 989)
    (folder / "sum.tok").write_text(prompt.replace("+", "\n+"))
    monkeypatch.setattr("sys.stdin", io.StringIO(prompt))
    adder = ("run", "--model", folder / "adder", "--engine", "hull")
    for given_prompt in (("--prompt", prompt), (folder / "sum.tok",), ("-",)):
        assert transputer(*adder, *given_prompt) == (0, expected + "\n", "")
    transputer(*adder, "--trace", folder / "trace", "--prompt", prompt)
    assert (folder / "trace").read_text() == expected + "\n"


def test_a_trace_is_read_back_where_the_comment_sign_is_a_token(folder: Path) -> None:
    save_checkpoint(model("rule110"), folder / "rule110")
    run = ("run", "--model", folder / "rule110", "--engine", "hull", "--max-tokens", 15)
    _, out, _ = transputer(*run, "--trace", folder / "rows", "--prompt", "# # . . /")
    vocabulary = model("rule110").vocabulary
    (ids,) = read_ids(str(folder / "rows"), vocabulary)
    assert " ".join(vocabulary[token] for token in ids) == out.strip() == own.rows("##..", 3)
    assert "# unfinished" in (folder / "rows").read_text()


def test_a_limit_ends_a_run_with_its_own_exit_code(folder: Path) -> None:
    adder = ("run", "--model", folder / "adder", "--engine", "hull")
    code, out, error = transputer(*adder, "--max-tokens", 2, "--prompt", "9 5 + 7 =")
    assert (code, out) == (124, "2' 0'\n")
    assert "stopped after 2 tokens" in error


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "--model", "MODEL", "--prompt", "1 x"], "token 2 of the prompt, 'x'"),
        (["run", "--model", "MODEL"], "--prompt"),
        (["run", "--model", "MODEL", "--check", "--prompt", "1"], "--check is for models"),
        (["run", "--model", "MODEL", "--prompt", "1", "file"], "leave out one"),
        (["run", "--prompt", "1"], "--model DIR"),
        (["run"], "file is missing"),
        (["trace", "--model", "MODEL", "ADD"], "a machine that runs none"),
        (["build"], "--out DIR or --draw FILE"),
        (["build", "--heads", "9", "--out", "m"], "--heads is for --machine FILE.py"),
        (["build", "--machine", "other", "--out", "m"], "neither default, base, nor"),
        (["build", "--machine", "nothing.py", "--out", "m"], "nothing.py: cannot be read"),
        (["build", "--machine", "VERBS", "--calls", "8", "--softmax", "--out", "m"], "default"),
        (["build", "--machine", "VERBS", "--draw", "m.gif"], ".svg"),
        (["build", "--machine", "VERBS", "--d-model", "4", "--out", "m"], "too small"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: list[str], words: str, folder: Path) -> None:
    names = {"MODEL": str(folder / "adder"), "VERBS": str(own.FOLDER / "verbs.py"),
             "ADD": str(own.FOLDER.parent / "add.tok")}  # fmt: skip
    code, out, error = transputer(*[names.get(argument, argument) for argument in arguments])
    assert code in (2, 125) and words in error and "Traceback" not in error and out == ""


def test_folder_keeps_what_the_certificate_says(folder: Path) -> None:
    config = load_checkpoint(folder / "adder").config
    assert config == model("adder").config and config.prompts == "tokens"
    code, out, _ = transputer("info", "--model", folder / "adder")
    assert code == 0 and f"{config.max_tokens:,} tokens; {config.exactness}" in out


# --- pictures -----------------------------------------------------------------------------------


def test_picture_shows_every_quantity_once_and_none_over_another() -> None:
    machine = build_machine()
    drawn = bars(machine.graph, machine.plan)
    assert sorted(bar.name for bar in drawn) == sorted(machine.graph.quantities)
    for one in drawn:
        for other in drawn:
            if one.slot == other.slot and one.name < other.name:
                assert one.end <= other.start or other.end <= one.start, (one, other)

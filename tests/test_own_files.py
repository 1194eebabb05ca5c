"""Machines of one's own as files: what is wrong in them, their folders, command lines, pictures."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

import own_machines as own
from command_line import transputer
from compiler.build import build_machine
from compiler.draw import bars
from compiler.errors import CompileError
from compiler.machine_file import load_machine_file
from executor.checkpoint import load_checkpoint, save_checkpoint
from executor.trace_file import read_ids

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
    GOOD.replace('"a", 1', '"b", 1') + "    return graph\n": ["line 6", "'b', which is unknown"],
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
    GOOD + "    graph.score('a', 2)\n": ["line 7", "'a' has a score already", "line 6"],
    GOOD + "    graph.token('a')\n": ["line 7", "'a' is defined twice", "line 5"],
    GOOD.replace('"a", 1', '"aaab", 1').replace('"a"', '"aaaa"'): ["did you mean 'aaaa'?"],
    GOOD + "    graph.runing_sum('s', graph.one)\n": ["line 7", "did you mean 'running_sum'?"],
    GOOD + "    graph.input('')\n": ["line 7", "no name for a quantity"],
    GOOD + "    graph.input('spelling')\n": ["line 7", "'spelling'"],
    GOOD + "    graph.function('f', graph.one, {0: 0, 0.5: 1})\n": ["line 7", "point at 0.5"],
    GOOD + "    f = graph.fetch_position('f', graph.one, {'v': graph.one})\n    graph.one - f\n": [
        "line 8",
        "a lookup gives a list",
        "(found,) = graph.fetch",
    ],
    GOOD + "    f = graph.fetch_position('f', graph.one, {'v': graph.one})\n"
    "    graph.function('g', f, {0: 0, 1: 1})\n": ["line 8", "a lookup gives a list"],
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
    save_checkpoint(own.model("adder"), path / "adder")
    return path


def test_built_folder_runs_from_prompt_file_and_input(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prompt, expected = own.addition(12, 989)
    (folder / "sum.tok").write_text(prompt.replace("+", "\n+"))
    adder = ("run", "--model", folder / "adder", "--engine", "hull")
    ways = (("--prompt", prompt), (folder / "sum.tok",), ("-",), ("--prompt", "-"))
    for given_prompt in ways:
        monkeypatch.setattr("sys.stdin", io.StringIO(prompt))
        assert transputer(*adder, *given_prompt) == (0, expected + "\n", "")
    transputer(*adder, "--trace", folder / "trace", "--prompt", prompt)
    assert (folder / "trace").read_text() == expected + "\n"


def test_a_trace_is_read_back_where_the_comment_sign_is_a_token(folder: Path) -> None:
    save_checkpoint(own.model("rule110"), folder / "rule110")
    run = ("run", "--model", folder / "rule110", "--engine", "hull", "--max-tokens", 15)
    _, out, _ = transputer(*run, "--trace", folder / "rows", "--prompt", "# # . . /")
    vocabulary = own.model("rule110").vocabulary
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
        (["trace", "--model", "MODEL", "ADD"], "transputer explain"),
        (["trace", "--model", "MODEL", "--prompt", "9 ="], "transputer explain"),
        (["trace", "--prompt", "9 ="], "--model DIR names it"),
        (["check", "--model", "MODEL", "ADD"], "a machine that runs none"),
        (["run", "--model", "MODEL", "--engine", "torch", "--prompt", "1"], "build with --softmax"),
        (["build"], "--out DIR or --draw FILE"),
        (["build", "--heads", "9", "--out", "m"], "--heads is for --machine FILE.py"),
        (["build", "--machine", "other", "--out", "m"], "neither default, base, nor"),
        (["build", "--machine", "nothing.py", "--out", "m"], "nothing.py: cannot be read"),
        (["build", "--machine", "VERBS", "--calls", "8", "--softmax", "--out", "m"], "default"),
        (["build", "--machine", "VERBS", "--draw", "m.gif"], ".svg"),
        (["build", "--machine", "VERBS", "--draw", "nowhere/m.svg"], "no folder nowhere"),
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
    assert config == own.model("adder").config and config.prompts == "tokens"
    code, out, _ = transputer("info", "--model", folder / "adder")
    assert code == 0 and f"{config.max_tokens:,} tokens; {config.exactness}" in out


def test_without_the_extras_there_is_a_simple_placement_and_a_clear_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ortools", "ortools.sat.python", "compiler.solve", "matplotlib"):
        monkeypatch.setitem(sys.modules, name, None)
    verbs, out = own.FOLDER / "verbs.py", tmp_path / "m"
    code, text, _ = transputer("build", "--machine", verbs, "--out", out)
    assert code == 0 and "by the simple placement; with OR-tools" in text
    code, _, error = transputer("build", "--machine", verbs, "--draw", tmp_path / "m.svg")
    assert code == 2 and "pip install matplotlib" in error
    assert not (tmp_path / "m.svg").exists()


# --- pictures -----------------------------------------------------------------------------------


def test_picture_shows_every_quantity_once_and_none_over_another() -> None:
    machine = build_machine()
    drawn = bars(machine.graph, machine.plan)
    assert sorted(bar.name for bar in drawn) == sorted(machine.graph.quantities)
    for one in drawn:
        for other in drawn:
            if one.slot == other.slot and one.name < other.name:
                assert one.end <= other.start or other.end <= one.start, (one, other)

"""The command line: one clear line for everything that is wrong, and the exit code."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli_tools import Run, run_here
from command_line import ROOT

run = pytest.fixture(run_here)


def one_line(err: str) -> bool:
    return err.startswith("transputer: error: ") and "Traceback" not in err and "bug" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["nowhere.c"],
        ["nowhere.tok"],
        [str(ROOT)],
        [str(ROOT / "README.txt")],
        ["--engine", "quantum", "x.c"],
        ["--max-tokens", "none", "x.c"],
        ["--max-tokens", "0", "x.c"],
        ["--surprise", "x.c"],
        [],
        ["--stdin", "nowhere", str(ROOT / "programs/add.tok")],
        ["--model", "nowhere", str(ROOT / "programs/add.tok")],
        ["--trace", "nowhere/trace.txt", str(ROOT / "programs/add.tok")],
        ["--trace", str(ROOT), str(ROOT / "programs/add.tok")],
        ["--call", "f()", str(ROOT / "programs/add.tok")],
        ["--call", "", str(ROOT / "programs/add.tok")],
        ["--"],
        ["--stdin", "--", str(ROOT / "programs/add.tok")],
        ["-I", "--", str(ROOT / "programs/add.tok")],
        ["--trace", "", str(ROOT / "programs/add.tok")],
        ["--max-memory", "much", str(ROOT / "programs/add.tok")],
        ["--max-memory", "M", str(ROOT / "programs/add.tok")],
        ["--checkpoint", "nowhere/run", str(ROOT / "programs/add.tok")],
        ["--checkpoint", str(ROOT), str(ROOT / "programs/add.tok")],
        ["--checkpoint-every", "0", str(ROOT / "programs/add.tok")],
        ["--checkpoint-every", "nan", str(ROOT / "programs/add.tok")],
        ["--resume", "nowhere", str(ROOT / "programs/add.tok")],
        ["--resume", str(ROOT), str(ROOT / "programs/add.tok")],
    ],
)
def test_errors_of_run_exit_125_with_one_line(run: Run, arguments: list[str]) -> None:
    code, out, err = run("run", *arguments)
    assert (code, out) == (125, "")
    assert one_line(err)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["walk"],
        ["compile"],
        ["compile", "nowhere.c"],
        ["compile", "-o", "/nowhere/x.tok", str(ROOT / "programs/add.tok")],
        ["compile", "--wasm", "x.wasm", str(ROOT / "programs/add.tok")],
        ["trace", "nowhere.wat"],
        ["trace", "--from", "nowhere", str(ROOT / "programs/add.tok")],
        ["check", "nowhere.wasm"],
        ["build"],
        ["build", "--out", str(ROOT / "programs")],
        ["build", "--tokens", "100", "--out", "x"],
        ["build", "--softmax", "--tokens", "2**40", "--out", "x"],
        ["info", "--model", "nowhere"],
    ],
)
def test_errors_of_other_verbs_exit_2(run: Run, arguments: list[str]) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert one_line(err)


@pytest.mark.parametrize("verb", ["run", "trace", "explain", "check"])
def test_a_token_program_takes_no_arguments(run: Run, verb: str) -> None:
    code, out, err = run(verb, ROOT / "programs/add.tok", "4")
    assert (code, out) == (125 if verb == "run" else 2, "")
    assert "add.tok: a token program takes no arguments" in err and one_line(err)


def test_a_damaged_model_is_told(run: Run, tmp_path: Path) -> None:
    assert run("build", "--out", tmp_path / "m")[0] == 0
    weights = tmp_path / "m" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8])
    code, out, err = run("run", "--model", tmp_path / "m", ROOT / "programs/add.tok")
    assert (code, out) == (125, "")
    assert one_line(err) and "model.safetensors: damaged" in err


def test_an_unexpected_exception_is_called_a_bug(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("executor.cli_run.prepare", broken)
    code, out, err = run("run", "x.c")
    assert (code, out) == (125, "")
    assert "a bug in transputer" in err and "ZeroDivisionError: oops" in err
    assert run("compile", "x.c")[0] == 2
    monkeypatch.setenv("TRANSPUTER_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        run("run", "x.c")

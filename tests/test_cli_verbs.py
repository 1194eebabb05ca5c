"""The verbs compile, trace, check, build and info: what they print, and that they agree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli_tools import Run, gcd_program, run_here
from command_line import ARTICLE, ROOT

run = pytest.fixture(run_here)
gcd_c = pytest.fixture(gcd_program, scope="module")


def test_compile_prints_a_program_that_compiles_again(run: Run, tmp_path: Path) -> None:
    code, text, err = run("compile", ROOT / "programs/add.tok")
    assert (code, err) == (0, "")
    again = tmp_path / "again.tok"
    assert run("compile", "--out", again, ROOT / "programs/add.tok") == (0, "", "")
    assert again.read_text() == text
    assert run("run", "--trace", "-", again)[1] == ARTICLE


def test_compile_reports_and_writes_the_module(run: Run, gcd_c: Path, tmp_path: Path) -> None:
    wasm = tmp_path / "x.wasm"
    code, out, _ = run("compile", "--report", "--wasm", wasm, gcd_c)
    assert code == 0
    assert wasm.read_bytes().startswith(b"\0asm")
    report = dict(line.split(None, 1) for line in out.partition("\n\n")[0].splitlines())
    assert report["program"] == "gcd.c" and "source " in report["code"]


def test_trace_prints_instructions_with_their_tokens(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("trace", ROOT / "programs/add.tok")
    lines = [line.split() for line in out.splitlines()]
    assert code == 0 and len(lines) == 5
    assert "i32.add" in lines[2] and "08" in lines[2] and lines[2][-4:] == ["=", "8", "|", "8"]
    file = tmp_path / "trace.txt"
    file.write_text(ARTICLE)
    assert run("trace", "--from", file, ROOT / "programs/add.tok")[1] == out
    file.write_text(ARTICLE.replace("08 00 00 00 commit(-1", "08 00 00 00 commit(+1"))
    code, _, err = run("trace", "--from", file, ROOT / "programs/add.tok")
    assert code == 2 and "does not come from i32.add" in err
    file.write_text("\n".join(ARTICLE.split()[:12]))
    code, cut, err = run("trace", "--from", file, ROOT / "programs/add.tok")
    assert code == 2 and "the trace ends after 12 tokens, without halt or trap" in err
    assert cut.splitlines() == [*out.splitlines()[:2], "       2  unfinished: 08 00"]


def test_check_agrees_on_a_right_model(run: Run, gcd_c: Path) -> None:
    code, out, err = run("check", gcd_c, "x")
    assert (code, err) == (0, "")
    assert out.startswith("gcd.c: agrees with wasmtime: ")


def test_check_shows_the_first_instruction_that_a_wrong_model_gets_wrong(
    run: Run, tmp_path: Path
) -> None:
    import numpy as np

    from executor.checkpoint import Checkpoint, save_checkpoint
    from executor.loading import build_checkpoint

    right = build_checkpoint()
    head = right.weights["head.weight"].copy()
    eight, nine = right.encode(["08", "09"])
    head[[eight, nine]] = head[[nine, eight]]
    wrong = Checkpoint(
        right.config, right.vocabulary, {**right.weights, "head.weight": head}, right.rom
    )
    assert not np.array_equal(head, right.weights["head.weight"])
    folder = save_checkpoint(wrong, tmp_path / "wrong")
    code, out, _ = run("check", "--model", folder, ROOT / "programs/add.tok")
    assert code == 1
    assert out.splitlines()[1].startswith("trace token 11 differs, in i32.add")
    assert out.splitlines()[2].split() == [
        "expected:", "08", "00", "00", "00", "commit(-1,sts=1,bt=0)",
    ]  # fmt: skip
    assert out.splitlines()[3].split() == ["model:", "09"]


def test_build_and_info_describe_the_same_model(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("build", "--out", tmp_path / "m")
    assert code == 0 and "hard attention" in out
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["model"]["d_model"] == 36 and config["attention"] == "hard"
    code, described, _ = run("info", "--model", tmp_path / "m")
    assert (code, described) == run("info")[:2]
    values = dict(line.split(None, 1) for line in described.splitlines())
    assert (values["d_model"], values["heads"], values["layers"]) == ("36", "18", "7")
    assert int(values["d_ffn"]) <= 36
    assert int(values["non-zeros"].replace(",", "")) < int(values["parameters"].replace(",", ""))


def test_info_prints_the_generated_code(run: Run) -> None:
    source = run("info", "--source")[1]
    compile(source, "generated", "exec")
    assert "def step(token, p):" in source

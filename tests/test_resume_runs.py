"""Runs that were limited, killed or out of disk go on to the identical trace, or are refused."""

from __future__ import annotations

import random
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from command_line import (
    ENGINE,
    FOREVER,
    countdown,
    left_in,
    small_disk,
    start,
    transputer,
    write_tok,
)
from compiler.errors import TransputerError
from executor import resume
from executor.decode import make_engine
from executor.job import prepare
from executor.loading import build_checkpoint
from executor.resume import RunRecorder, open_run
from executor.runner import Execution


@pytest.fixture
def program(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return countdown(tmp_path / "in" / "count.tok", 60)


def test_a_limited_run_goes_on_to_the_identical_trace(program: Path, tmp_path: Path) -> None:
    run, trace = tmp_path / "run", tmp_path / "trace"
    whole = transputer("run", *ENGINE, "--trace", trace, program)
    wanted = trace.read_text()
    assert whole[0] == 0 and len(whole[1]) == 60
    code, first, err = transputer(
        "run", *ENGINE, "--checkpoint", run, "--max-tokens", 1000, program
    )
    assert code == 124 and whole[1].startswith(first) and len(first) > 10
    again = ("run", *ENGINE, "--resume", run, "--checkpoint", run, "--trace", trace)
    assert transputer(*again, "--max-tokens", 1500, program)[0] == 124
    assert (
        trace.read_text().splitlines()[:-2]
        == wanted.splitlines()[: len(trace.read_text().splitlines()) - 2]
    )
    code, out, err = transputer(*again, program)
    assert (code, out) == whole[:2]
    assert err == f"transputer: goes on after 1,500 tokens from {run}\n"
    assert trace.read_text() == wanted
    # a run that has ended is there at once, also for another engine
    code, out, err = transputer("run", "--engine", "standard", "--resume", run, "--check", program)
    assert (code, out) == whole[:2]
    assert "agrees with" in err


def test_a_run_goes_on_with_an_engine_that_writes_it_again(program: Path, tmp_path: Path) -> None:
    run, whole = tmp_path / "run", transputer("run", *ENGINE, program)
    transputer("run", *ENGINE, "--checkpoint", run, "--max-tokens", 1000, program)
    code, out, err = transputer("run", "--engine", "native", "--resume", run, "--check", program)
    assert (code, out) == whole[:2] and "agrees with" in err


def test_tokens_that_the_model_does_not_write_are_noticed(
    program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a version that wrote something else; the digests are right."""
    model, job = build_checkpoint(), prepare(program)
    saved = tmp_path / "run"
    execution = Execution(job.program, model, job.program.input_tokens())
    ids = np.concatenate([chunk.ids for chunk in execution.chunks()])[:900]
    monkeypatch.setattr(resume, "LONGEST_CHUNK", 100)
    for at in (*range(0, 900, 90), 899):
        wrong = ids.copy()
        wrong[at] = ids[at] + 1
        saved.unlink(missing_ok=True)
        with RunRecorder(saved, execution.identity) as recorder:
            recorder.write(wrong)
        engine = make_engine("native", model)
        engine.feed([*model.rom, *model.encode([*job.program.tokens])])
        feeding = resume.feed_saved(
            engine, model.encode(["eof"])[0], open_run(saved, execution.identity)
        )
        with pytest.raises(TransputerError, match="run: holds tokens that this model does not"):
            list(feeding)


def test_a_limit_below_what_was_saved_is_a_limit(program: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    transputer("run", *ENGINE, "--checkpoint", run, "--max-tokens", 200, program)
    code, _, err = transputer("run", *ENGINE, "--resume", run, "--max-tokens", 100, program)
    assert code == 124 and "stopped after 200 tokens" in err


@pytest.mark.parametrize("change", ["program", "model"])
def test_another_program_or_model_does_not_go_on(
    program: Path, tmp_path: Path, change: str
) -> None:
    run = tmp_path / "run"
    transputer("run", *ENGINE, "--checkpoint", run, "--max-tokens", 200, program)
    options: tuple[object, ...] = ()
    if change == "program":
        program = countdown(tmp_path / "in" / "other.tok", 61)
    else:
        transputer("build", "--softmax", "--out", tmp_path / "model")
        options = ("--model", tmp_path / "model", "--engine", "torch")
    code, out, err = transputer("run", *ENGINE, *options, "--resume", run, program)
    assert (code, out) == (125, "")
    assert f"a run of another {change}" in err and len(err.splitlines()) == 1


def test_a_full_disk_leaves_a_whole_checkpoint_or_none(tmp_path: Path) -> None:
    """Files may not grow beyond a size, once before the first frame and once after some."""
    program = write_tok(tmp_path / "p.tok", *FOREVER)
    for most, kept in ((130, False), (600, True)):
        run = tmp_path / f"run{most}"
        process = start(
            *("run", *ENGINE, "--checkpoint", run, "--checkpoint-every", "0.01", program),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            **small_disk(most),
        )
        err = process.communicate(timeout=60)[1]
        assert process.returncode == 125
        assert err.decode() == f"transputer: error: {run}: cannot be written: File too large\n"
        assert run.exists() is kept
        if kept:
            code, out, said = transputer(
                "run", *ENGINE, "--resume", run, "--max-tokens", 1, program
            )
            assert (code, out[:2]) == (124, "h\n") and "goes on after" in said
    assert left_in(tmp_path) == ["p.tok", "run600"]


def killed_again_and_again(tmp_path: Path, program: Path, engine: str, kills: int) -> None:
    """Killed at random moments; every other time or so, and when it was faster, it starts anew."""
    trace, run = tmp_path / "trace", tmp_path / "run"
    began = time.monotonic()
    process = start("run", "--engine", engine, "--trace", trace, program, stdout=subprocess.PIPE)
    wanted_out = process.communicate()[0].decode("latin-1")
    whole_time = time.monotonic() - began
    wanted = trace.read_bytes()
    assert process.returncode == 0
    moment = random.Random(kills)
    progress = set()

    def options() -> list[object]:
        return ["--checkpoint", run, *(("--resume", run) if run.exists() else ())]

    for _ in range(kills):
        process = start(
            *("run", "--engine", engine, *options(), "--checkpoint-every", "0.05", program),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        time.sleep(moment.uniform(0.1, 0.7) * whole_time)
        process.kill()
        ended = process.wait() == 0
        if run.exists():
            progress.add(run.stat().st_size)
            if ended or moment.random() < 0.5:
                run.unlink()
    code, out, _ = transputer("run", "--engine", engine, *options(), "--trace", trace, program)
    assert (code, out) == (0, wanted_out)
    assert trace.read_bytes() == wanted
    code, out, _ = transputer("run", "--engine", engine, "--resume", run, program)
    assert (code, out) == (0, wanted_out)
    assert kills < 10 or len(progress) > 5, "no run came far enough to be killed in its midst"


def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    killed_again_and_again(tmp_path, countdown(tmp_path / "p.tok", 200), "hull", 1)


@pytest.mark.long
@pytest.mark.parametrize(("engine", "number"), [("hull", 1500), ("native", 1_000_000)])
def test_a_run_killed_at_20_random_moments_goes_on(
    tmp_path: Path, engine: str, number: int
) -> None:
    killed_again_and_again(tmp_path, countdown(tmp_path / "p.tok", number), engine, 20)

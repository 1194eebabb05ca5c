"""Many runs at once: results in order, each for itself, nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from command_line import ADD, FOREVER, HELLO, ROOT, countdown, start, transputer, write_tok
from compiler import compile_program
from compiler.errors import LimitError, TransputerError, UsageError
from executor import BatchJob, run, run_batch
from executor.batch import Setup, stream_batch


class Broken:
    """A program that ends the process that reads it."""

    def __init__(self, end: Callable[[int], object], how: int) -> None:
        self._end = end, (how,)

    def __reduce__(self) -> Any:
        return self._end


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    return write_tok(tmp_path / "endless.tok", *FOREVER)


def test_every_run_is_for_itself(tmp_path: Path, endless: Path) -> None:
    wat = tmp_path / "echo.wat"
    wat.write_text(
        '(module (import "transputer" "input" (func $in (param i32) (result i32)))'
        '(func (export "main") (result i32)'
        "  (i32.add (call $in (i32.const 0)) (call $in (i32.const 1))))"
        '(func (export "twice") (param i32) (result i32)'
        "  (i32.mul (local.get 0) (i32.const 2))))"
    )
    programs: list[Any] = [
        countdown(tmp_path / "long.tok", 300),
        ADD,
        endless,
        Broken(os._exit, 3),
        write_tok(tmp_path / "trap.tok", *HELLO, "unreachable"),
        tmp_path / "nowhere.c",
        BatchJob(wat, stdin=b"\x02\x03"),
        Broken(signal.raise_signal, signal.SIGKILL),
        BatchJob(wat, call=("twice", 21)),
        BatchJob(compile_program(ADD)),
        lambda: "cannot be sent",
    ]
    results = run_batch(programs, jobs=2, max_tokens=20_000)
    assert [result.exit_code for result in results] == [
        0, 0, 124, 125, 134, 125, 5, 125, 0, 0, 125,
    ]  # fmt: skip
    assert results[0].result == run(programs[0], keep_trace=False)
    assert [result.output[:2] for result in results[1:5]] == [b"\x08", b"h\n", b"", b"h\n"]
    errors = [str(result.error) for result in results if result.error]
    assert "stopped after 20,000 tokens" in errors[0]
    assert errors[1] == "the process of this run has died (exit code 3)"
    assert "nowhere.c: no such file" in errors[2]
    assert errors[3] == "the process of this run has died (SIGKILL)"
    assert errors[4].startswith("cannot be run in another process: ")
    assert isinstance(results[2].error, LimitError)
    assert results[4].result is not None and results[4].result.trap == "unreachable"
    assert results[8].result is not None and results[8].result.value == 42


def test_traces_can_be_kept() -> None:
    kept, not_kept = (run_batch([ADD], keep_trace=keep)[0].result for keep in (True, False))
    assert kept is not None and not_kept is not None
    assert list(kept.trace) == list(run(ADD).trace)
    with pytest.raises(UsageError, match="keep_trace=True"):
        _ = not_kept.trace


def test_limits_are_for_each_run(endless: Path) -> None:
    results = run_batch([ADD, endless], jobs=1, max_memory=5)
    assert ["asked for is 5" in str(result.error) for result in results] == [True, True]
    assert run_batch([]) == []


@pytest.mark.parametrize(
    ("wrong", "message"), [({"jobs": 0}, "0 runs at once"), ({"model": "no"}, "no such model")]
)
def test_what_is_wrong_for_all_is_an_error(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(TransputerError, match=message):
        run_batch([ADD], **wrong)


def test_results_come_one_by_one_and_the_rest_can_be_left(endless: Path) -> None:
    """The second program would run for hours."""
    results = stream_batch([ADD, endless], Setup(None, "hull", None, None, False), jobs=2)
    assert next(results).output == b"\x08"
    results.close()


# --- the command line -------------------------------------------------------------------------


def lines(path: Path, *jobs: object) -> Path:
    path.write_text("\n".join(job if isinstance(job, str) else json.dumps(job) for job in jobs))
    return path


def test_a_file_of_runs(tmp_path: Path) -> None:
    source, stdin = tmp_path / "p.c", tmp_path / "in"
    source.write_text(
        "#include <stdio.h>\nint twice(int a) { return 2 * a; }\n"
        "int main(int argc, char **argv) { int c = getchar(); putchar(c); if (c == 255)"
        ' fputs("e", stderr); return argc * K; }'
    )
    stdin.write_bytes(b"\xff")
    batch = lines(
        tmp_path / "batch",
        ["x", "é"],
        "",
        {"stdin": "é"},
        {"stdin_file": str(stdin), "args": ["y"]},
        {"call": "twice(4)"},
        {"file": str(ADD)},
    )
    code, out, err = transputer("run", "-D", "K=3", "--jobs", 2, "--batch", batch, source)
    name = str(source)
    assert code == 1
    results = [json.loads(line) for line in out.splitlines()]
    assert all(result.pop("tokens") > 5 for result in results)
    assert results == [
        {"file": name, "args": ["x", "é"], "exit_code": 9, "output_base64": "/w=="},
        {"file": name, "args": [], "exit_code": 3, "output_base64": "ww=="},
        {"file": name, "args": ["y"], "exit_code": 6, "output_base64": "/w==", "errors": "e"},
        {"file": name, "args": [], "exit_code": 0, "output": "", "value": 8},
        {"file": str(ADD), "args": [], "exit_code": 0, "output": "\x08"},
    ]
    assert err.startswith("transputer: 5 runs, 3 of them failed; ")
    assert transputer("run", "--batch", lines(tmp_path / "b", {"file": str(ADD)}))[0] == 0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "no JSON"),
        ("3", "expected an object"),
        ({"fiel": "x"}, "unknown key 'fiel'"),
        ({"file": 3}, "'file' must be a str"),
        ({"file": "x", "args": [1]}, "arguments must be strings"),
        ({"file": "x", "stdin": "", "stdin_file": "y"}, "leave out one"),
        ({"file": "x", "stdin_file": "/nowhere"}, "/nowhere: cannot be read"),
        ({"file": "x", "call": "f"}, "expected a function"),
        ([], "'file' is missing"),
    ],
)
def test_a_wrong_line_is_named(tmp_path: Path, line: object, message: str) -> None:
    batch = lines(tmp_path / "batch", {"file": str(ADD)}, line)
    code, out, err = transputer("run", "--batch", batch)
    assert (code, out) == (125, "")
    assert err.startswith(f"transputer: error: {batch}, line 2: ") and message in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "options",
    [
        ("--batch", "/nowhere"),
        ("--batch", ROOT / "LICENSE"),
        ("--batch", "-", "--trace", "x"),
        ("--batch", "-", "--check"),
        ("--jobs", 2, ADD),
        ("--jobs", "many", ADD),
        ("--batch", "-", ADD, "argument"),
    ],
)
def test_options_that_do_not_fit(options: tuple[object, ...]) -> None:
    code, out, err = transputer("run", *options)
    assert (code, out) == (125, "")
    assert err.startswith("transputer: error: ") and len(err.splitlines()) == 1


@pytest.mark.parametrize(("end", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
def test_ctrl_c_and_worse_leave_no_process(
    tmp_path: Path, endless: Path, end: signal.Signals, code: int
) -> None:
    """Whole lines are printed, and standard error, which the workers share, is closed."""
    batch = lines(tmp_path / "batch", {"file": str(ADD)}, *[{"file": str(endless)}] * 2)
    options = ("--engine", "hull", "--jobs", 2, "--batch", batch)
    process = start("run", *options, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["output"] == "\x08"
    process.send_signal(end)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (code, b"", b"")

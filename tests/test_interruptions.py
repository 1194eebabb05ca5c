"""What ends a run early: limits, Ctrl-C, a reader that leaves, a full disk; what is left then."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest

from command_line import ADD, ENGINE, FOREVER, left_in, small_disk, start, transputer, write_tok
from compiler.errors import LimitError
from executor import checking, process, runner
from executor.trace import read_trace, split_trace
from executor.trace_file import read_blocks


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return write_tok(tmp_path / "in" / "endless.tok", *FOREVER)


# --- limits -----------------------------------------------------------------------------------


def test_the_limit_of_memory_leaves_a_valid_partial_trace(
    endless: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readings: Iterator[int] = iter(range(10**6, 10**9, 10**6))
    monkeypatch.setattr(runner, "resident_bytes", lambda: next(readings))
    trace = tmp_path / "trace"
    code, out, err = transputer(*("run", *ENGINE, "--max-memory", "60M", "--trace", trace), endless)
    assert (code, out) == (124, "h\n")
    assert "bytes of memory are in use, the limit that was asked for is 62,914,560" in err
    tokens = list(split_trace(trace.read_text()))
    assert len(list(read_trace(tokens, partial=True))) > 5
    assert trace.read_text().endswith(f"limit after {len(tokens)} tokens\n")


def test_a_limit_of_memory_that_is_enough_changes_nothing() -> None:
    assert transputer("run", *ENGINE, "--max-memory", "64G", ADD)[:2] == (0, "\x08")


def test_the_library_has_the_same_limits() -> None:
    with pytest.raises(LimitError, match="stopped after 0 tokens: .* asked for is 5$"):
        runner.run(ADD, engine="hull", max_memory=5)
    with pytest.raises(LimitError, match="stopped after 7 tokens"):
        checking.check(ADD, engine="hull", max_tokens=7)


# --- interruptions ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["trace.txt", "trace.txt.zst"])
def test_ctrl_c_exits_130_and_keeps_a_valid_trace(endless: Path, tmp_path: Path, name: str) -> None:
    trace, run = tmp_path / name, tmp_path / "run"
    options = ("--trace", trace, "--checkpoint", run)
    process = start("run", *options, endless, stdout=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.read(2) == b"h\n"
    time.sleep(0.1)
    assert [path.endswith(".partial") for path in left_in(tmp_path)] == [False, False, True]
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 130
    assert left_in(tmp_path) == ["in", "run", name]
    *lines, last = lines_in(trace)
    count = sum(len(line.split()) for line in lines)
    assert last == f"# unfinished: interrupted after {count} tokens\n"
    assert len(list(read_trace(split_trace(lines), partial=True))) > 5
    code, out, err = transputer("run", *ENGINE, "--resume", run, "--max-tokens", 1, endless)
    assert (code, out) == (124, "h\n") and f"goes on after {count:,} tokens" in err
    code, out, err = transputer("trace", "--from", cut(trace, 60), endless)
    assert code == 2 and "ends after " in err and len(out.splitlines()) > 5


def cut(trace: Path, lines: int) -> Path:
    """The first lines of a trace; a whole one may be long."""
    short = trace.with_name(f"short-{trace.name.removesuffix('.zst')}")
    short.write_text("".join(islice(lines_in(trace), lines)))
    return short


def lines_in(trace: Path) -> list[str]:
    return b"".join(read_blocks(str(trace))).decode().splitlines(keepends=True)


TWO_INTERRUPTS = """
import os, signal, time
from executor import process
before = signal.getsignal(signal.SIGINT)
with process.Interrupts() as interrupts:
    interrupts.check()
    os.kill(os.getpid(), signal.SIGINT)
    try:
        interrupts.check()
    except KeyboardInterrupt:
        print("first")
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(5)
    except KeyboardInterrupt:
        print("second")
assert signal.getsignal(signal.SIGINT) is before
"""


def test_the_first_ctrl_c_waits_and_the_second_does_not() -> None:
    """In a process of its own: an interrupt must not reach the test runner."""
    command = [sys.executable, "-c", TWO_INTERRUPTS]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["first", "second"]


def test_an_ignored_ctrl_c_stays_ignored() -> None:
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with process.Interrupts() as interrupts:
            os.kill(os.getpid(), signal.SIGINT)
            interrupts.check()
    finally:
        signal.signal(signal.SIGINT, before)


# --- pipes, terminals, disks ------------------------------------------------------------------


def test_a_reader_that_leaves_ends_the_run_quietly(tmp_path: Path) -> None:
    program = write_tok(tmp_path / "p.tok", ("i32.const", 65), "output", ("br", -10))
    process = start("run", *ENGINE, program, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    assert process.wait(20) == 141
    assert process.stderr.read() == b""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
def test_a_terminal_sees_progress_and_a_pipe_does_not(endless: Path) -> None:
    import pty

    master, slave = pty.openpty()
    options = (*ENGINE, "--max-tokens", 20_000)
    process = start("run", *options, endless, stdout=subprocess.PIPE, stderr=slave)
    os.close(slave)
    seen = b""
    try:
        while chunk := os.read(master, 4096):
            seen += chunk
    except OSError:  # the other side is closed
        pass
    os.close(master)
    assert process.wait(20) == 124
    assert b"tokens/s" in seen and b" MB" in seen and b"stopped after 20,000 tokens" in seen


@pytest.mark.parametrize("name", ["trace", "trace.zst"])
def test_a_disk_that_fills_up_leaves_no_half_trace(
    endless: Path, tmp_path: Path, name: str
) -> None:
    process = start(
        *("run", *ENGINE, "--trace", tmp_path / name, "--max-tokens", 3000, endless),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        **small_disk(64),
    )
    err = process.communicate(timeout=60)[1].decode()
    assert process.returncode == 125
    assert err == f"transputer: error: {tmp_path / name}: cannot be written: File too large\n"
    assert left_in(tmp_path) == ["in"]

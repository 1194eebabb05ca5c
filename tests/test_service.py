"""The service around an engine: traces on disk, limits, Ctrl-C, full disks, progress, fallbacks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
import zstandard

from command_line import FOREVER, ROOT, countdown, left_in, small_disk, start, transputer, write_tok
from compiler.errors import LimitError, TransputerError, UsageError
from compiler.program import Program
from executor import checking, process, runner
from executor.checkpoint import Checkpoint
from executor.decode import Ids
from executor.job import Job
from executor.loading import build_checkpoint
from executor.runner import Execution
from executor.scan import TraceReader
from executor.trace import read_trace, split_trace
from executor.trace_file import TraceFile, read_blocks

ENGINE = ("--engine", "hull")
ADD = ROOT / "programs/add.tok"


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    return write_tok(tmp_path / "in" / "endless.tok", *FOREVER)


# --- the engine's chunks ----------------------------------------------------------------------


class Ready:
    """An engine that has its trace ready: a loop of ``branch_taken`` instructions."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self.fed: list[int] = []

    def feed(self, tokens: Sequence[int]) -> None:
        self.fed += tokens

    def step(self, token: int) -> int:
        raise AssertionError("asked for one token")

    def predict(self, tokens: Sequence[int]) -> list[int]:
        raise AssertionError("asked for known tokens")

    def extend(self, token: int, stop: Collection[int], limit: int) -> Ids:
        stops = np.flatnonzero(np.isin(self._ids[:limit], list(stop)))
        chunk, self._ids = np.split(self._ids, [stops[0] + 1 if len(stops) else limit])
        return chunk


@pytest.fixture
def ready(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Execution, Ids]]:
    """An execution of ``FOREVER`` whose engine has ``count`` tokens ready, and these."""
    checkpoint = build_checkpoint()

    def make(count: int, **options: object) -> tuple[Execution, Ids]:
        loop = checkpoint.encode(["branch_taken", "00", "00", "00", "00", "commit(0,sts=0,bt=1)"])
        text = "68 00 00 00 commit(+1,sts=1,bt=0) out(h)"
        ids = np.array([*checkpoint.encode(text.split()), *loop * (count // 6)], np.int32)
        ids[-1] = checkpoint.encode(["halt"])[0]
        ids = np.delete(ids, range(len(ids) - 6, len(ids) - 1))
        monkeypatch.setattr(runner, "make_engine", lambda *_, **__: Ready(ids))
        program = Program("endless", ("{", "}"))
        return Execution(program, checkpoint, ["eof"], **options), ids  # type: ignore[arg-type]

    return make


def test_no_token_is_handled_alone(
    ready: Callable[..., tuple[Execution, Ids]], monkeypatch: pytest.MonkeyPatch
) -> None:
    execution, ids = ready(600_000)
    calls = [0]
    push = TraceReader.push

    def counted(self: TraceReader, token: str) -> object:
        calls[0] += 1
        return push(self, token)

    monkeypatch.setattr(TraceReader, "push", counted)
    chunks = [chunk.ids for chunk in execution.chunks()]
    assert np.array_equal(np.concatenate(chunks), ids)
    assert calls[0] <= 10 * len(chunks) < len(ids) / 100
    assert execution.result().output == b"h"


@pytest.mark.parametrize(
    ("keep", "count", "kept"),
    [(None, 600, True), (None, 3000, False), (True, 3000, True), (False, 600, False)],
)
def test_long_traces_are_kept_only_if_asked(
    ready: Callable[..., tuple[Execution, Ids]],
    monkeypatch: pytest.MonkeyPatch,
    keep: bool | None,
    count: int,
    kept: bool,
) -> None:
    monkeypatch.setattr(runner, "KEPT_TOKENS", 1000)
    execution, ids = ready(count, keep_trace=keep)
    for _ in execution.chunks():
        pass
    result = execution.result()
    assert result.n_trace == len(ids)
    if kept:
        assert [*result.trace] == [execution.vocabulary[token] for token in ids.tolist()]
    else:
        with pytest.raises(UsageError, match=f"{len(ids):,} tokens was not kept; keep_trace=True"):
            _ = result.trace


def test_an_engine_that_stops_too_soon_is_no_end(
    ready: Callable[..., tuple[Execution, Ids]],
) -> None:
    execution, _ = ready(600)
    stop = execution.vocabulary.index("out(h)")
    execution._config = replace(execution._config, stop_tokens=(stop,))
    with pytest.raises(TransputerError, match="the model stops where its trace has not ended"):
        list(execution.chunks())


# --- limits and interruptions -----------------------------------------------------------------


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


# --- trace files ------------------------------------------------------------------------------


def test_a_compressed_trace_is_the_same_trace(tmp_path: Path) -> None:
    program = countdown(tmp_path / "p.tok", 5)
    plain, packed = tmp_path / "t", tmp_path / "t.zst"
    for trace in (plain, packed):
        assert transputer("run", *ENGINE, "--trace", trace, program)[0] == 0
    assert zstandard.ZstdDecompressor().decompressobj().decompress(packed.read_bytes()) == (
        plain.read_bytes()
    )
    shown = transputer("trace", *ENGINE, program)
    assert shown[0] == 0 and len(shown[1].splitlines()) == 43
    for trace in (plain, packed):
        assert transputer("trace", "--from", trace, program) == shown
    packed.write_bytes(packed.read_bytes()[:-20])
    assert transputer("trace", "--from", packed, program)[0] == 2
    packed.write_bytes(b"no zstd")
    code, _, err = transputer("trace", "--from", packed, program)
    assert code == 2 and "damaged, or not compressed by zstd" in err


@pytest.mark.parametrize("step", [1, 2, 7, 100])
def test_how_a_trace_is_divided_does_not_show(tmp_path: Path, step: int) -> None:
    vocabulary = ("00", "branch_taken", "commit(0,sts=0,bt=1)", "q3(01)", "out(A)", "halt")
    ids = np.array([1, 0, 0, 0, 0, 2, 4, 3, 0, 4, 5], np.int32)
    with TraceFile(str(tmp_path / "t"), vocabulary) as file:
        for at in range(0, len(ids), step):
            file.write(ids[at : at + step])
            file.write(ids[:0])
    assert (tmp_path / "t").read_text() == (
        "branch_taken 00 00 00 00 commit(0,sts=0,bt=1)\nout(A)\nq3(01) 00 out(A)\nhalt\n"
    )


def test_a_run_that_fails_before_its_trace_leaves_none(tmp_path: Path) -> None:
    options = ("--trace", tmp_path / "t", "--checkpoint", "/proc/nowhere")
    assert transputer("run", *ENGINE, *options, ADD)[0] == 125
    assert left_in(tmp_path) == []


# --- disks ------------------------------------------------------------------------------------

FULL = "No space left on device"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("options", "place"),
    [
        ("--trace /dev/full", "/dev/full: cannot be written: "),
        ("--checkpoint /dev/full", "/dev/full: cannot be written: "),
        ("> /dev/full", "input or output: "),
        ("--trace - > /dev/full", "input or output: "),
    ],
)
def test_a_full_device_is_an_error_in_one_line(options: str, place: str, tmp_path: Path) -> None:
    program = countdown(tmp_path / "p.tok", 3)
    command = f"{sys.executable} -m executor run --engine hull $OPTIONS {program}"
    done = subprocess.run(
        command.replace("$OPTIONS", options), cwd=ROOT, shell=True, capture_output=True, timeout=60
    )
    assert done.returncode == 125
    assert done.stderr.decode() == f"transputer: error: {place}{FULL}\n"


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


@pytest.mark.parametrize("option", ["--trace", "--checkpoint", "--keep-source"])
def test_a_folder_that_cannot_be_written_is_told_at_once(option: str) -> None:
    engine = () if option == "--keep-source" else ENGINE
    code, out, err = transputer("run", *engine, option, "/proc/nowhere/file", ADD)
    assert (code, out) == (125, "")
    assert err.startswith("transputer: error: /proc/nowhere") and len(err.splitlines()) == 1


# --- engines, warnings, patience --------------------------------------------------------------


def without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    native = pytest.importorskip("executor.native")

    def refuse(checkpoint: Checkpoint, **_: object) -> None:
        raise native.NativeUnavailable("no C compiler works here")

    monkeypatch.setattr(native, "NativeEngine", refuse)
    monkeypatch.setattr("executor.native.tiers.NativeEngine.kept", refuse)


def test_without_a_compiler_the_python_engine_takes_over_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_compiler(monkeypatch)
    code, out, err = transputer("run", ADD)
    assert (code, out) == (0, "\x08")
    assert err.startswith("transputer: no C compiler works here; the Python engine takes over")
    assert len(err.splitlines()) == 1


WITHOUT_ZIG = """
import importlib.util, sys
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "ziglang" else real(name, *more)
sys.modules["ziglang"] = None
from executor.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("program", ["add.tok", "gcd.c"])
def test_a_machine_without_any_compiler(tmp_path: Path, program: str) -> None:
    """Nothing on the PATH, no package ziglang, and nothing in the cache."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_ZIG, "run", ROOT / "programs" / program],
        env={"PATH": "", "TRANSPUTER_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if program == "gcd.c":
        assert (done.returncode, done.stdout) == (125, "")
        assert done.stderr.startswith("transputer: error: no C compiler: install the package zig")
    else:
        assert (done.returncode, done.stdout) == (0, "\x08")
        assert done.stderr.startswith("transputer: no C compiler works: none was found (cc, gcc,")
        assert "the Python engine takes over" in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("home", ["/proc/self", "none"])
def test_an_unusable_home_is_no_obstacle(tmp_path: Path, home: str) -> None:
    """What is kept goes to the temporary folder then; where that fails too, all goes without."""
    tmp = tmp_path / "tmp"
    if home == "none":
        tmp.write_text("")
    else:
        tmp.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "executor", "run", *ENGINE, ADD],
        env={"HOME": home, "TMPDIR": str(tmp), "PYTHONPATH": str(ROOT)},
        cwd="/proc",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "\x08", "")
    if home != "none":
        assert [path.name[:6] for path in tmp.glob("transputer-*/kept/*")] == ["model-"]


def test_a_full_disk_under_the_cache_is_no_obstacle(tmp_path: Path) -> None:
    limited = small_disk(64)
    limited["env"]["TRANSPUTER_CACHE"] = str(tmp_path)
    process = start("run", *ENGINE, ADD, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **limited)
    assert process.communicate(timeout=60) == (b"\x08", b"")
    assert left_in(tmp_path) == ["kept"] and left_in(tmp_path / "kept") == []


def test_native_by_name_needs_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    without_compiler(monkeypatch)
    code, out, err = transputer("run", "--engine", "native", ADD)
    assert (code, out, err) == (125, "", "transputer: error: no C compiler works here\n")
    assert transputer("check", "--engine", "native", ADD)[0] == 2


def test_info_prints_what_the_native_engine_takes_heads_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("executor.native.describe.describe", lambda *asked: f"{asked[1:]}")
    monkeypatch.setenv("COLUMNS", "100")
    assert transputer("info", "--engine", "native") == (0, "(100, False)\n", "")
    assert transputer("info", "--engine", "native", "--all") == (0, "(100, True)\n", "")
    assert transputer("info", "--all")[::2] == (
        2,
        "transputer: error: --all is for --engine native\n",
    )


def test_compiler_warnings_go_to_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = "{ i32.const 41 00 00 00 output 00 00 00 00 halt 00 00 00 00 }"
    program = Program("w.c", tuple(tokens.split()), report={"warnings": "w.c:1: warning: what\n"})
    monkeypatch.setattr("executor.cli_run.prepare", lambda *_, **__: Job(program))
    assert transputer("run", *ENGINE, "w.c") == (0, "A", "w.c:1: warning: what\n")
    code, out, err = transputer("compile", "--report", "w.c")
    assert (code, err) == (0, "w.c:1: warning: what\n") and "warning" not in out


def test_a_word_is_said_about_what_takes_long_and_only_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    heard = threading.Event()
    monkeypatch.setattr(process, "say", lambda message: (said.append(message), heard.set()))
    monkeypatch.setattr(process, "PATIENCE", 0.01)
    with process.patience("slow"):
        assert heard.wait(20)
    monkeypatch.setattr(process, "PATIENCE", 60.0)
    with process.patience("quick"):
        pass
    assert said == ["slow"]


def test_resident_memory_is_that_of_this_process() -> None:
    assert 10**7 < process.resident_bytes() < 10**11

"""Plain code first, specialised code when it is there: the same tokens wherever it takes over."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from command_line import FOREVER, start, transputer, write_tok
from compiler import compile_program
from compiler.errors import LimitError
from example_models import VOCAB, lookup_model, random_model
from executor.checkpoint import Checkpoint
from executor.decode import Ids, early_maker
from executor.loading import build_checkpoint, kept_checkpoint
from executor.native import NativeEngine, NativeUnavailable, tiers
from executor.native.tiers import WAIT, Making, TwoTiers, begin, two_tiers
from native_models import native_model

PATIENCE_SECONDS = 120.0
pytestmark = pytest.mark.filterwarnings("ignore:(specialising|compiling) the native engine")


@pytest.fixture
def cold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where engines go in a cache of the test's own, as for a user with two cores."""
    monkeypatch.setenv("TRANSPUTER_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(WAIT)
    monkeypatch.setattr(tiers, "cores", lambda: 2)
    return tmp_path / "cache" / "native"


def ended(making: Making) -> NativeEngine | None:
    """What comes of it."""
    before = time.monotonic()
    with contextlib.suppress(NativeUnavailable):
        while (engine := making.engine()) is None:
            assert time.monotonic() < before + PATIENCE_SECONDS
            time.sleep(0.01)
        return engine
    return None


# --- taking over ------------------------------------------------------------------------------


class Later:
    """Ready when it has been asked so many times; where it then took over is noted."""

    def __init__(self, engine: NativeEngine, times: int) -> None:
        self._engine, self._times = engine, times
        self.asked = 0

    def __call__(self) -> NativeEngine | None:
        self.asked += 1
        return self._engine.again() if self.asked > self._times else None


def in_pieces(engine: NativeEngine | TwoTiers, tokens: list[int], sizes: list[int]) -> list[int]:
    """Half of the tokens read in pieces, what follows written in pieces, then steps."""
    found, half = [], len(tokens) // 2
    at, token = 0, tokens[half]
    for size in sizes:
        engine.feed(tokens[at : min(at + size, half)])
        at = min(at + size, half)
    engine.feed(tokens[at:half])
    for size in sizes:
        chunk: Ids = engine.extend(token, (), size)
        found += chunk.tolist()
        token = found[-1]
    return [*found, engine.step(token), *engine.predict(tokens[half:])]


@pytest.mark.parametrize(("make", "seed"), [(random_model, 3), (native_model, 4)])
def test_tokens_are_the_same_wherever_it_takes_over(
    make: Callable[[int], Checkpoint], seed: int
) -> None:
    model = make(seed)
    rng = np.random.default_rng(seed)
    tokens = rng.integers(0, VOCAB, 160).tolist()
    sizes = rng.integers(1, 9, 12).tolist()
    plain = NativeEngine(model, specialise=False)
    special = NativeEngine(model)
    expected = in_pieces(plain.again(), tokens, sizes)
    for times in range(2 * len(sizes) + 2):
        later = Later(special, times)
        assert in_pieces(TwoTiers(plain.again(), later), tokens, sizes) == expected
        assert later.asked == min(times + 1, 2 * len(sizes) + 1)


def test_it_catches_up_in_any_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokens = lookup_model(), [3, 10, 4, 11] * 30
    expected = in_pieces(NativeEngine(model, specialise=False), tokens, [7, 5])
    for size in (1, 2, 59, 60, 61, 1000):
        monkeypatch.setattr(tiers, "AT_ONCE", size)
        later = Later(NativeEngine(model), 2)
        engine = TwoTiers(NativeEngine(model, specialise=False), later)
        assert in_pieces(engine, tokens, [7, 5]) == expected


def test_what_is_given_in_between_is_read() -> None:
    """Not what the model would have written."""
    model, tokens = random_model(3), np.random.default_rng(3).integers(0, VOCAB, 40).tolist()
    plain, special = NativeEngine(model, specialise=False), NativeEngine(model)

    def written(engine: NativeEngine | TwoTiers) -> list[int]:
        found = []
        for at in range(0, 40, 8):
            engine.feed(tokens[at : at + 3])
            found += engine.extend(tokens[at + 3], (), 3).tolist()
            found += engine.extend(tokens[at + 4], (), 2).tolist()
            found += engine.extend(found[-1], (), 2).tolist()
            found += [engine.step(tokens[at + 5]), *engine.predict(tokens[at + 6 : at + 8])]
        return found

    expected = written(plain.again())
    for times in range(20):
        engine = TwoTiers(plain.again(), Later(special, times))
        assert written(engine) == expected
        assert engine._ready is None and engine._engine._library is special._library


def test_an_engine_that_writes_other_tokens_does_not_take_over() -> None:
    model, tokens = random_model(3), np.random.default_rng(3).integers(0, VOCAB, 40).tolist()
    plain, other = NativeEngine(model, specialise=False), NativeEngine(native_model(4))
    expected = in_pieces(plain.again(), tokens, [9, 8, 7])
    assert in_pieces(TwoTiers(plain, Later(other, 5)), tokens, [9, 8, 7]) == expected


def test_without_memory_for_two_the_first_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokens = lookup_model(), [3, 10, 4, 11] * 30
    first, better = NativeEngine(model, specialise=False), NativeEngine(model)
    expected = in_pieces(first.again(), tokens, [7, 5])

    def feed(tokens: object) -> None:
        raise LimitError("out of memory")

    monkeypatch.setattr(better, "feed", feed)
    assert in_pieces(TwoTiers(first, Later(better, 3)), tokens, [7, 5]) == expected


def test_plain_code_gives_way_where_it_gets_no_core_of_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clocks, naps = {"seconds": 0.0, "busy": 0.0, "share": 1.0}, list[float]()

    def extend(token: int, stop: object, limit: int) -> Ids:
        clocks["seconds"] += 1.0
        clocks["busy"] += clocks["share"]
        return np.array([token], np.int32)

    monkeypatch.setattr(tiers.time, "perf_counter", lambda: clocks["seconds"])
    monkeypatch.setattr(tiers.time, "process_time", lambda: clocks["busy"])
    monkeypatch.setattr(tiers.time, "sleep", naps.append)
    first = NativeEngine(lookup_model(), specialise=False)
    monkeypatch.setattr(first, "extend", extend)
    states = iter([None, None, None, None])

    def ready() -> None:
        try:
            return next(states)
        except StopIteration:
            raise NativeUnavailable("there will be none") from None

    engine = TwoTiers(first, ready)
    expected = []
    for share, nap in [(0.7, False), (0.7, False), (0.3, True), (0.9, False), (0.3, False)]:
        clocks["share"] = share
        engine.extend(3, (), 1)
        expected += [9.0] * nap
        assert naps == expected
    assert engine._ready is None


# --- the process that makes it ----------------------------------------------------------------


def test_starts_at_the_same_time_share_one_process(cold: Path) -> None:
    model, lines = lookup_model(), list[str]()
    first, second = begin(model, lines.append), begin(model, lines.append)
    assert first is not None and second is not None
    assert first._process is not None and second._process is None
    assert second.engine() is None  # the lock is held
    assert os.getsid(first._process.pid) != os.getsid(0)  # a terminal's Ctrl-C does not reach it
    engines = [ended(making) for making in (first, second)]
    assert all(engine is not None for engine in engines) and lines == []
    assert first._process.returncode == 0
    names = sorted(path.name.partition("-")[0] for path in cold.iterdir())
    assert names == ["code", "engine"]
    make = two_tiers(model, lines.append)
    assert make is not None and isinstance(make(), NativeEngine) and lines == []


def test_the_first_run_does_not_wait(cold: Path) -> None:
    model, lines, tokens = lookup_model(), list[str](), [3, 10, 4, 11] * 30
    make = two_tiers(model, lines.append)
    assert make is not None and len(lines) == 1 and "specialising" in lines[0]
    engine = make()
    assert isinstance(engine, TwoTiers)
    assert in_pieces(engine, tokens, [7, 5]) == in_pieces(NativeEngine(model), tokens, [7, 5])


BROKEN = {
    "main = lambda: exit('so it is')": "so it is",
    "main = lambda: exit(3)": "exit code 3",
    "import os; main = lambda: os.kill(os.getpid(), 9)": "SIGKILL",
    "main = lambda: None": "exit code 0",
    "main = lambda: 1 / 0": "ZeroDivisionError: division by zero",
}


@pytest.mark.parametrize("code", BROKEN)
def test_where_nothing_comes_of_it_plain_code_goes_on(
    code: str, cold: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiers, "_START", code)
    lines: list[str] = []
    making = begin(lookup_model(), lines.append)
    assert making is not None and ended(making) is None and ended(making) is None
    assert lines == [f"no specialised code was made ({BROKEN[code]}); plain code goes on"]


def test_where_somebody_elses_fails_plain_code_goes_on(
    cold: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiers, "_START", "import time; main = lambda: time.sleep(600)")
    model, lines = lookup_model(), list[str]()
    first, second = begin(model, lines.append), begin(model, lines.append)
    assert first is not None and second is not None and first._process is not None
    assert second.engine() is None and lines == []
    first._process.kill()
    first._process.wait()
    assert ended(second) is None
    assert lines == ["no specialised code was made (by another process); plain code goes on"]


def test_it_is_not_tried_where_it_does_not_help(
    cold: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = lookup_model()
    with monkeypatch.context() as patch:
        patch.setattr(tiers, "cores", lambda: 1)
        assert two_tiers(model, print) is None
    with monkeypatch.context() as patch:
        patch.setenv(WAIT, "1")
        assert two_tiers(model, print) is None
    with monkeypatch.context() as patch:
        (tmp_path / "file").write_text("")
        patch.setenv("TRANSPUTER_CACHE", str(tmp_path / "file"))
        assert two_tiers(model, print) is None
        assert isinstance(early_maker(model, lambda line: None)(), NativeEngine)
    assert not cold.exists()


def test_without_a_compiler_the_python_engine_takes_over(
    cold: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def check() -> None:
        raise NativeUnavailable("no C compiler works")

    monkeypatch.setattr(tiers, "check_compiler", check)
    monkeypatch.setattr("executor.native.engine.check_compiler", check)
    lines: list[str] = []
    engine = early_maker(lookup_model(), lines.append)()
    assert type(engine).__name__ == "HullEngine"
    assert len(lines) == 1 and "the Python engine takes over" in lines[0]
    assert not cold.exists()


def test_with_a_compiler_that_does_not_work_too(
    cold: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("executor.native.build._run", lambda command, folder: "broken")
    monkeypatch.setattr(tiers, "_START", "main = lambda: exit('broken')")
    lines: list[str] = []
    engine = early_maker(lookup_model(), lines.append)()
    assert type(engine).__name__ == "HullEngine"
    assert len(lines) == 2 and "broken; the Python engine takes over" in lines[1]


def test_a_start_that_finds_all_in_the_cache_imports_no_generator() -> None:
    code = (
        "from executor.loading import kept_checkpoint; from executor.native import NativeEngine; "
        "import sys; assert NativeEngine.kept(kept_checkpoint()) is not None; "
        "print(*(name for name in sys.modules if name.startswith('executor.')))"
    )
    NativeEngine(kept_checkpoint())
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
    assert "executor.native.engine" in loaded
    for name in ("generate", "forms", "classify", "paths"):
        assert f"executor.native.{name}" not in loaded.split()


# --- commands ---------------------------------------------------------------------------------


def test_a_command_goes_on_with_plain_code(
    cold: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tiers, "_START", "main = lambda: exit('so it is')")
    path = write_tok(tmp_path / "count.tok", *FOREVER)
    code, out, err = transputer("run", "--max-tokens", 1_000_000, path)
    assert (code, out) == (124, "h\n")
    assert "no specialised code was made (so it is); plain code goes on" in err


@pytest.mark.long
@pytest.mark.parametrize("stopped", [False, True])
def test_what_a_run_began_is_there_for_the_next(cold: Path, tmp_path: Path, stopped: bool) -> None:
    environment = {**os.environ, "LC_ALL": "C"}
    path = write_tok(tmp_path / "loop.tok", *FOREVER) if stopped else Path("programs/add.tok")
    run = start("run", path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                process_group=0)  # fmt: skip
    assert run.stdout is not None and run.stdout.read(1)
    if stopped:
        os.killpg(run.pid, signal.SIGINT)  # as a terminal does
    _, errors = run.communicate(timeout=PATIENCE_SECONDS)
    assert run.returncode == (130 if stopped else 0)
    assert errors.count(b"\n") == 1 and b"beside the run" in errors
    before = time.monotonic()
    while not list(cold.glob("engine-*")) or list(cold.glob("making-*")):
        assert time.monotonic() < before + PATIENCE_SECONDS
        time.sleep(0.1)
    code, _, err = transputer("run", "programs/add.tok")
    assert (code, err) == (0, "")
    assert not list(cold.glob("build-*")) and not list(cold.glob("new-*"))


@pytest.mark.long
def test_a_long_run_goes_over(cold: Path, tmp_path: Path) -> None:
    model = build_checkpoint()
    program = compile_program(write_tok(tmp_path / "loop.tok", *FOREVER))
    prompt = [*model.rom, *model.encode([*program.tokens, *program.input_tokens()])]
    engine = early_maker(model, lambda line: None)()
    assert isinstance(engine, TwoTiers)
    engine.feed(prompt[:-1])
    token, lengths, found = prompt[-1], [], []
    while engine._ready is not None or len(lengths) % 8:
        chunk = engine.extend(token, (), 100_000)
        lengths.append(len(chunk))
        found.append(zlib.crc32(chunk.tobytes()))
        token = int(chunk[-1])
    other, token = NativeEngine(model), prompt[-1]
    other.feed(prompt[:-1])
    for length, expected in zip(lengths, found, strict=True):
        chunk = other.extend(token, (), length)
        assert zlib.crc32(chunk.tobytes()) == expected
        token = int(chunk[-1])

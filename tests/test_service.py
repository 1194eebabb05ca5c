"""The service around an engine: its chunks, traces that are kept, warnings, patience."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import numpy as np
import pytest

from command_line import ENGINE, transputer
from compiler.errors import TransputerError, UsageError
from compiler.program import Program
from executor import process, runner
from executor.decode import Ids
from executor.job import Job
from executor.loading import build_checkpoint
from executor.runner import Execution
from executor.scan import TraceReader

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


# --- what is said -----------------------------------------------------------------------------


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

"""Run checkpoints: whatever was saved is read back or refused, and a run goes on identically."""

from __future__ import annotations

import random
import resource
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from command_line import left_in
from compiler.errors import TransputerError, UsageError
from compiler.program import Program
from example_models import lookup_model
from executor import resume, runner
from executor.decode import Ids
from executor.loading import build_checkpoint
from executor.resume import RunIdentity, RunRecorder, open_run
from executor.runner import Execution

IDENTITY = RunIdentity(b"m" * 32, b"p" * 32, 7)


def save(path: Path, chunks: list[list[int]], identity: RunIdentity = IDENTITY) -> None:
    """Every chunk becomes a frame."""
    with RunRecorder(path, identity, interval=1e-9) as recorder:
        for chunk in chunks:
            recorder.write(np.array(chunk, np.int32))


def saved_tokens(path: Path) -> list[int]:
    run = open_run(path, IDENTITY)
    tokens = [token for chunk in run.chunks() for token in chunk.tolist()]
    assert len(tokens) == run.n_tokens
    return tokens


CHUNKS = [[1, 2, 3], [2516] * 40, [0], list(range(300))]
TOKENS = [token for chunk in CHUNKS for token in chunk]


# --- the file ---------------------------------------------------------------------------------


def test_what_is_saved_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "run"
    save(path, CHUNKS)
    assert saved_tokens(path) == TOKENS
    assert left_in(tmp_path) == ["run"]


def test_tokens_wait_for_their_time_or_the_end(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with RunRecorder(path, IDENTITY, interval=1e9) as recorder:
        recorder.write(np.arange(100, dtype=np.int32))
        assert saved_tokens(path) == []
    assert saved_tokens(path) == list(range(100))


def test_many_tokens_do_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resume, "FRAME_TOKENS", 64)
    path = tmp_path / "run"
    with RunRecorder(path, IDENTITY, interval=1e9) as recorder:
        recorder.write(np.arange(150, dtype=np.int32))
        assert saved_tokens(path) == list(range(150))


def test_a_file_cut_anywhere_holds_the_whole_frames_before(tmp_path: Path) -> None:
    path, sizes = tmp_path / "run", []
    for count in range(len(CHUNKS) + 1):
        path.unlink(missing_ok=True)
        save(path, CHUNKS[:count])
        sizes.append(path.stat().st_size)
    content = path.read_bytes()
    for size in range(0, len(content), 3):
        path.write_bytes(content[:size])
        if size < sizes[0]:
            with pytest.raises(TransputerError, match="damaged|not a checkpoint"):
                open_run(path, IDENTITY)
            continue
        frames = sum(size >= whole for whole in sizes[1:])
        assert saved_tokens(path) == [token for chunk in CHUNKS[:frames] for token in chunk]


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_flipped_bit_anywhere_is_noticed(tmp_path: Path, data: st.DataObject) -> None:
    path, whole = tmp_path / "run", tmp_path / "whole"
    if not whole.exists():
        save(whole, CHUNKS)
    content = bytearray(whole.read_bytes())
    at = data.draw(st.integers(0, 8 * len(content) - 1))
    content[at // 8] ^= 1 << at % 8
    path.write_bytes(content)
    with pytest.raises(TransputerError, match="run: (damaged|not a checkpoint|written by another)"):
        open_run(path, IDENTITY)


def test_frames_lost_doubled_or_exchanged_are_noticed(tmp_path: Path) -> None:
    path, bounds = tmp_path / "run", []
    for count in range(4):
        path.unlink(missing_ok=True)
        save(path, CHUNKS[:count])
        bounds.append(path.stat().st_size)
    content = path.read_bytes()
    head, *frames = (content[a:b] for a, b in zip([0, *bounds], bounds, strict=False))
    for order in ((1, 2), (0, 0, 1, 2), (0, 2, 1), (0, 2)):
        path.write_bytes(head + b"".join(frames[number] for number in order))
        with pytest.raises(TransputerError, match="damaged"):
            open_run(path, IDENTITY)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (replace(IDENTITY, model=b"n" * 32), "a run of another model"),
        (replace(IDENTITY, prompt=b"q" * 32), "a run of another program, or with other arguments"),
        (replace(IDENTITY, n_prompt=8), "a run of another program"),
    ],
)
def test_a_foreign_run_is_refused(tmp_path: Path, other: RunIdentity, message: str) -> None:
    save(tmp_path / "run", CHUNKS)
    with pytest.raises(UsageError, match=message):
        open_run(tmp_path / "run", other)


def test_the_identity_covers_weights_settings_vocabulary_and_prompt() -> None:
    model = lookup_model()
    name = "head.weight"
    weights = model.weights[name].copy()
    weights[1, 1] += 1
    others = [
        replace(model, weights={**model.weights, name: weights}),
        replace(model, config=replace(model.config, stop_tokens=(1, 2))),
        replace(model, vocabulary=tuple(reversed(model.vocabulary))),
    ]
    identities = [RunIdentity.of(other, [1, 2]) for other in (model, *others)]
    assert len({identity.model for identity in identities}) == 4
    assert RunIdentity.of(model, [1, 2]) == identities[0]
    assert RunIdentity.of(model, [2, 1]) != identities[0]


def test_a_frame_that_does_not_fit_on_the_disk_is_taken_back(tmp_path: Path) -> None:
    path = tmp_path / "run"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    with (
        pytest.raises(UsageError, match="run: cannot be written: File too large"),
        RunRecorder(path, IDENTITY, interval=1e-9) as recorder,
    ):
        recorder.write(np.arange(9, dtype=np.int32))
        resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size + 90, hard))
        try:
            recorder.write(np.array(random.Random(1).choices(range(2517), k=500), np.int32))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert saved_tokens(path) == list(range(9))
    assert open_run(path, IDENTITY).size == path.stat().st_size


# --- going on ---------------------------------------------------------------------------------


def test_a_run_goes_on_in_the_same_file(tmp_path: Path) -> None:
    path = tmp_path / "run"
    save(path, CHUNKS[:2])
    with path.open("ab") as file:
        file.write(b"\x01\x00\x00")  # an unfinished frame
    run = open_run(path, IDENTITY)
    with RunRecorder(path, IDENTITY, run, interval=1e-9) as recorder:
        for start_ in range(0, len(TOKENS), 10):  # what was saved comes first, and again
            recorder.write(np.array(TOKENS[start_ : start_ + 10], np.int32))
    assert saved_tokens(path) == TOKENS


def test_an_unfinished_frame_is_gone_when_a_run_goes_on(tmp_path: Path) -> None:
    """Also where it is longer than the frame that takes its place."""
    path = tmp_path / "run"
    save(path, [[1], random.Random(1).choices(range(2517), k=500)])
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)
    with RunRecorder(path, IDENTITY, open_run(path, IDENTITY)) as recorder:
        recorder.write(np.array([1, 2], np.int32))
    run = open_run(path, IDENTITY)
    assert saved_tokens(path) == [1, 2]
    assert run.size == path.stat().st_size


def test_all_of_prompt_and_checkpoint_is_fed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Halting:
        def __init__(self) -> None:
            self.fed: list[int] = []

        def feed(self, tokens: Sequence[int]) -> None:
            self.fed += tokens

        def extend(self, token: int, stop: Collection[int], limit: int) -> Ids:
            self.fed.append(token)
            return np.array(model.encode(["halt"]), np.int32)

    model, program = build_checkpoint(), Program("test", ("{", "}"))
    prompt = [*model.rom, *model.encode(["{", "}", "eof"])]
    text = "68 00 00 00 commit(+1,sts=1,bt=0) out(h) 69 00 00 00 commit(+1,sts=1,bt=0) out(i)"
    trace = model.encode(text.split())
    frames = [trace[:1], trace[1:8], trace[8:]]
    save(tmp_path / "run", frames, RunIdentity.of(model, prompt))
    engine = Halting()
    monkeypatch.setattr(runner, "make_engine", lambda *_, **__: engine)
    execution = Execution(program, model, ["eof"], resume=tmp_path / "run")
    written = np.concatenate([chunk.ids for chunk in execution.chunks()])
    assert written.tolist() == [*trace, *model.encode(["halt"])]
    assert execution.result().output == b"hi"
    assert engine.fed == prompt + trace


def test_a_run_goes_on_in_another_file(tmp_path: Path) -> None:
    path = tmp_path / "run"
    save(path, CHUNKS[:2])
    before = path.read_bytes()
    with RunRecorder(tmp_path / "new", IDENTITY, open_run(path, IDENTITY)) as recorder:
        recorder.write(np.array(TOKENS, np.int32))
    assert saved_tokens(tmp_path / "new") == TOKENS
    assert path.read_bytes() == before


def test_a_run_that_may_be_needed_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "run"
    save(path, CHUNKS)
    with pytest.raises(UsageError, match="exists already"), RunRecorder(path, IDENTITY):
        pass
    assert saved_tokens(path) == TOKENS
    path.write_bytes(b"")
    save(path, CHUNKS)
    assert saved_tokens(path) == TOKENS


def test_two_runs_do_not_write_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "run"
    save(path, CHUNKS)
    run = open_run(path, IDENTITY)
    with (
        RunRecorder(path, IDENTITY, run),
        pytest.raises(UsageError, match="another run is writing"),
        RunRecorder(path, IDENTITY, run),
    ):
        pass

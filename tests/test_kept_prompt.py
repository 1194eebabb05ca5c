"""What an engine knows behind a prompt, kept on disk: the same tokens with and without it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hull_oracle as oracle
from command_line import transputer, write_tok
from compiler import store
from example_models import VOCAB, lookup_model, random_model
from executor import BatchJob, check, kept_prompt, run, run_batch
from executor.checkpoint import Checkpoint
from executor.decode import Engine, Keepable, decode
from executor.hull_engine import HullEngine
from executor.kept_prompt import PART, feed_prompt
from executor.resume import RunRecorder
from executor.runner import Execution
from executor.standard_engine import StandardEngine
from hullcache import HullHead, Mode, StandardHead

ENGINES = [HullEngine, StandardEngine]
Made = type[HullEngine] | type[StandardEngine]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where states go in a cache of the test's own; prompts of any length are kept."""
    monkeypatch.setenv("TRANSPUTER_CACHE", str(tmp_path))
    monkeypatch.setattr(kept_prompt, "SLOW_SECONDS", 0.0)
    return tmp_path / PART


@pytest.fixture
def fed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Tokens that hull engines are made to read, one after the other."""
    tokens: list[int] = []
    original = HullEngine.feed

    def feed(self: HullEngine, part: Sequence[int]) -> None:
        tokens.extend(part)
        original(self, part)

    monkeypatch.setattr(HullEngine, "feed", feed)
    return tokens


def after(engine: Engine, model: Checkpoint, prompt: Sequence[int], common: int) -> list[int]:
    """The next token behind the prompt, then behind some more."""
    counts = list(feed_prompt(engine, model, prompt, common))
    assert counts == sorted(counts) and counts[-1] == len(prompt)
    return [engine.step(token) for token in (3, 1, 4, 1, 5, 9, 2, 6)]


def tokens_of(seed: int, length: int = 90) -> list[int]:
    return np.random.default_rng(seed).integers(0, VOCAB, length).tolist()


# --- the state of an engine -------------------------------------------------------------------


@settings(max_examples=100, deadline=None)
@given(
    st.sampled_from(["latest", "mean"]),
    oracle.key_lists("integer", 40),
    oracle.key_lists("integer", 20),
    st.lists(oracle.integer_queries, min_size=1, max_size=6),
)
def test_a_restored_head_goes_on_as_the_head_that_was_kept(
    mode: Mode,
    keys: list[oracle.Point],
    more: list[oracle.Point],
    queries: list[oracle.Point],
) -> None:
    head, other = HullHead(mode, 1), HullHead(mode, 1)
    for n, key in enumerate(keys):
        head.insert(*key, (float(n),))
    other.restore(head.state())
    for n, key in enumerate([*more, (0.0, 0.0)]):
        for one in (head, other):
            one.insert(*key, (float(-n),))
        assert (len(other), other.n_kept) == (len(head), head.n_kept)
        for q in queries + oracle.normals(keys + more):
            assert other.query(*q) == head.query(*q)


@pytest.mark.parametrize("make", ENGINES)
@pytest.mark.parametrize("seed", range(12))
def test_a_restored_engine_goes_on_as_the_engine_that_was_kept(make: Made, seed: int) -> None:
    model, tokens = random_model(seed), tokens_of(seed)
    first = make(model)
    expected = [first.step(token) for token in tokens]
    for cut in (1, 40, 64):
        kept, restored = make(model), make(model)
        kept.feed(tokens[:cut])
        state = kept.state()
        assert state is not None
        restored.restore(state)
        assert [restored.step(token) for token in tokens[cut:]] == expected[cut:]
        assert [kept.step(token) for token in tokens[cut:]] == expected[cut:]


def test_an_engine_with_other_caches_keeps_nothing(folder: Path) -> None:
    model = lookup_model()
    engine = HullEngine(model, StandardHead)
    list(feed_prompt(engine, model, [3, 10] * 20, 40))
    assert engine.state() is None and not folder.exists()


# --- on disk ----------------------------------------------------------------------------------


@pytest.mark.parametrize("make", ENGINES)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_second_start_gives_the_same_tokens(make: Made, seed: int, folder: Path) -> None:
    model, prompt = random_model(seed), tokens_of(seed)
    expected = after(make(model), model, prompt, 0)
    assert not folder.exists()
    for common in (50, 50, len(prompt), 1000, 1000):
        assert after(make(model), model, prompt, common) == expected
    assert len(list(folder.iterdir())) == 2  # behind 50 tokens, and behind all
    other = [*prompt[:50], *tokens_of(seed + 100, 20)]
    assert after(make(model), model, other, 50) == after(make(model), model, other, 0)


def test_the_tokens_of_a_kept_prompt_are_not_read_again(folder: Path, fed: list[int]) -> None:
    model, prompt = random_model(5), tokens_of(5)
    after(HullEngine(model), model, prompt, 60)
    assert fed == prompt
    fed.clear()
    after(HullEngine(model), model, prompt, 60)
    assert fed == prompt[60:]


def test_what_was_kept_for_something_else_is_not_used(
    folder: Path, fed: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    model, prompt = random_model(5), tokens_of(5)
    after(HullEngine(model), model, prompt, 90)
    weights = {name: array.copy() for name, array in model.weights.items()}
    weights["tok.weight"][7, 4] += 1.0
    others = [
        (replace(model, weights=weights), prompt),
        (replace(model, vocabulary=tuple(f"u{i}" for i in range(VOCAB))), prompt),
        (model, [*prompt[:-1], (prompt[-1] + 1) % VOCAB]),
        (model, prompt[:-1]),
    ]
    for other, tokens in others:
        fed.clear()
        after(HullEngine(other), other, tokens, len(tokens))
        assert fed == tokens
    real = store.sources_digest
    monkeypatch.setattr(
        kept_prompt, "sources_digest", lambda package: real(package) + "x" * (package == "executor")
    )
    fed.clear()
    after(HullEngine(model), model, prompt, 90)
    assert fed == prompt  # by another version
    assert len(list(folder.iterdir())) == 6


def damages(data: bytes, foreign: bytes) -> Iterator[bytes]:
    yield b""
    yield data[:-1]
    yield data[: len(data) // 2]
    yield from (data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :] for at in (0, 20, 60, 200))
    yield foreign


def test_a_damaged_or_foreign_state_is_made_again(folder: Path, fed: list[int]) -> None:
    model, prompt = random_model(5), tokens_of(5)
    other = tokens_of(6)
    expected = after(HullEngine(model), model, prompt, 90)
    (path,) = folder.iterdir()
    data = path.read_bytes()
    after(HullEngine(model), model, other, 90)
    (foreign,) = (p.read_bytes() for p in folder.iterdir() if p != path)
    for damaged in damages(data, foreign):
        path.write_bytes(damaged)
        fed.clear()
        assert after(HullEngine(model), model, prompt, 90) == expected
        assert fed == prompt
        assert path.read_bytes() == data


def test_a_prompt_that_is_read_quickly_is_not_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept_prompt, "SLOW_SECONDS", 1000.0)
    model, prompt = random_model(5), tokens_of(5)
    after(HullEngine(model), model, prompt, 90)
    assert not folder.exists()


def test_without_a_folder_a_prompt_is_read_every_time(
    folder: Path, fed: list[int], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("TRANSPUTER_CACHE", str(tmp_path / "file"))
    model, prompt = random_model(5), tokens_of(5)
    assert after(HullEngine(model), model, prompt, 90) == after(HullEngine(model), model, prompt, 0)
    assert fed == prompt * 2


def test_the_native_engine_reads_its_prompt(folder: Path) -> None:
    from executor.native import NativeEngine

    assert not issubclass(NativeEngine, Keepable)


# --- runs -------------------------------------------------------------------------------------


@pytest.fixture
def echo(tmp_path: Path) -> Path:
    """A program that writes the two bytes it reads first."""
    first, second = ((("i32.const", number), ("input", 37), "output") for number in (0, 1))
    return write_tok(tmp_path / "echo.tok", *first, *second, "halt")


def test_runs_of_a_program_share_its_state_whatever_they_read(
    folder: Path, fed: list[int], echo: Path
) -> None:
    first = run(echo, stdin=b"ab", engine="hull")
    assert first.output == b"ab"
    n_program = first.n_prompt - 3
    for stdin in (b"ab", b"xyz", b"q!"):
        fed.clear()
        again = run(echo, stdin=stdin, engine="hull")
        assert again.output == stdin[:2] and len(fed) == again.n_prompt - 1 - n_program
    assert list(run(echo, stdin=b"ab", engine="hull").trace) == list(first.trace)
    assert check(echo, stdin=b"ab", engine="hull").agrees
    assert len(list(folder.iterdir())) == 1


def test_a_run_goes_on_from_a_checkpoint_behind_a_kept_prompt(
    folder: Path, fed: list[int], echo: Path, tmp_path: Path
) -> None:
    from executor.job import prepare
    from executor.loading import open_checkpoint

    program, model = prepare(echo).program, open_checkpoint(None)
    whole = list(run(echo, stdin=b"ab", engine="hull").trace)
    tokens = program.input_tokens((), b"ab")
    first = Execution(program, model, tokens, engine="hull")
    with RunRecorder(tmp_path / "run", first.identity) as recorder:
        recorder.write(np.array(model.encode(whole[:5]), np.int32))
    fed.clear()
    second = Execution(program, model, tokens, engine="hull", resume=tmp_path / "run")
    for _ in second.chunks():
        pass
    assert list(second.result().trace) == whole
    assert len(fed) == 3 + 4  # the input, then all that was saved but its last


def test_batch_and_command_line_use_what_was_kept(folder: Path, echo: Path) -> None:
    run(echo, stdin=b"ab", engine="hull")
    (path,) = folder.iterdir()
    for number, runs in enumerate([as_batch, as_command], start=1):
        os.utime(path, (number, number))
        assert runs(echo) == [b"ab", b"cd"]
        assert path.stat().st_mtime > 1e6  # it was used


def as_batch(echo: Path) -> list[bytes]:
    jobs = [BatchJob(echo, stdin=stdin) for stdin in (b"ab", b"cd")]
    return [result.output for result in run_batch(jobs, engine="hull", jobs=1)]


def as_command(echo: Path) -> list[bytes]:
    outputs = []
    for stdin in (b"ab", b"cd"):
        path = echo.with_suffix(".in")
        path.write_bytes(stdin)
        outputs.append(transputer("run", "--engine", "hull", "--stdin", path, echo)[1].encode())
    return outputs


def test_a_machine_of_ones_own_uses_what_was_kept(folder: Path, fed: list[int]) -> None:
    from executor.machine_run import generate

    model = replace(lookup_model(), config=replace(lookup_model().config, prompts="tokens"))
    prompt = [model.vocabulary[token] for token in (3, 10, 4, 11, 3)]
    first = list(generate_some(generate(model, prompt, engine="hull", max_tokens=1)))
    fed.clear()
    assert list(generate_some(generate(model, prompt, engine="hull", max_tokens=1))) == first
    assert fed == []
    ids = model.encode(prompt)
    assert model.encode(first) == list(decode(StandardEngine(model), ids, limit=1))


def generate_some(tokens: Iterator[str]) -> Iterator[str]:
    """Up to the limit."""
    from compiler.errors import LimitError

    try:
        yield from tokens
    except LimitError:
        return

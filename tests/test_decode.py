"""The decode loop, with an engine that counts: what is fed, when it stops, what it yields."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from types import ModuleType

import numpy as np
import pytest

from compiler.errors import TransputerError, UsageError
from example_models import lookup_model, random_model
from executor import decode as decode_module
from executor.checkpoint import Checkpoint
from executor.decode import (
    GROWTH,
    LONGEST_CHUNK,
    Ids,
    Pace,
    decode,
    extend,
    extend_chunks,
    feed_chunks,
    make_engine,
)
from executor.hull_engine import HullEngine


class Counter:
    """After token t comes t + 1; remembers all that it is given."""

    def __init__(self) -> None:
        self.fed: list[int] = []
        self.stepped: list[int] = []
        self.limits: list[int] = []

    def feed(self, tokens: Sequence[int]) -> None:
        self.fed += tokens

    def step(self, token: int) -> int:
        self.stepped.append(token)
        return token + 1

    def predict(self, tokens: Sequence[int]) -> list[int]:
        return [self.step(token) for token in tokens]

    def extend(self, token: int, stop: Collection[int], limit: int) -> Ids:
        self.limits.append(limit)
        return extend(self.step, token, stop, limit)


def test_all_but_the_last_prompt_token_are_fed_without_logits() -> None:
    engine = Counter()
    assert list(decode(engine, [7, 8, 9], limit=3)) == [10, 11, 12]
    assert engine.fed == [7, 8]
    assert engine.stepped == [9, 10, 11]


def test_a_stop_token_is_the_last() -> None:
    assert list(decode(Counter(), [1], stop={4, 6})) == [2, 3, 4]


def test_a_first_token_can_stop() -> None:
    assert list(decode(Counter(), [1], stop={2}, limit=9)) == [2]


def test_a_stop_token_in_the_prompt_does_not_stop() -> None:
    assert list(decode(Counter(), [4], stop={4, 6})) == [5, 6]


@pytest.mark.parametrize(("limit", "expected"), [(0, []), (1, [2]), (3, [2, 3, 4])])
def test_the_limit_counts_generated_tokens(limit: int, expected: list[int]) -> None:
    engine = Counter()
    assert list(decode(engine, [0, 1], limit=limit)) == expected
    assert len(engine.stepped) == limit


def test_a_stop_at_the_limit_counts_once() -> None:
    assert list(decode(Counter(), [1], stop={3}, limit=2)) == [2, 3]


def test_the_first_token_comes_alone() -> None:
    engine = Counter()
    assert list(islice(decode(engine, [1]), 1)) == [2]
    assert engine.stepped == [1]


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(UsageError, match="prompt is empty"):
        next(decode(Counter(), []))


# --- chunks -----------------------------------------------------------------------------------


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """``clock[0]`` is the time that the decode loop sees."""
    now = [0.0]
    monkeypatch.setattr(decode_module.time, "perf_counter", lambda: now[0])
    yield now


def test_chunks_are_one_stream(clock: list[float]) -> None:
    engine = Counter()
    chunks = list(extend_chunks(engine, 0, stop={100}))
    assert np.concatenate(chunks).tolist() == list(range(1, 101))
    assert engine.stepped == list(range(100))
    assert [len(chunk) for chunk in chunks] == [1, 4, 16, 64, 15]


def test_chunks_never_go_beyond_the_limit(clock: list[float]) -> None:
    engine = Counter()
    assert sum(map(len, extend_chunks(engine, 0, limit=30))) == 30
    assert engine.limits == [1, 4, 16, 9]


def test_a_chunk_is_what_fits_in_its_time() -> None:
    pace = Pace()
    pace.took(1, 1e-9)
    assert pace.length == GROWTH
    pace.took(4, 1.0)
    assert pace.length == 1
    for _ in range(30):
        pace.took(pace.length, pace.length * 1e-4)
    assert 150 <= pace.length <= 200
    for _ in range(30):
        pace.took(pace.length, 0.0)
    assert pace.length == LONGEST_CHUNK


def test_a_prompt_is_fed_in_bits_and_whole(clock: list[float]) -> None:
    engine = Counter()
    assert list(feed_chunks(engine, range(100))) == [1, 5, 21, 85, 100]
    assert engine.fed == list(range(100))
    assert list(feed_chunks(engine, [])) == []


@pytest.mark.parametrize("name", ["hull", "standard"])
@pytest.mark.parametrize("limit", [1, 7, 40])
def test_extend_is_step_again_and_again(name: str, limit: int) -> None:
    model = random_model(3)
    stepping, extending = make_engine(name, model), make_engine(name, model)
    wanted, token = [], 5
    for _ in range(limit):
        token = stepping.step(token)
        wanted.append(token)
    produced = extending.extend(5, (), limit)
    assert produced.dtype == np.int32 and produced.tolist() == wanted
    assert stepping.step(token) == extending.step(token)
    stop = wanted[limit // 2]
    again = make_engine(name, model).extend(5, {stop}, limit).tolist()
    assert again == wanted[: wanted.index(stop) + 1]


# --- engines ----------------------------------------------------------------------------------


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(UsageError, match="no engine 'fast'; choose from native, hull, standard, t"):
        make_engine("fast", random_model(0))


@pytest.mark.parametrize("name", ["auto", "native", "hull", "standard"])
def test_hard_engines_refuse_softmax_weights(name: str) -> None:
    with pytest.raises(UsageError, match="needs weights for hard attention"):
        make_engine(name, lookup_model(512))


def test_the_torch_engine_refuses_hard_weights() -> None:
    with pytest.raises(UsageError, match="needs weights for softmax attention"):
        make_engine("torch", lookup_model())


class NativeUnavailable(TransputerError):
    pass


@pytest.fixture
def no_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(checkpoint: Checkpoint, **_: object) -> None:
        raise NativeUnavailable("no C compiler was found")

    native = ModuleType("executor.native")
    native.NativeEngine = refuse  # type: ignore[attr-defined]
    native.NativeUnavailable = NativeUnavailable  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "executor.native", native)


def test_without_a_compiler_the_default_is_the_hull_engine_and_says_so(no_compiler: None) -> None:
    said: list[str] = []
    engine = make_engine("auto", lookup_model(), say=said.append)
    assert isinstance(engine, HullEngine)
    assert len(said) == 1 and said[0].startswith("no C compiler was found; the Python engine")
    assert len(said[0].splitlines()) == 1


def test_the_library_warns(no_compiler: None) -> None:
    with pytest.warns(UserWarning, match="the Python engine takes over"):
        make_engine("auto", lookup_model())


def test_native_by_name_is_an_error_without_a_compiler(no_compiler: None) -> None:
    with pytest.raises(NativeUnavailable, match="no C compiler"):
        make_engine("native", lookup_model())

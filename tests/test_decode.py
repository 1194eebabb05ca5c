"""The decode loop, with an engine that counts: what is fed, when it stops, what it yields."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

import pytest

from compiler.errors import UsageError
from example_models import lookup_model, random_model
from executor.decode import decode, make_engine


class Counter:
    """After token t comes t + 1; remembers all that it is given."""

    def __init__(self) -> None:
        self.fed: list[int] = []
        self.stepped: list[int] = []

    def feed(self, tokens: Sequence[int]) -> None:
        self.fed += tokens

    def step(self, token: int) -> int:
        self.stepped.append(token)
        return token + 1


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


def test_tokens_come_one_by_one() -> None:
    engine = Counter()
    assert list(islice(decode(engine, [1]), 2)) == [2, 3]
    assert engine.stepped == [1, 2]


def test_an_empty_prompt_is_refused() -> None:
    with pytest.raises(UsageError, match="prompt is empty"):
        next(decode(Counter(), []))


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(UsageError, match="no engine 'fast'; choose from hull, standard, torch"):
        make_engine("fast", random_model(0))


@pytest.mark.parametrize("name", ["hull", "standard"])
def test_hard_engines_refuse_softmax_weights(name: str) -> None:
    with pytest.raises(UsageError, match="needs weights for hard attention"):
        make_engine(name, lookup_model(512))


def test_the_torch_engine_refuses_hard_weights() -> None:
    with pytest.raises(UsageError, match="needs weights for softmax attention"):
        make_engine("torch", lookup_model())

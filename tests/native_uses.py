"""Random uses of an engine: known tokens in pieces, decoding in chunks, stops; one oracle for all.

A use appends tokens and notes what the engine writes after some of them. Whatever was done, a
plain scan of the same tokens has to give the same ones.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import numpy as np

from executor.checkpoint import Checkpoint
from executor.native import NativeEngine
from executor.standard_engine import StandardEngine

Stops = Sequence[Collection[int]]
Oracle = Callable[[list[int]], list[int]]
"""What a model writes after each of some tokens."""


@dataclass
class Use:
    """What was appended to an engine, and by position what it wrote."""

    engine: NativeEngine
    tokens: list[int] = field(default_factory=list)
    written: dict[int, int] = field(default_factory=dict)

    def feed(self, tokens: Sequence[int]) -> None:
        self.engine.feed(tokens)
        self.tokens += tokens

    def predict(self, tokens: Sequence[int]) -> None:
        found = self.engine.predict(tokens)
        assert len(found) == len(tokens)
        self.written |= enumerate(found, len(self.tokens))
        self.tokens += tokens

    def extend(self, token: int, stop: Collection[int], limit: int) -> list[int]:
        """Decode; checks that it ended where it had to."""
        found = self.engine.extend(token, stop, limit).tolist()
        assert 0 < len(found) <= limit
        assert not set(found[:-1]) & set(stop)
        assert len(found) == limit or found[-1] in stop
        self.written |= enumerate(found, len(self.tokens))
        self.tokens += [token, *found[:-1]]
        assert len(self.engine) == len(self.tokens)
        return [int(one) for one in found]

    def check(self, oracle: Oracle) -> None:
        """Compare with a slow engine."""
        expected = oracle(self.tokens)
        assert {at: expected[at] for at in self.written} == self.written


def scan_of(checkpoint: Checkpoint) -> Oracle:
    """A plain scan."""
    return lambda tokens: StandardEngine(checkpoint).predict(tokens)


def in_chunks(engine: NativeEngine, prompt: Sequence[int], size: int, count: int) -> Use:
    """Decode so many tokens, a chunk after the other."""
    use = Use(engine.again())
    use.feed(prompt[:-1])
    token, left = prompt[-1], count
    while left:
        found = use.extend(token, (), min(size, left))
        token, left = found[-1], left - len(found)
    return use


def with_stops(
    engine: NativeEngine, prompt: Sequence[int], stop: Collection[int], count: int, most: int = 1000
) -> Use:
    """Decode at least so many tokens, going on after each stop."""
    use = Use(engine.again())
    use.feed(prompt[:-1])
    token = prompt[-1]
    while len(use.written) < count:
        token = use.extend(token, stop, most)[-1]
    return use


def known_first(
    engine: NativeEngine, tokens: Sequence[int], start: int, size: int, count: int
) -> Use:
    """The first ``start`` tokens are known, in pieces that are fed or predicted; then decode."""
    use = Use(engine.again())
    for number, at in enumerate(range(0, start, size)):
        piece = list(tokens[at : min(at + size, start)])
        (use.predict if number % 2 else use.feed)(piece)
    use.extend(tokens[start], (), count)
    return use


def drawn(rng: np.random.Generator, vocab: int, count: int) -> list[int]:
    """Random tokens: all alike or some more often, sometimes in runs."""
    chances = rng.dirichlet(np.full(vocab, rng.choice([0.05, 0.3, 5.0])))
    tokens = rng.choice(vocab, count, p=chances)
    if rng.random() < 0.3:
        tokens = np.repeat(tokens, rng.geometric(0.4, count))[:count]
    return [int(token) for token in tokens]


def at_random(
    engine: NativeEngine, prompt: Sequence[int], stops: Stops, seed: int, count: int
) -> Use:
    """Anything in any order, until so many tokens are appended after the prompt."""
    rng = np.random.default_rng(seed)
    vocab = engine._vocab_size
    use = Use(engine.again())
    use.feed(prompt[:-1])
    token, tokens = prompt[-1], drawn(rng, vocab, 200)
    known = rng.choice([0.1, 0.4, 0.8])
    while len(use.tokens) < len(prompt) + count:
        kind, start = rng.random(), int(rng.integers(150))
        if kind < known / 2:
            use.feed(tokens[start : start + int(rng.integers(9))])
        elif kind < known:
            use.predict(tokens[start : start + int(rng.integers(9))])
        else:
            limit = int(rng.integers(1, 14)) if rng.random() < 0.7 else 60
            stop = stops[rng.integers(len(stops))] if rng.random() < 0.7 else ()
            token = use.extend(token, stop, limit)[-1]
        if rng.random() < 0.2:
            token = tokens[start]
    return use


def many_at_random(
    engine: NativeEngine, plain: NativeEngine, checkpoint: Checkpoint, seed: int, rounds: int
) -> list[Use]:
    """Compare specialised with plain code, both fast, so in many uses."""
    rng = np.random.default_rng([seed, 1])
    stops, found = kinds_of_stops(checkpoint, seed), []
    for number in range(rounds):
        rom = checkpoint.rom if rng.random() < 0.8 else ()
        prompt = [*rom, *drawn(rng, checkpoint.config.vocab_size, int(rng.integers(1, 100)))]
        use = at_random(engine, prompt, stops, seed + 1000 * number, 100)
        use.check(plain.again().predict)
        found.append(use)
    return found


def all_ways(
    engine: NativeEngine, prompt: Sequence[int], stops: Stops, seed: int, count: int = 250
) -> list[Use]:
    """An engine used in every way that may matter.

    Args:
        stops: sets of tokens to stop at.
    """
    whole = in_chunks(engine, prompt, count, count)
    found = [whole, *(in_chunks(engine, prompt, size, count) for size in range(1, 14))]
    found += [with_stops(engine, prompt, stop, count) for stop in stops]
    found += [with_stops(engine, prompt, stop, count, 7) for stop in stops]
    for size in (1, 2, 3, 7, 64):
        for start in (len(prompt), len(prompt) + count // 3 + size, len(prompt) + count // 2 + 1):
            found.append(known_first(engine, whole.tokens, start, size, count // 3))
    found += [at_random(engine, prompt, stops, seed + i, count) for i in range(4)]
    return found


def kinds_of_stops(checkpoint: Checkpoint, seed: int) -> list[Collection[int]]:
    """Each token alone, and sets: random ones, those that embed alike, all."""
    rng = np.random.default_rng(seed)
    vocab = checkpoint.config.vocab_size
    found: list[Collection[int]] = [{token} for token in range(vocab)]
    found += [set(np.flatnonzero(rng.random(vocab) < part).tolist()) for part in (0.1, 0.3, 0.6)]
    for column in checkpoint.weights["tok.weight"].T:
        values = np.unique(column)
        if 1 < len(values) < 4:
            found += [set(np.flatnonzero(column == value).tolist()) for value in values]
    return [*found, range(vocab)]

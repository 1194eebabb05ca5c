"""What ``explain`` says is what the torch module itself does, head by head and slot by slot."""

from __future__ import annotations

import math
import random
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from command_line import ROOT
from compiler.errors import UsageError
from compiler.names import erased_by
from example_models import lookup_model, random_model
from executor import explain
from executor.checkpoint import Checkpoint
from executor.config import ModelConfig
from executor.inside import Explanation, explain_tokens
from executor.inside import winners as winners_module
from executor.inside.ranking import Ranking, rank
from executor.inside.record import Record, record_run
from executor.inside.winners import Keys
from executor.job import prepare
from executor.loading import build_checkpoint
from executor.standard_engine import StandardEngine
from hullcache import HullHead
from inside_oracle import TorchOracle, TorchRows

CALLS = "int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }"
MEMORY = """
static unsigned char bytes[16];
static int total;
int fill(int n) {
    for (int i = 0; i < n; i++)
        bytes[i] = i * 37;
    for (int i = 0; i < n; i++)
        total += bytes[n - 1 - i] << (i & 7);
    return total;
}
"""
ARITHMETIC = """
static unsigned power(unsigned base, unsigned exponent) {
    return exponent ? base * power(base, exponent - 1) : 1;
}
int mix(int n) {
    int sum = -7;
    for (int i = 1; i <= n; i++)
        sum = (sum * 31 + n / i) % 1000 ^ (int)(power(3, i) >> (i & 3)) ^ -sum / i;
    return sum;
}
"""


@cache
def recorded(source: str, function: str, *arguments: int) -> Record:
    """One function of a C program, run by the machine for hard attention."""
    call = (function, *arguments)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "test.c"
        path.write_text(source)
        return record_run(prepare(path, call, libc="tiny"), build_checkpoint(), (), b"")


def some_positions(record: Record, count: int, seed: int = 0) -> list[int]:
    """Random positions at which trace tokens are written."""
    numbers = range(record.n_trace)
    picked = random.Random(seed).sample(numbers, min(count, len(numbers)))
    return sorted(record.position(number) for number in picked)


def compare_with_torch(record: Record, positions: Sequence[int]) -> None:
    """Attention weights and every slot at these positions, under the weights for softmax."""
    soft = replace(record, checkpoint=build_checkpoint("softmax"))
    found = soft.explain(positions)
    oracle = TorchOracle(soft.checkpoint, soft.tokens[: max(positions) + 1].tolist())
    for layer, rows in oracle.layers(positions):
        compare_attention(found, layer, rows)
        for half, there in enumerate((rows.before, rows.mixed, rows.after)):
            compare_slots(found, 2 * layer + half, rows.rows, there)
    logits = oracle.logits[list(positions)]
    best = np.take_along_axis(logits, found.answer.tokens, axis=1)
    assert np.array_equal(best, found.answer.logits)
    assert np.array_equal(logits.argmax(axis=1), found.answer.tokens[:, 0])


def compare_attention(found: Explanation, layer: int, there: TorchRows) -> None:
    attention = found.layers[layer].attention
    winners, ties = attention.winners[there.rows], attention.ties[there.rows]
    for head, mode in enumerate(attention.modes):
        if not attention.output[head].any():
            continue
        weights = there.weights[head]
        at_winner = np.take_along_axis(weights, winners[:, [head]], axis=1)[:, 0]
        if mode == "latest":
            assert (at_winner == 1.0).all(), (layer, head)
            assert np.array_equal(weights.argmax(axis=1), winners[:, head])
        else:
            assert np.allclose(at_winner, 1 / ties[:, head], rtol=1e-12, atol=0)


def compare_slots(found: Explanation, time: int, rows: slice, there: np.ndarray) -> None:
    """Bit for bit, but for means, which are rounded only when they have become sums."""
    assert found.names is not None
    here = found.stream[rows, time]
    means = np.array([name.endswith(".mean") for name in found.names.slots[time]])
    assert np.array_equal(here[:, ~means], there[:, ~means]), time
    assert np.allclose(here[:, means], there[:, means], rtol=1e-9, atol=1e-15)


def test_attention_and_stream_are_those_of_the_torch_module() -> None:
    record = recorded(ARITHMETIC, "mix", 2)
    compare_with_torch(record, some_positions(record, 30))


def just_off(draw: random.Random) -> tuple[float, float]:
    """A query next to one that scores two keys alike, as near as doubles can be."""
    qy = draw.random() + 0.1
    return math.nextafter(draw.randint(-20, 40) / 2 * qy, draw.choice((-math.inf, math.inf))), qy


SHAPES = {
    "positions": lambda draw, n: [(2 * p, -p * p) for p in range(n)],
    "numbers": lambda draw, n: [(2 * k, -k * k) for k in draw.choices(range(-40, 50), k=n)],
    "few numbers": lambda draw, n: [(2 * k, -k * k) for k in draw.choices(range(-3, 4), k=n)],
    "kinds": lambda draw, n: [(k, 0) for k in draw.choices((-2, 0, 1), k=n)],
    "one": lambda draw, n: [(3, -1)] * n,
    "any": lambda draw, n: [(draw.randint(-3, 3), draw.randint(-3, 3)) for _ in range(n)],
    "large": lambda draw, n: [
        (2 * draw.randint(0, 3), draw.choice((0, 1, -(2**40) * draw.randint(1, 9))))
        for _ in range(n)
    ],
    "fractions": lambda draw, n: [(draw.random(), draw.random()) for _ in range(n)],
}
ASKED = {
    "near": lambda draw: (draw.randint(-30, 60), 1),
    "between": lambda draw: (draw.randint(-30, 60) / draw.choice((2, 3, 256)), 1),
    "scaled": lambda draw: (draw.randint(-90, 180), draw.choice((1, 3, 5, 0.1))),
    "along": lambda draw: (draw.choice((-1, 0, 1)), 0),
    "any": lambda draw: (draw.randint(-3, 3), draw.randint(-3, 3)),
    "nothing": lambda draw: (0, 0),
    "just off": lambda draw: just_off(draw),
    "huge": lambda draw: (draw.randint(0, 3) * 2**30, 1),
}


@pytest.mark.parametrize("few", [0, winners_module.FEW], ids=["many", "few"])
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("shape", SHAPES)
def test_all_searches_find_what_a_growing_hull_finds(
    shape: str, asked: str, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(winners_module, "FEW", few)
    draw = random.Random(f"{shape} {asked}")
    for length in (1, 3, 40):
        keys = np.array(SHAPES[shape](draw, length), np.float64)
        queries = np.array([ASKED[asked](draw) for _ in range(length)], np.float64)
        head, mean = HullHead("latest", width=1), HullHead("mean")
        values = np.arange(2.0 * length).reshape(length, 2)
        winners, means = [], []
        for position, (key, query) in enumerate(zip(keys, queries, strict=True)):
            head.insert(*key, (position,))
            mean.insert(*key, tuple(values[position]))
            winners.append(int(head.query(*query)[0]))
            means.append(mean.query(*query))
        ready = Keys(keys)
        assert ready.latest(queries).tolist() == winners
        assert np.array_equal(ready.means(queries, values), means)
        ranking = rank(keys, queries, np.arange(length))
        assert ranking.winners.tolist() == winners
        if few:
            check_ranks(keys, queries, ranking)


def check_ranks(keys: np.ndarray, queries: np.ndarray, ranking: Ranking) -> None:
    """Ties, runner-up and lead, from all scores as fractions."""
    for position, (qx, qy) in enumerate(queries.tolist()):
        seen = keys[: position + 1].tolist()
        scores = [Fraction(qx) * Fraction(x) + Fraction(qy) * Fraction(y) for x, y in seen]
        best = max(scores)
        assert ranking.ties[position] == scores.count(best)
        assert ranking.scores[position] == float(best)
        others = [score for score in scores if score < best]
        runner_up = int(ranking.runners_up[position])
        if not others:
            assert (runner_up, ranking.leads[position]) == (-1, 0)
        else:
            assert runner_up == max(p for p, s in enumerate(scores) if s == max(others))
            assert ranking.leads[position] == float(best - max(others))


def test_the_stream_is_that_of_an_engine_with_dense_matrices() -> None:
    for model in (lookup_model(), random_model(5)):
        tokens = random.Random(1).choices(range(model.config.vocab_size), k=60)
        found = explain_tokens(model, tokens, range(60))
        expected = StandardEngine(model).forward(tokens)
        assert np.allclose(found.stream[:, -1], expected, rtol=1e-9, atol=1e-9)
        predicted = StandardEngine(model).predict(tokens)
        assert found.answer.tokens[:, 0].tolist() == predicted


def test_positions_come_in_the_order_in_which_they_are_asked_for() -> None:
    record = recorded(ARITHMETIC, "mix", 2)
    last, first = record.position(-1), record.position(0)
    both = record.explain([last, first])
    alone = record.explain([first])
    assert both.row(first) == 1
    assert np.array_equal(both.stream[1], alone.stream[0])
    winners = [found.layers[2].attention.winners for found in (both, alone)]
    assert np.array_equal(winners[0][1], winners[1][0])
    with pytest.raises(ValueError, match="not among"):
        both.row(first + 1)


def test_every_term_of_the_stream_is_accounted_for() -> None:
    record = recorded(ARITHMETIC, "mix", 2)
    found = record.explain(some_positions(record, 40))
    for number, layer in enumerate(found.layers):
        heads = np.einsum("nhc,hcd->nd", layer.attention.values, layer.attention.output)
        neurons = layer.feed_forward.outputs @ layer.feed_forward.output
        for time, added in ((2 * number, heads), (2 * number + 1, neurons)):
            assert np.array_equal(found.stream[:, time] + added, found.stream[:, time + 1])


def test_what_does_not_count_can_be_anything() -> None:
    """Other values in heads that are not ``used``, the same neurons closed: the same logits."""
    record = recorded(ARITHMETIC, "mix", 2)
    found = record.explain(some_positions(record, 40), top=2585)
    weights, names = record.checkpoint.weights, found.names
    assert names is not None
    draw, idle_heads = np.random.default_rng(0), 0
    x = found.stream[:, 0].copy()
    for number, layer in enumerate(found.layers):
        attention, forward = layer.attention, layer.feed_forward
        erases = np.array([bool(erased_by(name)) for name in names.heads[number]])
        idle = attention.live & ~attention.used & ~erases
        idle_heads += int(idle.sum())
        noise = draw.integers(1, 9, attention.values.shape) * idle[:, :, np.newaxis]
        values = attention.values + noise
        # erasures take away what is there now
        own = np.einsum("nd,hcd->nhc", x, value_rows(weights, number))
        values[:, erases] = own[:, erases]
        x = x + np.einsum("nhc,hcd->nd", values, attention.output)
        gates = np.maximum(x @ weights[f"gate.{number}.weight"].T, 0) * (forward.gates > 0)
        x = x + (gates * (x @ weights[f"value.{number}.weight"].T)) @ forward.output
    assert idle_heads > 500
    logits = x @ weights["head.weight"].T
    there = np.take_along_axis(logits, found.answer.tokens, axis=1)
    assert np.array_equal(there, found.answer.logits)


def value_rows(weights: Mapping[str, np.ndarray], layer: int) -> np.ndarray:
    width = weights["tok.weight"].shape[1]
    return weights[f"attn.{layer}.in_proj_weight"][2 * width :].reshape(-1, 2, width)


def test_some_heads_count_in_every_answer_and_few_do() -> None:
    record = recorded(ARITHMETIC, "mix", 2)
    found = record.explain(some_positions(record, 40))
    assert found.names is not None
    opcode = found.names.heads[2].index("opcode")
    assert found.layers[2].attention.used[:, opcode].all()
    live = sum(int(layer.attention.live.sum()) for layer in found.layers)
    used = sum(layer.attention.used.sum(axis=1) for layer in found.layers)
    assert 10 < np.mean(used) < live / 2


@pytest.mark.parametrize(
    ("tokens", "positions", "message"),
    [([0, 1], [2], "from 0 to 1"), ([0], [-1], "from 0 to 0"), ([0], [], "no position"),
     ([99], [0], "not in the vocabulary")],
)  # fmt: skip
def test_positions_and_tokens_that_do_not_exist_are_refused(
    tokens: list[int], positions: list[int], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        explain_tokens(lookup_model(), tokens, positions)


def test_models_with_wider_heads_are_refused() -> None:
    config = ModelConfig(vocab_size=3, d_model=6, n_heads=2, n_layers=1, d_ffn=1)
    weights = {name: np.zeros(shape) for name, shape in config.shapes.items()}
    with pytest.raises(UsageError, match="two-dimensional"):
        explain_tokens(Checkpoint(config, ("a", "b", "c"), weights), [0], [0])


def test_explain_from_python() -> None:
    program = ROOT / "programs" / "add.tok"
    found = explain(program, at=[10, 16])
    written = [found.spelling(int(position) + 1) for position in found.positions]
    assert written == ["08", "halt"]
    assert found.names is not None
    top = found.names.heads[2].index("top")
    position, value = found.layers[2].attention.values[0, top]
    assert value == 5
    assert found.spelling(int(position)) == "commit(+1,sts=1,bt=0)"
    trace = ["03", "00", "00", "00", "commit(+1,sts=1,bt=0)", "05"]
    again = explain(program, at=5, trace=trace)
    assert again.spelling(int(again.positions[0]) + 1) == "05"
    with pytest.raises(UsageError, match="17 tokens, no token 17"):
        explain(program, at=17)
    with pytest.raises(UsageError, match="6 tokens, no token 6"):
        explain(program, at=6, trace=trace)


@pytest.mark.long
@pytest.mark.parametrize(
    ("source", "function", "argument"),
    [(MEMORY, "fill", 9), (ARITHMETIC, "mix", 6), (CALLS, "fib", 6)],
    ids=["memory", "arithmetic", "calls"],
)
def test_a_thousand_positions_agree_with_the_torch_module(
    source: str, function: str, argument: int
) -> None:
    record = recorded(source, function, argument)
    positions = some_positions(record, 1000)
    assert len(positions) == 1000
    compare_with_torch(record, positions)

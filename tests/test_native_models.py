"""The native engine gives the tokens of a plain scan, on random models with all head classes."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any, get_args

import numpy as np
import pytest

from example_models import VOCAB, lookup_model, lookups, random_model
from executor.checkpoint import Checkpoint
from executor.config import ModelConfig
from executor.loading import build_checkpoint
from executor.native import NativeEngine, paths
from executor.native.classify import Name
from executor.native.describe import describe
from executor.native.generate import generate
from executor.standard_engine import StandardEngine
from native_models import N_MODELS, native_model, split_model
from native_small import late_model

LENGTH = 150
SPLIT_SEEDS = (0, 1, 4)


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paths, "MOST_LINES", 1500)  # small code is compiled fast
    monkeypatch.setenv("TRANSPUTER_CACHE", str(tmp_path_factory.getbasetemp() / "native"))


def make(checkpoint: Checkpoint) -> NativeEngine:
    """An engine, compiled in a hurry."""
    return NativeEngine(checkpoint, say=lambda line: None, optimisation="-O0")


def agrees(checkpoint: Checkpoint, seed: int) -> None:
    """On several sequences: what one of them does not show another may."""
    vocab, engine = checkpoint.config.vocab_size, make(checkpoint)
    for number in range(4):
        rng = np.random.default_rng([seed, number])
        known = rng.choice(vocab, (vocab, 3, 6, 12)[number], replace=False)
        runs = rng.geometric(0.3 if number == 3 else 1.0, LENGTH)
        tokens = np.repeat(rng.choice(known, LENGTH), runs)[:LENGTH].tolist()
        wanted = StandardEngine(checkpoint).predict(tokens)
        assert engine.again().predict(tokens) == wanted, number


@pytest.mark.parametrize("seed", [*range(20), 135])
def test_some_models(seed: int) -> None:
    agrees(native_model(seed), seed)


@pytest.mark.parametrize("seed", range(2))
def test_hulls_alone_and_scans_alone(seed: int) -> None:
    only_hulls_and_scans(seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 40))
def test_more_hulls_alone_and_scans_alone(seed: int) -> None:
    only_hulls_and_scans(seed)


def only_hulls_and_scans(seed: int) -> None:
    """Hulls for all heads; and scans, from the start and after hulls have filled them."""
    model = native_model(seed)
    vocab = model.config.vocab_size
    tokens = np.random.default_rng(seed).integers(0, vocab, LENGTH).tolist()
    wanted = StandardEngine(model).predict(tokens)
    for way, fill in (("hull", LENGTH), ("scan", 0), ("scan", 70)):
        engine = NativeEngine(
            model, say=lambda line: None, optimisation="-O0", specialise=False, lookups=way
        )
        assert f" {way}_" in engine.source and " table_1" not in engine.source
        found = engine.predict(tokens[:fill]) if fill else []
        engine.scan()
        assert [*found, *engine.predict(tokens[fill:])] == wanted


@pytest.mark.long
@pytest.mark.parametrize("seed", range(20, N_MODELS))
def test_all_models(seed: int) -> None:
    agrees(native_model(seed), seed)


def runs(checkpoint: Checkpoint, seed: int) -> None:
    """What a model writes after a random beginning, specialised and not, by a scan too.

    The beginning has even tokens alone, so that some keys turn up late.
    """
    rng = np.random.default_rng(seed)
    vocab = checkpoint.config.vocab_size
    prompt = [*checkpoint.rom, *(2 * rng.integers(0, vocab // 2, 90)).tolist()]
    special = make(checkpoint)
    special.feed(prompt[:-1])
    written = special.extend(prompt[-1], (), 300).tolist()
    slow = NativeEngine(checkpoint, say=lambda line: None, optimisation="-O0", specialise=False)
    slow.feed(prompt[:-1])
    assert slow.extend(prompt[-1], (), 300).tolist() == written
    tokens = [*prompt, *rng.integers(0, vocab, 150).tolist()]
    assert make(checkpoint).predict(tokens) == StandardEngine(checkpoint).predict(tokens)


@pytest.mark.parametrize("seed", SPLIT_SEEDS)
def test_models_that_split(seed: int) -> None:
    runs(split_model(seed), seed)


def test_a_cursor_that_runs_ahead_of_the_tokens() -> None:
    """It fetches the current token then, which is another one each time."""
    runs(split_model(6, stride=3), 6)


def test_tokens_that_move_the_cursor_without_a_mark() -> None:
    runs(split_model(9, stride=2), 9)


def test_keys_of_either_sign() -> None:
    runs(split_model(3, least=-5), 3)


@pytest.mark.parametrize(("seed", "stride"), [(2, 1.5), (6, 3.0)])
def test_sums_that_paths_hold_in_variables(seed: int, stride: float) -> None:
    """As integers, of halves too; elsewhere they are float64s of the engine's state."""
    model = split_model(seed, stride, lasting=True)
    special = generate(model.config, model.weights, model.rom).special
    assert special is not None
    assert len(special.sums.hold) > 4 and ("2.0 *" in special.sums.hold[-3]) is (stride == 1.5)
    runs(model, seed)


def test_positions_that_are_mostly_among_the_first_tokens() -> None:
    runs(split_model(3, tabled=True), 3)


@pytest.mark.parametrize("seed", [5, 10])
def test_values_that_are_quarters(seed: int) -> None:
    """They are kept in units of a quarter, and stand between tokens of the output head."""
    model = split_model(seed, part=0.25)
    special = generate(model.config, model.weights, model.rom).special
    assert special is not None and -2 in special.units["table_2a"]
    runs(model, seed)


@pytest.mark.parametrize(("seed", "alone"), [(5, False), (32, True)])
def test_tokens_that_are_kept_with_a_record(seed: int, alone: bool) -> None:
    """With other values, of which some come later, and alone."""
    model = split_model(seed, sides=2, writer=True, alone=alone)
    special = generate(model.config, model.weights, model.rom).special
    assert special is not None and special.with_token == ("table_2a",)
    runs(model, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(60))
def test_more_tokens_that_are_kept_with_a_record(seed: int) -> None:
    runs(split_model(seed, sides=seed % 3, writer=True, alone=seed % 2 == 0), seed)


SQUARES = [
    (2, 0, 1.0), (2, -5, 1.0), (1, 0, 1.0), (1, -5, 1.0), (2, -5, 0.5), (2, 0, 2.0**40),
]  # fmt: skip


@pytest.mark.parametrize(("sides", "least", "scale"), SQUARES)
def test_keys_whose_squares_are_neurons(sides: int, least: int, scale: float) -> None:
    """Some turn out to be none: below 0 with one side only, fractions, and too large ones."""
    seed = 3 if scale == 0.5 else 5
    model = split_model(seed, least=least, sides=sides, scale=scale)
    source = make(model).source
    assert "table_put(&e->" in source
    assert source.count("table_insert(&e->") == 1  # in the plain code
    runs(model, seed)


@pytest.mark.long
@pytest.mark.parametrize(("sides", "least", "scale"), SQUARES)
@pytest.mark.parametrize("seed", range(20))
def test_more_keys_whose_squares_are_neurons(
    seed: int, sides: int, least: int, scale: float
) -> None:
    runs(split_model(seed, least=least, sides=sides, scale=scale), seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", sorted(set(range(100)) - set(SPLIT_SEEDS)))
def test_more_models_that_split(seed: int) -> None:
    runs(split_model(seed), seed)
    other: list[dict[str, Any]] = [
        {"part": 0.125},
        {"stride": 1.0 + seed % 2 / 2, "lasting": True},
        {"tabled": True},
    ]
    runs(split_model(seed, **other[seed % 3]), seed)


def test_the_models_have_everything_that_splits() -> None:
    text = ""
    for model in (*map(split_model, SPLIT_SEEDS), late_model("zero")):
        special = generate(model.config, model.weights, model.rom).special
        assert special is not None
        text += "\n".join(special.described)
    for part in (
        "decides about most", "how far back", "exact sum", "come later", "is its key",
        "by the paths that read them",
    ):  # fmt: skip
        assert part in text, text


def test_what_depends_on_which_of_two_keys_is_later_is_stored() -> None:
    """Keys can tie in models with an odd number, so what is found changes without a new key."""
    model = split_model(1)
    special = generate(model.config, model.weights, model.rom).special
    assert special is not None and not special.late


def test_a_key_of_no_table_where_the_next_token_is_looked_up() -> None:
    """Sums have been added to by then, and are put back before the plain code does."""
    agrees(random_model(63), 63)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100))
def test_models_without_forced_heads(seed: int) -> None:
    agrees(random_model(seed), seed)


def test_the_models_have_heads_of_every_class_and_families() -> None:
    found: Counter[str] = Counter()
    families = 0
    for seed in range(20):
        model = native_model(seed)
        generated = generate(model.config, model.weights, specialised=False)
        found.update(reader.kind.name for reader in generated.heads)
        families += len(generated.families)
    assert set(found) == {*get_args(Name)} - {"scan"}  # which is for comparisons
    assert min(found.values()) >= 5, found
    assert families >= 5


def test_names_of_inner_blocks_are_no_others() -> None:
    """A declaration that reads what it declares would be undefined."""
    models = [*map(native_model, range(12)), build_checkpoint()]
    sources = [generate(m.config, m.weights, specialised=False).source for m in models]
    text = "\n".join(sources)
    outer = set(re.findall(r"^    const \w+ (\w+) =", text, re.MULTILINE))
    inner = set(re.findall(r"^     .*const \w+ (\w+) =", text, re.MULTILINE))
    assert {"g", "n", "s", "score"} <= inner and "product" in outer
    assert not outer & inner


def test_the_models_are_not_trivial() -> None:
    kinds = []
    for seed in range(20):
        model = native_model(seed)
        tokens = np.random.default_rng(seed).integers(0, VOCAB, LENGTH).tolist()
        kinds.append(len(set(StandardEngine(model).predict(tokens))))
    assert sorted(kinds)[10] >= 5


def test_the_latest_value_of_a_key_is_found() -> None:
    tokens, expected = lookups(seed=1, length=2000)
    found = make(lookup_model()).predict(tokens)
    assert {at: found[at] for at in expected} == expected


def test_a_tie_goes_to_the_lowest_id() -> None:
    checkpoint = lookup_model()
    head = checkpoint.weights["head.weight"]
    head[10] = head[12]  # 10 and 12 always score alike
    assert make(checkpoint).predict([1, 12, 1])[-1] == 10


@pytest.mark.parametrize("order", ["ascending", "permuted"])
def test_ties_within_a_family(order: str) -> None:
    """y runs through halves, where two tokens of the family score alike, and beyond its ends."""
    config = ModelConfig(40, d_model=6, n_heads=3, n_layers=1, d_ffn=1)
    weights = {name: np.zeros(shape) for name, shape in config.shapes.items()}
    y, one = 2, 3
    weights["tok.weight"][:, y] = np.arange(40) / 2 - 3
    weights["tok.weight"][:, one] = 1
    b = np.arange(20.0) if order == "ascending" else np.random.default_rng(0).permutation(20) * 1.0
    weights["head.weight"][:20, y], weights["head.weight"][:20, one] = 2 * b, -(b**2)
    weights["head.weight"][20:, one] = -1000
    checkpoint = Checkpoint(config, tuple(map(str, range(40))), weights)
    assert len(generate(config, weights).families) == 1
    assert "the best by a rounding: " in " ".join(describe(checkpoint).split())
    tokens = list(range(40))
    assert make(checkpoint).predict(tokens) == StandardEngine(checkpoint).predict(tokens)


def test_prefill_steps_and_extend_agree() -> None:
    checkpoint = native_model(1)
    tokens = np.random.default_rng(5).integers(0, VOCAB, 60).tolist()
    engine = make(checkpoint)
    engine.feed(tokens[:-1])
    token, written = tokens[-1], []
    for _ in range(50):
        token = engine.step(token)
        written.append(token)
    again = make(checkpoint)
    again.predict(tokens[:20])
    again.feed(tokens[20:-1])
    first = again.extend(tokens[-1], (), 20).tolist()
    assert first + again.extend(first[-1], (), 30).tolist() == written
    assert len(again) == len(engine) == 109
    stop = written[10]
    third = make(checkpoint)
    third.feed(tokens[:-1])
    assert third.extend(tokens[-1], {stop}, 50).tolist() == written[: written.index(stop) + 1]


def test_the_description_names_every_head_and_neuron() -> None:
    checkpoint = native_model(1)
    text = describe(checkpoint)
    assert "the token at a position, keys (2p, -p²): h" in text
    assert "a convex hull" in describe(native_model(0))
    config = checkpoint.config
    for layer in text.partition("\noutput head")[0].split("layer ")[1:]:
        lists = re.findall(r"\b([hn])(\d[\d -]*)", " ".join(layer.split()))
        for kind, count in (("h", config.n_heads), ("n", config.d_ffn)):
            numbers = [n for k, part in lists if k == kind for n in _numbers(part)]
            assert sorted(numbers) == list(range(count))


def _numbers(text: str) -> list[int]:
    ends = [part.split("-") for part in text.split()]
    return [n for end in ends for n in range(int(end[0]), int(end[-1]) + 1)]

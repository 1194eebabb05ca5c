"""Engines give the same tokens: on random models, on a lookup table, however the prompt is cut."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from compiler.errors import UsageError
from example_models import VOCAB, lookup_model, lookups, random_model
from executor.checkpoint import Checkpoint
from executor.codegen import generate
from executor.config import Mode, ModelConfig
from executor.decode import Engine, decode, make_engine
from executor.hull_engine import HullEngine
from executor.liveness import live_layers, support
from executor.standard_engine import BLOCK, StandardEngine

MakeEngine = Callable[[Checkpoint], Engine]


def random_tokens(seed: int, length: int) -> list[int]:
    return np.random.default_rng(seed).integers(0, VOCAB, length).tolist()


def predictions(engine: Engine, tokens: Sequence[int], fed: int = 0) -> list[int]:
    """The engine's next token after each of ``tokens``, the first ``fed`` of them fed."""
    engine.feed(tokens[:fed])
    return [engine.step(token) for token in tokens[fed:]]


@pytest.mark.parametrize("seed", range(50))
def test_hull_and_standard_agree_on_random_models(seed: int) -> None:
    checkpoint = random_model(seed)
    tokens = random_tokens(seed, 120)
    expected = predictions(StandardEngine(checkpoint), tokens)
    assert predictions(HullEngine(checkpoint), tokens) == expected
    assert predictions(HullEngine(checkpoint), tokens, fed=70) == expected[70:]


def test_random_models_are_not_trivial() -> None:
    """The test above would prove little if every model always wrote the same token."""
    different = [
        len(set(predictions(HullEngine(random_model(seed)), random_tokens(seed, 120))))
        for seed in range(50)
    ]
    assert sorted(different)[25] >= 5


@pytest.mark.parametrize("make", [HullEngine, StandardEngine])
@pytest.mark.parametrize("fed", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 150])
def test_prefill_equals_decode(make: MakeEngine, fed: int) -> None:
    checkpoint = random_model(11)
    tokens = random_tokens(5, 160)
    expected = predictions(make(checkpoint), tokens)
    assert predictions(make(checkpoint), tokens, fed) == expected[fed:]
    pieces = make(checkpoint)
    for at in range(fed):
        pieces.feed(tokens[at : at + 1])
    assert predictions(pieces, tokens[fed:]) == expected[fed:]


@pytest.mark.parametrize("make", [HullEngine, StandardEngine])
def test_the_latest_value_of_a_key_is_found(make: MakeEngine) -> None:
    tokens, expected = lookups(seed=1, length=2000)
    found = predictions(make(lookup_model()), tokens)
    assert {at: found[at] for at in expected} == expected


def test_torch_agrees_with_hull_on_the_lookup_model() -> None:
    pytest.importorskip("torch")
    tokens, expected = lookups(seed=1, length=200)
    engine = make_engine("torch", lookup_model(512))
    found = predictions(engine, tokens, fed=90)
    assert {at: found[at - 90] for at in expected if at >= 90} == {
        at: value for at, value in expected.items() if at >= 90
    }


def test_decoding_reads_the_table_and_stops() -> None:
    checkpoint = lookup_model()
    checkpoint.weights["head.weight"][16] = checkpoint.weights["head.weight"][13]
    checkpoint.weights["head.weight"][13] = -1000
    for name in ("hull", "standard"):
        engine = make_engine(name, checkpoint)
        assert list(decode(engine, [3, 13, 4, 9, 3], {16}, limit=9)) == [16]


def test_a_tie_goes_to_the_lowest_id() -> None:
    checkpoint = lookup_model()
    head = checkpoint.weights["head.weight"]
    head[10] = head[12]  # 10 and 12 always score alike
    for make in (HullEngine, StandardEngine):
        assert predictions(make(checkpoint), [1, 12, 1])[-1] == 10


@pytest.mark.parametrize("make", [HullEngine, StandardEngine])
@pytest.mark.parametrize(("mode", "expected"), [("mean", 2), ("latest", 3)])
def test_equal_keys_are_averaged_or_the_last_is_taken(
    make: MakeEngine, mode: Mode, expected: int
) -> None:
    """Values 1, 3, 1, 3 under one key: the mean is 2, the latest 3."""
    number, result, one = 2, 3, 4
    modes: tuple[tuple[Mode, ...], ...] = ((mode, "latest", "latest"),)
    config = ModelConfig(4, d_model=6, n_heads=3, n_layers=1, d_ffn=1, head_modes=modes)
    weights = {name: np.zeros(shape) for name, shape in config.shapes.items()}
    numbers = np.arange(4)
    weights["tok.weight"][:, number] = numbers
    weights["tok.weight"][:, one] = 1
    weights["attn.0.in_proj_weight"][12, number] = 1
    weights["attn.0.out_proj.weight"][result, 0] = 1
    weights["head.weight"][:, result] = 2 * numbers  # 2·b·y - b² is greatest at b = y
    weights["head.weight"][:, one] = -(numbers**2)
    checkpoint = Checkpoint(config, ("a", "b", "c", "d"), weights)
    assert predictions(make(checkpoint), [1, 3, 1, 3])[-1] == expected


def test_the_hull_engine_needs_heads_of_width_two() -> None:
    config = ModelConfig(3, d_model=4, n_heads=1, n_layers=1, d_ffn=1)
    weights = {name: np.zeros(shape) for name, shape in config.shapes.items()}
    with pytest.raises(UsageError, match="width 2"):
        HullEngine(Checkpoint(config, ("a", "b", "c"), weights))


@pytest.mark.parametrize("make", [HullEngine, StandardEngine])
def test_permuting_the_vocabulary_permutes_the_tokens(make: MakeEngine) -> None:
    checkpoint = lookup_model()
    order = np.random.default_rng(0).permutation(17)  # new id i is old id order[i]
    weights = {
        **checkpoint.weights,
        "tok.weight": checkpoint.weights["tok.weight"][order],
        "head.weight": checkpoint.weights["head.weight"][order],
    }
    new_id = np.argsort(order)
    tokens, expected = lookups(seed=1, length=300)
    permuted = Checkpoint(checkpoint.config, checkpoint.vocabulary, weights)
    found = predictions(make(permuted), new_id[tokens].tolist())
    assert {at: order[found[at]] for at in expected} == expected


def test_one_changed_weight_changes_what_is_found() -> None:
    tokens, expected = lookups(seed=1, length=300)
    checkpoint = lookup_model()
    checkpoint.weights["attn.1.in_proj_weight"][11, 5] = -2  # key (2k, -2k²): no longer a parabola
    found = predictions(HullEngine(checkpoint), tokens)
    assert {at: found[at] for at in expected} != expected


def test_what_cannot_matter_is_not_in_the_generated_code() -> None:
    checkpoint = random_model(8)
    config, weights = checkpoint.config, checkpoint.weights
    weights["attn.1.out_proj.weight"][:, 4:6] = 0  # head 2 of layer 1 is never read
    weights["value.2.weight"][3] = 0  # neuron 3 of layer 2 is always zero
    layers = live_layers(config, weights, support(weights["head.weight"]))
    assert 2 not in [head.index for head in layers[1].stored]
    assert 3 not in layers[2].neurons
    step = generate(config, weights).source.partition("def step")[2]
    layer_1 = step.partition("# layer 1, attention")[2].partition("# layer 2")[0]
    assert "h1_" in layer_1 and "h2_" not in layer_1
    tokens = random_tokens(3, 100)
    expected = predictions(StandardEngine(checkpoint), tokens)
    assert predictions(HullEngine(checkpoint), tokens) == expected


@pytest.mark.parametrize("part", ["gate", "value"])
def test_what_only_a_neuron_reads_is_live(part: str) -> None:
    """head -> slot 3 -> gate or value of a neuron -> slot 4 -> logits; the other part is 1."""
    one, number, fetched, result = 5, 2, 3, 4
    config = ModelConfig(3, d_model=6, n_heads=3, n_layers=1, d_ffn=2)
    weights = {name: np.zeros(shape) for name, shape in config.shapes.items()}
    weights["tok.weight"][:, number] = [0, 1, 2]
    weights["tok.weight"][:, one] = 1
    weights["attn.0.in_proj_weight"][12, number] = 1  # the latest token's number
    weights["attn.0.out_proj.weight"][fetched, 0] = 1
    weights["gate.0.weight"][0, fetched if part == "gate" else one] = 1
    weights["value.0.weight"][0, fetched if part == "value" else one] = 1
    weights["down.0.weight"][result, 0] = 1
    weights["head.weight"][:, result] = [0, 2, 4]
    weights["head.weight"][:, one] = [0, -1, -4]
    (layer,) = live_layers(config, weights, support(weights["head.weight"]))
    assert [head.index for head in layer.queried] == [0]
    assert layer.neurons == (0,)
    assert fetched in layer.after_attention and fetched not in layer.after_ffn
    checkpoint = Checkpoint(config, ("a", "b", "c"), weights)
    for make in (HullEngine, StandardEngine):
        assert predictions(make(checkpoint), [1, 2, 0, 2]) == [1, 2, 0, 2]


def test_heads_with_equal_keys_share_a_cache() -> None:
    checkpoint = random_model(8)
    before = len(generate(checkpoint.config, checkpoint.weights).caches)
    projection = checkpoint.weights["attn.0.in_proj_weight"]
    for head in range(1, 5):
        projection[12 + 2 * head : 14 + 2 * head] = projection[12:14]
    shared = generate(checkpoint.config, checkpoint.weights)
    assert len(shared.caches) < before
    first = [cache for cache in shared.caches if cache.name[0] == "0" and cache.mode == "latest"]
    assert len(first) == 1
    tokens = random_tokens(3, 100)
    expected = predictions(StandardEngine(checkpoint), tokens)
    assert predictions(HullEngine(checkpoint), tokens) == expected


def test_feeding_leaves_out_what_only_the_logits_need() -> None:
    source = lookup_source = HullEngine(lookup_model()).source
    feed, step = source.split("def step")
    assert "query_1" not in feed and "query_1" in step
    assert "query_0" in feed  # its result is in the keys of layer 1
    assert "head @" not in feed and "head @" in lookup_source


def test_hard_engines_do_not_import_torch() -> None:
    code = (
        "import sys; sys.path[:0] = ['tests', '.']\n"
        "from example_models import lookup_model\n"
        "from executor.decode import make_engine\n"
        "[make_engine(name, lookup_model()).step(1) for name in ('hull', 'standard')]\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)

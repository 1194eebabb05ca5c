"""Numeric witnesses: properties that any right decoder has, whatever its weights mean.

Prefill equals decode, chunks equal single tokens, the future is not seen, a wrong start and an
edited prefix are noticed, and the residual stream does not depend on the order of summation.
"""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from compiler import isa
from executor.checkpoint import Checkpoint
from executor.decode import Engine, decode, make_engine
from executor.loading import build_checkpoint
from executor.oracle import trace_tokens
from executor.standard_engine import StandardEngine
from hullcache import StandardKVCache
from probe import INPUT, probe, prompt_ids

ENGINES = ("hull", "standard", "torch")
COUNT = 80


def model_for(name: str) -> Checkpoint:
    return build_checkpoint("softmax" if name == "torch" else "hard")


@pytest.fixture(scope="module")
def sequence() -> tuple[list[int], int]:
    """Prompt and trace of the probe as ids, and the length of the prompt."""
    model = build_checkpoint()
    prompt = prompt_ids(model, probe(), (), INPUT)
    return prompt + model.encode(trace_tokens(probe(), stdin=INPUT, limit=10**6)), len(prompt)


def ready(name: str, ids: list[int], start: int) -> Engine:
    engine = make_engine(name, model_for(name))
    engine.feed(ids[: start - 1])
    return engine


@pytest.mark.parametrize("name", ENGINES)
def test_prefill_equals_decode_and_chunks_equal_single_tokens(
    name: str, sequence: tuple[list[int], int]
) -> None:
    ids, start = sequence
    known = ids[start - 1 : start - 1 + COUNT]
    whole = ready(name, ids, start).predict(known)
    single = ready(name, ids, start)
    assert [single.step(token) for token in known] == whole == ids[start : start + COUNT]
    chunked, rng, made = ready(name, ids, start), random.Random(3), []
    while len(made) < COUNT:
        made += chunked.predict(known[len(made) : len(made) + rng.randrange(1, 40)])
    assert made == whole


@pytest.mark.parametrize("name", ["standard", "torch"])
def test_tokens_of_a_chunk_do_not_see_later_ones(
    name: str, sequence: tuple[list[int], int]
) -> None:
    """The causal mask of a chunk is offset by what was read before."""
    ids, start = sequence
    known = ids[start - 1 : start + 60]
    changed = [*known[:30], *random.Random(4).choices(ids, k=31)]
    whole, other = (ready(name, ids, start).predict(tokens) for tokens in (known, changed))
    assert whole[:30] == other[:30]
    assert whole != other


@pytest.mark.parametrize("name", ENGINES)
def test_a_wrong_start_position_is_noticed(name: str, sequence: tuple[list[int], int]) -> None:
    """The same tokens one position later write another trace."""
    ids, start = sequence
    engine = make_engine(name, model_for(name))
    engine.feed([ids[0], *ids[: start - 1]])
    assert engine.predict(ids[start - 1 : start + 50]) != ids[start : start + 52]


@pytest.mark.parametrize("name", ENGINES)
def test_an_edited_prefix_changes_what_follows(name: str, sequence: tuple[list[int], int]) -> None:
    ids, start = sequence
    model = model_for(name)
    edited = list(ids)
    at = edited.index(model.ids["i32.const"]) + 1
    edited[at] = model.ids[isa.byte_token(0xA5)]
    engine = ready(name, edited, start)
    assert engine.predict(ids[start - 1 : start + 50]) != ids[start : start + 52]


@pytest.mark.parametrize("name", ENGINES)
def test_an_empty_prompt_is_refused(name: str) -> None:
    with pytest.raises(Exception, match="the prompt is empty"):
        next(decode(make_engine(name, model_for(name)), []))


def permuted(model: Checkpoint, seed: int) -> tuple[Checkpoint, np.ndarray]:
    """The same model with slots, heads and neurons in another order; the order of the slots."""
    rng = np.random.default_rng(seed)
    config, weights = model.config, {}
    slots = rng.permutation(config.d_model)
    place = np.argsort(slots)
    modes = []
    for name in ("tok.weight", "head.weight"):
        weights[name] = model.weights[name][:, slots]
    for layer in range(config.n_layers):
        heads = rng.permutation(config.n_heads)
        rows = np.concatenate([[2 * head, 2 * head + 1] for head in heads])
        neurons = rng.permutation(config.d_ffn)
        parts = model.weights[f"attn.{layer}.in_proj_weight"].reshape(3, config.d_model, -1)
        weights[f"attn.{layer}.in_proj_weight"] = parts[:, rows][:, :, slots].reshape(
            3 * config.d_model, -1
        )
        out = model.weights[f"attn.{layer}.out_proj.weight"]
        weights[f"attn.{layer}.out_proj.weight"] = out[slots][:, rows]
        for kind in ("gate", "value"):
            weights[f"{kind}.{layer}.weight"] = model.weights[f"{kind}.{layer}.weight"][neurons][
                :, slots
            ]
        down = model.weights[f"down.{layer}.weight"]
        weights[f"down.{layer}.weight"] = down[slots][:, neurons]
        modes.append(tuple(config.head_modes[layer][head] for head in heads))
    first, second = config.position_slots
    config = replace(
        config,
        head_modes=tuple(modes),
        position_slots=(int(place[first]), int(place[second])),
    )
    return replace(model, config=config, weights=weights), slots


@pytest.mark.parametrize(
    "count", [pytest.param(1500, id="few"), pytest.param(20_000, id="many", marks=pytest.mark.long)]
)
def test_the_residual_stream_does_not_depend_on_the_order_of_sums(
    sequence: tuple[list[int], int], count: int
) -> None:
    """Slots, heads and neurons permuted: every number of the last layer is the same to the bit."""
    ids, start = sequence
    model = build_checkpoint()
    shuffled, slots = permuted(model, 5)
    plain, other = StandardEngine(model), StandardEngine(shuffled)
    tokens = ids[: start + count]
    for at in range(0, len(tokens), 50):
        block = tokens[at : at + 50]
        one, two = plain.forward(block), other.forward(block)
        assert np.array_equal(one[:, slots], two), at


@pytest.mark.parametrize("seed", range(10))
def test_softmax_equals_streaming_softmax(seed: int) -> None:
    """The cache's softmax against the sum that is rescaled whenever the greatest score grows."""
    rng = np.random.default_rng(seed)
    cache = StandardKVCache(1, 1, attention="softmax", scale=1.0)
    top, weight, mixed = -np.inf, 0.0, np.zeros(2)
    query = rng.normal(size=(1, 2)) * 3
    for _ in range(40):
        key, value = rng.normal(size=(2, 1, 2)) * 2
        cache.append(0, key, value)
        score = float(query[0] @ key[0])
        scale = np.exp(top - max(top, score)) if weight else 0.0
        top = max(top, score)
        weight = weight * scale + np.exp(score - top)
        mixed = mixed * scale + np.exp(score - top) * value[0]
    assert np.allclose(cache.attend(0, query)[0], mixed / weight, rtol=1e-13, atol=1e-13)

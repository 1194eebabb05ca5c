"""Small models whose behaviour is known, for tests of engines: random ones and a lookup table."""

from __future__ import annotations

import numpy as np

from compiler.graph import Graph
from compiler.schedule import Plan
from compiler.weights_graph import graph_of_weights
from executor.checkpoint import Checkpoint
from executor.config import Mode, ModelConfig

VOCAB = 30
SNAP = 1.5 * 2.0**48


def random_model(seed: int, layers: int = 3) -> Checkpoint:
    """Sparse small-integer weights; arithmetic stays exact, so engines must agree on every token.

    To keep it exact, positions (slots 0, 1) are read by queries and keys only, layer 1 has no
    feed-forward, and the `mean` heads add to slot 10 alone, which holds ``SNAP`` and so rounds
    what it takes to 1/16. Only the logits read it; slot 11 is 1, for them to subtract ``SNAP``.
    """
    rng = np.random.default_rng(seed)
    modes: tuple[tuple[Mode, ...], ...] = ((*("latest",) * 5, "mean"),) * layers
    config = ModelConfig(
        VOCAB, d_model=12, n_heads=6, n_layers=layers, d_ffn=8, head_modes=modes, stop_tokens=(0,)
    )

    def draw(shape: tuple[int, ...], density: float) -> np.ndarray:
        return rng.integers(-2, 3, shape) * (rng.random(shape) < density) * 1.0

    density = (0.06, 0.12, 0.2)[seed % 3]
    weights = {name: draw(shape, density) for name, shape in config.shapes.items()}
    weights["tok.weight"] = draw((VOCAB, 12), 0.6)
    weights["tok.weight"][:, 2] = 1.0
    weights["tok.weight"][:, 10:] = SNAP, 1.0
    weights["head.weight"] = draw((VOCAB, 12), 0.5)
    weights["head.weight"][:, :2] = 0.0
    weights["head.weight"][:, 10] = rng.integers(0, 2, VOCAB)
    weights["head.weight"][:, 11] = -SNAP * weights["head.weight"][:, 10]
    for layer in range(layers):
        projection = weights[f"attn.{layer}.in_proj_weight"]
        projection[24:, :2] = 0.0
        projection[:, 10:] = 0.0
        if seed % 2:
            projection[22:24] = projection[12:14]  # the `mean` head has the keys of head 0
        out = weights[f"attn.{layer}.out_proj.weight"]
        out[:2] = 0.0
        out[10:] = 0.0
        out[:, 10:] = 0.0
        out[10, 10] = 1.0
        for name in ("gate", "value"):
            weights[f"{name}.{layer}.weight"][:, :2] = 0.0
            weights[f"{name}.{layer}.weight"][:, 10:] = 0.0
        weights[f"down.{layer}.weight"][:2] = 0.0
        weights[f"down.{layer}.weight"][10:] = 0.0
    weights["down.1.weight"][:] = 0.0
    return Checkpoint(config, tuple(f"t{i}" for i in range(VOCAB)), weights)


N_KEYS = 8
"""Tokens 0..7 are keys, 8..15 values, 16 the stop token."""


def lookup_model(softmax_tokens: int | None = None) -> Checkpoint:
    """``key value`` pairs write, a key token reads: the next token is the key's latest value.

    Layer 0 fetches the key number before each value token, layer 1 is the table: key (2k, -k²),
    query (k, 1), the latest of equal keys. With ``softmax_tokens``, the same for plain softmax.
    """
    one, number, square, fetched, fetched_square, result, is_value = range(2, 9)
    position, position_squared = 0, 1
    config = ModelConfig(
        17, d_model=10, n_heads=5, n_layers=2, d_ffn=2, stop_tokens=(16,),
        attention="softmax" if softmax_tokens else "hard",
    )  # fmt: skip
    weights = {name: np.zeros(shape) for name, shape in config.shapes.items()}
    tokens = weights["tok.weight"]
    tokens[:, one] = 1
    for k in range(N_KEYS):
        tokens[k, [number, square]] = k, k * k
        tokens[8 + k, [number, is_value]] = k, 1

    first = weights["attn.0.in_proj_weight"]
    first[0, [position, one]] = 1, -1  # query (p - 1, 1)
    first[1, one] = 1
    first[10, position] = 2  # key (2p, -p²)
    first[11, position_squared] = -1
    first[20, number], first[21, square] = 1, 1
    weights["attn.0.out_proj.weight"][fetched, 0] = 1
    weights["attn.0.out_proj.weight"][fetched_square, 1] = 1

    table = weights["attn.1.in_proj_weight"]
    table[0, number], table[1, one] = 1, 1
    table[10, fetched] = 2
    table[11, [fetched_square, one, is_value]] = -1, -1000, 1000  # only value tokens write
    table[20, number] = 1
    weights["attn.1.out_proj.weight"][result, 0] = 1

    for k in range(N_KEYS):  # the greatest of 2·b·y - b² is at b = y
        weights["head.weight"][8 + k, [result, one]] = 2 * k, -k * k
    weights["head.weight"][16, one] = -1000
    weights["head.weight"][:N_KEYS, one] = -1000
    if softmax_tokens:
        table[11, position] += 1 / (2 * softmax_tokens)
        first[:10] *= 2.0**30 * np.sqrt(2)
        table[:10] *= 2.0**30 * np.sqrt(2)
    return Checkpoint(config, tuple(f"t{i}" for i in range(17)), weights)


def graph_of(checkpoint: Checkpoint) -> tuple[Graph, Plan]:
    """The graph that a model's weights are read as."""
    config = checkpoint.config
    return graph_of_weights(
        checkpoint.weights,
        checkpoint.vocabulary,
        config.n_heads,
        config.n_layers,
        config.position_slots,
        config.head_modes,
    )


def lookups(seed: int, length: int) -> tuple[list[int], dict[int, int]]:
    """Tokens for the lookup model, and what must follow at the positions of reads."""
    rng = np.random.default_rng(seed)
    tokens: list[int] = []
    expected: dict[int, int] = {}
    table: dict[int, int] = {}
    while len(tokens) < length:
        key = int(rng.integers(N_KEYS))
        if key in table and rng.random() < 0.5:
            expected[len(tokens)] = table[key]
            tokens += [key, table[key]]
        else:
            table[key] = int(rng.integers(8, 16))
            tokens += [key, table[key]]
    return tokens, expected

"""Random small transformers for the native engine, with heads of every class forced into them.

They are the random models of :mod:`example_models`, whose arithmetic is exact, with some heads made
over. Slots 8 and 9 hold a number of the token and its square, 6 and 7 the same of the token before.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from example_models import VOCAB, random_model
from executor.checkpoint import Array, Checkpoint

N_MODELS = 300
ONE, BEFORE, SQUARE_BEFORE, NUMBER, SQUARE = 2, 6, 7, 8, 9
HEADS, MEAN_HEAD = 6, 5
Rows = tuple[Array, Array]
"""Query and key of one head, each (2, d_model)."""


def _rows() -> Rows:
    return np.zeros((2, 12)), np.zeros((2, 12))


def _positions(rng: np.random.Generator) -> Rows:
    query, key = _rows()
    scale = float(rng.choice([0.5, 1.0, 2.0]))
    key[0, 0], key[1, 1] = 2 * scale, -scale
    query[1, ONE] = float(rng.choice([1.0, 2.0]))
    return query, key


def itself(rng: np.random.Generator) -> Rows:
    """The own position."""
    query, key = _positions(rng)
    query[0, 0] = query[1, ONE]
    return query, key


def tokens_back(rng: np.random.Generator) -> Rows:
    """A fixed distance back, half tokens too."""
    query, key = _positions(rng)
    query[0, 0] = query[1, ONE]
    query[0, ONE] = -float(rng.integers(0, 9)) / 2 * query[1, ONE]
    return query, key


def position(rng: np.random.Generator) -> Rows:
    """A position that is computed, sometimes negative or beyond the end, with ties at halves."""
    query, key = _positions(rng)
    query[0, NUMBER], query[0, ONE] = rng.integers(-3, 4), rng.integers(-3, 20) / 2
    query[0, int(rng.integers(3, 6))] = rng.integers(-2, 3) / 2
    return query, key


def quotient(rng: np.random.Generator) -> Rows:
    """A quotient of two quantities, the divisor of any sign."""
    query, key = _positions(rng)
    query[0, NUMBER], query[0, ONE] = rng.integers(1, 30), rng.integers(-3, 30)
    query[1, ONE], query[1, int(rng.integers(3, 6))] = 3.0, rng.integers(-2, 3)
    return query, key


def uniform(rng: np.random.Generator) -> Rows:
    """All keys alike, or a query of zero."""
    query, key = _rows()
    if rng.random() < 0.5:
        key[0, ONE] = rng.integers(-2, 3)
        query[0, NUMBER] = 1.0
    else:
        key[0, NUMBER] = 1.0
    return query, key


def extreme(rng: np.random.Generator) -> Rows:
    """The greatest or least of one component."""
    query, key = _rows()
    axis = int(rng.integers(2))
    query[axis, ONE] = rng.choice([-2.0, 1.0])
    key[axis, NUMBER], key[axis, int(rng.integers(3, 6))] = 1.0, rng.integers(-1, 2)
    return query, key


def few_valued(rng: np.random.Generator) -> Rows:
    """Keys of the token: few, on a line, with ties."""
    query, key = _rows()
    key[0, NUMBER], key[1, NUMBER] = 1.0, rng.integers(-1, 2)
    query[0, int(rng.integers(3, 6))], query[0, ONE] = 1.0, rng.integers(-1, 2)
    query[1, int(rng.integers(3, 6))], query[1, ONE] = -1.0, rng.integers(-1, 2)
    return query, key


def indexed(rng: np.random.Generator) -> Rows:
    """Keys (2k, -k²) of the number before; queries between and beyond the keys too."""
    query, key = _rows()
    key[0, BEFORE], key[1, SQUARE_BEFORE] = 2.0, -1.0
    query[1, ONE] = rng.choice([1.0, 2.0])
    query[0, NUMBER], query[0, ONE] = rng.integers(-1, 3) / 2, rng.integers(-4, 5) / 2
    return query, key


def nearly_indexed(rng: np.random.Generator) -> Rows:
    """The same, but some keys are off the parabola."""
    query, key = indexed(rng)
    key[1, int(rng.integers(3, 6))] = rng.integers(-1, 2)
    key[0, int(rng.integers(3, 6))] = rng.integers(-1, 2)
    return query, key


CLASSES: tuple[Callable[[np.random.Generator], Rows], ...] = (
    itself, tokens_back, position, quotient, uniform, extreme, few_valued, indexed, nearly_indexed,
)  # fmt: skip


def native_model(seed: int) -> Checkpoint:
    """Model number ``seed`` of ``N_MODELS``; a third of them keep most of their general keys."""
    rng = np.random.default_rng(1000 + seed)
    checkpoint = random_model(seed)
    weights = checkpoint.weights
    numbers = rng.integers(-4, 9, VOCAB) * 1.0
    tokens = weights["tok.weight"]
    tokens[:, BEFORE : SQUARE_BEFORE + 1] = 0.0
    tokens[:, NUMBER], tokens[:, SQUARE] = numbers, numbers**2
    if seed % 3:
        tokens[:, :2] = 0.0  # else the position's slots hold something of the token as well
    for layer in range(checkpoint.config.n_layers):
        weights[f"attn.{layer}.out_proj.weight"][BEFORE : SQUARE + 1] = 0.0
        weights[f"down.{layer}.weight"][BEFORE : SQUARE + 1] = 0.0
        n_forced = 1 if seed % 3 == 0 else 5
        chosen = [(seed * 5 + layer * 3 + i) % len(CLASSES) for i in range(n_forced)]
        heads = rng.permutation(np.arange(1 if layer == 0 else 0, HEADS))
        for number, head in zip(chosen, heads, strict=False):
            _set_head(checkpoint, layer, int(head), CLASSES[number](rng))
    _set_head(checkpoint, 0, 0, _one_back())
    first = weights["attn.0.in_proj_weight"]
    first[24:26] = 0.0
    first[24, NUMBER] = first[25, SQUARE] = 1.0
    out = weights["attn.0.out_proj.weight"]
    out[:, :2] = 0.0
    out[BEFORE, 0] = out[SQUARE_BEFORE, 1] = 1.0
    weights["head.weight"][:, [SQUARE_BEFORE, SQUARE]] = 0.0
    if seed % 4 == 0:  # a family in the output head: 2·b·y - b²
        b = rng.permutation(VOCAB // 2) * 1.0
        head = weights["head.weight"]
        head[: VOCAB // 2, :10] = 0.0
        head[: VOCAB // 2, 3], head[: VOCAB // 2, ONE] = 2 * b, -(b**2)
    return checkpoint


def _one_back() -> Rows:
    query, key = _rows()
    query[0, 0], query[0, ONE], query[1, ONE] = 1.0, -1.0, 1.0
    key[0, 0], key[1, 1] = 2.0, -1.0
    return query, key


def _set_head(checkpoint: Checkpoint, layer: int, head: int, rows: Rows) -> None:
    projection = checkpoint.weights[f"attn.{layer}.in_proj_weight"]
    for part, values in enumerate(rows):
        projection[12 * part + 2 * head : 12 * part + 2 * head + 2] = values

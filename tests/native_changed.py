"""The random models of the native engine with a few weights changed, at random and to anything.

What is no longer exact depends on the order of operations, which has to be that of the plain code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from example_models import random_model
from executor.checkpoint import Array, Checkpoint
from native_models import native_model, split_model
from native_rich import rich_model
from native_rough import rough_model

Change = Callable[[Array, int, int, np.random.Generator], None]
"""Of a matrix, beginning with a weight that is not zero."""


def _factor(rows: Array, i: int, j: int, rng: np.random.Generator) -> None:
    rows[i, j] *= rng.choice([0.0, -1.0, 2.0, 0.3, 1.1, 1 / 3])


def _scale(rows: Array, i: int, j: int, rng: np.random.Generator) -> None:
    rows[i, j] *= 2.0 ** int(rng.integers(-30, 40))


def _step(rows: Array, i: int, j: int, rng: np.random.Generator) -> None:
    rows[i, j] += rng.choice([-1.0, -0.5, 0.5, 1.0])


def _another_column(rows: Array, i: int, j: int, rng: np.random.Generator) -> None:
    rows[i, rng.integers(rows.shape[1])] += rng.choice([-1.0, 0.5, 1.0, 2.0])


def _another_row(rows: Array, i: int, j: int, rng: np.random.Generator) -> None:
    rows[rng.integers(rows.shape[0]), j] += rows[i, j]


def _row_again(rows: Array, i: int, j: int, rng: np.random.Generator) -> None:
    rows[i] = rows[rng.integers(rows.shape[0])]


def _column_again(rows: Array, i: int, j: int, rng: np.random.Generator) -> None:
    rows[:, j] = rows[:, rng.integers(rows.shape[1])]


CHANGES: tuple[Change, ...] = (
    _factor, _scale, _step, _another_column, _another_row, _row_again, _column_again,
)  # fmt: skip
MODELS = (rich_model, rich_model, rich_model, native_model, split_model, random_model, rough_model)


def changed_model(seed: int) -> Checkpoint:
    """Model number ``seed``, with one to four changes."""
    rng = np.random.default_rng([seed, 77])
    model = MODELS[seed % len(MODELS)](seed)
    return replace(model, weights=changed(model.weights, rng))


def changed(weights: Mapping[str, Array], rng: np.random.Generator) -> dict[str, Array]:
    """The same weights with one to four changes."""
    found = {name: array.copy() for name, array in weights.items()}
    for _ in range(int(rng.integers(1, 5))):
        rows = found[str(rng.choice(sorted(found)))]
        there = np.argwhere(rows)
        if len(there):
            i, j = (int(x) for x in there[rng.integers(len(there))])
            CHANGES[rng.integers(len(CHANGES))](rows, i, j, rng)
    return found

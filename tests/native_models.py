"""Random small transformers for the native engine, with heads of every class forced into them.

They are the random models of :mod:`example_models`, whose arithmetic is exact, with some heads made
over. Slots 8 and 9 hold a number of the token and its square, 6 and 7 the same of the token before.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from example_models import VOCAB, random_model
from executor.checkpoint import Array, Checkpoint
from executor.config import ModelConfig

N_MODELS = 300
ONE, BEFORE, SQUARE_BEFORE, NUMBER, SQUARE = 2, 6, 7, 8, 9
HEADS, MEAN_HEAD = 6, 5
Entry = dict[int, float]
Row = tuple[Entry, Entry]
"""Two rows of weights, by slot."""
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


def split_model(
    seed: int, stride: float = 1, least: int = 0, part: float = 1.0, sides: int = 0,
    scale: float = 1.0, lasting: bool = False, tabled: bool = False,
    writer: bool = False, alone: bool = False,
) -> Checkpoint:  # fmt: skip
    """A small interpreter with everything that splits specialised code, otherwise random.

    A marked token is the latest of an extreme and moves a cursor, a running sum. The code of the
    token at the cursor opens one neuron each, other neurons count how far back the mark is. Marked
    tokens also write to a table, by a key that is one of its values; all others have key 0. With
    each key goes what a structure of few keys finds at that time, which one code alone reads: even
    tokens have one of the keys, odd ones all.

    Args:
        stride: how far a marked token moves the cursor; if it is not 1, some other tokens move it
            by one less.
        least: the least key of the table, times ``scale``.
        part: what neurons compute is a multiple of it.
        sides: of how many neurons the square of a key is the sum, each a product of the key by
            itself where it is positive, or negative; 0: it is a number of a token. If it is such
            a sum, the keys of even tokens are integers that are small and not negative.
        lasting: whether no value of the table depends on the cursor, so that nothing has to be
            computed before that moves.
        tabled: whether the number of a token is a position, for most tokens one of the first.
        writer: whether that one code reads a number of the token that wrote the key instead.
        alone: whether a record has no other values than the key.
    """
    rng = np.random.default_rng(2000 + seed)
    vocab, codes, wide, snap = 40, 6, 24, 1.5 * 2.0**48
    p, square, one, mark, code, code_square, step, number, number_square = range(9)
    latest, mean, total, got, got_square, key, key_square, found, out, there, there_square = range(
        9, 20
    )
    digit, digit_square, nearest, seen = range(20, 24)
    modes = (("latest", "mean", "latest", "latest"),) + (("latest",) * 4,) * 2
    config = ModelConfig(
        vocab, d_model=wide, n_heads=12, n_layers=3, d_ffn=20, stop_tokens=(0,),
        head_modes=tuple((*layer, *("latest",) * 8) for layer in modes),
    )  # fmt: skip
    weights = {name: np.zeros(shape) for name, shape in config.shapes.items()}
    tokens = weights["tok.weight"]
    tokens[:, digit] = np.minimum(rng.permutation(vocab) // 2, 14) * (np.arange(vocab) % 2)
    tokens[:, digit_square] = tokens[:, digit] ** 2
    tokens[:, one], tokens[:, total] = 1.0, snap
    tokens[:, mark] = tokens[:, step] = rng.random(vocab) < 0.3
    tokens[0, mark] = 1.0
    tokens[:, step] *= stride
    if stride > 1:
        tokens[20:24, mark], tokens[20:24, step] = 0.0, stride - 1.0
    tokens[:, code] = rng.integers(0, codes, vocab)
    tokens[:, number] = rng.integers(least, 6, vocab) * (rng.random(vocab) < 0.8)
    tokens[:, number] *= scale
    if sides:
        tokens[::2, number] = np.floor(min(2 * scale, 64)) * (tokens[::2, number] / scale % 2)
    tokens[:, code_square], tokens[:, number_square] = tokens[:, code] ** 2, tokens[:, number] ** 2

    def head(layer: int, n: int, query: Row, keys: Row, values: Row, outs: tuple[int, ...]) -> None:
        rows = weights[f"attn.{layer}.in_proj_weight"].reshape(3, -1, wide)
        for part, entries in enumerate((query, keys, values)):
            for component, entry in enumerate(entries):
                for slot, weight in entry.items():
                    rows[part, 2 * n + component, slot] = weight
        for component, slot in enumerate(outs):
            weights[f"attn.{layer}.out_proj.weight"][slot, 2 * n + component] = 1.0

    def neuron(layer: int, n: int, gate: Entry, value: Entry, slot: int, down: float) -> None:
        for slot_, weight in gate.items():
            weights[f"gate.{layer}.weight"][n, slot_] = weight
        for slot_, weight in value.items():
            weights[f"value.{layer}.weight"][n, slot_] = weight
        weights[f"down.{layer}.weight"][slot, n] = down

    by_position: Row = ({p: 2.0}, {square: -1.0})
    head(0, 0, ({one: 1.0}, {}), ({mark: 1.0}, {}), ({p: 1.0}, {}), (latest,))
    head(0, 1, ({}, {}), ({}, {}), ({step: 1.0}, {}), (mean,))
    neuron(0, 0, {p: 1.0, one: 1.0}, {mean: 1.0}, total, 1.0)
    cursor = {total: 1.0, one: -snap}
    head(
        1,
        0,
        (cursor, {one: 1.0}),
        by_position,
        ({code: 1.0}, {code_square: 1.0}),
        (got, got_square),
    )
    tilt = 0.25 * (seed % 2 == 0)  # then no two keys can tie
    digits: Row = ({digit: 2.0}, {digit_square: -1.0, digit: tilt})
    head(1, 2, ({number: 3.0}, {one: 1.0}), digits, ({digit: 1.0}, {}), (nearest,))
    if tabled:
        first = ({digit: 1.0}, {one: 1.0})
        head(1, 3, first, by_position, ({number: 1.0}, {}), (found,))
    before = ({p: 1.0, one: -1.0}, {one: 1.0})
    numbers: Row = ({number: 1.0}, {number_square: 1.0})
    head(1, 1, before, by_position, numbers, (there, there_square))
    neuron(1, 18, {mark: 1.0}, {there: 1.0}, key, 1.0)
    if not sides:
        neuron(1, 19, {mark: 1.0}, {there_square: 1.0}, key_square, 1.0)
    for side in range(sides):
        sign, off = (-1.0) ** side, 64.0 * scale
        gate = {there: sign, mark: off, one: -off}
        neuron(1, 16 + side, gate, {there: sign}, key_square, 1.0)
    for c in range(codes):
        value = {slot: part * float(rng.integers(-2, 3)) for slot in (number, there, one)}
        gate = {one: 1.0 - c * c, got: 2.0 * c, got_square: -1.0}
        neuron(1, c, gate, value, out, 1.0)
    for n, distance in enumerate(rng.permutation(6)[:3]):
        jump = float(rng.integers(1, 5))
        for i in (0, 1):
            counted = {there: 1.0, number: 1.0} if n else {p: 1.0, latest: -1.0}
            gate = {**counted, one: -float(distance) + i}
            neuron(1, codes + 2 * n + i, gate, {one: 1.0}, out, jump if i else -jump)
    table: Row = ({key: 2.0}, {key_square: -1.0})
    query = {there: 1.0, one: float(rng.integers(-1, 2))}
    head(
        2,
        0,
        (query, {one: 1.0}),
        table,
        ({key: 1.0}, {key if alone else there if lasting else out: 1.0}),
        (found, out),
    )
    head(2, 1, (query, {one: 1.0}), table, ({code if writer else nearest: 1.0}, {}), (seen,))
    gate = {one: 1.0 - 4.0, got: 4.0, got_square: -1.0}
    neuron(2, 0, gate, {seen: 1.0}, out, 1.0)
    neuron(2, 1, {found: 1.0, one: 0.5}, {one: 2.0}, out, 1.0)
    rows = weights["head.weight"]
    b = np.arange(30.0)
    rows[:30, out], rows[:30, one] = 2 * b, -(b**2)
    rows[30:, [out, found, got, one]] = rng.integers(-3, 4, (vocab - 30, 4))
    rows[30:, one] -= 3.0
    prompt = tuple(rng.integers(0, vocab, 10).tolist()) if seed % 3 == 0 else ()
    return Checkpoint(config, tuple(map(str, range(vocab))), weights, (0, *prompt))

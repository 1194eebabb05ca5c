"""A teacher-forced pass in which every dot product is computed in several ways.

In: a model for hard attention, known tokens, and *ways* to compute dot products: the order of
the terms, fused multiply-add or not, and whose code does it (NumPy, BLAS, torch, a C compiler).
Out: every difference in the bits between the first way and the others, half-layer by half-layer.
All positions of a layer are computed at once, which known tokens allow.

The winner of a head is found once, from the projections of the first way. A head that averages
is inexact: its sum is rounded when it is divided, and ways may differ. They must agree again where
the snapping neuron has rounded the sum, so slots that hold a mean are left out of the comparison
while they hold it (:func:`blurred`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import torch

from compiler.build import Machine
from compiler.graph import Lookup
from executor.checkpoint import Array, Checkpoint
from hullcache import HullHead

Dot = Callable[[Array, Array, Array | None], Array]
"""``dot(x, w, start)[t, m]`` is the sum of ``x[t, n] * w[m, n]`` over n, and ``start[t, m]``;
w may have a row of its own for each position: (T, M, N)."""
Mean = Callable[[Array], Array]
"""Means of the rows 0..t of (T, 2), for each t."""


@dataclass(frozen=True)
class Way:
    """One way to compute. ``contracted``: a neuron's product is fused into the sum it goes to."""

    name: str
    dot: Dot
    mean: Mean
    contracted: bool = False


# --- ways to add up ------------------------------------------------------------------------------


def in_order(order: Callable[[int], Sequence[int]]) -> Dot:
    """Term by term, each product and each sum rounded; ``order(n)`` permutes range(n).

    Term 0 is ``start``, so that what stood in the stream is added anywhere among the rest.
    """

    def dot(x: Array, w: Array, start: Array | None) -> Array:
        total: Array = np.zeros((len(x), w.shape[-2]))
        for term in order(x.shape[1] + 1):
            if term:
                total += x[:, term - 1, None] * w[..., term - 1]
            elif start is not None:
                total += start
        return total

    return dot


def forward(count: int) -> Sequence[int]:
    """Left to right."""
    return range(count)


def backward(count: int) -> Sequence[int]:
    """Right to left."""
    return range(count)[::-1]


def shuffled(seed: int) -> Callable[[int], Sequence[int]]:
    """Another permutation at every call."""
    rng = np.random.default_rng(seed)
    return lambda count: rng.permutation(count).tolist()


def einsum(x: Array, w: Array, start: Array | None) -> Array:
    """NumPy's own loops."""
    total: Array = np.einsum("tn,mn->tm" if w.ndim == 2 else "tn,tmn->tm", x, w)
    return total if start is None else start + total


def blas(x: Array, w: Array, start: Array | None) -> Array:
    """NumPy's matmul: BLAS, all positions at once."""
    total: Array = x @ w.T if w.ndim == 2 else (w @ x[:, :, None])[:, :, 0]
    return total if start is None else start + total


def blas_rows(x: Array, w: Array, start: Array | None) -> Array:
    """BLAS, one position at a time, as a decoder calls it."""
    rows = [(w if w.ndim == 2 else w[t]) @ row for t, row in enumerate(x)]
    total = np.stack(rows)
    return total if start is None else start + total


def torch_linear(x: Array, w: Array, start: Array | None) -> Array:
    """torch's float64 linear layer; with ``start``, fused into ``addmm``."""
    a, b = torch.from_numpy(np.ascontiguousarray(x)), torch.from_numpy(np.ascontiguousarray(w))
    if w.ndim == 3:
        total = torch.bmm(b, a[:, :, None])[:, :, 0]
    elif start is None:
        total = torch.nn.functional.linear(a, b)
    else:
        return np.asarray(torch.addmm(torch.from_numpy(start), a, b.T).numpy())
    return np.asarray((total if start is None else torch.from_numpy(start) + total).numpy())


# --- ways to average -----------------------------------------------------------------------------


def mean_of_sum(values: Array) -> Array:
    """The running sum over the number of tokens."""
    count = np.arange(1.0, len(values) + 1)
    total: Array = np.cumsum(values, axis=0) / count[:, None]
    return total


def mean_by_weights(values: Array, block: int = 256) -> Array:
    """As softmax does: every weight 1/n is rounded before it meets its value. O(T²)."""
    time = len(values)
    out = np.empty_like(values)
    for at in range(0, time, block):
        rows = np.arange(at, min(at + block, time))
        seen = values[: rows[-1] + 1]
        weights = (np.arange(len(seen)) <= rows[:, None]) / (rows[:, None] + 1.0)
        out[rows] = weights @ seen
    return out


# --- winners -------------------------------------------------------------------------------------


def winners_of(queries: Array, keys: Array) -> np.ndarray:
    """For each position the earlier one with the greatest score, the latest of equals; (T, 2)."""
    p = np.arange(len(keys), dtype=np.float64)
    by_position = np.array_equal(keys, np.stack([2 * p, -p * p], axis=1))
    if by_position and (queries[:, 1] > 0).all():
        return _nearest(queries, p)
    head, found = HullHead("latest", 1), []
    rows = zip(queries.tolist(), keys.tolist(), strict=True)
    for t, ((qx, qy), (kx, ky)) in enumerate(rows):
        head.insert(kx, ky, (float(t),))
        found.append(head.query(qx, qy)[0])
    return np.array(found, dtype=np.int64)


def _nearest(queries: Array, p: Array) -> np.ndarray:
    """Keys (2p, -p²): the position nearest to qx / qy, among the four around the quotient."""
    qx, qy = queries.T
    best, top = np.zeros(len(p)), np.full(len(p), -np.inf)
    quotient = np.floor(qx / qy)
    for step in (-1, 0, 1, 2):
        at = np.clip(quotient + step, 0, p)
        score = qx * 2 * at - qy * at * at
        better = (score > top) | ((score == top) & (at > best))
        best, top = np.where(better, at, best), np.where(better, score, top)
    return best.astype(np.int64)


def true_winner(query: Array, keys: Array) -> int:
    """The latest position with the greatest score: doubles narrow the search, fractions decide."""
    parts = keys * query
    scores, slack = parts.sum(axis=1), np.abs(parts).sum(axis=1) * 2.0**-50
    close = np.flatnonzero(scores + slack >= np.max(scores - slack))
    latest = {tuple(keys[position].tolist()): int(position) for position in close}
    qx, qy = map(Fraction, query.tolist())
    exact = [(Fraction(x) * qx + Fraction(y) * qy, at) for (x, y), at in latest.items()]
    return max(exact)[1]


# --- the pass ------------------------------------------------------------------------------------


def blurred(machine: Machine) -> list[set[int]]:
    """For each half-layer the slots that hold a mean when it is done."""
    graph, plan = machine.graph, machine.plan
    table: list[set[int]] = [set() for _ in range(plan.shape.end)]
    for node in graph.nodes.values():
        for term in node.terms if isinstance(node, Lookup) and node.mode == "mean" else ():
            for time in range(plan.times[node.name], plan.erased.get(term.target, plan.shape.end)):
                table[time].add(plan.slots[term.target])
    return table


@dataclass(frozen=True)
class Layer:
    """What one way made of one layer; (T, ...) each."""

    projected: Array
    scores: Array
    between: Array
    gates: Array
    values: Array
    stream: Array


@dataclass(frozen=True)
class Attention:
    """Who wins, and rivals to compare the scores of: (T, heads), (T, heads, rivals)."""

    live: list[int]
    """Heads with the mode ``latest`` that fetch anything."""
    mean: list[int]
    winners: np.ndarray
    rivals: np.ndarray


class Pass:
    """All layers over known tokens, in all ways.

    ``blind`` is what :func:`blurred` returns. ``streams`` are the residual streams of the ways so
    far; ``attention`` and ``projected`` belong to the layer done last.
    """

    def __init__(
        self, model: Checkpoint, ids: Sequence[int], ways: Sequence[Way], blind: list[set[int]]
    ) -> None:
        self.model, self.ways, self.blind = model, ways, blind
        p = np.arange(len(ids), dtype=np.float64)
        stream: Array = model.weights["tok.weight"][np.asarray(ids)]
        first, second = model.config.position_slots
        stream[:, first] += p
        stream[:, second] += p * p
        self.streams = [stream] * len(ways)
        self.attention: Attention
        self.projected: Array

    def layer(self, layer: int) -> Iterator[str]:
        """Do the next layer in all ways; yields every difference from the first way, in words."""
        weight = self.model.weights[f"attn.{layer}.in_proj_weight"]
        self.projected = self.ways[0].dot(self.streams[0], weight, None)
        self.attention = self._attend(layer, self.projected)
        reference: Layer | None = None
        for number, way in enumerate(self.ways):
            made = self._compute(layer, way, self.streams[number])
            if reference is None:
                reference = made
            for fault in self._compare(layer, reference, made):
                yield f"layer {layer}, {way.name}: {fault}"
            self.streams[number] = made.stream

    def parts(self, projected: Array) -> Array:
        """(T, 3 d_model) to queries, keys and values: (3, heads, T, 2)."""
        config = self.model.config
        shape = (len(projected), 3, config.n_heads, 2)
        return projected.reshape(shape).transpose(1, 2, 0, 3)

    def _attend(self, layer: int, projected: Array) -> Attention:
        config = self.model.config
        query, key, value = self.parts(projected)
        modes = config.head_modes[layer]
        used = [head for head in range(config.n_heads) if value[head].any()]
        live = [head for head in used if modes[head] == "latest"]
        winners = np.stack([winners_of(query[h], key[h]) for h in live], axis=1)
        p = np.arange(len(projected))[:, None]
        # Scores of positions far beyond the winner may be rounded: compiler/score_bits.py.
        near = np.minimum(p, 2 * winners + 2)
        anywhere = np.random.default_rng(layer).integers(0, near + 1)
        rivals = np.stack([winners, winners - 1, winners + 1, anywhere], axis=2)
        rivals = np.clip(rivals, 0, p[:, :, None])
        return Attention(live, [h for h in used if modes[h] == "mean"], winners, rivals)

    def _compute(self, layer: int, way: Way, stream: Array) -> Layer:
        weights, time = self.model.weights, len(stream)
        projected = way.dot(stream, weights[f"attn.{layer}.in_proj_weight"], None)
        query, key, value = self.parts(projected)
        scores, mixed = [], np.zeros((time, self.model.config.n_heads, 2))
        for column, head in enumerate(self.attention.live):
            mixed[:, head] = value[head][self.attention.winners[:, column]]
            rivals = key[head][self.attention.rivals[:, column]]  # (T, rivals, 2)
            scores.append(way.dot(query[head], rivals, None))
        for head in self.attention.mean:
            mixed[:, head] = way.mean(value[head])
        out = weights[f"attn.{layer}.out_proj.weight"]
        between = way.dot(mixed.reshape(time, -1), out, stream)
        gates = np.maximum(way.dot(between, weights[f"gate.{layer}.weight"], None), 0.0)
        values = way.dot(between, weights[f"value.{layer}.weight"], None)
        down = weights[f"down.{layer}.weight"]
        made = (_contracted if way.contracted else _products)(way.dot, gates, values, down, between)
        return Layer(projected, np.stack(scores, axis=1), between, gates, values, made)

    def _compare(self, layer: int, one: Layer, other: Layer) -> Iterator[str]:
        """What differs, in words."""
        before, after = (sorted(self.blind[time]) for time in (2 * layer, 2 * layer + 1))
        reads_means = self.model.weights[f"value.{layer}.weight"][:, before].any(axis=1)
        left_out: dict[str, list[int]] = {
            "projected": [],
            "scores": [],
            "between": before,
            "gates": [],
            "values": np.flatnonzero(reads_means).tolist(),
            "stream": after,
        }
        for name, columns in left_out.items():
            a, b = (np.delete(getattr(made, name), columns, axis=1) for made in (one, other))
            if count := different(a, b):
                yield f"{count} numbers of {name}"


def different(a: Array, b: Array) -> int:
    """How many numbers differ in a bit, the sign of zero aside."""
    x, y = (np.ascontiguousarray(array + 0.0).view(np.int64) for array in (a, b))
    return int(np.count_nonzero(x != y))


def _products(dot: Dot, gates: Array, values: Array, down: Array, start: Array) -> Array:
    return dot(gates * values, down, start)


def _contracted(dot: Dot, gates: Array, values: Array, down: Array, start: Array) -> Array:
    """The sum of (down · gate) · value: with fused steps the product is never rounded."""
    blocks = [slice(at, at + 256) for at in range(0, len(start), 256)]
    made = [dot(values[b], gates[b, None, :] * down, start[b]) for b in blocks]
    return np.concatenate(made)

"""A model run over a known sequence, all positions at once, layer by layer, hard attention.

In: a model, token ids, the positions to look at. Out: an :class:`Explanation`. Every position is
computed, for later layers look back at all of them; what is kept is kept for those asked for. For
these every head is also ranked by a scan of all its keys, which must agree with the quick answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from compiler.errors import UsageError
from executor.checkpoint import Array, Checkpoint
from executor.inside.explanation import (
    Answer,
    Attention,
    Explanation,
    FeedForward,
    Floats,
    Integers,
    Layer,
)
from executor.inside.ranking import rank
from executor.inside.relevance import mark_used
from executor.inside.winners import Keys
from executor.liveness import live_layers, support

TOP = 5
"""Logits that are kept."""

Progress = Callable[[float], None]
"""Told which part of the work is done, from 0 to 1."""


def explain_tokens(
    checkpoint: Checkpoint,
    tokens: Sequence[int] | NDArray[np.integer],
    positions: Sequence[int],
    n_prompt: int = 0,
    top: int = TOP,
    progress: Progress = lambda done: None,
) -> Explanation:
    """What goes on at ``positions`` while a model reads ``tokens``.

    O(T log T) a head for T tokens up to the last position, and O(T) a head for each position.

    Args:
        tokens: ids, prompt included; those behind the last position are not read.
        positions: of ``tokens``, from 0, in any order.
        n_prompt: is only passed on.
        top: how many of the greatest logits to keep.

    Raises:
        UsageError: for a position or token that does not exist, or a model whose heads are not
            two-dimensional.
    """
    config = checkpoint.config
    ids = np.asarray(tokens, dtype=np.int64)
    wanted = np.asarray(positions, dtype=np.int64)
    if config.d_head != 2:
        raise UsageError(
            f"heads {config.d_head} wide cannot be explained, only two-dimensional ones"
        )
    if not len(wanted):
        raise UsageError("there is no position to explain")
    if wanted.min() < 0 or wanted.max() >= len(ids):
        raise UsageError(f"positions go from 0 to {len(ids) - 1}")
    if ids.min() < 0 or ids.max() >= config.vocab_size:
        raise UsageError("a token is not in the vocabulary of this model")
    run = _Run(checkpoint, ids[: int(wanted.max()) + 1], wanted, progress)
    layers = [run.layer(number) for number in range(config.n_layers)]
    answer = _answer(run.stream[-1] @ checkpoint.weights["head.weight"].T, top)
    return Explanation(
        positions=wanted,
        tokens=ids,
        n_prompt=n_prompt,
        layers=mark_used(checkpoint, wanted, layers),
        stream=np.stack(run.stream, axis=1),
        answer=answer,
        checkpoint=checkpoint,
    )


def keys_of_head(
    checkpoint: Checkpoint, tokens: Sequence[int] | Integers, layer: int, head: int
) -> Floats:
    """The keys (T, 2) that one head has after reading ``tokens``."""
    ids = np.asarray(tokens, dtype=np.int64)
    run = _Run(checkpoint, ids, np.array([len(ids) - 1]), lambda done: None)
    for before in range(layer):
        run.layer(before)
    return run.keys(layer, head)


class _Run:
    """The residual stream of all positions, and its history for those asked for.

    It is kept by slots, (d_model, T), and rows of the weights are added up without their zeros:
    most rows of a machine's have a few numbers that are none.
    """

    def __init__(
        self, checkpoint: Checkpoint, ids: Integers, wanted: Integers, progress: Progress
    ) -> None:
        self._config, self._weights = checkpoint.config, checkpoint.weights
        self._wanted, self._progress = wanted, progress
        asked = support(self._weights["head.weight"])
        self._live = live_layers(self._config, self._weights, asked)
        p = np.arange(len(ids), dtype=np.float64)
        self._x: Floats = np.stack([column[ids] for column in self._weights["tok.weight"].T])
        first, second = self._config.position_slots
        self._x[first] += p
        self._x[second] += p * p
        self.stream: list[Floats] = [self._seen()]

    def _seen(self) -> Floats:
        """The stream (n, d_model) at the positions asked for."""
        return self._x[:, self._wanted].T

    def layer(self, number: int) -> Layer:
        """Run one layer."""
        return Layer(self._attention(number), self._feed_forward(number))

    def keys(self, layer: int, head: int) -> Floats:
        """The keys of a head, once the layers before have run."""
        first = self._config.d_model + 2 * head
        return self._pairs(self._weights[f"attn.{layer}.in_proj_weight"][first : first + 2])

    def _pairs(self, rows: Array) -> Floats:
        """Two linear forms (2, d_model) of every position: (T, 2)."""
        return np.stack([_form(row, self._x) for row in rows], axis=1)

    def _attention(self, layer: int) -> Attention:
        config, wanted = self._config, self._wanted
        shape = (config.n_heads, 2, config.d_model)
        parts = self._weights[f"attn.{layer}.in_proj_weight"].reshape(3, *shape)
        output = self._weights[f"attn.{layer}.out_proj.weight"].T.reshape(shape)
        found = _Found(wanted, config.n_heads)
        added: dict[int, Floats] = {}
        known: dict[bytes, Keys] = {}
        for head, mode in enumerate(config.head_modes[layer]):
            self._progress((layer + head / config.n_heads) / config.n_layers)
            if not output[head].any():
                continue
            query, value = self._pairs(parts[0, head]), self._pairs(parts[2, head])
            form = parts[1, head].tobytes()
            if form not in known:
                known[form] = Keys(self._pairs(parts[1, head]))
            keys = known[form]
            winners = keys.latest(query)
            read = value[winners] if mode == "latest" else keys.means(query, value)
            _add(added, output[head], read.T)
            found.add(head, keys.keys, query, winners, read)
        self._finish(added)
        live = np.zeros(config.n_heads, np.bool_)
        live[[head.index for head in self._live[layer].queried]] = True
        return found.attention(live, config.head_modes[layer], output)

    def _feed_forward(self, layer: int) -> FeedForward:
        names = (f"{part}.{layer}.weight" for part in ("gate", "value", "down"))
        gate, value, down = (self._weights[name] for name in names)
        before, added = self.stream[-1], dict[int, Floats]()
        for neuron in np.flatnonzero(down.any(axis=0)):
            opened = np.maximum(_form(gate[neuron], self._x), 0.0)
            _add(added, down[:, [neuron]].T, [opened * _form(value[neuron], self._x)])
        self._finish(added)
        gates, values = before @ gate.T, before @ value.T
        outputs = np.maximum(gates, 0.0) * values
        live = np.zeros(self._config.d_ffn, np.bool_)
        live[list(self._live[layer].neurons)] = True
        used = np.zeros(gates.shape, np.bool_)
        return FeedForward(gates, values, outputs, used, used, live, down.T)

    def _finish(self, added: Mapping[int, Floats]) -> None:
        """Add to the stream what a half-layer found, all at once."""
        for slot, amount in added.items():
            self._x[slot] += amount
        self.stream.append(self._seen())


def _form(row: Array, x: Floats) -> Floats:
    """A linear form (d_model) of every position, from the slots (d_model, T)."""
    total = np.zeros(x.shape[1])
    for slot in np.flatnonzero(row):
        total += row[slot] * x[slot]
    return total


def _add(added: dict[int, Floats], output: Array, values: Iterable[Floats]) -> None:
    """Gather by slots what the values, (T) each, add there: ``output`` has a row for each."""
    for row, value in zip(output, values, strict=True):
        for slot in np.flatnonzero(row).tolist():
            if slot not in added:
                added[slot] = np.zeros(len(value))
            added[slot] += row[slot] * value


class _Found:
    """What the heads of one layer asked and read at the positions asked for, head by head."""

    def __init__(self, wanted: Integers, n_heads: int) -> None:
        shape = (len(wanted), n_heads)
        self._wanted = wanted
        self._queries, self._keys, self._values = np.zeros((3, *shape, 2))
        self._scores, self._leads = np.zeros((2, *shape))
        # a head that writes nowhere is left as if all its weights were zero
        self._winners = np.repeat(wanted[:, np.newaxis], n_heads, axis=1)
        self._ties = self._winners + 1
        self._runners_up = np.full(shape, -1)

    def add(
        self, head: int, keys: Floats, queries: Floats, winners: Integers, values: Floats
    ) -> None:
        """Rank one head; the arrays are those of all positions."""
        wanted = self._wanted
        ranking = rank(keys, queries[wanted], wanted)
        if (ranking.winners != winners[wanted]).any():
            raise AssertionError(f"head {head}: two searches find different keys")
        self._queries[:, head] = queries[wanted]
        self._keys[:, head] = keys[ranking.winners]
        self._values[:, head] = values[wanted]
        self._winners[:, head], self._ties[:, head] = ranking.winners, ranking.ties
        self._runners_up[:, head] = ranking.runners_up
        self._scores[:, head], self._leads[:, head] = ranking.scores, ranking.leads

    def attention(
        self, live: NDArray[np.bool_], modes: tuple[str, ...], output: Floats
    ) -> Attention:
        """All that was found; nothing is marked as used yet."""
        nothing = np.zeros(self._winners.shape, np.bool_)
        return Attention(
            queries=self._queries,
            winners=self._winners,
            ties=self._ties,
            keys=self._keys,
            scores=self._scores,
            runners_up=self._runners_up,
            leads=self._leads,
            values=self._values,
            used=nothing,
            kept=nothing,
            live=live,
            modes=modes,
            output=output,
        )


def _answer(logits: Floats, top: int) -> Answer:
    """The greatest logits of each row (n, V)."""
    order = np.argsort(-logits, axis=1, kind="stable")[:, :top]
    best = np.take_along_axis(logits, order, axis=1)
    margins = best[:, 0] - best[:, 1] if best.shape[1] > 1 else np.full(len(best), np.inf)
    return Answer(order.astype(np.int64), best, margins)

"""Straight-line Python for one model, generated from the nonzeros of its weights.

``generate`` writes two functions: ``feed(token, p)`` stores the keys and values of a token, and
``step(token, p)`` also returns the token of the greatest logit. What is done here, once, instead
of for every token:

- heads, neurons and slots that cannot matter are left out (:mod:`executor.liveness`);
- heads of a layer with the same keys and mode share one cache, equal queries one lookup;
- what depends on the token alone is a column of a table: embeddings, and every sum of
  embedding slots that nothing has written to yet; a column of one value is a literal;
- a neuron's value is computed only where its gate is open;
- logits of tokens with equal rows in the output head are computed once, for the lowest id.

Only zeros and equal numbers are used, never what a token or slot means. Sums are reordered,
which changes nothing in a model whose arithmetic is exact, as the default machine's is.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from executor.checkpoint import Array
from executor.config import Mode, ModelConfig
from executor.liveness import Head, LiveLayer, live_layers, support


@dataclass(frozen=True)
class Cache:
    """Heads of one layer that share keys and mode, and the distinct values they read."""

    name: str
    mode: Mode
    key: Array
    values: Array
    columns: Mapping[tuple[int, int], int]
    """(head, component) to the row of ``values``."""


@dataclass(frozen=True)
class Generated:
    """Source text and the tables it closes over.

    ``source`` defines ``feed(token, p)`` and ``step(token, p)`` given the names ``feed_table``,
    ``step_table`` (one tuple of floats per token), ``insert_NAME`` and ``query_NAME`` for each
    of ``caches``, ``head`` (the rows of ``tokens`` in the output head) and ``tokens``.
    """

    source: str
    caches: tuple[Cache, ...]
    feed_table: list[tuple[float, ...]]
    step_table: list[tuple[float, ...]]
    head: Array
    tokens: list[int]


def generate(config: ModelConfig, weights: Mapping[str, Array]) -> Generated:
    """Generate the code of a model with two-dimensional heads."""
    head = weights["head.weight"]
    outputs = sorted(support(head))
    # np.unique sorts the rows; the lowest id of each is kept, in order of ids.
    tokens = np.sort(np.unique(head[:, outputs], axis=0, return_index=True)[1])
    step_layers = live_layers(config, weights, outputs)
    stored = [layer.stored for layer in step_layers]
    feed_layers = live_layers(config, weights, (), stored)
    caches = [share_caches(layer, heads) for layer, heads in enumerate(stored)]

    feed = _Function(config, weights, "feed")
    feed.layers(feed_layers, caches)
    step = _Function(config, weights, "step")
    step.layers(step_layers, caches)
    step.output(outputs)
    return Generated(
        source=feed.text() + "\n\n" + step.text(),
        caches=tuple(cache for layer in caches for cache in layer),
        feed_table=feed.table(),
        step_table=step.table(),
        head=np.ascontiguousarray(head[tokens][:, outputs]),
        tokens=tokens.tolist(),
    )


def share_caches(layer: int, heads: Sequence[Head]) -> list[Cache]:
    groups: dict[tuple[Mode, bytes], list[Head]] = {}
    for head in heads:
        groups.setdefault((head.mode, _key(head.key)), []).append(head)
    caches = []
    for number, members in enumerate(groups.values()):
        rows: dict[bytes, int] = {}
        columns = {
            (head.index, c): rows.setdefault(_key(head.value[c]), len(rows))
            for head in members
            for c in range(len(head.value))
            if head.value[c].any()
        }
        values = np.array([np.frombuffer(row) for row in rows])
        name = f"{layer}{chr(ord('a') + number)}"
        caches.append(Cache(name, members[0].mode, members[0].key, values, columns))
    return caches


def _key(array: Array) -> bytes:
    return (array + 0.0).tobytes()  # + 0.0 makes -0.0 equal 0.0


@dataclass
class _Function:
    """One function being written: its lines, its token table, and where each slot's content is.

    ``_fresh`` holds the slots that still contain the embedding and position features; every
    other live slot s is the variable ``x{s}``.
    """

    config: ModelConfig
    weights: Mapping[str, Array]
    name: str
    _lines: list[str] = field(default_factory=list)
    _columns: dict[bytes, str] = field(default_factory=dict)
    _fresh: set[int] = field(default_factory=set)
    _names: int = 0

    def layers(self, layers: Sequence[LiveLayer], caches: Sequence[Sequence[Cache]]) -> None:
        self._fresh = set(range(self.config.d_model))
        for number, layer in enumerate(layers):
            self._attention(number, layer, caches[number])
            self._ffn(number, layer)

    def output(self, slots: Sequence[int]) -> None:
        self._say("# logits")
        unit = np.eye(self.config.d_model)
        parts = [self._sum(unit[slot]) for slot in slots]
        self._say(f"return tokens[(head @ array(({', '.join(parts)},))).argmax()]")

    def text(self) -> str:
        names = ", ".join(self._columns.values())
        unpack = [f"    {names}, = {self.name}_table[token]"] if names else []
        square = ["    pp = p * p"] if any("pp" in line for line in self._lines) else []
        head = f"def {self.name}(token, p):"
        body = [*square, *unpack, *self._lines]
        return "\n".join([head, *(body or ["    pass"])]) + "\n"

    def table(self) -> list[tuple[float, ...]]:
        columns = [np.frombuffer(column).tolist() for column in self._columns]
        return list(zip(*columns, strict=True)) or [()] * self.config.vocab_size

    def _say(self, line: str) -> None:
        self._lines.append("    " + line)

    def _sum(self, row: Array) -> str:
        """Python for the dot product of a row (d_model) with the stream."""
        fresh = sorted(self._fresh & support(row))
        column = self.weights["tok.weight"][:, fresh] @ row[fresh]
        varies = column.size > 0 and bool((column != column[0]).any())
        terms = []
        if varies and len(fresh) > 1:
            terms.append((1.0, self._column(column)))
        elif varies:
            terms.append((row[fresh[0]], self._column(self.weights["tok.weight"][:, fresh[0]])))
        for slot, feature in zip(self.config.position_slots, ("p", "pp"), strict=True):
            if slot in fresh:
                terms.append((row[slot], feature))
        terms += [(row[slot], f"x{slot}") for slot in sorted(support(row) - self._fresh)]
        constant = 0.0 if varies or column.size == 0 else float(column[0])
        return _linear(terms, constant)

    def _column(self, column: Array) -> str:
        return self._columns.setdefault(_key(column), f"t{len(self._columns)}")

    def _attention(self, number: int, layer: LiveLayer, caches: Sequence[Cache]) -> None:
        if layer.stored:
            self._say(f"# layer {number}, attention")
        results: dict[int, list[tuple[float, str]]] = {}
        for cache in caches:
            key = [self._sum(row) for row in cache.key]
            values = [self._sum(row) for row in cache.values]
            self._say(f"insert_{cache.name}({', '.join(key)}, ({', '.join(values)},))")
            readers: dict[bytes, list[Head]] = {}
            for head in layer.queried:
                if any(index == head.index for index, _ in cache.columns):
                    readers.setdefault(_key(head.query), []).append(head)
            for heads in readers.values():
                self._read(cache, heads, results)
        self._write(results, layer.after_attention)

    def _read(
        self, cache: Cache, heads: Sequence[Head], results: dict[int, list[tuple[float, str]]]
    ) -> None:
        """One lookup for heads with equal queries; adds its results to what slots receive."""
        names = ["_"] * len(cache.values)
        for head in heads:
            for component, out in enumerate(head.out):
                if not out.any():
                    continue
                column = cache.columns[head.index, component]
                if names[column] == "_":
                    names[column] = f"h{heads[0].index}_{column}"
                for slot in support(out):
                    results.setdefault(slot, []).append((float(out[slot]), names[column]))
        query = ", ".join(self._sum(row) for row in heads[0].query)
        self._say(f"{', '.join(names)}, = query_{cache.name}({query})")

    def _write(self, results: Mapping[int, list[tuple[float, str]]], live: Iterable[int]) -> None:
        """``x{s} = x{s} + ...`` for the live slots among ``results``, all at once."""
        written = sorted(set(results) & set(live))
        unit = np.eye(self.config.d_model)
        lines = []
        for slot in written:
            before = self._sum(unit[slot])
            terms = results[slot] if before == "0.0" else [(1.0, before), *results[slot]]
            lines.append(f"x{slot} = {_linear(terms, 0.0)}")
        for line in lines:
            self._say(line)
        self._fresh -= set(written)

    def _ffn(self, number: int, layer: LiveLayer) -> None:
        """Neurons by gate: one test for all that share it."""
        if not layer.neurons:
            return
        self._say(f"# layer {number}, feed-forward")
        gate, value = (self.weights[f"{part}.{number}.weight"] for part in ("gate", "value"))
        down = self.weights[f"down.{number}.weight"]
        groups: dict[bytes, list[int]] = {}
        for neuron in layer.neurons:
            groups.setdefault(_key(gate[neuron]), []).append(neuron)
        # Neurons read the stream as it was, so slots that they both read and write are renamed.
        neurons = list(layer.neurons)
        written = support(down[:, neurons].T) & set(layer.after_ffn)
        read = support(gate[neurons]) | support(value[neurons])
        targets = {slot: f"{'y' if slot in read else 'x'}{slot}" for slot in sorted(written)}
        unit = np.eye(self.config.d_model)
        starts = {slot: self._sum(unit[slot]) for slot in targets}
        body: list[str] = []
        for members in groups.values():
            gate_sum = self._sum(gate[members[0]])
            name = gate_sum if gate_sum.isidentifier() else "g"
            inner: list[str] = []
            for neuron in members:
                inner.append(f"n = {_product(name, self._sum(value[neuron]))}")
                inner += _increments(down[:, neuron], targets)
            test = name if name == gate_sum else f"(g := {gate_sum})"
            body += [f"if {test} > 0.0:", *("    " + line for line in inner)]
        for slot, name in targets.items():
            if starts[slot] != name:
                self._say(f"{name} = {starts[slot]}")
        for line in body:
            self._say(line)
        for slot, name in targets.items():
            if name != f"x{slot}":
                self._say(f"x{slot} = {name}")
        self._fresh -= set(targets)


def _linear(terms: Sequence[tuple[float, str]], constant: float) -> str:
    """``2.0*a - b + 3.0``; ``0.0`` if there is nothing."""
    text = ""
    for coefficient, name in terms:
        size = abs(float(coefficient))
        term = name if size == 1.0 else f"{size!r}*{name}"
        if text:
            text += f" - {term}" if coefficient < 0 else f" + {term}"
        else:
            text = f"-{term}" if coefficient < 0 else term
    if not text:
        return repr(constant)
    return f"{text} {'-' if constant < 0 else '+'} {abs(constant)!r}" if constant else text


def _product(gate: str, value: str) -> str:
    if value == "1.0":
        return gate
    return f"{gate} * {value}" if value.isidentifier() else f"{gate} * ({value})"


def _increments(down: Array, targets: Mapping[int, str]) -> list[str]:
    """What one neuron's result ``n`` adds to the slots."""
    lines = []
    for slot in sorted(support(down) & set(targets)):
        size = abs(float(down[slot]))
        sign = "-=" if down[slot] < 0 else "+="
        lines.append(f"{targets[slot]} {sign} {'n' if size == 1.0 else f'{size!r}*n'}")
    return lines

"""The exact evaluator: runs a graph as it is written, in integers and fractions, without weights.

It is the oracle for everything that is built from the graph. A lookup scans all keys; doubles
only narrow the search, and the decision among the candidates is exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from compiler.graph import ONE, POSITION, POSITION_SQUARED, Expr, Gate, Graph, Lookup, Node

Exact = int | Fraction
Values = dict[str, Exact]


def exact(value: float | Fraction) -> Exact:
    """The number itself, as an int where it is one."""
    fraction = Fraction(value)
    return fraction.numerator if fraction.denominator == 1 else fraction


class _Form:
    """An expression with exact coefficients."""

    def __init__(self, expr: Expr) -> None:
        self._terms = [(name, exact(c)) for name, c in expr.terms.items()]

    def __call__(self, values: Mapping[str, Exact]) -> Exact:
        total: Exact = 0
        for name, c in self._terms:
            total += c * values[name]
        return total


class Head:
    """All keys and values of one lookup so far."""

    def __init__(self, node: Lookup) -> None:
        self.mode = node.mode
        self._query = tuple(_Form(e) for e in node.query)
        self._key = tuple(_Form(e) for e in node.key)
        self._values = tuple(_Form(e) for e in node.values)
        self._keys: list[tuple[Exact, Exact]] = []  # distinct ones
        self._numbers: dict[tuple[Exact, Exact], int] = {}  # of the keys in that list
        self._which = np.zeros(64, np.int64)  # number of the key at each position
        self._stored: list[tuple[Exact, ...]] = []
        self._approximate = np.zeros((2, 64))

    def attend(self, values: Mapping[str, Exact]) -> tuple[Exact, ...]:
        """Insert this token's key and value, then fetch."""
        key = (self._key[0](values), self._key[1](values))
        count = len(self._stored)
        if count == len(self._which):
            self._which = np.concatenate([self._which, np.zeros_like(self._which)])
        number = self._which[count] = self._numbers.setdefault(key, len(self._keys))
        if number == len(self._keys):
            if number == self._approximate.shape[1]:
                more = np.zeros_like(self._approximate)
                self._approximate = np.concatenate([self._approximate, more], axis=1)
            self._approximate[:, number] = [float(k) for k in key]
            self._keys.append(key)
        self._stored.append(tuple(form(values) for form in self._values))
        return self.fetch(self._query[0](values), self._query[1](values))

    def fetch(self, qx: Exact, qy: Exact) -> tuple[Exact, ...]:
        """The values at the key with the greatest score for the query (qx, qy)."""
        winners = self._winners(qx, qy)
        if self.mode == "latest":
            return self._stored[winners[-1]]
        columns = zip(*(self._stored[w] for w in winners), strict=True)
        return tuple(exact(Fraction(sum(column)) / len(winners)) for column in columns)

    def _winners(self, qx: Exact, qy: Exact) -> Sequence[int]:
        """Positions of all keys with the greatest score, ascending."""
        if qx == 0 and qy == 0:
            return range(len(self._stored))
        parts = self._approximate[:, : len(self._keys)] * np.array([[float(qx)], [float(qy)]])
        scores = parts.sum(axis=0)
        # Each conversion, product and sum above errs by at most one part in 2^53.
        slack = np.abs(parts).sum(axis=0) * 2.0**-50
        best = float(np.max(scores - slack))
        candidates: NDArray[np.int64] = np.flatnonzero(scores + slack >= best)
        exact_scores = [self._keys[c][0] * qx + self._keys[c][1] * qy for c in candidates]
        top = max(exact_scores)
        winning = [c for c, s in zip(candidates, exact_scores, strict=True) if s == top]
        winners: list[int] = np.flatnonzero(
            np.isin(self._which[: len(self._stored)], winning)
        ).tolist()
        return winners


_Step = tuple[Node, Head | tuple[_Form, _Form], list[tuple[str, int, Exact]]]


class Evaluator:
    """Feeds tokens through a graph and scores the next one, all exactly.

    A token costs O(heads · length) time. ``values`` holds every quantity of the last token fed.
    ``times`` are the half-layers of a plan: nodes of one half-layer then read what the one before
    left. Without them a node runs when what it depends on is there, which gives the same unless
    it reads a quantity in the middle of its life (see :meth:`Graph.dependencies`).
    """

    def __init__(self, graph: Graph, times: Mapping[str, int] | None = None) -> None:
        self.graph = graph
        self.length = 0
        self.values: Values = {}
        order = graph.ordered()
        if times is not None:
            order.sort(key=lambda node: times[node.name])
        self._nodes: list[_Step] = [
            (node, Head(node) if isinstance(node, Lookup) else _neuron(node), _terms(node))
            for node in order
        ]
        own = range(len(order)) if times is None else [times[node.name] for node in order]
        stages = groupby(zip(own, self._nodes, strict=True), lambda pair: pair[0])
        self._stages = [[step for _, step in members] for _, members in stages]
        self._scores = [(token, _Form(expr)) for token, expr in graph.logits().items()]

    def feed(self, token: str) -> None:
        """Compute all quantities of ``token`` at the next position."""
        values: Values = dict.fromkeys(self.graph.quantities, 0)
        values[ONE] = 1
        values[POSITION] = self.length
        values[POSITION_SQUARED] = self.length**2
        for name, value in self.graph.embedding[token].items():
            values[name] = exact(value)
        for stage in self._stages:
            results = [(_compute(what, values), terms) for _, what, terms in stage]
            for fetched, terms in results:
                for target, number, coefficient in terms:
                    values[target] += coefficient * fetched[number]
        self.values = values
        self.length += 1

    def head(self, name: str) -> Head:
        """The head of the lookup ``name`` with all that it holds so far."""
        return next(h for node, h, _ in self._nodes if node.name == name and isinstance(h, Head))

    def best(self) -> str:
        """The token with the greatest score; of equals the one with the lowest id."""
        return max(self._scores, key=lambda item: item[1](self.values))[0]


def _compute(what: Head | tuple[_Form, _Form], values: Values) -> tuple[Exact, ...]:
    """What one head or neuron gives for the values of one token."""
    if isinstance(what, Head):
        return what.attend(values)
    gate, factor = what
    return (max(gate(values), 0) * factor(values),)


def _neuron(node: Gate) -> tuple[_Form, _Form]:
    return _Form(node.gate), _Form(node.value)


def _terms(node: Lookup | Gate) -> list[tuple[str, int, Exact]]:
    return [(term.target, term.value, exact(term.coefficient)) for term in node.terms]


def generate(graph: Graph, prompt: Iterable[str], stop: Iterable[str], limit: int) -> Iterator[str]:
    """The tokens that follow ``prompt``, up to and including a stop token, at most ``limit``."""
    evaluator = Evaluator(graph)
    for token in prompt:
        evaluator.feed(token)
    stops = set(stop)
    for _ in range(limit):
        token = evaluator.best()
        yield token
        if token in stops:
            return
        evaluator.feed(token)

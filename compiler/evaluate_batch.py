"""Part of a graph for many cases at once, exactly: what would these quantities be, given those?

Where :mod:`compiler.evaluate` runs token sequences, this answers questions such as "which byte
results from these two operand bytes?" for all 65,536 pairs. Lookups read a fixed context (the
tables at the head of a prompt), never the cases themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.evaluate import Evaluator, Exact, exact
from compiler.graph import ONE, Expr, Gate, Graph, Lookup, Partial

Cases = NDArray[Any]
"""One exact number (int or Fraction) per case, dtype object."""


class BatchEvaluator:
    """Answers questions about ``graph`` after ``context`` tokens have been read."""

    def __init__(self, graph: Graph, context: Sequence[str]) -> None:
        self._graph = graph
        self._evaluator = Evaluator(graph)
        for token in context:
            self._evaluator.feed(token)

    def solve(self, given: Mapping[str, Sequence[Exact]], wanted: str) -> list[Exact]:
        """The quantity ``wanted`` in each case.

        ``given`` fixes quantities, one value a case; inputs that are not given are zero; all
        others follow from the graph. Raises ValueError for sequences of different lengths.
        """
        lengths = {len(values) for values in given.values()}
        if len(lengths) != 1:
            raise ValueError("every given quantity needs one value per case")
        self._count = lengths.pop()
        self._given = {name: _cases(values) for name, values in given.items()}
        self._known: dict[tuple[str, tuple[str, ...]], Cases] = {}
        self._fetched: dict[str, list[Cases]] = {}
        self._writers = self._graph.writers()
        return list(self._quantity(wanted, {}))

    def _quantity(self, name: str, partial: Partial) -> Cases:
        """A quantity after all its writers, or after those that ``partial`` names for it."""
        if name in self._given:
            return self._given[name]
        writers = partial.get(name, tuple(self._writers[name]))
        if (name, writers) not in self._known:
            total = _cases([1 if name == ONE else 0] * self._count)
            for writer in writers:
                for term in self._graph.nodes[writer].terms:
                    if term.target == name:
                        total = total + exact(term.coefficient) * self._node(writer)[term.value]
            self._known[name, writers] = total
        return self._known[name, writers]

    def _form(self, expr: Expr, partial: Partial) -> Cases:
        total = _cases([0] * self._count)
        for name, coefficient in expr.terms.items():
            total = total + exact(coefficient) * self._quantity(name, partial)
        return total

    def _node(self, name: str) -> list[Cases]:
        if name not in self._fetched:
            node = self._graph.nodes[name]
            if isinstance(node, Gate):
                gate = np.maximum(self._form(node.gate, node.partial), 0)
                self._fetched[name] = [gate * self._form(node.value, node.partial)]
            else:
                self._fetched[name] = self._lookup(node)
        return self._fetched[name]

    def _lookup(self, node: Lookup) -> list[Cases]:
        head = self._evaluator.head(node.name)
        parts = [self._form(part, node.partial) for part in node.query]
        queries = zip(*parts, strict=True)
        seen: dict[tuple[Exact, Exact], tuple[Exact, ...]] = {}
        rows = []
        for query in queries:
            if query not in seen:
                seen[query] = head.fetch(*query)
            rows.append(seen[query])
        return [_cases(column) for column in zip(*rows, strict=True)]


def _cases(values: Sequence[Exact]) -> Cases:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array

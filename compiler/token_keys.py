"""What the embedding alone decides: values, keys and their scores, token by token.

Ranges forget which values go together. A key made of a token's own embedding is known exactly for
every token, so its products with a query, and whether it can win, are asked one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from compiler.graph import Expr, Graph, Lookup
from compiler.ranges import Range, bits_of_sum
from compiler.score_bits import product_needs

Tokens = frozenset[str] | None
"""Some tokens of the vocabulary; None for all."""


def exactly(form: Expr, values: Mapping[str, float | Fraction]) -> Fraction:
    """The value of a form."""
    terms = form.terms.items()
    return sum((Fraction(c) * Fraction(values.get(name, 0)) for name, c in terms), Fraction(0))


class TokenKeys:
    """Answers for one graph; ``inputs`` are those that nothing but the embedding sets.

    ``prefix``: tokens that stand before every sequence, so that their keys are always there.
    """

    def __init__(self, graph: Graph, inputs: frozenset[str], prefix: tuple[str, ...]) -> None:
        self.graph, self.inputs = graph, inputs
        self._prefix = frozenset(prefix)
        self._values: dict[object, list[tuple[Fraction, ...]]] = {}
        self._needs: dict[object, list[tuple[str, int]]] = {}
        self._bits: dict[object, int] = {}
        self._least: dict[object, Fraction | None] = {}

    def values(self, names: tuple[str, ...], tokens: Tokens) -> list[tuple[Fraction, ...]]:
        """What these tokens say of these inputs, without repetition."""
        key = names, tokens
        if key not in self._values:
            rows = (self.graph.embedding[token] for token in tokens or self.graph.embedding)
            values = {tuple(row.get(name, 0) for name in names) for row in rows}
            self._values[key] = [tuple(map(Fraction, row)) for row in sorted(values)]
        return self._values[key]

    def bits(self, form: Expr, tokens: Tokens) -> int | None:
        """The most bits that any of these tokens needs; None if not the token alone decides."""
        names = tuple(sorted(form.terms))
        if not names or not set(names) <= self.inputs:
            return None
        asked = tokens, tuple(form.terms.items())
        if asked not in self._bits:
            factors = [Fraction(form.terms[name]) for name in names]
            rows = self.values(names, tokens)
            products = ([v * f for v, f in zip(row, factors, strict=True)] for row in rows)
            needed = (bits_of_sum(map(Range.of, terms)) for terms in products)
            self._bits[asked] = max((count for count in needed if count is not None), default=0)
        return self._bits[asked]

    def needs(
        self, node: Lookup, query: Sequence[Range], least: Fraction | None
    ) -> Iterator[tuple[str, int]] | None:
        """What the scores of all tokens' keys need; None for other keys."""
        names = self._names(node)
        if not names:
            return None
        asked = (node.name, *query)
        if asked not in self._needs:
            found: list[tuple[str, int]] = []
            for row in self.values(names, None):
                values = dict(zip(names, row, strict=True))
                x, y = (exactly(form, values) for form in node.key)
                found += product_needs((query[0].scaled(x), query[1].scaled(y)), least)
            self._needs[asked] = found
        return iter(self._needs[asked])

    def least_score(
        self, node: Lookup, query: Sequence[Range], first: Sequence[Fraction]
    ) -> Fraction | None:
        """What some key that is always there scores at least; ``first`` is one such key."""
        asked = (node.name, *query)
        if asked not in self._least:
            keys = [tuple(first)] if first else []
            if self._names(node):
                rows = (self.graph.embedding[token] for token in self._prefix)
                keys += {tuple(exactly(form, row) for form in node.key) for row in rows}
            pairs = (zip(query, key, strict=True) for key in keys)
            scores = (sum((q.scaled(k).low for q, k in pair), Fraction(0)) for pair in pairs)
            self._least[asked] = max(scores, default=None)
        return self._least[asked]

    def _names(self, node: Lookup) -> tuple[str, ...]:
        """The inputs that decide a key, none if other quantities do."""
        names = {name for form in node.key for name in form.terms}
        return tuple(sorted(names)) if names <= self.inputs else ()

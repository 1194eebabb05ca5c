"""Rows of the output head that differ in few factors, taken together.

``2·b·y - b² + (the same for all)`` for every byte b is one family: its factors of y, and its
constants, are ranges. A factor that takes more than ``FEW`` values among rows that read the same
quantities varies within a family, all others tell families apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from compiler.graph import ONE, Expr, Graph
from compiler.ranges import Range

FEW = 16


@dataclass(frozen=True)
class Family:
    """Rows that one range of factors describes.

    Attributes:
        token: one of them, to name the family by.
        row: the row of that token.
        factors: for every quantity that is read, the range of its factors.
    """

    token: str
    row: Expr
    factors: dict[str, Range]


def families(graph: Graph) -> list[Family]:
    """All rows of the output head in families."""
    readers: dict[frozenset[str], list[str]] = defaultdict(list)
    for token, row in graph.scores.items():
        readers[frozenset(row.terms)].append(token)
    return [family for tokens in readers.values() for family in _split(graph, tokens)]


def _split(graph: Graph, tokens: list[str]) -> Iterator[Family]:
    rows = {token: graph.scores[token].terms for token in tokens}
    names = list(rows[tokens[0]])
    values = {name: {row[name] for row in rows.values()} for name in names}
    fixed = [name for name in names if name != ONE and len(values[name]) <= FEW]
    members: dict[tuple[float, ...], list[str]] = defaultdict(list)
    for token, row in rows.items():
        members[tuple(row[name] for name in fixed)].append(token)
    for group in members.values():
        factors = {name: Range.of(*{rows[token][name] for token in group}) for name in names}
        yield Family(group[0], graph.scores[group[0]], factors)

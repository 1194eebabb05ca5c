"""Rows of the output head that differ in few factors, taken together.

``2·b·y - b² + (the same for all)`` for every byte b is one family: its factors of y, and its
constants, are ranges. A factor that takes more than ``FEW`` values among rows that read the same
quantities varies within a family, all others tell families apart.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
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
    alike: dict[frozenset[str], dict[str, Expr]] = defaultdict(dict)
    for token, row in graph.logits().items():
        alike[frozenset(row.terms)][token] = row
    return [family for rows in alike.values() for family in _split(rows)]


def _split(exprs: Mapping[str, Expr]) -> Iterator[Family]:
    rows = {token: expr.terms for token, expr in exprs.items()}
    names = list(next(iter(rows.values())))
    values = {name: {row[name] for row in rows.values()} for name in names}
    fixed = [name for name in names if name != ONE and len(values[name]) <= FEW]
    members: dict[tuple[float, ...], list[str]] = defaultdict(list)
    for token, row in rows.items():
        members[tuple(row[name] for name in fixed)].append(token)
    for group in members.values():
        factors = {name: Range.of(*{rows[token][name] for token in group}) for name in names}
        yield Family(group[0], exprs[group[0]], factors)

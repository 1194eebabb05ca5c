"""Positions that a column of one token tells: for most tokens among the first ones of the sequence.

In: the query of a head, as an expression of a path. Out: an interval of positions of the prefix. A
path may go on as if the position were there, and be left where it is not. What is fetched is one of
few known tokens then, and numbers computed from it are exact that are not for all tokens.
"""

from __future__ import annotations

from math import floor
from typing import TYPE_CHECKING

import numpy as np

from executor.native.exprs import Expr
from executor.native.ranges import Range, point, total

if TYPE_CHECKING:
    from executor.native.positions import Positions


def likely(scope: Positions, query: Expr) -> Range | None:
    """Where the position nearest to a query is for most tokens that decide it.

    None if it is there for all of them, or if no column decides.
    """
    columns = [(f, name) for f, name in query.terms if name in scope.column_of]
    if not columns or not scope.first or scope.unit(query) is None:
        return None
    factor, name = max(columns, key=lambda term: abs(term[0]) * scope.range_of(term[1]).size)
    rest = total(
        [point(query.const), *(scope.range_of(n).scaled(f) for f, n in query.terms if n != name)]
    )
    number, mask, _ = scope.column_of[name]
    held = factor * scope.shared.columns.arrays[number][scope.shared.columns.masks[mask]]
    low, high = np.floor(held + rest.low + 0.5), np.floor(held + rest.high + 0.5)
    inside = (low >= 0.0) & (high < len(scope.shared.prefix))
    if not len(held) > inside.sum() > len(held) / 2:
        return None
    return Range(float(floor(low[inside].min())), float(floor(high[inside].max())), 0)

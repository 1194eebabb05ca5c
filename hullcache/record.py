"""The record a cache keeps of a key, and how the records of tied keys merge.

A head's *mode* says what a query gets when several keys share the greatest score: `latest`, the
value of the key at the greatest position, or `mean`, the average of the values of all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import add
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

Mode: TypeAlias = Literal["latest", "mean"]
"""What a head returns for tied keys."""

MODES: tuple[Mode, ...] = get_args(Mode)

Value: TypeAlias = tuple[float, ...]
"""The numbers stored with a key: two for an attention head, any fixed number for a shared hull."""

Record: TypeAlias = tuple[float, float, int, Value]
"""Key x, key y, weight, value. `latest`: weight is the position. `mean`: weight is the number of
merged keys and value the sum of their values. A record merged from different keys has the x and y
of one of them, which then mean nothing."""

Join: TypeAlias = Callable[[Record, Record], Record]


def join_latest(one: Record, other: Record) -> Record:
    """Of two tied records the one at the greater position.

    >>> join_latest((0.0, 0.0, 7, (1.5,)), (0.0, 0.0, 3, (2.5,)))
    (0.0, 0.0, 7, (1.5,))
    """
    return one if one[2] > other[2] else other


def join_mean(one: Record, other: Record) -> Record:
    """Counts and values of two tied records added up, in float64.

    >>> join_mean((0.0, 0.0, 2, (3.0,)), (0.0, 0.0, 1, (4.0,)))
    (0.0, 0.0, 3, (7.0,))
    """
    return one[0], one[1], one[2] + other[2], tuple(map(add, one[3], other[3]))


def join_for(mode: Mode) -> Join:
    """The merge rule of a mode. Raises ValueError for a mode that is not in `MODES`."""
    if mode not in MODES:
        raise ValueError(f"mode {mode!r} is not one of {', '.join(MODES)}")
    return join_latest if mode == "latest" else join_mean


def to_columns(records: Sequence[Record], width: int) -> NDArray[np.float64]:
    """Records as an array of 3 + width rows (x, y, weight, values), a column each."""
    rows = [(x, y, weight, *value) for x, y, weight, value in records]
    return np.array(rows, np.float64).reshape(len(rows), 3 + width).T


def to_records(columns: NDArray[np.float64]) -> list[Record]:
    """The records of :func:`to_columns` again; values come back as floats."""
    x, y, weights, *values = columns.tolist()
    return list(zip(x, y, map(int, weights), zip(*values, strict=True), strict=True))

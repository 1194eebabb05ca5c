"""Columns of numbers by token id as specialised code uses them, and sets of tokens.

A column that differs from another by a power of two is the same one. Ranges of columns over sets of
tokens are looked up many times and kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from executor.checkpoint import Array
from executor.native.forms import Form, Linear, Place, grain
from executor.native.ranges import Range
from executor.native.writer import exact_shift

Mask = npt.NDArray[np.bool_]
Part = tuple[Place, float, int]
"""A place, a factor, and the number of a column."""


@dataclass
class Columns:
    """All columns and sets of tokens that turn up, by number."""

    n_tokens: int
    arrays: list[Array] = field(default_factory=list)
    masks: list[Mask] = field(default_factory=list)
    used: dict[int, set[str]] = field(default_factory=dict)
    """For each column that the code reads, the places where."""
    _column: dict[bytes, int] = field(default_factory=dict)
    _mask: dict[bytes, int] = field(default_factory=dict)
    _range: dict[tuple[int, int], Range] = field(default_factory=dict)
    _parts: dict[int, tuple[Linear, list[Part], float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mask(np.ones(self.n_tokens, np.bool_))

    def column(self, array: Array) -> tuple[float, int]:
        """Factor and number of a column."""
        nonzero = np.flatnonzero(array)
        first = float(array[nonzero[0]]) if nonzero.size else 1.0
        scale = float(np.copysign(2.0 ** (np.frexp(first)[1] - 1), first))
        key = (array / scale + 0.0).tobytes()
        number = self._column.setdefault(key, len(self.arrays))
        if number == len(self.arrays):
            self.arrays.append(array + 0.0)
        if not nonzero.size:
            return 1.0, number
        return first / float(self.arrays[number][nonzero[0]]), number

    def mask(self, mask: Mask) -> int:
        """The number of a set of tokens; 0 is all of them."""
        number = self._mask.setdefault(mask.tobytes(), len(self.masks))
        if number == len(self.masks):
            self.masks.append(mask)
        return number

    def range(self, column: int, mask: int) -> Range:
        """What a column holds for tokens of a set."""
        found = self._range.get((column, mask))
        if found is None:
            values = self.arrays[column][self.masks[mask]]
            found = Range(float(values.min()), float(values.max()), grain(values))
            self._range[column, mask] = found
        return found

    def parts(self, linear: Linear) -> tuple[list[Part], float]:
        """The columns of a value in the order of the plain code, and the constant it adds last."""
        known = self._parts.get(id(linear))
        if known is None:
            const, parts = linear.form.const, []
            for place, array in sorted(linear.form.columns.items(), key=lambda item: item[0]):
                whole = array
                if const and exact_shift(array, const):
                    whole, const = array + const, 0.0
                parts.append((place, *self.column(whole)))
            known = self._parts[id(linear)] = (linear, parts, const)
        return known[1], known[2]

    def tables(self) -> tuple[list[Array], list[str]]:
        """Tables (tokens, columns) of the columns in use, and C macros that read them.

        Columns that are used at the same places are neighbours.
        """
        groups: dict[tuple[str, ...], list[int]] = {}
        for number in sorted(self.used):
            groups.setdefault(tuple(sorted(self.used[number])), []).append(number)
        arrays, macros = [], []
        for number, members in enumerate(groups.values()):
            arrays.append(np.ascontiguousarray(np.stack([self.arrays[m] for m in members], axis=1)))
            width = len(members)
            for i, member in enumerate(members):
                at = f"{width} * (k) + {i}" if width > 1 else "k"
                macros.append(f"#define C{member}(k) (e->wide{number}[{at}])")
        return arrays, macros


def classes(keys: Sequence[tuple[object, ...]]) -> list[Mask]:
    """Sets of tokens with equal keys, the largest first."""
    order = [key for key, _ in Counter(keys).most_common()]
    index = {key: i for i, key in enumerate(order)}
    which = np.array([index[key] for key in keys])
    return [which == i for i in range(len(order))]


def constant(value: float) -> Linear:
    """A number as a value."""
    return Linear(Form(value))

"""Columns of numbers by token id as specialised code uses them, and sets of tokens.

A column that differs from another by a power of two is the same one. Ranges of columns over sets of
tokens are looked up many times and kept.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from executor.checkpoint import Array
from executor.native.forms import Form, Linear, Place, grain
from executor.native.ranges import FINEST, Range, two
from executor.native.writer import exact_shift

LONGEST = 53
"""Integers of columns are below 2^53."""
C_TYPES = {"float64": "double"} | {f"int{bits}": f"int{bits}_t" for bits in (8, 16, 32, 64)}
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
    """For each column that the code reads as numbers, the places where."""
    whole: dict[tuple[str, int, int], tuple[set[str], set[int]]] = field(default_factory=dict)
    """For each that it reads as integers (name, column, unit), the places and sets of tokens."""
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

    def unit(self, column: int, mask: int) -> int | None:
        """A u such that a column over 2^u is integers for tokens of a set; None if there is none.

        The greatest for all tokens, unless that makes some of them too large.
        """
        for which in (0, mask):
            unit, size = self.range(column, which).grain, self.range(column, which).size
            if abs(unit) <= FINEST and size < two(LONGEST + unit):
                return unit
        return None

    def number(self, column: int, base: str, token: str) -> str:
        """C of a column for a token."""
        self.used.setdefault(column, set()).add(base)
        return f"C{column}({token})"

    def integer(self, column: int, unit: int, base: str, mask: int, token: str) -> str:
        """The same as an integer in units, for tokens of a set."""
        name = f"K{column}" if unit == self.unit(column, 0) else f"K{column}_{mask}"
        bases, tokens = self.whole.setdefault((name, column, unit), (set(), set()))
        bases.add(base)
        tokens.add(mask)
        return f"{name}({token})"

    def tables(self) -> tuple[list[npt.NDArray[np.uint8]], list[str], list[str]]:
        """Tables (tokens, bytes) of the columns in use, C types of their rows, and C macros.

        Columns that are used at the same places are neighbours; integers are as short as can be.
        """
        groups: dict[tuple[str, ...], dict[str, npt.NDArray[np.generic]]] = {}
        for number, bases in sorted(self.used.items()):
            group = groups.setdefault(("", *sorted(bases)), {})
            group[f"C{number}"] = self.arrays[number]
        for (name, number, unit), (bases, masks) in sorted(self.whole.items()):
            group = groups.setdefault(tuple(sorted(bases)), {})
            group[name] = self._integers(number, unit, masks)
        arrays, types, macros = [], [], []
        for number, columns in enumerate(groups.values()):
            order = sorted(columns, key=lambda name: -columns[name].itemsize)
            kind = np.dtype([(name, columns[name].dtype) for name in order], align=True)
            rows = np.zeros(self.n_tokens, kind)
            for name, column in columns.items():
                rows[name] = column
            arrays.append(rows.view(np.uint8).reshape(self.n_tokens, kind.itemsize))
            fields = "".join(f" {C_TYPES[columns[n].dtype.name]} {n};" for n in order)
            types.append(f"typedef struct {{{fields} }} row{number};")
            for name in order:
                wide = "(int64_t)" * (name[0] == "K")
                macros.append(f"#define {name}(k) ({wide}e->rows{number}[k].{name})")
        return arrays, types, macros

    def _integers(
        self, column: int, unit: int, masks: Iterable[int]
    ) -> npt.NDArray[np.signedinteger]:
        """A column in units as the shortest integers for tokens of some sets; 0 for others."""
        tokens = np.logical_or.reduce([self.masks[mask] for mask in masks])
        integers = (np.where(tokens, self.arrays[column], 0.0) * two(-unit)).astype(np.int64)
        least, most = int(integers.min()), int(integers.max())
        for kind in (np.int8, np.int16, np.int32):
            if np.iinfo(kind).min <= least and most <= np.iinfo(kind).max:
                return integers.astype(kind)
        return integers


def classes(keys: Sequence[tuple[object, ...]]) -> list[Mask]:
    """Sets of tokens with equal keys, the largest first."""
    order = [key for key, _ in Counter(keys).most_common()]
    index = {key: i for i, key in enumerate(order)}
    which = np.array([index[key] for key in keys])
    return [which == i for i in range(len(order))]


def constant(value: float) -> Linear:
    """A number as a value."""
    return Linear(Form(value))

"""Quantities that are known functions of tokens and positions, and sums of them with variables.

In: weights, as rows and columns of float64. Out: :class:`Linear` values, which the code generator
keeps for every slot of the residual stream instead of a name.

A :class:`Form` is ``const + p·position + square·position² + sum of columns[token at a place]``,
where a *place* is a variable that holds a position, and how many tokens before it. Sums of forms
are taken only where every sum of the terms is exact in float64, whatever the order: all terms are
multiples of 2^g, and their magnitudes add up to less than 2^(53 + g). So a form can be evaluated,
stored, cancelled and looked up again later without changing any bit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from executor.checkpoint import Array
from executor.native.errors import MOST_TOKENS as MOST_TOKENS

NO_GRAIN = 5000

Place = tuple[str, int]
"""The C variable of a position, and how many tokens before it (position 0 if there are not)."""
HERE: Place = ("p", 0)


def grain(values: Array) -> int:
    """The greatest g such that all the values are multiples of 2^g; ``NO_GRAIN`` if all are zero.

    >>> grain(np.array([6.0, 0.0, 2.5]))
    -1
    """
    numbers = values[values != 0.0]
    if not numbers.size:
        return NO_GRAIN
    mantissas, exponents = np.frexp(numbers)
    integers = (mantissas * 2.0**53).astype(np.int64)
    zeros = np.frexp((integers & -integers).astype(np.float64))[1] - 1
    return int((exponents - 53 + zeros).min())


@dataclass(frozen=True)
class Form:
    """See the module. ``columns[place]`` has one number per token id."""

    const: float = 0.0
    p: float = 0.0
    square: float = 0.0
    columns: Mapping[Place, Array] = field(default_factory=dict)

    @property
    def is_constant(self) -> bool:
        """Whether it is a number."""
        return not (self.p or self.square or self.columns)

    @property
    def is_zero(self) -> bool:
        """Whether it is zero."""
        return self.is_constant and self.const == 0.0

    @property
    def of_one_token(self) -> Place | None:
        """The place if it depends on one token and nothing else."""
        if self.p or self.square or len(self.columns) != 1:
            return None
        return next(iter(self.columns))

    def table(self, place: Place) -> Array:
        """Its value for each token id at its only place."""
        column: Array = self.columns[place] + self.const
        return column

    def parts(self) -> list[Array]:
        """The terms of the sum, each as the values it takes (or its greatest values)."""
        position = float(MOST_TOKENS)
        scalars = [self.const, self.p * position, self.square * position**2]
        grains = [self.const, self.p, self.square]
        parts = [np.array(pair) for pair in zip(scalars, grains, strict=True) if pair[1]]
        return [*parts, *self.columns.values()]


def exact_sum(terms: Iterable[tuple[float, Form]]) -> Form | None:
    """Sum of factor times form; None if not every sum of the parts is proved exact."""
    terms = [(factor, form) for factor, form in terms if factor and not form.is_zero]
    parts = [(factor, part) for factor, form in terms for part in form.parts()]
    least = min((grain(np.array([f])) + grain(part) for f, part in parts), default=0)
    size = sum(abs(f) * float(np.abs(part).max()) for f, part in parts)
    if not size < 2.0 ** min(53 + least, 1000):  # the size itself may be rounded
        return None
    columns: dict[Place, Array] = {}
    for factor, form in terms:
        for place, column in form.columns.items():
            columns[place] = columns.get(place, 0.0) + factor * column
    const = sum((factor * form.const for factor, form in terms), 0.0)
    for place in list(columns):
        column = columns[place]
        if not (column != column[0]).any():
            const += float(column[0])
            del columns[place]
    p = sum((factor * form.p for factor, form in terms), 0.0)
    square = sum((factor * form.square for factor, form in terms), 0.0)
    return Form(const + 0.0, p + 0.0, square + 0.0, columns)


def exact_product(one: Array, other: Array) -> bool:
    """Whether all products of two columns are exact."""
    return _bits(one) + _bits(other) <= 53


def _bits(values: Array) -> int:
    size = float(np.abs(values).max(initial=0.0))
    return int(np.frexp(size)[1]) - grain(values) if size else 0


@dataclass(frozen=True)
class Linear:
    """A form plus factors times C variables."""

    form: Form = field(default_factory=Form)
    variables: tuple[tuple[float, str], ...] = ()

    @property
    def constant(self) -> float | None:
        """Its value if it is a number."""
        return self.form.const if self.form.is_constant and not self.variables else None

    @property
    def place(self) -> Place | None:
        """The place if it depends on one token and nothing else."""
        return None if self.variables else self.form.of_one_token

    def key(self) -> tuple[object, ...]:
        """Equal for equal values."""
        form = self.form
        columns = sorted((place, column.tobytes()) for place, column in form.columns.items())
        return (form.const, form.p, form.square, tuple(columns), tuple(sorted(self.variables)))


def merged(variables: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Factors of equal variables added up, zeros left out; order of first appearance."""
    factors: dict[str, float] = {}
    for factor, name in variables:
        factors[name] = factors.get(name, 0.0) + factor
    return [(factor, name) for name, factor in factors.items() if factor]


def shifted(form: Form, base: str, back: int = 0) -> Form:
    """The form's value at the position in variable ``base`` (less ``back``), but for its ``p``.

    Only for forms of the current token and those a fixed number before it.
    """
    columns = {(base, own + back): column for (_, own), column in form.columns.items()}
    return Form(form.const, 0.0, 0.0, columns)


def can_shift(linear: Linear) -> bool:
    """Whether a later token can compute it again from the tokens (and its position)."""
    return (
        not linear.variables
        and not linear.form.square
        and all(place[0] == HERE[0] for place in linear.form.columns)
    )

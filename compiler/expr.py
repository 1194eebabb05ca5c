"""Quantities of the graph language, and linear combinations of them.

Adding, subtracting, and multiplying by numbers costs nothing: what reads a linear combination
reads it through a row of weights. Everything else takes a head or a neuron, see
:mod:`compiler.graph`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import isfinite
from typing import SupportsFloat

from compiler.errors import GraphError

ONE, POSITION, POSITION_SQUARED = "one", "position", "position_squared"


class Expr:
    """A linear combination of quantities; numbers are multiples of the quantity ``one``.

    >>> number = Quantity("number")
    >>> 2 * number - 1
    +2·number -1
    """

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[str, float]) -> None:
        self.terms: dict[str, float] = {name: c for name, c in terms.items() if c != 0}

    def __add__(self, other: Expr | float) -> Expr:
        terms = dict(self.terms)
        for name, c in as_expr(other).terms.items():
            terms[name] = terms.get(name, 0) + c
        return Expr(terms)

    __radd__ = __add__

    def __mul__(self, factor: float) -> Expr:
        number = _number(factor)
        return Expr({name: c * number for name, c in self.terms.items()})

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Expr:
        number = _number(divisor)
        if number == 0:
            raise GraphError(f"({self}) is divided by zero")
        return self * (1 / number)

    def __neg__(self) -> Expr:
        return self * -1

    def __sub__(self, other: Expr | float) -> Expr:
        return self + -as_expr(other)

    def __rsub__(self, other: Expr | float) -> Expr:
        return as_expr(other) - self

    def __bool__(self) -> bool:
        raise GraphError(
            f"({self}) is neither true nor false: it is a number at every token, not now",
            "let neurons decide: graph.function(...), or graph.relu(NAME, flag, times=value)",
        )

    def __repr__(self) -> str:
        parts = [f"{c:+g}·{name}" if name != ONE else f"{c:+g}" for name, c in self.terms.items()]
        return " ".join(parts) or "0"


class Quantity(Expr):
    """A named number in the residual stream: the expression consisting of itself alone."""

    __slots__ = ("integral", "name")

    def __init__(self, name: str, integral: bool = True) -> None:
        super().__init__({name: 1})
        self.name = name
        self.integral = integral


Targets = Quantity | Mapping[Quantity, float]
"""Where a value goes: one quantity, or several with a coefficient each."""


def targets(into: Targets) -> Iterable[tuple[Quantity, float]]:
    """Quantities and coefficients, in one form."""
    return [(into, 1.0)] if isinstance(into, Quantity) else list(into.items())


def as_expr(value: Expr | float) -> Expr:
    """A number as a multiple of ``one``; an expression as it is.

    Raises:
        GraphError: for what is neither, and for infinite numbers.
    """
    return value if isinstance(value, Expr) else Expr({ONE: _number(value)})


def _number(value: object) -> float:
    if isinstance(value, Expr):
        raise GraphError(
            f"a factor or divisor is ({value}), which is no number",
            "a neuron multiplies: graph.relu(NAME, a, times=b) is max(0, a)·b",
        )
    if isinstance(value, bool):
        raise GraphError(
            f"{value} is no number; a comparison of quantities is made now, not at every token",
            "let neurons compare: graph.function(NAME, quantity, {6: 0, 7: 1, 8: 0}) is 1 at 7",
        )
    if isinstance(value, list | tuple) and any(isinstance(one, Expr) for one in value):
        raise GraphError(
            f"{value!r} is a list of quantities, not one: a lookup gives a list, even of one",
            "write a comma: (found,) = graph.fetch_position(...)",
        )
    if not isinstance(value, SupportsFloat) or not isfinite(value):
        raise GraphError(f"{value!r} is neither a finite number nor an expression of quantities")
    return value  # type: ignore[return-value]

"""The graph language: an append-only lookup machine written as named quantities.

A :class:`Graph` says what a transformer must compute at every token, without saying where.
Every *quantity* is a number that will live in one slot of the residual stream. Quantities come
from the embedding (:meth:`Graph.input`), from the position, from attention heads
(:meth:`Graph.lookup`, :meth:`Graph.running_sum`) and from neurons (:meth:`Graph.gate` and the
helpers built on it). Any linear combination of quantities is an :class:`Expr`, costs nothing,
and can be used wherever a head or neuron reads.

The graph is a plain value: :mod:`compiler.evaluate` runs it exactly, :mod:`compiler.schedule`
places it into layers and slots, :mod:`compiler.weights` turns the placed graph into tensors.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Literal

Mode = Literal["latest", "mean"]
Partial = Mapping[str, tuple[str, ...]]
"""See :meth:`Graph.dependencies`."""

ONE, POSITION, POSITION_SQUARED = "one", "position", "position_squared"

SNAP = 1.5 * 2.0**48
"""Added to a running sum, it rounds the sum to a multiple of 1/16: doubles in [2^48, 2^49) are
spaced 2^-4 apart, so the inexact mean times position becomes the exact integer again."""


class Expr:
    """A linear combination of quantities; numbers are multiples of the quantity ``one``."""

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
        return Expr({name: c * factor for name, c in self.terms.items()})

    __rmul__ = __mul__

    def __truediv__(self, divisor: float) -> Expr:
        return self * (1 / divisor)

    def __neg__(self) -> Expr:
        return self * -1

    def __sub__(self, other: Expr | float) -> Expr:
        return self + -as_expr(other)

    def __rsub__(self, other: Expr | float) -> Expr:
        return as_expr(other) - self

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
Fetched = Sequence[tuple[Expr, Targets]]
"""What a head fetches, and where it goes."""


def as_expr(value: Expr | float) -> Expr:
    """A number as a multiple of ``one``; an expression as it is."""
    return value if isinstance(value, Expr) else Expr({ONE: value})


@dataclass(frozen=True)
class Term:
    """``coefficient * value`` is added to the quantity ``target``."""

    target: str
    value: int
    """Which of the node's values: 0 or 1 for a lookup, 0 for a gate."""
    coefficient: float = 1.0


@dataclass(frozen=True)
class Lookup:
    """One two-dimensional attention head: the value at the key with the greatest q·k."""

    name: str
    query: tuple[Expr, Expr]
    key: tuple[Expr, Expr]
    values: tuple[Expr, ...]
    mode: Mode
    terms: tuple[Term, ...]
    partial: Partial = field(default_factory=dict)

    def reads(self) -> set[str]:
        """Names of all quantities that the head's projections touch."""
        return {n for e in (*self.query, *self.key, *self.values) for n in e.terms}


@dataclass(frozen=True)
class Gate:
    """One ReGLU neuron: ``max(0, gate) * value``."""

    name: str
    gate: Expr
    value: Expr
    terms: tuple[Term, ...]
    partial: Partial = field(default_factory=dict)

    def reads(self) -> set[str]:
        """Names of all quantities that the neuron's two projections touch."""
        return {n for e in (self.gate, self.value) for n in e.terms}


Node = Lookup | Gate


@dataclass
class Graph:
    """A machine under construction.

    ``quantities`` maps names to quantities; ``inputs`` are those the embedding sets; ``nodes``
    are the heads and neurons; ``embedding[token][input]`` and ``scores[token]`` are the two ends;
    ``about`` says what quantities and nodes are, for readers.
    """

    quantities: dict[str, Quantity] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    nodes: dict[str, Node] = field(default_factory=dict)
    embedding: dict[str, dict[str, float]] = field(default_factory=dict)
    scores: dict[str, Expr] = field(default_factory=dict)
    about: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.one = self.input(ONE)
        self.position = self.input(POSITION)
        self.position_squared = self.input(POSITION_SQUARED)

    # --- quantities --------------------------------------------------------------------------

    def linear(self, name: str, *, integral: bool = True) -> Quantity:
        """A slot that starts at zero and accumulates the terms that name it as their target.

        Terms may come in different half-layers (an attention or a feed-forward each).

        ``integral=False`` marks what is not a small integer (means, snapped sums, dyadic
        fractions): the scheduler then never lets it share a half-layer with the erasure of
        what stood in its slot before.
        """
        if name in self.quantities:
            raise ValueError(f"quantity {name!r} is defined twice")
        quantity = Quantity(name, integral)
        self.quantities[name] = quantity
        return quantity

    def input(self, name: str) -> Quantity:
        """A slot that the embedding sets; what a token does not mention is zero."""
        self.inputs.append(name)
        return self.linear(name)

    def token(self, spelling: str, **values: float) -> None:
        """Add ``spelling`` to the vocabulary with these input quantities."""
        unknown = set(values) - set(self.inputs)
        if spelling in self.embedding or unknown:
            raise ValueError(f"token {spelling!r} is defined twice or sets unknown {unknown}")
        self.embedding[spelling] = values

    def score(self, spelling: str, value: Expr | float) -> None:
        """The logit of a token. Every token needs one, a low one if only prompts hold it."""
        if spelling not in self.embedding or spelling in self.scores:
            raise ValueError(f"token {spelling!r} is unknown or already has a score")
        self.scores[spelling] = as_expr(value)

    def describe(self, words: Mapping[str, str]) -> None:
        """Say what quantities are and what heads fetch: ``{"top": "the top of the stack"}``.

        It changes nothing but what ``transputer explain`` prints.
        """
        unknown = set(words) - set(self.quantities) - set(self.nodes)
        if unknown:
            raise ValueError(f"there is nothing called {', '.join(sorted(unknown))}")
        self.about.update(words)

    # --- attention ---------------------------------------------------------------------------

    def lookup(
        self,
        name: str,
        *,
        query: tuple[Expr | float, Expr | float],
        key: tuple[Expr | float, Expr | float],
        values: Fetched,
        mode: Mode = "latest",
        partial: Partial | None = None,
    ) -> None:
        """A head that fetches one or two values and adds them to their targets.

        ``values`` pairs each fetched expression with the quantity (or quantities and
        coefficients) that receives it. ``partial`` is explained at :meth:`dependencies`.
        """
        if not 1 <= len(values) <= 2:
            raise ValueError(f"lookup {name!r} must fetch one or two values")
        terms = [
            Term(quantity.name, number, coefficient)
            for number, (_, targets) in enumerate(values)
            for quantity, coefficient in _targets(targets)
        ]
        self._add(
            Lookup(
                name,
                (as_expr(query[0]), as_expr(query[1])),
                (as_expr(key[0]), as_expr(key[1])),
                tuple(value for value, _ in values),
                mode,
                tuple(terms),
                partial or {},
            )
        )

    def fetch_position(
        self,
        name: str,
        at: Expr,
        values: Fetched,
        partial: Partial | None = None,
    ) -> None:
        """Fetch from the token at position ``at`` (the nearest one if there is none).

        Key (2p, -p²) and query (i, 1) score i² - (i - p)².
        """
        self.lookup(
            name,
            query=(at, 1),
            key=(2 * self.position, -self.position_squared),
            values=values,
            partial=partial,
        )

    def running_sum(self, name: str, value: Expr) -> Expr:
        """The sum of ``value`` over all tokens so far, this one included.

        The head returns the mean; a neuron multiplies it by the number of tokens; ``SNAP``
        rounds the product to the exact sum. Two sums may share a head: see :meth:`running_sums`.
        """
        return self.running_sums({name: value})[0]

    def running_sums(self, sums: Mapping[str, Expr]) -> list[Expr]:
        """Up to two running sums from one averaging head."""
        means = {n: self.linear(f"{n}.mean", integral=False) for n in sums}
        self.lookup(
            f"mean({', '.join(sums)})",
            query=(0, 0),
            key=(0, 0),
            values=[(value, means[n]) for n, value in sums.items()],
            mode="mean",
        )
        out: list[Expr] = []
        for name in sums:
            total = self.linear(name, integral=False)
            self.gate(f"{name}.sum", self.position + 1, means[name], total)
            self.gate(f"{name}.snap", self.one, SNAP * self.one, total)
            out.append(total - SNAP)
        return out

    # --- neurons -----------------------------------------------------------------------------

    def gate(
        self,
        name: str,
        gate: Expr | float,
        value: Expr | float,
        into: Targets,
        partial: Partial | None = None,
    ) -> None:
        """One neuron: adds ``max(0, gate) * value`` to its targets."""
        terms = tuple(Term(q.name, 0, c) for q, c in _targets(into))
        self._add(Gate(name, as_expr(gate), as_expr(value), terms, partial or {}))

    def step(self, name: str, at: Expr, value: Expr | float, into: Quantity) -> None:
        """Adds ``value`` where the integer ``at`` is at least 1: two neurons."""
        self.gate(f"{name}.hi", at, value, into)
        self.gate(f"{name}.lo", at - 1, -as_expr(value), into)

    def square(self, name: str, of: Expr, into: Quantity, *, signed: bool = False) -> None:
        """Adds ``of`` squared; one neuron for non-negative arguments, two otherwise."""
        self.gate(f"{name}.pos", of, of, into)
        if signed:
            self.gate(f"{name}.neg", -of, -of, into)

    # --- structure ---------------------------------------------------------------------------

    def _add(self, node: Node) -> None:
        unknown = (node.reads() | {t.target for t in node.terms}) - set(self.quantities)
        if node.name in self.nodes or unknown:
            raise ValueError(f"node {node.name!r} is defined twice or names unknown {unknown}")
        self.nodes[node.name] = node

    def dependencies(self) -> dict[str, set[str]]:
        """For each node the nodes that must come in an earlier half-layer.

        These are all writers of the quantities it reads, except that for a quantity named in
        ``node.partial`` only the writers listed there count: the node reads an accumulator in
        the middle of its life, and the other writers may come before or after.
        """
        writers = self.writers()
        return {
            node.name: {
                writer
                for name in node.reads()
                for writer in node.partial.get(name, tuple(writers[name]))
            }
            for node in self.nodes.values()
        }

    def ordered(self) -> list[Node]:
        """All nodes in an order that respects :meth:`dependencies` (ValueError on a cycle)."""
        try:
            order = list(TopologicalSorter(self.dependencies()).static_order())
        except CycleError as error:
            raise ValueError(f"the graph has a cycle: {error.args[1]}") from error
        return [self.nodes[name] for name in order]

    def writers(self) -> dict[str, list[str]]:
        """For each quantity the nodes that add to it."""
        table: dict[str, list[str]] = {name: [] for name in self.quantities}
        for node in self.nodes.values():
            for target in {term.target for term in node.terms}:
                table[target].append(node.name)
        return table

    def readers(self) -> dict[str, list[str]]:
        """For each quantity the nodes that read it."""
        table: dict[str, list[str]] = {name: [] for name in self.quantities}
        for node in self.nodes.values():
            for name in node.reads():
                table[name].append(node.name)
        return table

    def scored(self) -> set[str]:
        """Quantities that the token scores read."""
        return {name for expr in self.scores.values() for name in expr.terms}


def _targets(into: Targets) -> Iterable[tuple[Quantity, float]]:
    return [(into, 1.0)] if isinstance(into, Quantity) else list(into.items())

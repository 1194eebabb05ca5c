"""A machine as a graph: quantities, the heads and neurons that add to them, and the two ends.

:mod:`compiler.graph` is the language that people write; this is what it builds and what the
stages behind it read: the evaluator, the scheduler, the weights.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter
from typing import Literal

from compiler.errors import GraphError, Place
from compiler.expr import ONE, POSITION, POSITION_SQUARED, Expr, Quantity, as_expr

Mode = Literal["latest", "mean"]
Partial = Mapping[str, tuple[str, ...]]
"""See :meth:`GraphCore.dependencies`."""

NEVER = -(2.0**52)
"""The logit of tokens that are never written."""


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

    @property
    def forms(self) -> tuple[Expr, ...]:
        """What it projects the stream to: two of a query, two of a key, and the values."""
        return (*self.query, *self.key, *self.values)

    def reads(self) -> set[str]:
        """Names of all quantities that the head's projections touch."""
        return {n for e in self.forms for n in e.terms}


@dataclass(frozen=True)
class Gate:
    """One ReGLU neuron: ``max(0, gate) * value``."""

    name: str
    gate: Expr
    value: Expr
    terms: tuple[Term, ...]
    partial: Partial = field(default_factory=dict)

    @property
    def forms(self) -> tuple[Expr, Expr]:
        """What it projects the stream to: gate and value."""
        return self.gate, self.value

    def reads(self) -> set[str]:
        """Names of all quantities that the neuron's two projections touch."""
        return {n for e in self.forms for n in e.terms}


Node = Lookup | Gate


@dataclass
class GraphCore:
    """What a graph consists of.

    Attributes:
        quantities: name to quantity. ``inputs`` are those the embedding sets.
        nodes: the heads and neurons.
        embedding: ``embedding[token][input]``; the order of the tokens is that of their ids.
        scores: the logits of tokens; one without a score has the logit ``NEVER``.
        prefix: tokens that stand before every prompt.
        stops: tokens that end what the machine writes.
        about: what quantities and nodes are, in words, for readers.
        flags: what has to be 0 or 1 at every token, by the name of the head that needs it.
        places: the lines that defined quantities and nodes, for messages.
    """

    quantities: dict[str, Quantity] = field(default_factory=dict)
    inputs: list[str] = field(default_factory=list)
    nodes: dict[str, Node] = field(default_factory=dict)
    embedding: dict[str, dict[str, float]] = field(default_factory=dict)
    scores: dict[str, Expr] = field(default_factory=dict)
    prefix: list[str] = field(default_factory=list)
    stops: list[str] = field(default_factory=list)
    about: dict[str, str] = field(default_factory=dict)
    flags: dict[str, Expr] = field(default_factory=dict)
    places: dict[str, Place] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        self.one = self.input(ONE)
        self.position = self.input(POSITION)
        self.position_squared = self.input(POSITION_SQUARED)

    # --- quantities and tokens ---------------------------------------------------------------

    def linear(self, name: str, *, integral: bool = True) -> Quantity:
        """A slot that starts at zero and accumulates the terms that name it as their target.

        Terms may come in different half-layers (an attention or a feed-forward each).

        ``integral=False`` marks what is not a small integer (means, snapped sums, dyadic
        fractions): the scheduler then never lets it share a half-layer with the erasure of
        what stood in its slot before.
        """
        if name in self.quantities:
            raise GraphError(f"quantity {name!r} is defined twice{self._defined(name)}")
        if not isinstance(name, str) or not name or ", " in name:
            raise GraphError(
                f"{name!r} is no name for a quantity",
                "a name is not empty, and commas with a space stand between names",
            )
        quantity = Quantity(name, integral)
        self.quantities[name] = quantity
        self.places[f"quantity {name}"] = _caller()
        return quantity

    def input(self, name: str) -> Quantity:
        """A slot that the embedding sets; what a token does not mention is zero."""
        if name == "spelling":
            raise GraphError(
                "an input cannot be called 'spelling', which is the first argument of token(...)"
            )
        quantity = self.linear(name)
        self.inputs.append(name)
        return quantity

    def token(self, spelling: str, **values: float) -> None:
        """Add ``spelling`` to the vocabulary with these input quantities.

        >>> graph = GraphCore()
        >>> verb = graph.input("verb")
        >>> for word in ("cat", "sees"):
        ...     graph.token(word, verb=word in {"sees", "runs"})
        >>> graph.embedding["sees"]
        {'verb': 1}
        """
        if spelling in self.embedding:
            before = self._defined(spelling, "token")
            raise GraphError(f"token {spelling!r} is defined twice{before}")
        fixed = {ONE, POSITION, POSITION_SQUARED} & set(values)
        unknown = set(values) - set(self.inputs)
        if unknown or fixed:
            names = ", ".join(map(repr, sorted(unknown | fixed)))
            known = ", ".join(self.inputs[3:]) or "none yet"
            raise GraphError(
                f"token {spelling!r} sets unknown {names}",
                f"a token sets what graph.input(...) made before: {known}",
            )
        numbers = {n: int(v) if isinstance(v, bool) else v for n, v in values.items()}
        for name, value in numbers.items():
            if set(as_expr(value).terms) - {ONE}:
                raise GraphError(f"token {spelling!r}: {name} is no number")
        self.embedding[spelling] = numbers
        self.places[f"token {spelling}"] = _caller()

    def score(self, spelling: str, value: Expr | float) -> None:
        """The logit of a token: the token with the greatest is written next.

        A token without a score is never written.
        """
        if spelling not in self.embedding:
            raise GraphError(
                f"a score for token {spelling!r}, which is unknown",
                f"{close(spelling, self.embedding)}graph.token(...) defines tokens",
            )
        if spelling in self.scores:
            before = self._defined(spelling, "score")
            raise GraphError(f"token {spelling!r} has a score already{before}")
        expr = as_expr(value)
        self._known(f"the score of token {spelling!r}", set(expr.terms))
        self.scores[spelling] = expr
        self.places[f"score {spelling}"] = _caller()

    def describe(self, words: Mapping[str, str]) -> None:
        """Say what quantities are and what heads fetch: ``{"top": "the top of the stack"}``.

        It changes nothing but what ``transputer explain`` prints.
        """
        unknown = set(words) - set(self.quantities) - set(self.nodes)
        if unknown:
            raise GraphError(f"there is nothing called {spelled(sorted(unknown))}")
        self.about.update(words)

    def logits(self) -> dict[str, Expr]:
        """The score of every token, in the order of the ids."""
        never = Expr({ONE: NEVER})
        return {token: self.scores.get(token, never) for token in self.embedding}

    # --- structure ---------------------------------------------------------------------------

    def add(self, node: Node) -> None:
        """One more head or neuron.

        Raises:
            GraphError: if its name is taken, or it reads or writes what is not in this graph.
        """
        if node.name in self.nodes:
            raise GraphError(f"node {node.name!r} is defined twice{self._defined(node.name)}")
        self._known(f"node {node.name!r}", node.reads() | {t.target for t in node.terms})
        self.nodes[node.name] = node
        self.places[f"node {node.name}"] = _caller()

    def _known(self, what: str, names: set[str]) -> None:
        unknown = names - set(self.quantities)
        if unknown:
            listed = ", ".join(map(repr, sorted(unknown)))
            raise GraphError(
                f"{what} names unknown quantities of another graph: {listed}",
                "make quantities with the input, linear, relu, ... of this graph",
            )

    def _defined(self, name: str, *kinds: str) -> str:
        """Where the first of two definitions is."""
        places = [self.places.get(f"{kind} {name}") for kind in kinds or ("quantity", "node")]
        place = next(filter(None, places), None)
        return f" (before in {place})" if place else ""

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
        """All nodes in an order that respects :meth:`dependencies` (GraphError on a cycle)."""
        try:
            order = list(TopologicalSorter(self.dependencies()).static_order())
        except CycleError as error:
            cycle = list(dict.fromkeys(error.args[1]))
            raise GraphError(
                "the graph has a cycle: each of these waits for another one: " + ", ".join(cycle),
                "a head or neuron reads a quantity after everything has been added to it",
                self.places.get(f"node {cycle[0]}"),
            ) from error
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
        return {name for expr in self.logits().values() for name in expr.terms}


def close(name: str, known: Iterable[str]) -> str:
    """A question for a message: whether the one that is nearly spelled so is meant."""
    found = get_close_matches(name, known, n=1)
    return f"did you mean {found[0]!r}? " if found else ""


def spelled(tokens: Iterable[str]) -> str:
    """Tokens for a message."""
    return ", ".join(map(repr, tokens))


_OURS = (__name__, "compiler.graph")


def _caller() -> Place:
    """The line, outside the language itself, that is being executed."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__") in _OURS:
        frame = frame.f_back
    return Place(frame.f_code.co_filename, "", f"line {frame.f_lineno}")

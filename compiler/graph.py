"""The graph language: an append-only lookup machine written as named quantities.

A :class:`Graph` says what a transformer must compute at every token, without saying where.
Every *quantity* is a number that will live in one slot of the residual stream. Quantities come
from the embedding (:meth:`Graph.input`), from the position, from attention heads
(:meth:`Graph.fetch_position`, :meth:`Graph.lookup`, :meth:`Graph.running_sum`) and from neurons
(:meth:`Graph.relu`, :meth:`Graph.function`, :meth:`Graph.gate`). Any linear combination of
quantities is an :class:`Expr`, costs nothing, and can be used wherever a head or neuron reads.

A machine that counts, and begins again after 9::

    from compiler.graph import Graph

    def machine() -> Graph:
        graph = Graph()
        number = graph.input("number")
        digits = {str(n): n for n in range(10)}
        for spelling, n in digits.items():
            graph.token(spelling, number=n)
        following = graph.function("following", number, {0: 1, 8: 9, 9: 0})
        graph.score_nearest(following, digits)
        return graph

``docs/tutorial.md`` builds whole ones, and ``transputer build --machine FILE.py`` makes
transformers of them. The graph is a plain value: :mod:`compiler.evaluate` runs it exactly,
:mod:`compiler.schedule` places it into layers and slots, :mod:`compiler.weights` turns the placed
graph into tensors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from compiler.errors import GraphError
from compiler.expr import (
    ONE,
    POSITION,
    POSITION_SQUARED,
    Expr,
    Quantity,
    Targets,
    as_expr,
    targets,
)
from compiler.graph_core import (
    NEVER,
    Gate,
    GraphCore,
    Lookup,
    Mode,
    Node,
    Partial,
    Term,
    spelled,
)

__all__ = [
    "NEVER",
    "ONE",
    "POSITION",
    "POSITION_SQUARED",
    "SNAP",
    "Expr",
    "Fetched",
    "Gate",
    "Graph",
    "GraphError",
    "Lookup",
    "Mode",
    "Node",
    "Partial",
    "Quantity",
    "Targets",
    "Term",
    "as_expr",
]

SNAP = 1.5 * 2.0**48
"""Added to a running sum, it rounds the sum to a multiple of 1/16: doubles in [2^48, 2^49) are
spaced 2^-4 apart, so the inexact mean times position becomes the exact integer again."""

Fetched = Sequence[tuple[Expr, Targets]] | Mapping[str, Expr | float]
"""What a head fetches: ``{name: expression}`` for new quantities, or pairs of an expression and
the quantities to which it is added."""


class Graph(GraphCore):
    """A machine under construction: add tokens, heads, neurons and scores by its methods.

    ``graph.position`` is the number of tokens before this one, ``graph.one`` is 1.
    """

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
    ) -> list[Quantity]:
        """A head: one or two values of the token whose key scores most with this token's query.

        Args:
            query, key: pairs of expressions; a score is the sum of the two products. The query
                is this token's; each earlier token and this one has its own key.
            values: what to fetch, see ``Fetched``.
            mode: of keys with equal scores take the ``latest``, or the ``mean`` of all.
            partial: explained at :meth:`dependencies`.

        Returns:
            The new quantities, for ``values`` that name them.
        """
        if not 1 <= len(values) <= 2:
            raise GraphError(f"lookup {name!r} must fetch one or two values, not {len(values)}")
        if mode not in ("latest", "mean"):
            raise GraphError(f"lookup {name!r}: the mode {mode!r} is neither latest nor mean")
        made: list[Quantity] = []
        if isinstance(values, Mapping):
            made = [self.linear(new, integral=mode == "latest") for new in values]
            values = [(as_expr(e), new) for e, new in zip(values.values(), made, strict=True)]
        terms = [
            Term(quantity.name, number, coefficient)
            for number, (_, into) in enumerate(values)
            for quantity, coefficient in targets(into)
        ]
        self.add(
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
        return made

    def fetch_position(
        self,
        name: str,
        at: Expr,
        values: Fetched,
        partial: Partial | None = None,
    ) -> list[Quantity]:
        """Fetch from the token at position ``at`` (the nearest one if there is none).

        Key (2p, -p²) and query (i, 1) score i² - (i - p)².

        >>> graph = Graph()
        >>> digit = graph.input("digit")
        >>> (before,) = graph.fetch_position("before", graph.position - 1, {"digit before": digit})
        """
        return self.lookup(
            name,
            query=(at, 1),
            key=(2 * self.position, -self.position_squared),
            values=values,
            partial=partial,
        )

    def fetch_marked(self, name: str, mark: Expr, values: Fetched) -> list[Quantity]:
        """Fetch from the token with the greatest ``mark``; of equals from the latest.

        >>> graph = Graph()
        >>> stop = graph.input("full_stop")
        >>> (end,) = graph.fetch_marked("end", stop, {"end": graph.position})
        """
        return self.lookup(name, query=(1, 0), key=(mark, 0), values=values)

    def fetch_written(
        self, name: str, at: Expr, values: Fetched, *, index: Expr, where: Expr
    ) -> list[Quantity]:
        """A memory: fetch from the latest token that wrote at index ``at``.

        A token with ``where`` = 1 writes at ``index``, a number that is at least 0; one with 0
        writes nothing. A machine where it may be another number is refused when it is built.
        Where nothing was written at ``at`` the nearest index that was answers, or a token that
        writes nothing: fetch ``index`` too if that can happen.

        Keys are (2k, -k²) with k = ``index`` + 1, and 0 for tokens that write nothing.

        >>> graph = Graph()
        >>> number, value, writes = map(graph.input, ("number", "value", "writes"))
        >>> values = {"found": value}
        >>> (found,) = graph.fetch_written("m", number, values, index=number, where=writes)
        """
        key = self.relu(f"{name}.key", where, times=index + 1)
        self.flags[name] = as_expr(where)
        squared = self.relu(f"{name}.squared", key, times=key)
        return self.lookup(name, query=(at + 1, 1), key=(2 * key, -squared), values=values)

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
        terms = tuple(Term(q.name, 0, c) for q, c in targets(into))
        self.add(Gate(name, as_expr(gate), as_expr(value), terms, partial or {}))

    def relu(self, name: str, of: Expr, times: Expr | float = 1) -> Quantity:
        """A new quantity, ``max(0, of) * times``: one neuron.

        The product of two numbers, where the first is not negative:

        >>> graph = Graph()
        >>> a, b = graph.input("a"), graph.input("b")
        >>> both = graph.relu("both", a, times=b)
        """
        into = self.linear(name)
        self.gate(name, of, times, into)
        return into

    def function(self, name: str, of: Expr, points: Mapping[int, float]) -> Expr:
        """A function of an integer, by its values; the first and the last go on outside.

        Between the points it is linear; each bend costs a neuron.

        >>> graph = Graph()
        >>> number = graph.input("number")
        >>> is_seven = graph.function("is_seven", number, {6: 0, 7: 1, 8: 0})
        """
        if len(points) < 2:
            raise GraphError(f"function {name!r} needs at least two points")
        broken = [place for place in points if not float(place).is_integer()]
        if broken:
            raise GraphError(
                f"function {name!r} has a point at {broken[0]}; points are integers",
                "multiply what it is a function of: 2 * x is an integer where x is a half",
            )
        of = as_expr(of)
        total = self.linear(name)
        places = sorted(points)
        slopes = [0.0]
        for left, right in zip(places, places[1:], strict=False):
            slopes.append((points[right] - points[left]) / (right - left))
        slopes.append(0.0)
        for place, before, after in zip(places, slopes, slopes[1:], strict=False):
            if after != before:
                self.gate(f"{name}.{place}", of - place, after - before, total)
        return total + points[places[0]]

    def step(self, name: str, at: Expr, value: Expr | float, into: Quantity) -> None:
        """Adds ``value`` where the integer ``at`` is at least 1: two neurons."""
        self.gate(f"{name}.hi", at, value, into)
        self.gate(f"{name}.lo", at - 1, -as_expr(value), into)

    def square(self, name: str, of: Expr, into: Quantity, *, signed: bool = False) -> None:
        """Adds ``of`` squared; one neuron for non-negative arguments, two otherwise."""
        self.gate(f"{name}.pos", of, of, into)
        if signed:
            self.gate(f"{name}.neg", -of, -of, into)

    # --- the ends ----------------------------------------------------------------------------

    def score_nearest(
        self, value: Expr, numbers: Mapping[str, float], plus: Expr | float = 0
    ) -> None:
        """Scores tokens that stand for numbers so that the one nearest to ``value`` is greatest.

        The score of number b is 2b·value - b² + ``plus``, which is value² - (value - b)², plus
        what all have in common.

        >>> graph = Graph()
        >>> graph.token("no")
        >>> graph.token("yes")
        >>> graph.score_nearest(graph.one, {"no": 0, "yes": 1})
        """
        for spelling, number in numbers.items():
            self.score(spelling, 2 * number * value - number * number + plus)

    def begin(self, *spellings: str) -> None:
        """Tokens that stand before every prompt: tables to look things up in, or a first token."""
        self.prefix += self._in_vocabulary("begin", spellings)

    def stop(self, *spellings: str) -> None:
        """Tokens that end what the machine writes."""
        self.stops += self._in_vocabulary("stop", spellings)

    def _in_vocabulary(self, what: str, spellings: Sequence[str]) -> list[str]:
        unknown = [spelling for spelling in spellings if spelling not in self.embedding]
        if unknown:
            raise GraphError(
                f"{what}({spelled(unknown)}): not in the vocabulary",
                "define it with graph.token(...) before",
            )
        return list(spellings)

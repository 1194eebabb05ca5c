"""From a graph of somebody's own to a machine: placed, weighted, and certified as far as can be.

In: a graph, the sizes that are asked for, and the kind of attention. Out: a machine whose
configuration says for how many tokens it is exact, or that nobody knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction

from compiler.build import Machine, make_machine
from compiler.certificate import MOST_TOKENS, Limit
from compiler.certify import greatest, inexact
from compiler.errors import CompileError, UsageError
from compiler.exactness import Analysis, Need
from compiler.facts import Facts
from compiler.graph import Graph
from compiler.own_softmax import softmax_bounds
from compiler.placement import SECONDS, Sizes, place_graph
from compiler.prune import useful
from compiler.ranges import DOUBLE_BITS
from compiler.schedule import Plan
from compiler.score_bits import UNKNOWN
from compiler.softmax import tie_break, with_softmax_weights

MAY_NEED_MORE = f"may need more than {DOUBLE_BITS} bits"

FINEST = 2**40
"""Nobody means a number that is a multiple of less than the inverse of this."""
LEAST_TOKENS = 16
"""A machine that is not exact for so many more than its first tokens has no certificate."""


@dataclass(frozen=True)
class OwnMachine:
    """A machine that somebody wrote.

    Attributes:
        machine: with the configuration's ``exactness`` in words.
        placement: how its plan was found, in words.
        certificate: the longest sequence for which every number is exact; None without one.
        unread: quantities that were left out, because no token score depends on them.
    """

    machine: Machine
    placement: str
    certificate: Limit | None
    unread: tuple[str, ...]


def build_own_machine(
    graph: Graph,
    sizes: Sizes | None = None,
    *,
    seconds: float = SECONDS,
    softmax_tokens: int | None = None,
) -> OwnMachine:
    """Place a graph and compute its weights, without what no token score depends on.

    Args:
        sizes: what the shape has to be; the smallest for what is left open.
        seconds: for the solver, see :func:`compiler.placement.place_graph`.
        softmax_tokens: for plain softmax instead of hard attention, over so many tokens.

    Raises:
        UsageError: if the graph does not fit, or plain softmax would not be exact.
        GraphError: if the graph has a cycle.
        CompileError: if a memory's ``where`` may be something else than 0 or 1.
    """
    whole, graph = graph, useful(graph)
    unread = tuple(name for name in whole.quantities if name not in graph.quantities)
    placement = place_graph(graph, sizes or Sizes(), seconds)
    _check_flags(graph, placement.plan)
    machine = make_machine(graph, placement.plan)
    certificate, doubt = certified_tokens(graph, placement.plan)
    tokens, words = None, f"not certified: {doubt}"
    if certificate is not None:
        tokens = certificate.value
        words = f"limit: {certificate.beyond}" if certificate.beyond else "no limit is known"
    if (number := _awkward(graph)) is not None:
        words += f"; {number} is no binary fraction, as halves and quarters are"
    if softmax_tokens is not None:
        if certificate is None:
            raise UsageError(f"no softmax weights: the machine is {words}")
        if certificate.value < softmax_tokens:
            raise UsageError(f"--tokens {softmax_tokens}: exact for {certificate.value:,} only")
        bounds = softmax_bounds(graph, placement.plan, softmax_tokens)
        closest = max(bounds, key=lambda bound: bound.error / bound.gap, default=None)
        tokens = softmax_tokens
        words = "no attention" if closest is None else f"closest head: {closest.name}"
    config = machine.config | {"max_tokens": tokens, "exactness": words, "prompts": "tokens"}
    machine = replace(machine, config=config)
    if softmax_tokens is not None:
        config |= {"attention": "softmax"}
        machine = with_softmax_weights(machine, config, tie_break(softmax_tokens))
    return OwnMachine(machine, placement.words, certificate, unread)


def _awkward(graph: Graph) -> float | None:
    """A number of the graph that binary fractions only come near."""
    rows: list[Mapping[str, float]] = [*graph.embedding.values()]
    rows += [form.terms for form in graph.scores.values()]
    for node in graph.nodes.values():
        rows += [form.terms for form in node.forms]
        rows.append({term.target: term.coefficient for term in node.terms})
    numbers = (number for row in rows for number in row.values())
    return next((n for n in numbers if Fraction(n).denominator > FINEST), None)


def _check_flags(graph: Graph, plan: Plan) -> None:
    """Refuses a memory that a token may write at another index than it says."""
    if not graph.flags:
        return
    analysis = Analysis(graph, plan, Facts(MOST_TOKENS, prefix=tuple(graph.prefix)))
    for name, flag in graph.flags.items():
        found = analysis.values(flag)
        broken = found.grain is None or found.grain < 0
        if found.low < 0 or found.high > 1 or broken:
            more = ", with fractions" if broken else ""
            raise CompileError(
                f"where={flag} of {name!r} has to be 0 or 1 at every token; it ranges from "
                f"{float(found.low):g} to {float(found.high):g}{more}",
                graph.places.get(f"node {name}"),
                "graph.function(NAME, flag, {0: 0, 1: 1}) makes 0 or 1 of any integer",
            )


def certified_tokens(graph: Graph, plan: Plan) -> tuple[Limit | None, str]:
    """How long a sequence may be for all numbers to be exact, or None and why it is not known."""
    prefix = tuple(graph.prefix)

    def needs(tokens: int) -> list[Need]:
        return inexact(Analysis(graph, plan, Facts(tokens, prefix=prefix)))

    least = len(prefix) + LEAST_TOKENS
    problems = needs(least)
    if problems:
        return None, f"{problems[0].what} {MAY_NEED_MORE}"
    tokens = greatest(lambda n: not needs(n), least, MOST_TOKENS)
    beyond = needs(tokens + 1)
    return Limit(tokens, _words(beyond[0]) if beyond else ""), ""


def _words(need: Need) -> str:
    known = need.bits < UNKNOWN
    return f"{need.what} needs {need.bits} bits" if known else f"{need.what} {MAY_NEED_MORE}"

"""What the exactness analysis recognises in a graph: parabolas, running sums, replacements."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from compiler.evaluate import Evaluator
from compiler.graph import ONE, POSITION, POSITION_SQUARED, SNAP, Expr, Gate, Graph, Lookup
from compiler.schedule import Plan, lives


def is_position_key(node: Lookup) -> bool:
    """Whether the keys are (2p, -p²) for the position p."""
    key = (node.key[0].terms, node.key[1].terms)
    return key == ({POSITION: 2}, {POSITION_SQUARED: -1})


def parabola(graph: Graph, writers: Mapping[str, list[str]], node: Lookup) -> Expr | None:
    """The form k of keys (2k, -k²), where neurons make the square; None for other keys."""
    base = node.key[0] / 2
    squares = node.key[1].terms
    if len(squares) != 1 or list(squares.values()) != [-1] or len(base.terms) != 1:
        return None
    halves = [base.terms, (-base).terms]
    for name in writers[next(iter(squares))]:
        writer = graph.nodes[name]
        if not isinstance(writer, Gate) or writer.gate.terms not in halves:
            return None
        if writer.value.terms != writer.gate.terms or writer.terms[0].coefficient != 1:
            return None
    return base


def first_values(
    graph: Graph, plan: Plan, prefix: tuple[str, ...]
) -> Mapping[str, int | Fraction] | None:
    """All quantities of the first token, if it is known: its keys are always there."""
    if not prefix:
        return None
    evaluator = Evaluator(graph, plan.times)
    evaluator.feed(prefix[0])
    return evaluator.values


def replaced(graph: Graph, plan: Plan) -> dict[str, list[str]]:
    """For each quantity what is erased from its slot in the half-layer in which it begins."""
    born = lives(graph, plan.times, plan.shape.end)
    return {
        name: [
            old
            for old, time in plan.erased.items()
            if time == born[name].birth and plan.slots[old] == slot and old != name
        ]
        for name, slot in plan.slots.items()
    }


def running_sums(graph: Graph, writers: Mapping[str, list[str]]) -> dict[str, Expr]:
    """Quantities that are ``SNAP`` plus the mean of a form times the number of tokens."""
    found: dict[str, Expr] = {}
    for name, names in writers.items():
        nodes = [graph.nodes[one] for one in names]
        for node in nodes:
            if not isinstance(node, Gate) or node.gate.terms != {POSITION: 1, ONE: 1}:
                continue
            mean, *more = node.value.terms
            sources = [graph.nodes[one] for one in writers[mean]]
            if more or len(sources) != 1 or not isinstance(sources[0], Lookup) or len(nodes) != 2:
                continue
            lookup = sources[0]
            (term,) = (term for term in lookup.terms if term.target == mean)
            snaps = [n for n in nodes if isinstance(n, Gate) and n.value.terms == {ONE: SNAP}]
            if (
                lookup.mode == "mean"
                and snaps
                and not (lookup.query[0].terms or lookup.query[1].terms)
            ):
                found[name] = lookup.values[term.value]
    return found

"""What is left of a graph without some of its opcodes.

A quantity that nothing can make different from zero is dropped from every expression, and a head
or neuron that reaches no token score is dropped itself. What remains computes the same for
programs that use the remaining opcodes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from compiler.circle import Point
from compiler.graph import ONE, POSITION, POSITION_SQUARED, Expr, Gate, Graph, Lookup, Node, Term
from compiler.patterns import is_position_key


def prune(
    graph: Graph,
    points: Mapping[str, Point],
    opcodes: Collection[str],
    *,
    point: tuple[str, str] = ("x", "y"),
    first: str | None = None,
    tokens: Collection[str] = (),
    nodes: Collection[str] = (),
) -> Graph:
    """``graph`` with ``opcodes`` alone.

    Args:
        points: every opcode token and its point. A neuron that tests the point belongs to the
            opcode, or the two neighbours, to which its gate gives the most.
        point: the quantities that hold the point of the instruction at the cursor.
        first: the token with which every prompt begins.
        tokens, nodes: other tokens, heads and neurons to leave out.

    Raises:
        KeyError: for a node that the graph does not have.
    """
    if not set(nodes) <= set(graph.nodes):
        raise KeyError(f"no such nodes: {set(nodes) - set(graph.nodes)}")
    gone = {*points, *tokens} - set(opcodes)
    embedding = {t: row for t, row in graph.embedding.items() if t not in gone}
    scores = {t: e for t, e in graph.scores.items() if t not in gone}
    kept = [n for name, n in graph.nodes.items() if name not in nodes]
    kept = [n for n in kept if _tested(n, points, point) & set(opcodes)]
    zeros = _Zeros(graph, kept, embedding, first)
    zero = set(graph.quantities) - zeros.live
    kept = [left for n in kept if (left := _without(n, zeros, zero))]
    scores = {t: _clean(e, zero) for t, e in scores.items()}
    return _rebuilt(graph, _useful(kept, scores), embedding, scores)


def useful(graph: Graph) -> Graph:
    """``graph`` without the quantities, heads and neurons on which no token score depends."""
    nodes = _useful(list(graph.nodes.values()), graph.scores)
    return _rebuilt(graph, nodes, graph.embedding, graph.scores)


def _tested(node: Node, points: Mapping[str, Point], point: tuple[str, str]) -> set[str]:
    """The opcodes that a neuron is for: those at which its test is greatest, or all."""
    x, y = (node.gate.terms.get(n, 0.0) for n in point) if isinstance(node, Gate) else (0.0, 0.0)
    values = {name: x * px + y * py for name, (px, py) in points.items()}
    return {name for name, value in values.items() if value == max(values.values())}


class _Zeros:
    """What can differ from zero at some token: ``live``, a least fixed point."""

    def __init__(
        self,
        graph: Graph,
        nodes: list[Node],
        embedding: Mapping[str, Mapping[str, float]],
        first: str | None,
    ) -> None:
        written = {term.target for node in nodes for term in node.terms}
        self._constant = {ONE, POSITION, POSITION_SQUARED} | (set(graph.inputs) - written)
        self._start = None if first is None else {ONE: 1.0, **embedding[first]}
        self.live = {ONE, POSITION, POSITION_SQUARED}
        self.live |= {name for row in embedding.values() for name, value in row.items() if value}
        while more := {
            term.target
            for node in nodes
            for term in node.terms
            if term.target not in self.live and self.may_give(node, term.value)
        }:
            self.live |= more

    def may_give(self, node: Node, number: int) -> bool:
        """Whether a node's value can differ from zero."""
        if isinstance(node, Gate):
            gate, value = (set(expr.terms) & self.live for expr in (node.gate, node.value))
            opens = gate != {ONE} or node.gate.terms[ONE] > 0
            return bool(gate and value and opens)
        value = set(node.values[number].terms) & self.live
        if self._start is None or not value <= self._constant or not self._finds_first(node):
            return bool(value)
        fetched = node.values[number].terms
        return sum(c * self._start.get(name, 0.0) for name, c in fetched.items()) != 0

    def _finds_first(self, node: Lookup) -> bool:
        """Whether every token asks for position 0, or for one below 1/2."""
        query = [{n: c for n, c in e.terms.items() if n in self.live} for e in node.query]
        at, scale = query
        constant = set(at) <= {ONE} and set(scale) == {ONE}
        return is_position_key(node) and constant and at.get(ONE, 0.0) < 0.5 * scale[ONE]


def _clean(expr: Expr, zero: set[str]) -> Expr:
    return Expr({name: c for name, c in expr.terms.items() if name not in zero})


def _without(node: Node, zeros: _Zeros, zero: set[str]) -> Node | None:
    """A node that neither reads nor writes what is always zero; None if it does nothing."""
    terms = tuple(term for term in node.terms if zeros.may_give(node, term.value))
    if isinstance(node, Gate):
        gate, value = _clean(node.gate, zero), _clean(node.value, zero)
        if not terms or not gate.terms or not value.terms:
            return None
        return Gate(node.name, gate, value, terms, node.partial)
    return _lookup(node, terms, zero)


def _lookup(node: Lookup, terms: tuple[Term, ...], zero: set[str]) -> Lookup | None:
    """A lookup with these terms alone, its values renumbered."""
    values = {number: _clean(expr, zero) for number, expr in enumerate(node.values)}
    terms = tuple(term for term in terms if values[term.value].terms)
    used = sorted({term.value for term in terms})
    if not used:
        return None
    query = (_clean(node.query[0], zero), _clean(node.query[1], zero))
    key = (_clean(node.key[0], zero), _clean(node.key[1], zero))
    return Lookup(
        node.name,
        query,
        key,
        tuple(values[number] for number in used),
        node.mode,
        tuple(Term(term.target, used.index(term.value), term.coefficient) for term in terms),
        node.partial,
    )


# --- what is useful --------------------------------------------------------------------------


def _useful(nodes: list[Node], scores: Mapping[str, Expr]) -> list[Node]:
    """The nodes from which a token score can be reached, writing only what is read."""
    read = {name for expr in scores.values() for name in expr.terms}
    while True:
        helping = [node for node in nodes if any(term.target in read for term in node.terms)]
        more = {name for node in helping for name in _needed(node, read)} - read
        if not more:
            break
        read |= more
    unread = {term.target for node in nodes for term in node.terms} - read
    return [left for node in helping if (left := _unwritten(node, unread))]


def _needed(node: Node, read: set[str]) -> set[str]:
    if isinstance(node, Gate):
        return node.reads()
    values = {term.value for term in node.terms if term.target in read}
    exprs = [*node.query, *node.key, *(node.values[number] for number in values)]
    return {name for expr in exprs for name in expr.terms}


def _unwritten(node: Node, unread: set[str]) -> Node | None:
    terms = tuple(term for term in node.terms if term.target not in unread)
    if isinstance(node, Lookup):
        return _lookup(node, terms, set())
    return Gate(node.name, node.gate, node.value, terms, node.partial) if terms else None


def _rebuilt(
    graph: Graph,
    nodes: list[Node],
    embedding: Mapping[str, Mapping[str, float]],
    scores: Mapping[str, Expr],
) -> Graph:
    names = {node.name for node in nodes}
    kept = {ONE, POSITION, POSITION_SQUARED} | {n for e in scores.values() for n in e.terms}
    kept |= {n for node in nodes for n in (*node.reads(), *(t.target for t in node.terms))}
    small = Graph()
    for name, quantity in graph.quantities.items():
        if name in kept and name not in small.quantities:
            small.quantities[name] = quantity
            if name in graph.inputs:
                small.inputs.append(name)
    for node in nodes:
        partial = {
            name: tuple(writer for writer in writers if writer in names)
            for name, writers in node.partial.items()
            if name in node.reads()
        }
        small.nodes[node.name] = replace(node, partial=partial)
    for token, row in embedding.items():
        small.embedding[token] = {name: v for name, v in row.items() if name in small.inputs}
    small.scores.update(scores)
    small.about = {n: words for n, words in graph.about.items() if n in {*kept, *names}}
    small.flags = {n: expr for n, expr in graph.flags.items() if n in names}
    small.places.update(graph.places)
    small.prefix = [token for token in graph.prefix if token in embedding]
    small.stops = [token for token in graph.stops if token in embedding]
    return small

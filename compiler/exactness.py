"""How large every number gets: ranges of all quantities and the bits of every computation.

The placed graph is walked half-layer by half-layer. For each :class:`~compiler.facts.Case` every
quantity has a :class:`~compiler.ranges.Range`; every dot product, product, score and logit is
asked how many significand bits it needs to be exact in any order of summation, with or without
fused multiply-add. At most 53 everywhere: all engines give the same numbers.

The same walk serves any model: :func:`compiler.weights_graph.graph_of_weights` reads the graph
off the weights.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor

from compiler.facts import Case, Facts, Invariant
from compiler.graph import (
    ONE,
    POSITION,
    POSITION_SQUARED,
    SNAP,
    Expr,
    Gate,
    Graph,
    Lookup,
    Node,
    Quantity,
    Term,
)
from compiler.logit_families import Family, families
from compiler.neuron_groups import Part, alternatives, groups
from compiler.patterns import first_values, is_position_key, parabola, replaced, running_sums
from compiler.ranges import ZERO, Range, bits, bits_of_sum, error_of_sum, grain_of
from compiler.schedule import Plan
from compiler.score_bits import UNKNOWN, parabola_needs, position_needs, product_needs
from compiler.token_keys import TokenKeys, exactly

MOST_PIECES = 64
"""Forms that read the token's own embedding are followed value by value up to this many."""
MOST_SUM = 2**47
"""Below this ``SNAP`` rounds to multiples of 1/16, and the mean times the position errs by less
than 2^47·2^-51 = 1/16 in two roundings of relative size 2^-53 (and one of the sum)."""

UNFINISHED_SUM = Range(Fraction(-2 * SNAP), Fraction(2 * SNAP), None)

State = Mapping[str, Range]
"""The range of every quantity in one case."""


@dataclass(frozen=True)
class Need:
    """Significand bits that one computation needs in one case."""

    bits: int
    what: str
    case: str


@dataclass
class _Walk:
    """One case and what is known of it so far."""

    case: Case
    inputs: dict[str, Range]
    known: Mapping[str, Invariant]
    state: dict[str, Range] = field(default_factory=dict)
    parts: dict[str, list[Part]] = field(default_factory=lambda: defaultdict(list))
    lookups: dict[str, list[tuple[Range, Range | None]]] = field(
        default_factory=lambda: defaultdict(list)
    )


class Analysis:
    """Ranges of all quantities of a placed graph, and the bits of all computations."""

    def __init__(self, graph: Graph, plan: Plan, facts: Facts) -> None:
        self.graph, self.plan, self.facts = graph, plan, facts
        self._needs: dict[str, Need] = {}
        self._ages: set[str] = set()
        self._terms_of_sums: dict[str, Range] = {}
        self._done: set[str] = set()
        self._writers = graph.writers()
        self._sums = running_sums(graph, self._writers)
        self._replaced = replaced(graph, plan)
        self._sum_neurons = {w for name in self._sums for w in self._writers[name]}
        self._pure = {
            name
            for name in graph.inputs
            if not self._writers[name] and name not in (ONE, POSITION, POSITION_SQUARED)
        }
        self._token_keys = TokenKeys(graph, frozenset(self._pure), facts.prefix)
        self._origin = first_values(graph, plan, facts.prefix)
        self._families = families(graph)
        self._walks = [self._start(case) for case in facts.cases]
        for time in range(plan.shape.end):
            nodes = [node for node in graph.nodes.values() if plan.times[node.name] == time]
            self._half_layer(nodes)
        for walk in self._walks:
            if walk.case.answered:
                self._logits(walk)

    def ranges(self) -> dict[str, State]:
        """For each case the range of every quantity, complete."""
        return {walk.case.name: walk.state for walk in self._walks}

    def values(self, expr: Expr) -> Range:
        """The range of a linear form of one token, over all cases."""
        return _union(piece for walk in self._walks for (piece,) in self._pieces(walk, expr))

    def cases_of(self, token: str, values: Mapping[str, int | Fraction]) -> list[str]:
        """The cases to which a token with these values of all quantities belongs."""
        return [walk.case.name for walk in self._walks if _belongs(walk.case, token, values)]

    def worst(self) -> list[Need]:
        """For every computation its greatest need, the greatest first."""
        return sorted(self._needs.values(), key=lambda need: -need.bits)

    # --- one half-layer ----------------------------------------------------------------------

    def _start(self, case: Case) -> _Walk:
        tokens = self.graph.embedding if case.tokens is None else case.tokens
        rows = [self.graph.embedding[token] for token in tokens]
        last = self.facts.tokens - 1
        inputs = {name: Range.of(*{row.get(name, 0) for row in rows}) for name in self.graph.inputs}
        inputs[ONE] = Range.of(1)
        inputs[POSITION] = Range(Fraction(0), Fraction(last), 0)
        inputs[POSITION_SQUARED] = Range(Fraction(0), Fraction(last**2), 0)
        walk = _Walk(case, inputs, {**self.facts.invariants, **case.known})
        inputs |= {name: one for name, one in case.fixed.items() if name in inputs}
        walk.state = {name: inputs.get(name, ZERO) for name in self.graph.quantities}
        return walk

    def _half_layer(self, nodes: list[Node]) -> None:
        anywhere = self._anywhere(nodes)
        for walk in self._walks:
            added: dict[str, list[Range]] = defaultdict(list)
            neurons: dict[str, list[Part]] = defaultdict(list)
            for node in nodes:
                if isinstance(node, Lookup):
                    self._lookup(node, walk, anywhere, added)
                else:
                    self._gate(node, walk, neurons)
            for name, parts in neurons.items():
                added[name].extend(alternatives(parts))
                walk.parts[name].extend(parts)
            for name, terms in added.items():
                if name not in self._sums:
                    # What is erased in the same half-layer is one more term, and its negation.
                    for gone in self._erased_with(name, walk):
                        erased = [*gone, *(one.scaled(-1) for one in gone)]
                        count = bits_of_sum([walk.state[name], *terms, *erased])
                        if count is not None:  # else it is rounded, and nobody may read it
                            self._need(count, f"sum in {name}", walk)
        written = {t.target for node in nodes for t in node.terms}
        self._done |= {node.name for node in nodes}
        for walk in self._walks:
            for name in written:
                walk.state[name] = self._settled(name, walk)

    def _erased_with(self, name: str, walk: _Walk) -> Iterable[list[Range]]:
        """What is erased where ``name`` begins: ranges, or the values that tokens give it."""
        olds = tuple(sorted(self._replaced[name]))
        if olds and set(olds) <= self._pure:
            return [
                list(map(Range.of, row)) for row in self._token_keys.values(olds, walk.case.tokens)
            ]
        return [[walk.state[old] for old in olds]]

    def _anywhere(self, nodes: Iterable[Node]) -> State:
        """Ranges over all cases of what the heads read: what they may find at another token."""
        names = {n for node in nodes if isinstance(node, Lookup) for n in node.reads()}
        names |= {POSITION} if names else set()
        return {name: _union({walk.state[name] for walk in self._walks}) for name in names}

    def _need(self, count: int | None, what: str, walk: _Walk) -> None:
        """Note the bits of one computation; None: it reads what is rounded."""
        count = UNKNOWN if count is None else count
        if what not in self._needs or self._needs[what].bits < count:
            self._needs[what] = Need(count, what, walk.case.name)

    # --- linear forms ------------------------------------------------------------------------

    def _form(self, expr: Expr, state: State, ages: State) -> Range:
        """Range of a linear form. A fetched position is one's own less its age."""
        terms = {name: Fraction(c) for name, c in expr.terms.items()}
        total = ZERO
        for name in self._ages & set(terms):
            factor = terms.pop(name)
            terms[POSITION] = terms.get(POSITION, Fraction(0)) + factor
            total = total + ages.get(name, state[POSITION]).scaled(-factor)
        for name, factor in terms.items():
            if factor:
                total = total + state[name].scaled(factor)
        return total

    def _pieces(self, walk: _Walk, *forms: Expr) -> list[list[Range]]:
        """Ranges of forms of one token, for each value of what it says itself."""
        names = tuple(sorted({n for form in forms for n in form.terms} & self._pure))
        values = self._token_keys.values(names, walk.case.tokens)
        if not names or len(values) > MOST_PIECES:
            return [[self._form(form, walk.state, walk.case.ages) for form in forms]]
        rest = [Expr({n: c for n, c in form.terms.items() if n not in names}) for form in forms]
        base = [self._form(form, walk.state, walk.case.ages) for form in rest]
        return [
            [one + Range.of(_at(form, names, row)) for form, one in zip(forms, base, strict=True)]
            for row in values
        ]

    def _dot(self, expr: Expr, walk: _Walk, what: str) -> Range:
        """Range of a dot product with the stream, whose bits are noted."""
        terms = [walk.state[name].scaled(c) for name, c in expr.terms.items()]
        self._need(bits_of_sum(terms), what, walk)
        return self._form(expr, walk.state, walk.case.ages)

    def _projection(self, form: Expr, walk: _Walk, what: str) -> None:
        """The bits of a key or value; token by token where only the token decides it."""
        count = self._token_keys.bits(form, walk.case.tokens)
        if count is None:
            self._dot(form, walk, what)
        else:
            self._need(count, what, walk)

    # --- neurons and heads -------------------------------------------------------------------

    def _gate(self, node: Gate, walk: _Walk, added: dict[str, list[Part]]) -> None:
        pieces = self._pieces(walk, node.gate, node.value)
        gate = _union(piece[0] for piece in pieces)
        terms = [walk.state[name].scaled(c) for name, c in node.gate.terms.items()]
        if gate.high + error_of_sum(terms) < 0:  # closed, however the sum is rounded
            return
        self._need(bits_of_sum(terms), f"gate of {node.name}", walk)
        if gate.high <= 0:
            return
        if node.name not in self._sum_neurons:
            self._dot(node.value, walk, f"value of {node.name}")
        opened = [piece for piece in pieces if piece[0].high > 0]
        if node.value.terms == node.gate.terms:  # a square: what is not negative, twice
            opened = [[gate, gate.positive()] for gate, _ in opened]
        value = _union(piece[1] for piece in opened)
        products = [piece[0].positive() * piece[1] for piece in opened]
        product = _union([*products, ZERO] if len(opened) < len(pieces) else products)
        product = _restricted(product, walk.known.get(node.name))
        if product.grain is not None:
            self._need(bits(product.magnitude, product.grain), f"product {node.name}", walk)
        for term in node.terms:
            part = product.scaled(term.coefficient)
            added[term.target].append(Part(node, term.coefficient, gate, value, part))

    def _lookup(
        self, node: Lookup, walk: _Walk, anywhere: State, added: dict[str, list[Range]]
    ) -> None:
        query = [self._dot(q, walk, f"query of {node.name}") for q in node.query]
        for form in node.key:
            self._projection(form, walk, f"key of {node.name}")
        for form in node.values:
            self._projection(form, walk, f"value of {node.name}")
        self._score(node, query, walk, anywhere)
        for term in node.terms:
            value = self._fetched(node, term, query, walk, anywhere)
            part = value.scaled(term.coefficient)
            if self._writers[term.target] == [node.name] and term.target not in walk.inputs:
                part = _restricted(part, walk.known.get(term.target))
            added[term.target].append(part)
            walk.lookups[term.target].append((part, self._remainder(node, term, walk)))
            if (
                node.values[term.value].terms == {POSITION: 1}
                and term.coefficient == 1
                and len(self._writers[term.target]) == 1
            ):
                self._ages.add(term.target)

    def _score(self, node: Lookup, query: list[Range], walk: _Walk, anywhere: State) -> None:
        if node.mode == "mean" and all(one.is_zero for one in query):
            return
        if is_position_key(node):
            known = walk.known.get(f"winner of {node.name}")
            winner = None if known is None else Fraction(known.high)
            needs = position_needs(query[0], query[1], self.facts.tokens, winner)
        else:
            first = self._origin
            origin = [] if first is None else [exactly(form, first) for form in node.key]
            keys = [self._form(form, anywhere, {}) for form in node.key]
            base = parabola(self.graph, self._writers, node)
            if base is not None and origin and query[1] == Range.of(1):
                needs = parabola_needs(query[0], self._form(base, anywhere, {}), origin[0] / 2)
            else:
                products = (query[0] * keys[0], query[1] * keys[1])
                least = self._token_keys.least_score(node, query, origin)
                needs = self._token_keys.needs(node, query, least) or product_needs(products, least)
        for part, count in needs:
            self._need(count, f"score of {node.name} ({part})", walk)

    def _fetched(
        self, node: Lookup, term: Term, query: list[Range], walk: _Walk, anywhere: State
    ) -> Range:
        """Range of a fetched value; among the first tokens, which are known, of theirs alone."""
        expr = node.values[term.value]
        if node.mode == "mean":
            value = self._form(expr, anywhere, {})
            self._terms_of_sums.update({t: value for t, e in self._sums.items() if e is expr})
            return Range(value.low, value.high, None)
        if is_position_key(node):
            low, high = self._winners(node, query, walk)
            if expr.terms == {POSITION: 1}:
                return Range(Fraction(low), Fraction(high), 0)
            if high < len(self.facts.prefix) and set(expr.terms) <= self._pure | {ONE}:
                tokens = set(self.facts.prefix[low : high + 1])
                rows = [{ONE: 1, **self.graph.embedding[token]} for token in tokens]
                return Range.of(*(exactly(expr, row) for row in rows))
        return self._form(expr, anywhere, {})

    def _winners(self, node: Lookup, query: list[Range], walk: _Walk) -> tuple[int, int]:
        """The least and the greatest position that a query for a position may fetch."""
        last, half = self.facts.tokens - 1, Fraction(1, 2)
        known = walk.known.get(f"winner of {node.name}")
        most = last if known is None else min(last, int(known.high))
        if query[1].low <= 0:
            return 0, most
        x, d = query
        corners = [x.low / d.low, x.low / d.high, x.high / d.low, x.high / d.high]
        low, high = min(corners) + half, max(corners) + half
        return max(0, min(floor(low), most)), max(0, min(floor(high), most))

    def _remainder(self, node: Lookup, term: Term, walk: _Walk) -> Range | None:
        """x - S·p for the position p nearest to x/S + b: within S/2 of -S·b, or a small x."""
        factor = node.query[0].terms.get(term.target, 0)
        is_floor = node.values[term.value].terms == {POSITION: 1} and factor > 0
        if not is_floor or factor * term.coefficient != -1:
            return None
        old = walk.state[term.target]
        size = Fraction(-term.coefficient)
        constant = node.query[0] - Quantity(term.target) * factor
        b = self._form(constant, walk.state, walk.case.ages)
        low, high = -size * b.high - size / 2, -size * b.low + size / 2
        grain = None if old.grain is None else min(old.grain, grain_of(size))
        return Range(min(old.low, low), max(high, min(old.low, low)), grain)

    # --- what a quantity is after its terms so far --------------------------------------------

    def _settled(self, name: str, walk: _Walk) -> Range:
        complete = set(self._writers[name]) <= self._done
        if name in walk.case.fixed and complete:
            return walk.case.fixed[name]
        if name in self._sums:
            return self._sum(name, walk) if complete else UNFINISHED_SUM
        total = walk.inputs.get(name, ZERO)
        for part, rest in walk.lookups[name]:
            total = total + part if rest is None else rest
        for group in groups(walk.parts[name]):
            total = total + group
        floors = [rest for _, rest in walk.lookups[name] if rest is not None]
        if floors:
            total = floors[-1]
        return _restricted(total, walk.known.get(name)) if complete else total

    def _sum(self, name: str, walk: _Walk) -> Range:
        """A running sum beside ``SNAP``: bounded by an invariant, or by the greatest term."""
        one = self._terms_of_sums[name]
        count = self.facts.tokens
        total = Range(
            min(count * one.low, Fraction(0)), max(count * one.high, Fraction(0)), one.grain
        )
        total = _restricted(total, walk.known.get(name))
        inside = total.magnitude <= MOST_SUM and one.grain is not None and one.grain >= -3
        self._need(bits(total.magnitude, -6) if inside else UNKNOWN, f"snapped sum {name}", walk)
        if one.grain is not None:
            terms = bits(count * one.magnitude, one.grain)
            self._need(terms, f"terms of the running sum {name}", walk)
        return total + Range.of(SNAP)

    # --- logits ------------------------------------------------------------------------------

    def _logits(self, walk: _Walk) -> None:
        """The bits of the logits; what loses however it is rounded need not be exact."""
        bounds = [self._family(family, walk) for family in self._families]
        least = max(low for low, _, _ in bounds)
        for family, (_, high, count) in zip(self._families, bounds, strict=True):
            if high >= least:
                self._need(count, f"logit of {family.token}", walk)

    def _family(self, family: Family, walk: _Walk) -> tuple[Fraction, Fraction, int | None]:
        """A logit that one row reaches, the greatest of all rows, and the bits; errors counted."""
        terms = [factor * walk.state[name] for name, factor in family.factors.items()]
        error = error_of_sum(terms)
        high = sum((term.high for term in terms), Fraction(0)) + error
        low = self._form(family.row, walk.state, walk.case.ages).low - error
        return low, high, bits_of_sum(terms)


def _union(ranges: Iterable[Range]) -> Range:
    total: Range | None = None
    for one in ranges:
        total = one if total is None else total.union(one)
    assert total is not None
    return total


def _at(form: Expr, names: tuple[str, ...], row: tuple[Fraction, ...]) -> Fraction:
    pairs = zip(names, row, strict=True)
    return sum((Fraction(form.terms.get(n, 0)) * value for n, value in pairs), Fraction(0))


def _restricted(one: Range, known: Invariant | None) -> Range:
    if known is None:
        return one
    return one.within(Fraction(known.low), Fraction(known.high)).multiples_of(known.grain)


def _belongs(case: Case, token: str, values: Mapping[str, int | Fraction]) -> bool:
    def inside(one: Range, value: int | Fraction) -> bool:
        return one.low <= value <= one.high

    return (
        (case.tokens is None or token in case.tokens)
        and all(inside(one, values[name]) for name, one in case.fixed.items())
        and all(inside(one, values[POSITION] - values[name]) for name, one in case.ages.items())
    )

"""How large every number gets: ranges of all quantities and the bits of every sum.

The placed graph is walked half-layer by half-layer. For each case (which opcode is at the cursor)
every quantity has a :class:`~compiler.ranges.Range`; every dot product, product and score is asked
how many significand bits it needs in any order of summation. What the walk cannot know about valid
programs is declared as an :class:`Invariant`, with the reason why it holds.

The ranges hold for every valid program. They are not yet narrow enough for a certificate: some
computations seem to need more than 53 bits because the walk does not know, for example, that a
product's operands are bytes and not any token.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction

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
from compiler.ranges import ZERO, Range, bits, bits_of_sum, grain_of
from compiler.schedule import Plan


@dataclass(frozen=True)
class Invariant:
    """Bounds of a quantity, or of a neuron's product, that valid programs keep, and why."""

    low: float
    high: float
    because: str


@dataclass(frozen=True)
class Need:
    """Significand bits that one computation needs."""

    bits: int
    what: str
    case: str


State = dict[str, Range]
"""The range of every quantity in one case."""


@dataclass
class _Case:
    name: str
    fixed: Mapping[str, Range]
    """What the case says of the quantities that tell it apart."""
    state: State = field(default_factory=dict)
    parts: dict[str, list[_Part]] = field(default_factory=lambda: defaultdict(list))
    lookups: dict[str, list[tuple[Lookup, Range, Range | None]]] = field(
        default_factory=lambda: defaultdict(list)
    )


class Analysis:
    """Ranges of all quantities of a placed graph, for traces of at most ``tokens`` tokens.

    ``split`` names a lookup whose two fetched values, functions of the token alone, tell cases
    apart; ``invariants`` maps names of quantities and neurons to what is known of them.
    """

    def __init__(
        self,
        graph: Graph,
        plan: Plan,
        tokens: int,
        invariants: Mapping[str, Invariant],
        split: str,
    ) -> None:
        self.graph, self.plan, self.tokens, self.invariants = graph, plan, tokens, invariants
        self.needs: list[Need] = []
        self._ages: set[str] = set()
        self._done: set[str] = set()
        self._writers = graph.writers()
        self._sums = {n[: -len(".sum")] for n in graph.nodes if n.endswith(".sum")}
        self._cases = self._make_cases(split)
        self._inputs_table = self._inputs()
        for case in self._cases:
            case.state = {name: self._inputs_table.get(name, ZERO) for name in graph.quantities}
        for time in range(plan.shape.end):
            nodes = [node for node in graph.nodes.values() if plan.times[node.name] == time]
            self._half_layer(nodes)

    def ranges(self) -> dict[str, Mapping[str, Range]]:
        """For each case the range of every quantity, complete."""
        return {case.name: case.state for case in self._cases}

    def case_of(self, values: Mapping[str, int | Fraction]) -> str:
        """The case to which these values of all quantities belong."""
        for case in self._cases[:-1]:
            if all(values[name] == one.low for name, one in case.fixed.items()):
                return case.name
        return self._cases[-1].name

    def worst(self) -> list[Need]:
        """For every computation its greatest need, the greatest first."""
        greatest: dict[str, Need] = {}
        for need in self.needs:
            if need.what not in greatest or greatest[need.what].bits < need.bits:
                greatest[need.what] = need
        return sorted(greatest.values(), key=lambda need: -need.bits)

    # --- cases and inputs --------------------------------------------------------------------

    def _make_cases(self, split: str) -> list[_Case]:
        """One case for each fetched pair that opens a neuron, one for all other pairs together."""
        node = self.graph.nodes[split]
        assert isinstance(node, Lookup)
        sources = [next(iter(value.terms)) for value in node.values]
        targets = [term.target for term in node.terms]
        tests = [
            n.gate
            for n in self.graph.nodes.values()
            if isinstance(n, Gate) and set(targets) <= set(n.gate.terms)
        ]
        cases, rest, met = [], [], set()
        for token, values in self.graph.embedding.items():
            pair = tuple(Fraction(values.get(source, 0)) for source in sources)
            if pair in met:
                continue
            met.add(pair)
            seen = dict(zip(targets, pair, strict=True))
            if any(_own_part(test, seen) > 0 for test in tests):
                cases.append(_Case(token, {name: Range.of(v) for name, v in seen.items()}))
            else:
                rest.append(pair)
        columns = zip(*rest, strict=True)
        others = {n: Range.of(*column) for n, column in zip(targets, columns, strict=True)}
        return [*cases, _Case("no opcode", others)]

    def _inputs(self) -> State:
        last = self.tokens - 1
        table = {
            name: Range.of(0, *(values.get(name, 0) for values in self.graph.embedding.values()))
            for name in self.graph.inputs
        }
        table[ONE] = Range.of(1)
        table[POSITION] = Range(Fraction(0), Fraction(last), 0)
        table[POSITION_SQUARED] = Range(Fraction(0), Fraction(last**2), 0)
        return table

    # --- one half-layer ----------------------------------------------------------------------

    def _half_layer(self, nodes: list[Node]) -> None:
        anywhere = self._anywhere()
        for case in self._cases:
            added: dict[str, list[Range]] = defaultdict(list)
            for node in nodes:
                if isinstance(node, Lookup):
                    self._lookup(node, case, anywhere, added)
                else:
                    self._gate(node, case, added)
            for name, terms in added.items():
                self._need(bits_of_sum([case.state[name], *terms]), f"sum in {name}", case)
        written = {t.target for node in nodes for t in node.terms}
        self._done |= {node.name for node in nodes}
        for case in self._cases:
            for name in written:
                case.state[name] = self._settled(name, case)

    def _anywhere(self) -> State:
        """Ranges over all cases: what a head may find at another token."""
        union = dict(self._cases[0].state)
        for case in self._cases[1:]:
            for name, one in case.state.items():
                if union[name] != one:
                    union[name] = union[name].union(one)
        return union

    def _form(self, expr: Expr, state: Mapping[str, Range]) -> Range:
        """Range of a linear form. A fetched position is at most one's own: p - age."""
        terms = {name: Fraction(c) for name, c in expr.terms.items()}
        total = ZERO
        for name in self._ages & set(terms):
            factor = terms.pop(name)
            terms[POSITION] = terms.get(POSITION, Fraction(0)) + factor
            total = total + state[POSITION].scaled(-factor)
        for name, factor in terms.items():
            if factor:
                total = total + state[name].scaled(factor)
        return total

    def _dot(self, expr: Expr, state: Mapping[str, Range], what: str, case: _Case) -> Range:
        """Range of a dot product with the stream, whose bits are noted."""
        terms = [state[name].scaled(c) for name, c in expr.terms.items()]
        self._need(bits_of_sum(terms), what, case)
        return self._form(expr, state)

    def _need(self, count: int | None, what: str, case: _Case) -> None:
        if count is not None:
            self.needs.append(Need(count, what, case.name))

    def _gate(self, node: Gate, case: _Case, added: dict[str, list[Range]]) -> None:
        gate = self._dot(node.gate, case.state, f"gate of {node.name}", case)
        if gate.high <= 0:
            return
        value = self._dot(node.value, case.state, f"value of {node.name}", case)
        product = gate.positive() * value
        known = self.invariants.get(node.name)
        if known is not None:
            product = product.within(Fraction(known.low), Fraction(known.high))
        if product.grain is not None:
            self._need(bits(product.magnitude, product.grain), f"product {node.name}", case)
        for term in node.terms:
            part = product.scaled(term.coefficient)
            added[term.target].append(part)
            case.parts[term.target].append(_Part(node, term.coefficient, gate, value, part))

    def _lookup(
        self, node: Lookup, case: _Case, anywhere: State, added: dict[str, list[Range]]
    ) -> None:
        query = [self._dot(q, case.state, f"query of {node.name}", case) for q in node.query]
        for form in node.key:
            self._dot(form, case.state, f"key of {node.name}", case)
        everywhere = [self._form(k, anywhere) for k in node.key]
        products = [q * k for q, k in zip(query, everywhere, strict=True)]
        self._score(node, products, case)
        for term in node.terms:
            expr = node.values[term.value]
            value = self._form(expr, anywhere)
            if node.mode == "mean":
                value = Range(value.low, value.high, None)
            part = value.scaled(term.coefficient)
            rest = self._remainder(node, term, case)
            added[term.target].append(part)
            case.lookups[term.target].append((node, part, rest))
            if expr.terms == {POSITION: 1} and len(self._writers[term.target]) == 1:
                self._ages.add(term.target)

    def _score(self, node: Lookup, products: list[Range], case: _Case) -> None:
        """Both products and their sum must be exact; two terms have one order."""
        live = [p for p in products if not p.is_zero]
        grains = [p.grain for p in live]
        if not live or None in grains:
            return
        grain = min(g for g in grains if g is not None)
        total = products[0] + products[1]
        magnitude = max(total.magnitude, *(p.magnitude for p in products))
        self._need(bits(magnitude, grain), f"score of {node.name}", case)

    def _remainder(self, node: Lookup, term: Term, case: _Case) -> Range | None:
        """x - S·p for the position p nearest to x/S + b: within S/2 of -S·b, or a small x."""
        factor = node.query[0].terms.get(term.target, 0)
        is_floor = node.values[term.value].terms == {POSITION: 1} and factor > 0
        if not is_floor or factor * term.coefficient != -1:
            return None
        old = case.state[term.target]
        size = Fraction(-term.coefficient)
        constant = node.query[0] - Quantity(term.target) * factor
        b = self._form(constant, case.state)
        low, high = -size * b.high - size / 2, -size * b.low + size / 2
        grain = None if old.grain is None else min(old.grain, grain_of(size))
        return Range(min(old.low, low), max(high, min(old.low, low)), grain)

    def _settled(self, name: str, case: _Case) -> Range:
        """Range of a quantity after the terms so far, with what is known of it."""
        if name in case.fixed:
            return case.fixed[name]
        if name in self._sums:
            return self._sum(name, case)
        total = self._inputs_table.get(name, ZERO)
        for _, part, rest in case.lookups[name]:
            total = total + part if rest is None else rest
        for group in _groups(case.parts[name]):
            total = total + group
        floors = [rest for _, _, rest in case.lookups[name] if rest is not None]
        if floors:
            total = floors[-1]
        known = self.invariants.get(name)
        complete = set(self._writers[name]) <= self._done
        if known is not None and complete:
            total = total.within(Fraction(known.low), Fraction(known.high))
        return total

    def _sum(self, name: str, case: _Case) -> Range:
        known = self.invariants[name]
        complete = set(self._writers[name]) <= self._done
        if not complete:
            return Range(Fraction(0), Fraction(2 * SNAP), None)
        return Range(Fraction(SNAP + known.low), Fraction(SNAP + known.high), 0)


@dataclass(frozen=True)
class _Part:
    """What one neuron adds to one quantity."""

    node: Gate
    coefficient: float
    gate: Range
    value: Range
    product: Range


def _own_part(test: Expr, seen: Mapping[str, Fraction]) -> Fraction:
    """The test's value from the quantities of the case and constants alone."""
    return sum(
        (Fraction(c) * (1 if name == ONE else seen.get(name, 0)) for name, c in test.terms.items()),
        Fraction(0),
    )


def _groups(parts: list[_Part]) -> Iterator[Range]:
    """Neurons of one value whose gates differ by constants, taken together: steps and hats."""
    groups: dict[object, list[_Part]] = defaultdict(list)
    for part in parts:
        gate = tuple(sorted((n, c) for n, c in part.node.gate.terms.items() if n != ONE))
        value = part.node.value.terms
        first = next(iter(sorted(value.items())), ("", 1.0))[1]
        form = tuple(sorted((n, c / first) for n, c in value.items()))
        groups[gate, form].append(part)
    for members in groups.values():
        if len(members) == 1:
            yield members[0].product
        else:
            yield _together(members)


def _together(members: list[_Part]) -> Range:
    first = members[0]
    shift = Fraction(first.node.gate.terms.get(ONE, 0))
    leading = next(iter(sorted(first.node.value.terms.items())))[1]
    bends = []
    for part in members:
        scale = next(iter(sorted(part.node.value.terms.items())))[1] / leading
        offset = Fraction(part.node.gate.terms.get(ONE, 0)) - shift
        bends.append((offset, Fraction(scale) * Fraction(part.coefficient)))
    low, high = first.gate.low, first.gate.high
    points = [low, high, *(min(max(-offset, low), high) for offset, _ in bends)]
    heights = [sum(s * max(at + o, Fraction(0)) for o, s in bends) for at in points]
    grain = first.gate.grain
    factor = Range(
        Fraction(min(heights)),
        Fraction(max(heights)),
        None if grain is None else min(grain, *(grain_of(s) + grain for _, s in bends)),
    )
    return factor * first.value

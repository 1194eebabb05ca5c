"""Small random graphs with valid plans, and how many bits their runs need.

:func:`small_graphs` draws a :class:`Small`: a graph in the project's language (all kinds of nodes,
accumulators, several targets, halves and quarters), a plan for it that reuses slots where the
rules allow, and tokens to feed. :func:`needed_bits` is a certificate for one run: the significand
bits that its largest dot product, product or score needs in any order of summation, from the exact
values that :mod:`compiler.evaluate` finds. Up to 53, every engine must find the same values.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf

from hypothesis import strategies as st

from compiler.evaluate import Evaluator, Values
from compiler.graph import SNAP, Expr, Gate, Graph, Lookup, Node, Quantity, Targets
from compiler.ranges import Range, bits_of_sum, grain_of
from compiler.schedule import Life, Plan, Shape, lives, parity, usage


@dataclass(frozen=True)
class Small:
    """A placed graph and the tokens to feed it."""

    graph: Graph
    plan: Plan
    tokens: tuple[str, ...]


# --- graphs --------------------------------------------------------------------------------------

COEFFICIENTS = (1.0, -1.0, 2.0, -2.0, 1.0, -1.0, 3.0, -5.0, 0.5, 0.25)
KINDS = ("fetch", "gate", "latest", "memory", "step", "square", "sum", "sums", "mean")


@dataclass
class _Source:
    """What may be read, and whether it is always an integer."""

    expr: Expr
    integral: bool


@dataclass
class _Writer:
    """A graph while nodes are drawn for it."""

    draw: st.DrawFn
    graph: Graph
    integers: st.SearchStrategy[int]
    sources: list[_Source] = field(default_factory=list)
    open: list[Quantity] = field(default_factory=list)
    """Accumulators that nothing has read yet, so that more may be added."""
    names: int = 0

    def name(self, kind: str) -> str:
        self.names += 1
        return f"{kind}{self.names}"

    def source(self, integral: bool | None = None) -> _Source:
        """Some expression; ``integral``: only integers."""
        terms = self.draw(st.integers(1, 3))
        total, all_integral = Expr({}), True
        for _ in range(terms):
            one = self.draw(st.sampled_from(self.sources))
            c = self.draw(st.sampled_from(COEFFICIENTS))
            if integral and not one.integral:
                continue
            if integral:
                c = float(round(c)) or 1.0
            all_integral &= one.integral and c == int(c)
            total = total + c * one.expr
        if self.draw(st.booleans()):
            total = total + self.draw(self.integers)
        self.open = [q for q in self.open if q.name not in total.terms]
        return _Source(total, all_integral)

    def target(self, source: _Source) -> Targets:
        """A new quantity, an open accumulator, or both with a coefficient."""
        fitting = [q for q in self.open if source.integral or not q.integral]
        if fitting and self.draw(st.integers(0, 2)) == 0:
            old = self.draw(st.sampled_from(fitting))
            if self.draw(st.booleans()):
                return old
            return {old: self.draw(st.sampled_from((2.0, -1.0, 3.0))), self.new(source.integral): 1}
        return self.new(source.integral)

    def new(self, integral: bool) -> Quantity:
        quantity = self.graph.linear(self.name("q"), integral=integral)
        self.sources.append(_Source(quantity, integral))
        self.open.append(quantity)
        return quantity

    def fetched(self) -> list[tuple[Expr, Targets]]:
        sources = [self.source() for _ in range(self.draw(st.integers(1, 2)))]
        return [(source.expr, self.target(source)) for source in sources]

    def pair(self) -> tuple[Expr, Expr]:
        return self.source().expr, self.source().expr

    def node(self, kind: str) -> None:
        """Add one node of ``KINDS``, or the few that make one helper."""
        getattr(self, kind)(self.name(kind))

    def fetch(self, name: str) -> None:
        self.graph.fetch_position(name, self.source().expr, self.fetched())

    def latest(self, name: str) -> None:
        query, key = self.pair(), self.pair()
        self.graph.lookup(name, query=query, key=key, values=self.fetched())

    def memory(self, name: str) -> None:
        """Keys (2k, -k²), whose square two neurons make."""
        key, squared = self.source(integral=True).expr, self.graph.linear(f"{name}.squared")
        self.graph.square(f"{name}.square", key, squared, signed=True)
        query, values = (self.source().expr, 1.0), self.fetched()
        self.graph.lookup(name, query=query, key=(2 * key, -squared), values=values)

    def gate(self, name: str) -> None:
        gate, value = self.source(), self.source()
        product = _Source(value.expr, gate.integral and value.integral)
        self.graph.gate(name, gate.expr, value.expr, self.target(product))

    def step(self, name: str) -> None:
        at, value = self.source(integral=True), self.source()
        self.graph.step(name, at.expr, value.expr, self.new(value.integral))

    def square(self, name: str) -> None:
        of = self.source()
        signed = self.draw(st.booleans())
        self.graph.square(name, of.expr, self.new(of.integral), signed=signed)

    def mean(self, name: str) -> None:
        query, key, value = self.pair(), self.pair(), self.source().expr
        values = [(value, self.new(integral=False))]
        self.graph.lookup(name, query=query, key=key, values=values, mode="mean")

    def sum(self, name: str) -> None:
        total = self.graph.running_sum(name, self.source(integral=True).expr)
        self.sources.append(_Source(total, True))

    def sums(self, name: str) -> None:
        """Two running sums that share a head."""
        values = {f"{name}.{part}": self.source(integral=True).expr for part in "ab"}
        self.sources += [_Source(total, True) for total in self.graph.running_sums(values)]


def numbers(exponent: int) -> st.SearchStrategy[int]:
    """Integers up to 9, and up to 2 away from a power of two up to 2^exponent."""
    near = st.builds(
        lambda e, more, sign: sign * (2**e + more),
        st.integers(0, exponent),
        st.integers(-2, 2),
        st.sampled_from((1, -1)),
    )
    return st.one_of(st.integers(-9, 9), near)


@st.composite
def small_graphs(
    draw: st.DrawFn, exponent: int = 3, most_nodes: int = 7, means: bool = True
) -> Small:
    """A graph of up to ``most_nodes`` random nodes, with :func:`numbers` up to 2^exponent.

    ``means``: with heads that average keys of equal scores, besides those of running sums.
    """
    graph, integers = Graph(), numbers(exponent)
    inputs = [graph.input(f"in{n}") for n in range(draw(st.integers(1, 3)))]
    tokens = [f"t{n}" for n in range(draw(st.integers(2, 5)))]
    for token in tokens:
        graph.token(token, **{quantity.name: draw(integers) for quantity in inputs})
    writer = _Writer(draw, graph, integers)
    writer.sources += [_Source(quantity, True) for quantity in (*inputs, graph.position)]
    for _ in range(draw(st.integers(1, most_nodes))):
        writer.node(draw(st.sampled_from(KINDS if means else KINDS[:-1])))
    for token in tokens:
        graph.score(token, writer.source().expr)
    least = draw(st.sampled_from((1, 6, 12)))
    sequence = draw(st.lists(st.sampled_from(tokens), min_size=least, max_size=20))
    return Small(graph, draw(plans(graph)), tuple(sequence))


# --- plans ---------------------------------------------------------------------------------------


@st.composite
def plans(draw: st.DrawFn, graph: Graph) -> Plan:
    """A valid plan: nodes as early as can be or a layer later, slots shared after erasures."""
    waits, times = graph.dependencies(), dict[str, int]()
    for node in graph.ordered():
        earliest = max((times[name] + 1 for name in waits[node.name]), default=0)
        delay = 2 * draw(st.integers(0, 1))
        times[node.name] = earliest + (earliest + parity(node)) % 2 + delay
    end = 2 * (max(times.values()) // 2 + 1)
    slots, erased = _place(draw, graph, lives(graph, times, end), end)
    plan = Plan(Shape(len(slots), 1, end // 2, 1), times, slots, erased)
    used = usage(graph, plan)
    heads = max(max(used[time] for time in range(0, end, 2)), -(-(max(slots.values()) + 1) // 2))
    neurons = max(1, *(used[time] for time in range(1, end, 2)))
    return Plan(Shape(2 * heads, heads, end // 2, neurons), times, slots, erased)


def _place(
    draw: st.DrawFn, graph: Graph, life: dict[str, Life], end: int
) -> tuple[dict[str, int], dict[str, int]]:
    """Slots, and erasures of what is in the way; what erasing heads read is never erased."""
    slots: dict[str, int] = {}
    erased: dict[str, int] = {}
    last: dict[int, str] = {}
    kept = {graph.one.name, graph.position.name, graph.position_squared.name}
    for name in sorted(graph.quantities, key=lambda n: life[n].birth):
        choices = []
        for slot, old in last.items():
            first = max(life[old].last_read, life[old].complete + 1, 0)
            both_integral = graph.quantities[old].integral and graph.quantities[name].integral
            latest = life[name].birth - (0 if both_integral else 1)
            if old not in kept and first <= latest and first < end:
                choices.append((slot, first, latest))
        if choices and draw(st.integers(0, 3)):
            slot, first, latest = draw(st.sampled_from(choices))
            erased[last[slot]] = draw(st.sampled_from((latest, first)))
        else:
            slot = len(last)
        slots[name], last[slot] = slot, name
    return slots, erased


# --- a certificate for one run -------------------------------------------------------------------


def exact_run(small: Small) -> tuple[list[Values], list[str]]:
    """All quantities after each token, and the token with the greatest score."""
    evaluator = Evaluator(small.graph)
    rows, best = list[Values](), list[str]()
    for token in small.tokens:
        evaluator.feed(token)
        rows.append(evaluator.values)
        best.append(evaluator.best())
    return rows, best


def is_mean_of_sum(graph: Graph, name: str) -> bool:
    """Whether a quantity is the rounded mean behind a running sum."""
    return name.endswith(".mean") and f"{name.removesuffix('.mean')}.snap" in graph.nodes


def needed_bits(small: Small, rows: Sequence[Values]) -> float:
    """The bits that the run needs; infinite if a value is rounded whatever the bits."""
    return max(_Bits(small, rows).all(), default=0)


@dataclass
class _Bits:
    """Every sum of a run, from the final values of all quantities (no node reads in between)."""

    small: Small
    rows: Sequence[Values]

    def all(self) -> Iterable[float]:
        graph = self.small.graph
        results = {name: self.results(node) for name, node in graph.nodes.items()}
        for node in graph.nodes.values():
            yield from self.of_gate(node) if isinstance(node, Gate) else self.of_lookup(node)
        for row in self.rows:
            yield from (need(terms(expr, row)) for expr in graph.scores.values())
        yield from self.of_slots(results)

    def results(self, node: Node) -> list[tuple[Fraction, ...]]:
        """What the node computes, token by token."""
        if isinstance(node, Gate):
            return [(max(at(node.gate, r), Fraction(0)) * at(node.value, r),) for r in self.rows]
        found = []
        for t, row in enumerate(self.rows):
            winners = self.winners(node, t, row)
            values = [[at(v, self.rows[w]) for v in node.values] for w in winners]
            if node.mode == "latest":
                found.append(tuple(values[-1]))
            else:
                found.append(tuple(sum(c) / len(values) for c in zip(*values, strict=True)))
        return found

    def winners(self, node: Lookup, t: int, row: Values) -> list[int]:
        qx, qy = (at(q, row) for q in node.query)
        keys = [tuple(at(k, r) for k in node.key) for r in self.rows[: t + 1]]
        scores = [qx * x + qy * y for x, y in keys]
        return [p for p, score in enumerate(scores) if score == max(scores)]

    def of_gate(self, node: Gate) -> Iterable[float]:
        of_mean = any(is_mean_of_sum(self.small.graph, name) for name in node.value.terms)
        for row in self.rows:
            yield need(terms(node.gate, row))
            if not of_mean:
                yield need(terms(node.value, row))
                yield need([max(at(node.gate, row), Fraction(0)) * at(node.value, row)])

    def of_lookup(self, node: Lookup) -> Iterable[float]:
        for t, row in enumerate(self.rows):
            for expr in (*node.query, *node.key, *node.values):
                yield need(terms(expr, row))
            query = [at(q, row) for q in node.query]
            for earlier in self.rows[: t + 1]:
                key = [at(k, earlier) for k in node.key]
                yield need([q * k for q, k in zip(query, key, strict=True)])
        if node.mode == "mean":
            for expr in node.values:
                yield need([at(expr, row) for row in self.rows])

    def of_slots(self, results: dict[str, list[tuple[Fraction, ...]]]) -> Iterable[float]:
        """Every slot in every half-layer: what stood there, what is added, what is taken away."""
        graph, plan = self.small.graph, self.small.plan
        written = defaultdict(list)
        for node in graph.nodes.values():
            for term in node.terms:
                written[term.target, plan.times[node.name]].append((node.name, term))
        for t, row in enumerate(self.rows):
            parts: dict[tuple[int, int], list[Fraction]] = defaultdict(list)
            for name, slot in plan.slots.items():
                so_far = Fraction(row[name]) if name in graph.inputs else Fraction(0)
                for (target, _), added in sorted(written.items(), key=lambda item: item[0][1]):
                    if target != name:
                        continue
                    time = plan.times[added[0][0]]
                    new = [Fraction(c.coefficient) * results[n][t][c.value] for n, c in added]
                    parts[slot, time] += [so_far, *new]
                    so_far += sum(new)
                if name in plan.erased:
                    parts[slot, plan.erased[name]] += [so_far, -so_far]
                if f"{name}.snap" in graph.nodes:
                    yield self.snapped(Fraction(row[name]))
            sums = {name for name in plan.slots if f"{name}.snap" in graph.nodes}
            rounded = {n for n in plan.slots if is_mean_of_sum(graph, n)}
            skipped = self.births(sums) | self.lifetimes(rounded)
            yield from (need(part) for place, part in parts.items() if place not in skipped)

    def births(self, names: Iterable[str]) -> set[tuple[int, int]]:
        """Slots and half-layers in which running sums are made: rounded there, on purpose."""
        plan = self.small.plan
        return {
            (plan.slots[n], plan.times[f"{n}.{part}"]) for n in names for part in ("sum", "snap")
        }

    def lifetimes(self, names: Iterable[str]) -> set[tuple[int, int]]:
        plan, graph = self.small.plan, self.small.graph
        writers = graph.writers()
        return {
            (plan.slots[n], time)
            for n in names
            for time in range(plan.times[writers[n][0]], plan.erased.get(n, plan.shape.end) + 1)
        }

    def snapped(self, value: Fraction) -> float:
        """A running sum: a multiple of 1/16 that leaves room for the snapping constant."""
        total = value - Fraction(SNAP)
        return 0 if abs(total) < 2**45 and grain_of(total) >= -4 else inf


def at(expr: Expr, row: Values) -> Fraction:
    """The value of an expression."""
    return sum(terms(expr, row), Fraction(0))


def terms(expr: Expr, row: Values) -> list[Fraction]:
    """The terms of its dot product."""
    return [Fraction(c) * row[name] for name, c in expr.terms.items()]


def need(parts: Iterable[Fraction]) -> float:
    """Bits of a sum in any order; infinite if a part is no dyadic number."""
    numbers = list(parts)
    if any(n.denominator & (n.denominator - 1) for n in numbers):
        return inf
    count = bits_of_sum([Range.of(n) for n in numbers if n])
    return 0 if count is None else count

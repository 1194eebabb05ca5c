"""Whether plain softmax does what hard attention does, for any graph.

The argument is that of :mod:`compiler.softmax`, with ranges of queries and keys from
:mod:`compiler.exactness` instead of what is known of one machine: if all scores of a head are
multiples of 2^g, the greatest leads by 2^g, or, where keys can be equal, by the tie-break. It must
lead by more than scores are off, and the temperature must make all other weights zero.
"""

from __future__ import annotations

from fractions import Fraction
from math import frexp, ulp

from compiler.errors import UsageError
from compiler.exactness import Analysis, State
from compiler.facts import Facts
from compiler.graph import ONE, SNAP, Expr, Graph, Lookup
from compiler.patterns import is_position_key
from compiler.ranges import DOUBLE_BITS, ZERO, Range, bits_of_sum, grain_of
from compiler.schedule import Plan
from compiler.softmax import TEMPERATURE, UNIT, HeadBound, constant_query, decided, tie_break


def softmax_bounds(graph: Graph, plan: Plan, tokens: int) -> list[HeadBound]:
    """A bound for every head, all of which hold.

    Raises:
        UsageError: naming the head that is not exact over so many tokens, and why.
    """
    analysis = Analysis(graph, plan, Facts(tokens, prefix=tuple(graph.prefix)))
    (state,) = analysis.ranges().values()
    heads = [node for node in graph.nodes.values() if isinstance(node, Lookup)]
    bounds = [_bound(node, state, tokens) for node in heads]
    for bound in bounds:
        if not bound.holds or bound.temperature > TEMPERATURE:
            raise UsageError(
                f"plain softmax over {tokens:,} tokens is not exact: head {bound.name!r} decides "
                f"by {bound.gap:.3g} and is off by up to {bound.error:.3g}; try fewer --tokens"
            )
    return bounds


def _bound(node: Lookup, state: State, tokens: int) -> HeadBound:
    if node.mode == "mean":
        return _mean(node, state, tokens)
    query, key = ([_range(form, state) for form in pair] for pair in (node.query, node.key))
    products = [q * k for q, k in zip(query, key, strict=True)]
    grains = [product.grain for product in products if not product.is_zero]
    if any(grain is None for grain in grains) or node.partial:
        raise _unknown(node, "its scores are rounded numbers")
    gap = 2.0 ** min((grain for grain in grains if grain is not None), default=0)
    kind = "position"
    if is_position_key(node):
        if query[1] != Range.of(1) or (query[0].grain or 0) < 0:
            raise _unknown(node, "it asks for positions that are no integers")
    else:
        kind, eps = "ties", tie_break(tokens)
        part, constant = _constant(node)
        if abs(frexp(constant)[0]) != 0.5:
            raise _unknown(node, f"the constant of its query, {constant:g}, is no power of two")
        step = Fraction(eps / constant)
        ends = (Fraction(0), step * (tokens - 1))
        breaks = Range(min(ends), max(ends), grain_of(step))
        bits = bits_of_sum([*_terms(node.key[part], state), breaks])
        if bits is None or bits > DOUBLE_BITS:
            raise _unknown(node, "its keys have no bits left for a tie-break; try fewer --tokens")
        key[part] = key[part] + breaks
        products = [q * k for q, k in zip(query, key, strict=True)]
        gap = min(eps, gap - eps * (tokens - 1))
    most = float(sum(product.magnitude for product in products))
    return decided(node.name, kind, gap, most, most, None)


def _mean(node: Lookup, state: State, tokens: int) -> HeadBound:
    """As for the sums of :mod:`compiler.softmax`: three roundings of the sum."""
    if any(form.terms for form in node.query):
        raise _unknown(node, "it averages some keys only")
    most = tokens * max(float(_range(form, state).magnitude) for form in node.values)
    return HeadBound(node.name, "mean", ulp(SNAP), most, 4 * UNIT * most, 0, tokens)


def _constant(node: Lookup) -> tuple[int, float]:
    try:
        return constant_query(node)
    except ValueError:
        raise _unknown(node, "no part of its query is the same at every token") from None


def _unknown(node: Lookup, why: str) -> UsageError:
    return UsageError(
        f"no softmax weights: nothing is proved of head {node.name!r}, because {why}; build "
        "without --softmax, for hard attention"
    )


def _terms(form: Expr, state: State) -> list[Range]:
    one = {ONE: Range.of(1)}
    return [(one.get(name) or state[name]).scaled(c) for name, c in form.terms.items()]


def _range(form: Expr, state: State) -> Range:
    return sum(_terms(form, state), ZERO)

"""Neurons that belong together: steps and hats, whose sum is far smaller than its parts.

Two neurons of one value whose gates differ by a constant add up to a step; three, to a hat. The
range of such a group follows from the bends of the piecewise linear function that it is. Of two
neurons with opposite gates, which make the square of a signed number, one is always closed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

from compiler.graph import ONE, Gate
from compiler.ranges import ZERO, Range, grain_of


@dataclass(frozen=True)
class Part:
    """What one neuron adds to one quantity: ``coefficient · max(0, gate) · value``."""

    node: Gate
    coefficient: float
    gate: Range
    value: Range
    product: Range


def groups(parts: Iterable[Part]) -> Iterator[Range]:
    """The range of each group of parts that share a value and, but for constants, a gate."""
    found: dict[object, list[Part]] = defaultdict(list)
    for part in parts:
        gate = tuple(sorted((n, c) for n, c in part.node.gate.terms.items() if n != ONE))
        value = part.node.value.terms
        first = _leading(part)
        form = tuple(sorted((n, c / first) for n, c in value.items()))
        found[gate, form].append(part)
    yield from (_together(members) for members in found.values() if len(members) > 1)
    yield from alternatives(members[0] for members in found.values() if len(members) == 1)


def alternatives(parts: Iterable[Part]) -> Iterator[Range]:
    """The range of each part; one for two parts with opposite gates, of which one is closed."""
    waiting: dict[object, Part] = {}
    for part in parts:
        opposite = frozenset((name, -c) for name, c in part.node.gate.terms.items())
        other = waiting.pop(opposite, None)
        if other is None:
            waiting[frozenset(part.node.gate.terms.items())] = part
        else:
            yield part.product.union(other.product).union(ZERO)
    yield from (part.product for part in waiting.values())


def _leading(part: Part) -> float:
    return next(iter(sorted(part.node.value.terms.items())), ("", 1.0))[1]


def _together(members: list[Part]) -> Range:
    first = members[0]
    shift = Fraction(first.node.gate.terms.get(ONE, 0))
    bends = []
    for part in members:
        scale = _leading(part) / _leading(first)
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

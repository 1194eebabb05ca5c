"""What an exactness analysis may take as given: the length of traces, cases, invariants.

A *case* is a set of tokens that need not be told apart: those at which the same instruction is
executed, say. An *invariant* bounds a quantity where the walk over the weights alone cannot know
the bound, and says why it holds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from compiler.ranges import Range


@dataclass(frozen=True)
class Invariant:
    """Bounds that valid programs keep, and why.

    Of a quantity, of a neuron's product, or (``winner of NAME``) of the position that a lookup
    fetches. ``grain``: all values are multiples of 2^grain; None if that is not known.
    """

    low: float
    high: float
    because: str
    grain: int | None = None


@dataclass(frozen=True)
class Case:
    """Tokens of one kind.

    Attributes:
        name: for reports.
        fixed: quantities whose range is known once they are complete; they tell cases apart.
        ages: for quantities that hold a fetched position, how far back it is.
        tokens: what the token itself may be; None for any of the vocabulary.
        known: invariants of this case, besides those of all cases.
        answered: whether anybody reads the logits.
    """

    name: str
    fixed: Mapping[str, Range] = field(default_factory=dict)
    ages: Mapping[str, Range] = field(default_factory=dict)
    tokens: frozenset[str] | None = None
    known: Mapping[str, Invariant] = field(default_factory=dict)
    answered: bool = True


@dataclass(frozen=True)
class Facts:
    """All that is given besides the graph.

    Attributes:
        tokens: the longest sequence.
        cases: every token of every sequence belongs to at least one of them.
        invariants: see :class:`Invariant`.
        prefix: tokens with which every sequence begins.
    """

    tokens: int
    cases: tuple[Case, ...] = (Case("any token"),)
    invariants: Mapping[str, Invariant] = field(default_factory=dict)
    prefix: tuple[str, ...] = ()

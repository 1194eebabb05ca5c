"""What one step computes, as data: what every C variable of the plain code stands for.

:mod:`executor.native.writer` keeps a :class:`Program` while the plain code is written;
:mod:`executor.native.tails` evaluates it again under assumptions about tokens and distances. C in
templates names arguments ``{0}``, ``{1}``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from executor.checkpoint import Array
from executor.native.forms import Linear


@dataclass(frozen=True)
class Sum:
    """Factor times value, added up in this order."""

    terms: tuple[tuple[float, Linear], ...]


@dataclass(frozen=True)
class Product:
    """A neuron that is always open: gate times value."""

    gate: Linear
    value: Linear


@dataclass(frozen=True)
class Mean:
    """A running sum, by its field of the engine, divided by the number of tokens."""

    name: str


@dataclass(frozen=True)
class Neuron:
    """``down`` times value times gate, where the gate is greater than 0."""

    gate: Linear
    value: Linear
    down: float


@dataclass(frozen=True)
class Accumulate:
    """A slot of the stream after a feed-forward: what is always there, plus neurons."""

    start: Linear
    neurons: tuple[Neuron, ...]


@dataclass(frozen=True)
class Load:
    """What an earlier token stored in a column, by its position."""

    column: int
    base: str


@dataclass(frozen=True)
class AsDouble:
    """A position as a number."""

    base: str


@dataclass(frozen=True)
class Cell:
    """A value of a record, by the record or extreme it belongs to.

    ``count`` is the C text of the number of values it is the sum of, for means; ``index`` is the
    value's number in the record, from 1 on.
    """

    owner: str
    text: str
    value: Linear
    count: str = ""
    index: int = 0


@dataclass(frozen=True)
class Query:
    """A record found in a structure (``of``): a C call."""

    of: str
    call: str
    arguments: tuple[Linear, ...]

    @property
    def is_table(self) -> bool:
        """Whether the structure is a table of integer keys."""
        return self.call.startswith("table_query(")


@dataclass(frozen=True)
class Nearest:
    """The position nearest to a number."""

    query: Linear


@dataclass(frozen=True)
class Quotient:
    """The position nearest to a quotient."""

    x: Linear
    y: Linear


@dataclass(frozen=True)
class Back:
    """A position a fixed distance back."""

    back: int


@dataclass(frozen=True)
class Weight:
    """The position kept with a record or an extreme."""

    owner: str
    text: str


Node = (
    Sum | Product | Mean | Accumulate | Load | AsDouble | Cell
    | Query | Nearest | Quotient | Back | Weight
)  # fmt: skip


@dataclass(frozen=True)
class Store:
    """A column's value for the current token."""

    value: Linear


@dataclass(frozen=True)
class AddTo:
    """A running sum."""

    value: Linear


@dataclass(frozen=True)
class Extreme:
    """The greatest key so far, the latest of equals (or how many, and the sums of values)."""

    score: Linear
    mean: bool
    values: tuple[Linear, ...]


@dataclass(frozen=True)
class Insert:
    """A record into a structure.

    ``fresh`` is the C text of the record to fill; ``call`` inserts it.
    """

    kind: str
    fresh: str
    mean: bool
    values: tuple[Linear, ...]
    call: str
    arguments: tuple[Linear, ...]
    keys: Array | None = None
    """``few``: all keys there can be (n, 2); the argument is the number of one."""


Effect = Store | AddTo | Extreme | Insert


@dataclass(frozen=True)
class Scored:
    """A family of the output head: its index, the quantity its lines are in, what is common."""

    index: int
    y: Linear
    common: Linear


@dataclass(frozen=True)
class Candidate:
    """Single rows that differ in what depends on one token: score and id of the best."""

    score: Linear
    token: Linear


@dataclass
class Program:
    """All of a step: definitions by the C name, effects by the field's name, and the output."""

    nodes: dict[str, Node] = field(default_factory=dict)
    effects: dict[str, Effect] = field(default_factory=dict)
    families: list[Scored] = field(default_factory=list)
    candidates: list[Candidate] = field(default_factory=list)
    complete: bool = True
    """Whether everything is here; if not, only the plain code can be used."""

    def values(self) -> Iterator[Linear]:
        """All values that anything is computed from."""
        for node in self.nodes.values():
            yield from inner(node)
        for effect in self.effects.values():
            match effect:
                case Store(value) | AddTo(value):
                    yield value
                case Extreme(score, _, values):
                    yield from (score, *values)
                case Insert():
                    yield from (*effect.arguments, *effect.values)
        for family in self.families:
            yield from (family.y, family.common)
        for one in self.candidates:
            yield from (one.score, one.token)


def inner(node: Node) -> list[Linear]:
    """What a node is computed from, but for what earlier tokens left."""
    match node:
        case Sum(terms):
            return [term for _, term in terms]
        case Product(gate, value):
            return [gate, value]
        case Accumulate(start, neurons):
            return [start, *(v for n in neurons for v in (n.gate, n.value))]
        case Query(_, _, arguments):
            return list(arguments)
        case Nearest(query):
            return [query]
        case Quotient(x, y):
            return [x, y]
    return []

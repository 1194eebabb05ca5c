"""What the generator collects besides the statements of a step: declarations and descriptions."""

from __future__ import annotations

from dataclasses import dataclass, field

from executor.native.classify import Kind


@dataclass
class State:
    """What the generated engine keeps: declarations, and how to start and clear them."""

    fields: list[str] = field(default_factory=list)
    start: list[str] = field(default_factory=list)
    clear: list[str] = field(default_factory=list)
    columns: list[str] = field(default_factory=list)
    """What each array with one number per token holds, in words."""
    constants: list[str] = field(default_factory=list)
    """Definitions of constant arrays."""
    shared: dict[str, str] = field(default_factory=dict)
    """C names of what several families of the output head use."""
    stored: dict[tuple[object, ...], int] = field(default_factory=dict)


@dataclass(frozen=True)
class Description:
    """What became of a reader, for people.

    Attributes:
        values: what is stored for it.
        part: the C name of the structure that it asks, or of the position that it reads.
    """

    layer: int
    heads: tuple[int, ...]
    kind: Kind
    values: str
    part: str


def counted(number: int, what: str) -> str:
    """``1 value``, ``5 values``."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"

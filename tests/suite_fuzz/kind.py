"""What the driver asks of a kind of random programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

LEVELS = ("-O0", "-O1", "-O2")


@dataclass(frozen=True)
class Written:
    """How a program that was written is to be compiled and run.

    Attributes:
        opt: level of optimisation.
        args: what it is given as its arguments.
        flags: more for the compiler.
        include: folders of headers.
    """

    opt: str
    args: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    include: tuple[Path, ...] = ()


class Kind(Protocol):
    """Programs of one kind; ``name`` tells it from others."""

    name: str

    def write(self, seed: int, target: Path) -> Written:
        """Writes the C program that a seed stands for; the same one every time."""
        ...

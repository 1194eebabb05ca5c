"""What a demonstration consists of: the program to watch, and how its memory is drawn.

A picture is a list of :class:`rich.text.Text`, one a line, so that the terminal and the recording
take the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Protocol

from rich.text import Text

import programs
from compiler import compile_wasm
from compiler.errors import TransputerError, UsageError
from compiler.frontend import to_wasm
from compiler.program import Program
from compiler.toolchain import ENTRY, TINY
from executor.process import patience
from executor.runner import RunResult
from executor.watch import MemoryWatch

PROGRAMS = Path(programs.__file__).parent


@dataclass(frozen=True)
class Task:
    """A C file of ``programs``, the variables to watch in it, and what it is run on."""

    file: str
    variables: tuple[str, ...]
    args: tuple[str, ...] = ()
    stdin: bytes = b""

    def compiled(self) -> Program:
        """The program, whose module exports the variables; compiled once. Raises CompileError."""
        return _compiled(self.file, self.variables)


@cache
def _compiled(file: str, variables: tuple[str, ...]) -> Program:
    """With the small C library most of the tokens are the algorithm's, not those of printf."""
    with patience(f"compiling {file}; the first time, the C library too"):
        built = to_wasm(PROGRAMS / file, exports=(ENTRY, *variables), libc=TINY)
        return compile_wasm(built.wasm, built.name)


class Scene(Protocol):
    """One demonstration on one input."""

    @property
    def title(self) -> str:
        """What is going on, in a line."""

    @property
    def task(self) -> Task:
        """What to run."""

    def begin(self, program: Program) -> None:
        """Find the variables of the compiled program."""

    def look(self, watch: MemoryWatch) -> None:
        """Take over what the trace has written since the last time."""

    def picture(self, width: int, height: int) -> list[Text]:
        """The state as lines that fit, or as much of them as does."""

    def counters(self) -> str:
        """The numbers that belong to the picture, in a line."""

    def question(self) -> str:
        """What is to be solved, as plain lines."""

    def answer(self, result: RunResult) -> str:
        """What the program found, as plain lines.

        Raises:
            UsageError: if the run has shown that the question makes no sense.
            TransputerError: if the program has not ended as it should.
        """


def unexpected(task: Task, result: RunResult) -> TransputerError:
    """The error for a run that did not end as the program should."""
    said = result.trap or result.output.decode("ascii", "replace").strip()[-200:]
    return TransputerError(f"{task.file}: did not end as it should: {said}")


def text_of(argument: str) -> tuple[str, bool]:
    """What a user gives in place or in a file: the text, and whether a file of that name held it.

    Raises:
        UsageError: if there is such a file and it cannot be read as text.
    """
    path = Path(argument)
    try:
        if not argument or not path.is_file():
            return argument, False
    except (OSError, ValueError):  # too long for a name, or no name at all
        return argument, False
    try:
        return path.read_text("utf-8"), True
    except (OSError, UnicodeDecodeError):
        raise UsageError(f"{argument}: not a text file that can be read") from None


def beside(blocks: Sequence[Sequence[Text]], gap: int = 3) -> list[Text]:
    """Blocks of lines side by side."""
    widths = [max((line.cell_len for line in block), default=0) for block in blocks]
    rows = []
    for parts in zip_longest(*blocks, fillvalue=Text()):
        row = Text()
        for part, width in zip(parts, widths, strict=True):
            row.append_text(part)
            row.append(" " * (width - part.cell_len + gap))
        row.rstrip()
        rows.append(row)
    return rows

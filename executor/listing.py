"""A run as text: its steps in, a line for each out, and a line of the source where that changes.

Columns have fixed places: a cell that is too long moves those behind it, and only as far as it
must. On a terminal lines are cut at its width, and what there is no room for is left out: the line
of the source, which stands above, the WebAssembly instruction, the stack; at last cells are cut.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence

from compiler import isa
from compiler.errors import Place
from compiler.source_map import LIBRARY_FOLDER
from executor.replay import Step
from executor.trace import Kind

_INDENT = " " * 10
NUMBER, SOURCE, CODE, NATIVE, TOKENS, MEANING, STACK = range(7)
_WIDTHS = (8, 14, 32, 22, 42, 24, 22)
_NARROW = (7, 0, 0, 20, 33, 14, 0)
_GAP = "  "

Columns = tuple[int, ...]
"""Characters of each column, 0 for one that is left out."""


def columns(width: int | None, sources: bool = True) -> Columns:
    """The columns for a screen of this width, None for a file; without that of lines of the source
    where no program has any."""
    widths = list(_WIDTHS)
    if not sources:
        widths[SOURCE] = 0
    if width is not None:
        for column in (SOURCE, CODE, STACK):
            if _whole(widths) > width:
                widths[column] = 0
        if _whole(widths) > width:
            return _NARROW
    return tuple(widths)


def _whole(widths: Sequence[int]) -> int:
    return sum(width + len(_GAP) for width in widths if width) - len(_GAP)


def listing(
    steps: Iterable[Step], first: int = 0, width: int | None = None, sources: bool = True
) -> Iterator[str]:
    """A line for each step; before it ``gcd.c:12: a = b;`` where it is the first that comes from
    there.

    Args:
        first: the number of the first step.
        width: of the screen; None for a file.
        sources: whether the program can have lines of a source.
    """
    return numbered_listing(enumerate(steps, first), width, sources)


def numbered_listing(
    steps: Iterable[tuple[int, Step]], width: int | None = None, sources: bool = True
) -> Iterator[str]:
    """:func:`listing` of steps that bring their numbers in the run, for some may be missing."""
    shape = columns(width, sources)
    last = ("", "", 0)
    for number, step in steps:
        place = step.place
        here = (place.function, place.file, place.line)
        if here != last and place.line:
            yield cut(f"{_INDENT}{heading(place)}", width)
        last = here
        yield cut(pretty_line(number, step, shape), width)


def own(step: Step) -> bool:
    """Whether a step has a line of the user's own files, not of a library."""
    place = step.place
    return bool(place.line) and not place.file.startswith(LIBRARY_FOLDER)


def heading(place: Place) -> str:
    """A place of the source and its text: ``programs/gcd.c:12 (gcd): a = b;``."""
    text = f": {place.text}" if place.text else ""
    return f"{place.source} ({place.function}){text}"


def pretty_line(number: int, step: Step, widths: Columns = _WIDTHS) -> str:
    """One aligned line: number in the run, line of the source, WebAssembly instruction, native
    instruction, tokens, what they mean, and the top of the stack afterwards."""
    place = step.place
    cells = (
        f"{number:>{widths[NUMBER]}}",
        os.path.basename(place.source),
        place.code,
        str(step.instruction),
        str(step.event),
        f"{_meaning(step)}{_effect(step)}",
        _stack(step),
    )
    line, start, last = "", 0, _whole(widths)
    for cell, width in zip(cells, widths, strict=True):
        if width:
            line = f"{line}{_GAP}" if len(line) > start - len(_GAP) > 0 else line.ljust(start)
            line += cut(cell, width if widths == _NARROW and start + width < last else None)
            start += width + len(_GAP)
    return line.rstrip()


def cut(line: str, width: int | None) -> str:
    """At most so many characters of a line; ``~`` stands for the rest."""
    return line if width is None or len(line) <= width else line[: width - 1] + "~"


def _effect(step: Step) -> str:
    """What becomes of the value, or where it was: ``, local 3``, ``, to memory[1024]``."""
    instruction, event = step.instruction, step.event
    if event.kind is not Kind.VALUE:
        return ""
    if step.address is not None:
        toward = "to" if instruction.name in isa.STORES else "from"
        return f", {toward} memory[{step.address}]"
    kind, _, access = instruction.name.partition(".")
    if kind in ("local", "global"):
        toward = "from" if access == "get" else "to"
        return f", {toward} {kind} {instruction.immediate}"
    return ""


def _stack(step: Step) -> str:
    """``| 3 5``: the stack that a step leaves, its top last, ``..`` for what is below."""
    below = ".. " if step.depth > len(step.stack) else ""
    return f"| {below}{' '.join(map(str, step.stack))}"


def _meaning(step: Step) -> str:
    event = step.event
    match event.kind:
        case Kind.VALUE:
            return f"= {event.signed}"
        case Kind.BRANCH | Kind.CALL:
            return f"to {step.index + event.signed // isa.INSTRUCTION_TOKENS}"
        case Kind.RETURN:
            return f"to {step.index - event.signed // isa.INSTRUCTION_TOKENS}"
        case Kind.TRAP:
            return event.trap
        case Kind.OUTPUT if step.instruction.immediate == isa.STANDARD_ERROR:
            return "to standard error"
        case _:
            return ""

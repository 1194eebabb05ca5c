"""A run as text: its steps in, a line for each out, and a line of the source where that changes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from compiler import isa
from compiler.errors import Place
from executor.replay import Step
from executor.trace import Kind

_INDENT = " " * 10


def listing(steps: Iterable[Step]) -> Iterator[str]:
    """A line for each step, numbered from 0; before it ``gcd.c:12: a = b;`` where it is the first
    that comes from there."""
    last = ("", "", 0)
    for number, step in enumerate(steps):
        place = step.place
        here = (place.function, place.file, place.line)
        if here != last and place.line:
            yield f"{_INDENT}{heading(place)}"
        last = here
        yield pretty_line(number, step)


def heading(place: Place) -> str:
    """A place of the source and its text: ``programs/gcd.c:12 (gcd): a = b;``."""
    text = f": {place.text}" if place.text else ""
    return f"{place.source} ({place.function}){text}"


def pretty_line(number: int, step: Step) -> str:
    """One aligned line: number in the run, line of the source, WebAssembly instruction, native
    instruction, tokens, what they mean."""
    place = step.place
    source = f"{os.path.basename(place.source):<14}  " if place.line else ""
    what = f"{source}{place.code:<32}  {step.instruction!s:<22}  {step.event!s:<42}"
    return f"{number:>8}  {what}  {_meaning(step)}".rstrip()


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

"""A run as text: its steps in, a line for each out, and a line of the source where that changes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from compiler import isa
from compiler.errors import Place
from executor.replay import Step
from executor.trace import Kind

_INDENT = " " * 10


def listing(steps: Iterable[Step], first: int = 0) -> Iterator[str]:
    """A line for each step, numbered from ``first`` on; before it ``gcd.c:12: a = b;`` where it is
    the first that comes from there."""
    last = ("", "", 0)
    for number, step in enumerate(steps, first):
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
    instruction, tokens, what they mean, and the top of the stack afterwards."""
    place = step.place
    source = f"{os.path.basename(place.source):<14}  " if place.line else ""
    what = f"{source}{place.code:<32}  {step.instruction!s:<22}  {step.event!s:<42}"
    meaning = f"{_meaning(step)}{_effect(step)}"
    return f"{number:>8}  {what}  {meaning:<24}  {_stack(step)}".rstrip()


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

"""Where a run stopped, as the source tells it: open calls in, places out, the innermost first."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compiler.errors import Place
from compiler.program import Program

_SHOWN = 8
"""Calls of a backtrace that are shown from within."""


def backtrace(program: Program, instruction: int, calls: Sequence[int]) -> list[Place]:
    """The place of an instruction, and of each call that led there, inlined ones included.

    What functions of the compiler do (an ``i64.div_s``, say) is done by the instruction that calls
    them; and the code that calls ``main`` is left out.

    Args:
        calls: numbers of the instructions whose calls have not returned, the outermost first.
    """
    sites = [instruction, *reversed(calls)]
    while len(sites) > 1 and program.origins[sites[0]].function.startswith("("):
        del sites[0]
    places = [place for site in sites for place in _with_inlined(program.place(site))]
    while len(places) > 1 and not places[-1].line and any(place.line for place in places):
        del places[-1]
    if len(places) > 1 and places[-1].instruction.startswith("("):
        del places[-1]
    return places


def _with_inlined(place: Place) -> Iterator[Place]:
    yield place
    yield from place.inlined


def called_from(places: Sequence[Place]) -> str:
    """The calls of a backtrace as lines of a message, each after a line end; the middle of a long
    one is left out."""
    calls = [f"\n  called from {place.caller}" for place in places[1:]]
    if len(calls) > _SHOWN + 2:
        hidden = len(calls) - _SHOWN - 1
        calls[_SHOWN:-1] = [f"\n  ... and {hidden:,} more calls"]
    return "".join(calls)

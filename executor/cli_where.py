"""Options that name places in a run: tokens, instructions, output bytes, heads."""

from __future__ import annotations

import argparse
from dataclasses import dataclass

from compiler.errors import UsageError


@dataclass(frozen=True)
class Span:
    """``5``, ``-1`` or ``3:9``, which is 3 to 8; an open end is None."""

    start: int | None
    stop: int | None
    single: bool

    def of(self, length: int, what: str) -> range:
        """The numbers among 0 .. length - 1; negative ones count from the end.

        Raises:
            UsageError: if a single one does not exist, or there are none.
        """
        if not self.single:
            found = range(length)[self.start : self.stop]
        elif self.start is not None and -length <= self.start < length:
            return range(self.start % length, self.start % length + 1)
        else:
            found = range(0)
        if not found:
            text = str(self.start) if self.single else f"{self.start or ''}:{self.stop or ''}"
            have = f"they go from 0 to {length - 1:,}" if length else "there are none"
            raise UsageError(f"no {what} {text}: {have}")
        return found


Spans = tuple[Span, ...]


def spans(text: str) -> Spans:
    """``3``, ``-1``, ``10:20``, and several with commas between them."""
    try:
        return tuple(_span(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a number, a range like 3:9, or some of them with commas"
        ) from None


def _span(text: str) -> Span:
    first, colon, last = text.partition(":")
    if not colon:
        return Span(int(first), None, single=True)
    return Span(int(first) if first.strip() else None, int(last) if last.strip() else None, False)


def index(text: str) -> int:
    """A number from 0 on."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number from 0 on")
    return int(text)


def head(text: str) -> tuple[int, int]:
    """``2.5``: head 5 of layer 2."""
    layer, dot, number = text.partition(".")
    if not (dot and layer.isdecimal() and number.isdecimal()):
        raise argparse.ArgumentTypeError(f"{text!r} is not LAYER.HEAD, such as 2.5")
    return int(layer), int(number)


def explain_options(parser: argparse.ArgumentParser) -> None:
    """What ``explain`` looks at, and how it shows it."""
    where = parser.add_argument_group(
        "what to explain (numbers, ranges like 3:9, commas; negative ones as in --at=-3:)"
    )
    where.add_argument(
        "--at", metavar="N", type=spans, help="how token N of the trace is written; default -1"
    )
    where.add_argument(
        "--instruction", metavar="K", type=spans, help="the tokens of the Kth executed instruction"
    )
    where.add_argument("--output", metavar="K", type=spans, help="the Kth byte of output, from 0")
    where.add_argument(
        "--position", metavar="P", type=spans, help="position P of prompt and trace together"
    )
    where.add_argument(
        "--from", dest="trace", metavar="FILE", help="a trace that is there already; do not run"
    )
    how = parser.add_argument_group("how to show it")
    how.add_argument("--all", action="store_true", help="every head and neuron, and all slots")
    how.add_argument("--layer", metavar="L", type=index, help="all about one layer")
    how.add_argument("--head", metavar="L.H", type=head, help="all about one head: 2.5")
    how.add_argument("--top", metavar="K", type=index, help="how many logits; default 5")
    how.add_argument(
        "--picture", metavar="FILE.svg", help="draw who is read, instead (.svg, .png, .pdf)"
    )
    how.add_argument(
        "--hull",
        metavar="L.H",
        type=head,
        help="with --picture: draw the keys of this head, their hull and the query",
    )
    how.add_argument("--json", action="store_true", help="one JSON object a line, with everything")


def trace_options(parser: argparse.ArgumentParser) -> None:
    """Which part of a run ``trace`` shows."""
    where = parser.add_argument_group("which part")
    where.add_argument("--at", metavar="N", type=index, help="begin where token N is written")
    where.add_argument("--instruction", metavar="K", type=index, help="begin with instruction K")
    where.add_argument("--count", metavar="M", type=index, help="show M instructions")
    where.add_argument(
        "--source",
        action="store_true",
        help="only instructions that a line of your own files is for, no library",
    )

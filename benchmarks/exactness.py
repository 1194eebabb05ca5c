"""Where the machine is exact, with the numbers behind it: writes docs/exactness.md.

``python benchmarks/exactness.py --write`` (a minute); without ``--write`` the page is printed.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from math import log2
from pathlib import Path

from compiler.build import build_machine
from compiler.certificate import MEMORY, load_certificate
from compiler.certify import first_lost_position
from compiler.exactness import Analysis, Need
from compiler.invariants import analyse, machine_facts
from compiler.ranges import DOUBLE_BITS
from compiler.softmax import ROOM, SOFTMAX_CALLS, TEMPERATURE, HeadBound, softmax_export

PAGE = Path(__file__).parent.parent / "docs" / "exactness.md"
TEXT = Path(__file__).parent / "exactness.txt"
KINDS = ("score", "key", "query", "gate", "value", "product", "sum", "logit", "snapped", "terms")


def kind(need: Need) -> str:
    """The kind of a computation: the first word of its name."""
    return need.what.split()[0]


def worst_table(analysis: Analysis) -> Iterator[str]:
    """Of each kind of computation the one that needs most bits."""
    yield "| computations | how many | most bits | of which | at |"
    yield "|---|---|---|---|---|"
    needs = analysis.worst()
    for name in KINDS:
        members = [need for need in needs if kind(need) == name]
        if members:
            first = members[0]
            what = first.what.removeprefix(f"{name} of ").removeprefix(f"{name} in ")
            yield f"| {name} | {len(members)} | {first.bits} | {what} | {first.case} |"


def invariant_table(analysis: Analysis) -> Iterator[str]:
    """What the walk takes as given."""
    yield "| quantity | least | greatest | because |"
    yield "|---|---|---|---|"
    known = dict(analysis.facts.invariants)
    for case in analysis.facts.cases:
        known |= case.known
    for name, one in known.items():
        yield f"| {name} | {one.low:,.0f} | {one.high:,.0f} | {one.because} |"


def softmax_table() -> Iterator[str]:
    """Exports that can be built: for each length the largest memory."""
    yield "| tokens | bytes of memory | locals | operand stack | jumps, explicit weights |"
    yield "|---|---|---|---|---|"
    for power in (13, 15, 17, 18, 19, 20, 22):
        export = softmax_export(2**power)
        limits = export.limits
        yield (
            f"| 2^{power} | {limits.memory:,} | {limits.locals:,} | {limits.stack:,} "
            f"| {export.longest_jump:,} |"
        )


def head_table() -> Iterator[str]:
    """Why each kind of head of the default export is exact: the closest of its kind."""
    yield "| head | kind | lead | error | least temperature | longest run |"
    yield "|---|---|---|---|---|---|"
    closest: dict[str, HeadBound] = {}
    for head in softmax_export().heads:
        other = closest.get(head.kind)
        if other is None or head.error / head.gap > other.error / other.gap:
            closest[head.kind] = head
    for head in closest.values():
        needed = f"2^{log2(head.temperature):.1f}" if head.temperature else "any"
        yield (
            f"| {head.name} | {head.kind} | 2^{log2(head.gap):.1f} | 2^{log2(head.error):.1f} "
            f"| {needed} | {head.tokens:,} |"
        )


def fields() -> dict[str, str]:
    """Every number of the page."""
    machine, certificate = build_machine(), load_certificate()
    tokens = certificate.tokens.value
    analysis = analyse(machine, tokens, MEMORY)
    true = first_lost_position(tokens, 16 * tokens)
    assert true is not None
    facts = machine_facts(machine, tokens, MEMORY)
    return {
        "tokens": f"{tokens:,}",
        "tokens_beyond": certificate.tokens.beyond,
        "memory": f"{certificate.memory.value:,}",
        "memory_beyond": certificate.memory.beyond,
        "true": f"{true:,}",
        "ratio": f"{true / tokens:.4f}",
        "bits": str(DOUBLE_BITS),
        "cases": str(len(facts.cases)),
        "computations": f"{len(analysis.worst()):,}",
        "worst": "\n".join(worst_table(analysis)),
        "temperature": f"2^{log2(TEMPERATURE):.0f}",
        "calls": str(SOFTMAX_CALLS),
        "room": str(ROOM),
        "softmax": "\n".join(softmax_table()),
        "heads": "\n".join(head_table()),
        "invariants": "\n".join(invariant_table(analysis)),
    }


def main() -> None:
    """Print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/exactness.md")
    options = parser.parse_args()
    page = TEXT.read_text(encoding="utf-8").format(**fields())
    if options.write:
        PAGE.write_text(page, encoding="utf-8")
    else:
        print(page)


if __name__ == "__main__":
    main()

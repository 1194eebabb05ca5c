"""Finds the certificate of a machine by bisection over analyses.

``python -m compiler.certify`` does it for the default machine (some minutes) and writes
``compiler/plans/default.certificate.json``.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from compiler import isa
from compiler.certificate import (
    FILE,
    MEMORY,
    MOST_MEMORY,
    MOST_TOKENS,
    PAGE,
    Certificate,
    Limit,
)
from compiler.exactness import Analysis, Need
from compiler.ranges import DOUBLE_BITS


def inexact(analysis: Analysis) -> list[Need]:
    """Computations that need more bits than a double has."""
    return [need for need in analysis.worst() if need.bits > DOUBLE_BITS]


def certify(analyse: Callable[[int, int], Analysis]) -> Certificate:
    """The certificate of a machine; ``analyse(tokens, memory_bytes)`` is its analysis."""

    def fits_tokens(tokens: int) -> bool:
        return not inexact(analyse(tokens, MEMORY))

    tokens = greatest(fits_tokens, 2**10, MOST_TOKENS)
    beyond = inexact(analyse(tokens + 1, MEMORY))
    pages = greatest(lambda n: not inexact(analyse(tokens, n * PAGE)), 1, MOST_MEMORY // PAGE)
    if pages == MOST_MEMORY // PAGE:
        memory = f"the machine's addresses, which stay below {isa.EXACT_ADDRESSES:,}"
    else:
        memory = inexact(analyse(tokens, (pages + 1) * PAGE))[0].what
    bits = analyse(tokens, MEMORY).worst()[0].bits
    return Certificate(Limit(tokens, beyond[0].what), Limit(pages * PAGE, memory), bits)


def first_lost_position(start: int, end: int, block: int = 1 << 16) -> int | None:
    """The true limit: where a head first misses one of the four positions before its own.

    Scores in doubles against the last nine keys (2p, -p²) before every position from ``start`` to
    ``end``; None if all are found.
    """
    offsets = np.arange(-8.0, 1.0)
    for low in range(start, end, block):
        p = np.arange(low, min(low + block, end), dtype=np.float64)[:, None]
        keys = p + offsets
        for back in range(5):
            scores = (p - back) * (2 * keys) + -(keys * keys)
            winner = 8 - np.argmax(scores[:, ::-1], axis=1)
            lost = np.flatnonzero(winner != 8 - back)
            if lost.size:
                return low + int(lost[0])
    return None


def greatest(fits: Callable[[int], bool], low: int, high: int) -> int:
    """The greatest number that fits, if all smaller ones do; ``low`` must fit."""
    if not fits(low):
        raise ValueError("nothing is exact, not even the smallest size")
    if fits(high):
        return high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def main() -> None:
    """Certify the default machine and write the file."""
    from compiler.build import build_machine
    from compiler.invariants import analyse

    machine = build_machine()
    certificate = certify(lambda tokens, memory: analyse(machine, tokens, memory))
    path = Path(__file__).parent / "plans" / FILE
    path.write_text(certificate.to_json(), encoding="utf-8")
    print(f"{path}: {certificate}")


if __name__ == "__main__":
    main()

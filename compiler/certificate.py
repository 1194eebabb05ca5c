"""The certificate: up to which length and memory every number of the machine is exact.

Hard attention, ties by position. Inside the certificate no dot product, product, score or logit
needs more than 53 significant bits, so float64 computes all of them exactly, in any order of
summation, with or without fused multiply-add. ``python -m compiler.certificate`` computes it
again (some minutes) and writes ``compiler/plans/default.certificate.json``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from compiler import isa
from compiler.exactness import Analysis, Need
from compiler.ranges import DOUBLE_BITS

FILE = "default.certificate.json"
MEMORY = 64 * 1024
"""Bytes of memory for which the longest run is stated."""
TOKENS = 2**26
"""Length for which the largest memory is stated."""
PAGE = 64 * 1024
MOST_TOKENS = 2**32
MOST_MEMORY = isa.MAX_MEMORY_PAGES * PAGE
"""The compiler refuses more."""


@dataclass(frozen=True)
class Limit:
    """A bound, and what would need more than 53 bits beyond it."""

    value: int
    beyond: str


@dataclass(frozen=True)
class Certificate:
    """What is proved of hard attention.

    Attributes:
        tokens: the longest sequence, prompt included, with ``MEMORY`` bytes of memory.
        memory: the largest memory in bytes, in sequences of ``TOKENS`` tokens.
        bits: the most significant bits that anything needs inside.
    """

    tokens: Limit
    memory: Limit
    bits: int

    def to_json(self) -> str:
        """The certificate as text."""
        return json.dumps(asdict(self), indent=1) + "\n"

    @staticmethod
    def from_json(text: str) -> Certificate:
        """Inverse of :meth:`to_json`."""
        data = json.loads(text)
        return Certificate(Limit(**data["tokens"]), Limit(**data["memory"]), data["bits"])


def load_certificate() -> Certificate:
    """The default machine's certificate."""
    path = resources.files("compiler.plans").joinpath(FILE)
    return Certificate.from_json(path.read_text(encoding="utf-8"))


def inexact(analysis: Analysis) -> list[Need]:
    """Computations that need more bits than a double has."""
    return [need for need in analysis.worst() if need.bits > DOUBLE_BITS]


def certify(analyse: Callable[[int, int], Analysis]) -> Certificate:
    """The certificate of a machine; ``analyse(tokens, memory_bytes)`` is its analysis."""

    def fits_tokens(tokens: int) -> bool:
        return not inexact(analyse(tokens, MEMORY))

    tokens = _greatest(fits_tokens, 2**10, MOST_TOKENS)
    beyond = inexact(analyse(tokens + 1, MEMORY))
    pages = _greatest(lambda n: not inexact(analyse(TOKENS, n * PAGE)), 1, MOST_MEMORY // PAGE)
    if pages == MOST_MEMORY // PAGE:
        memory = f"the machine's addresses, which stay below {isa.EXACT_ADDRESSES:,}"
    else:
        memory = inexact(analyse(TOKENS, (pages + 1) * PAGE))[0].what
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


def _greatest(fits: Callable[[int], bool], low: int, high: int) -> int:
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

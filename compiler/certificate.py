"""The certificate: up to which length and memory every number of the machine is exact.

Hard attention, ties by position. Inside the certificate no dot product, product, score or logit
needs more than 53 significant bits, so float64 computes all of them exactly, in any order of
summation, with or without fused multiply-add. :mod:`compiler.certify` computes it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from importlib import resources

from compiler import isa

FILE = "default.certificate.json"
MEMORY = 64 * 1024
"""Bytes of memory for which the longest run is stated."""
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
        memory: the largest memory in bytes, in sequences of that length.
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

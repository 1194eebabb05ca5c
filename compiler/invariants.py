"""What valid programs never violate on the default machine, and who sees to it.

The analysis of :mod:`compiler.exactness` takes these as given; the tests check them, and the
ranges that follow from them, on every token of real traces.
"""

from __future__ import annotations

from compiler import isa
from compiler.build import Machine
from compiler.exactness import Analysis, Invariant

SPLIT = "opcode"
"""The lookup that fetches the instruction at the cursor."""


def machine_invariants(tokens: int, memory_bytes: int) -> dict[str, Invariant]:
    """Invariants for traces of at most ``tokens`` tokens with this much memory."""
    farthest = isa.EXACT_ADDRESSES
    words = 2.0**32
    known = {
        "depth": Invariant(0, tokens // 5, "a push takes five tokens; no pop of an empty stack"),
        "call_depth": Invariant(0, isa.MAX_CALL_DEPTH - 1, "a deeper call traps"),
        "cursor": Invariant(-farthest, farthest, "branches stay inside the program"),
        "local_write": Invariant(0, farthest, "the assembler bounds local indices"),
        "local_read": Invariant(0, farthest, "the assembler bounds local indices"),
        "write_address": Invariant(-tokens, memory_bytes, "a store beyond the memory traps"),
        "rest": Invariant(0, words - 1, "the digits so far never exceed the quotient"),
    }
    for name in isa.DIVISIONS:
        known[f"rest: {name} quotient"] = Invariant(-words, 0, "divisor times digits <= dividend")
    return known


def analyse(machine: Machine, tokens: int, memory_bytes: int = 65536) -> Analysis:
    """The analysis of the default machine: some seconds."""
    invariants = machine_invariants(tokens, memory_bytes)
    return Analysis(machine.graph, machine.plan, tokens, invariants, SPLIT)

"""Filling and copying memory, in the notation of ``routines.py``.

Operands are those of the WebAssembly instruction and, on top, the size of the memory in bytes.
Both check all addresses before they write, and move words while there are four bytes left.
"""

from __future__ import annotations

_BEYOND = 0xFFFFFFFF
"""An offset at which a load traps, whatever the memory."""


def _within(address: str) -> str:
    """Go to ``bad`` unless n bytes from ``address`` on lie within the memory."""
    return f"""get {address}, get size, gt_u, br_if bad
    get n, get size, get {address}, sub, gt_u, br_if bad"""


_BAD = f"bad: const 0, load {_BEYOND}, return"

FILL = f"""
    set size, set n, set value, set to
    {_within("to")}
    get to, get n, add, set end
    get value, const 255, and, const {0x01010101}, mul, set value
    get n, const 4, lt_u, br_if rest
    get to, get n, const {0xFFFFFFFC}, and, add, set words
    word: get to, get value, store
    get to, const 4, add, tee to, get words, ne, br_if word
    rest: get to, get end, eq, br_if done
    byte: get to, get value, store8
    get to, const 1, add, tee to, get end, ne, br_if byte
    done: return
    {_BAD}"""

COPY = f"""
    set size, set n, set from, set to
    {_within("to")}
    {_within("from")}
    get to, get from, gt_u, br_if down
    up: get n, const 4, lt_u, br_if upbyte
    get to, get from, load, store
    get to, const 4, add, set to
    get from, const 4, add, set from
    get n, const 4, sub, set n
    br up
    upbyte: get n, eqz, br_if done
    get to, get from, load8_u, store8
    get to, const 1, add, set to
    get from, const 1, add, set from
    get n, const 1, sub, set n
    br upbyte
    down: get n, const 4, lt_u, br_if downbyte
    get n, const 4, sub, set n
    get to, get n, add, get from, get n, add, load, store
    br down
    downbyte: get n, eqz, br_if done
    get n, const 1, sub, set n
    get to, get n, add, get from, get n, add, load8_u, store8
    br downbyte
    done: return
    {_BAD}"""
"""Upwards if the target lies below the source and downwards if above, so that no byte is
overwritten before it is read."""

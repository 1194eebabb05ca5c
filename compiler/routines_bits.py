"""Counting bits, in the notation of ``routines.py``."""

from __future__ import annotations


def _search(test: str, result: str, low: int, high: int) -> str:
    """A tree of tests that returns the count, which is in [low, high).

    ``test`` holds if the count is at least m; it has the places {low}, the mask of the m lowest
    bits, and {high}, that of all but the m highest. ``result`` has the place {m}.
    """
    if high - low == 1:
        return result.format(m=low)
    middle = low + 8 if high - low == 32 else (low + high) // 2
    label = f"from{middle}"
    below, above = _search(test, result, low, middle), _search(test, result, middle, high)
    condition = test.format(m=middle, low=(1 << middle) - 1, high=(1 << (32 - middle)) - 1)
    return f"{condition}, br_if {label} \n {below} \n {label}: {above}"


CTZ = f"""
    tee x, eqz, br_if zero
    {_search("get x, const {low}, and, eqz", "const {m}, return", 0, 32)}
    zero: const 32, return"""
"""Small counts, which are the likely ones, are found in four tests."""

CLZ = f"""
    tee x, eqz, br_if zero
    {_search("get x, const {high}, le_u", "const {m}, return", 0, 32)}
    zero: const 32, return"""

POPCNT = f"""
    tee x, get x, const 1, shr_u, const {0x55555555}, and, sub, tee x
    const {0x33333333}, and, get x, const 2, shr_u, const {0x33333333}, and, add, tee x
    get x, const 4, shr_u, add, const {0x0F0F0F0F}, and, const {0x01010101}, mul
    const 24, shr_u, return"""
"""Sums of neighbouring pairs of bits, then of fours and eights, then a product that adds bytes."""

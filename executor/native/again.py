"""Columns that need not be stored: their values are computed again from the tokens."""

from __future__ import annotations

from collections.abc import Sequence

from executor.native.columns import Mask
from executor.native.forms import Linear
from executor.native.nodes import Store
from executor.native.shared import Shared
from executor.native.tails import Tail

FARTHEST = 12
"""Distances beyond are one."""


def columns_again(shared: Shared, extremes: Sequence[str], greatest: Mask) -> list[str]:
    """Functions that compute what would be stored for a token, if that is possible.

    That is a function of the tokens up to the latest one with the greatest key, and if that is
    far back no longer depends on how far. So a few tokens tell.
    """
    stores = {n: e.value for n, e in shared.program.effects.items() if isinstance(e, Store)}
    if not stores:
        return []
    lines = []
    for name, value in stores.items():
        number = name.split()[1]
        lines.append(f"static double column_{number}(const engine *e, int64_t p)\n{{")
        lines.append("    const int32_t token = e->core.tokens[p];")
        for distance in range(FARTHEST):
            far = _again_at(shared, extremes, value, distance, False)
            near = far or _again_at(shared, extremes, value, distance, True)
            if near is None:
                return []
            if not far:
                lines.append(f"    if (great[e->core.tokens[p - {distance}]])")
            lines += ["    {", *("        " + line for line in near), "    }"]
            if far:
                break
        else:
            return []
        lines.append("}\n")
    great = ", ".join(str(int(one)) for one in greatest)
    return [f"static const uint8_t great[] = {{{great}}};", *lines]


def _again_at(
    shared: Shared, extremes: Sequence[str], value: Linear, distance: int, exactly: bool
) -> list[str] | None:
    """Statements that return a value at a distance, if they need tokens only."""
    tail = Tail(shared, 0)
    for name in extremes:
        (tail.back if exactly else tail.beyond)[name] = distance
    result = tail.text(tail.linear(value))
    if all(line.startswith("const uint32_t ") and "p" in line for line in tail.lines):
        return [*tail.lines, f"return {result};"]
    return None

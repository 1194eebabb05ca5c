"""Unsound changes of what is left out: ways of forks, families of outputs, keys that never win."""

from __future__ import annotations

from native_mutant import FORKS, OUTPUTS, WINNERS, Mutant

CHOICES: dict[str, Mutant] = {
    "fork-least": Mutant(
        "forks.py",
        "first = floor(steps) + 1 if strictly or steps.denominator > 1 else floor(steps)",
        "first = floor(steps)",
        FORKS,
    ),
    "fork-below": Mutant(
        "forks.py",
        "least, below = first * unit, (first - 1) * unit",
        "least, below = first * unit, (first - 2) * unit",
        FORKS,
    ),
    "fork-held": Mutant(
        "forks.py",
        "held = (columns.arrays[number] >= low)",
        "held = (columns.arrays[number] > low)",
        FORKS,
    ),
    "beaten-tie": Mutant(
        "outputs.py",
        "high < -room * ROUNDING",
        "high <= 0.0",
        OUTPUTS,
    ),
    "beaten-no-room": Mutant(
        "outputs.py",
        "high < -room * ROUNDING",
        "high < 0.0",
        OUTPUTS,
    ),
    "beaten-y": Mutant(
        "outputs.py",
        "or one.y.key != other.y.key:",
        "or False:",
        OUTPUTS,
    ),
    "beaten-corners": Mutant(
        "outputs.py",
        ("at = np.concatenate([[y.low, y.high], corners[(corners > y.low) & (corners < y.high)]])"),
        "at = np.array([y.low, y.high])",
        OUTPUTS,
    ),
    "win-strict": Mutant(
        "winners.py",
        "slope * q + height >= top for q, top in best",
        "slope * q + height > top for q, top in best",
        WINNERS,
    ),
    "win-ends": Mutant(
        "winners.py",
        "at = [*ends, *(corner for corner in corners if ends[0] < corner < ends[1])]",
        "at = ends",
        WINNERS,
    ),
    "tie-strict": Mutant(
        "winners.py",
        "if all(slope * q + height <= score for slope, height in there):",
        "if all(slope * q + height < score for slope, height in there):",
        WINNERS,
    ),
    "tie-ends": Mutant(
        "winners.py",
        "if query[0] <= q <= query[1] and",
        "if query[0] < q < query[1] and",
        WINNERS,
    ),
    "tie-grain": Mutant(
        "winners.py",
        "and (q / grain).denominator == 1:",
        "and q.denominator == 1:",
        WINNERS,
    ),
}

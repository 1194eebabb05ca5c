"""Unsound changes of the code that is written: effects, positions, paths, sums, threads."""

from __future__ import annotations

from native_mutant import (
    AFTER_NOW,
    AHEAD,
    APART,
    GAP,
    KEYS,
    LATE_CHAINED,
    LATE_GREATEST,
    LATE_TABLE,
    LATE_ZERO,
    MEANS,
    MEANS_FETCHED,
    MEANS_LEFT,
    RICH_33,
    RICH_46,
    SPLITS,
    TWO_MEANS,
    Mutant,
)

CODE: dict[str, Mutant] = {
    "extreme-ties-lost": Mutant(
        "effects.py",
        "if key is not None and score.range.high < key:",
        "if key is not None and score.range.high <= key:",
        GAP,
    ),
    "extreme-later": Mutant(
        "effects.py",
        'better = f"if ({text} >= e->{name}.x.key)"',
        'better = f"if ({text} > e->{name}.x.key)"',
        LATE_GREATEST,
    ),
    "extreme-order": Mutant(
        "effects.py",
        (
            "for structure in self.shared.depends(effect.values):\n                "
            "self.effect(structure)\n            self.say(better)"
        ),
        "self.say(better)",
        LATE_GREATEST,
    ),
    "late-order": Mutant(
        "effects.py",
        (
            "for structure in self.shared.depends(late.values()):\n            "
            "self.effect(structure)\n"
        ),
        "pass\n",
        LATE_CHAINED,
    ),
    "zero-order": Mutant(
        "effects.py",
        (
            "for structure in self.shared.depends(effect.values):\n                "
            "self.effect(structure)\n        else:"
        ),
        "pass\n        else:",
        LATE_ZERO,
    ),
    "back-unclamped": Mutant(
        "positions.py",
        'return f"{name} - {back}" if back <= least else f"before({name}, {back})"',
        'return f"{name} - {back}"',
        MEANS,
    ),
    "beyond-more": Mutant(
        "positions.py",
        "values = Range(float(least), float(MOST_TOKENS), 0)",
        "values = Range(float(least) + 1.0, float(MOST_TOKENS), 0)",
        RICH_33,
    ),
    "at-most-p": Mutant(
        "positions.py",
        'return text if past else f"at_most({text}, {now})"',
        "return text",
        AHEAD,
    ),
    "at-most-start": Mutant(
        "positions.py",
        "now, past = self.now, self.is_past(query)",
        'now, past = "p", self.is_past(query)',
        AFTER_NOW,
    ),
    "nearest-reused": Mutant(
        "positions.py",
        "*(() if past else self.at_present)",
        "",
        AFTER_NOW,
    ),
    "changing-later": Mutant(
        "effects.py",
        "if not constant and all(map(self.shared.is_timeless, effect.values)):",
        "if not constant:",
        LATE_TABLE,
    ),
    "means-twice": Mutant(
        "paths.py",
        "if self.shared.restless or not early:",
        "if not early:",
        MEANS_LEFT,
    ),
    "means-fetched": Mutant(
        "paths.py",
        "if not dispatch.done.isdisjoint(self.shared.means):",
        "if False:",
        MEANS_FETCHED,
    ),
    "query-before-insert": Mutant(
        "lookups.py",
        "self.effect(node.of)\n",
        "\n",
        LATE_CHAINED,
    ),
    "great-itself": Mutant(
        "paths.py",
        "if splits.key is None or tail.back:",
        "if splits.key is None:",
        MEANS,
    ),
    "quiet": Mutant(
        "paths.py",
        "quiet = all(tail.linear(tail.added(name)).constant == 0.0 for name in self.shared.sums)",
        "quiet = True",
        RICH_33,
    ),
    "leads-fetch": Mutant(
        "paths.py",
        "there.fetch == here.fetch and not great",
        "not great",
        APART,
    ),
    "zero-there": Mutant(
        "special.py",
        'once += [f"e->{name}.has_zero" for name in sorted(shared.zeroed)]',
        "",
        KEYS,
    ),
    "odd-start": Mutant(
        "runtime/threads.h",
        "&& p < e->core.room && !e->core.status.odd",
        "&& p < e->core.room",
        KEYS,
    ),
    "leads-still": Mutant(
        "paths.py",
        "return there.still and there.fetch is not None",
        "return there.fetch is not None",
        LATE_ZERO,
    ),
    "known-always": Mutant(
        "shared.py",
        "self._known[name] = self.is_settled(name) and self._is_read_by_key(name)",
        "self._known[name] = True",
        LATE_ZERO,
    ),
    "known-unsettled": Mutant(
        "shared.py",
        "self._known[name] = self.is_settled(name) and self._is_read_by_key(name)",
        "self._known[name] = self._is_read_by_key(name)",
        SPLITS,
    ),
    "extreme-key": Mutant(
        "special.py",
        'once.append(f"e->{name}.x.key == {key!r}")',
        "pass",
        MEANS,
    ),
    "stairs-start": Mutant(
        "steps.py",
        "found.append((1.0 - k, value))",
        "found.append((-k, value))",
        SPLITS,
    ),
    "stairs-slope": Mutant(
        "steps.py",
        "if sum(c for _, c in ordered):\n        return None",
        "",
        LATE_ZERO,
    ),
    "select-strict": Mutant(
        "steps.py",
        'found = f"{text} >= {start!r}',
        'found = f"{text} > {start!r}',
        SPLITS,
    ),
    "sums-not-restored": Mutant(
        "sums.py",
        'self.restored.append(f"{variable(shared, name)} = old_{name};")',
        "pass",
        SPLITS,
    ),
    "sums-not-left": Mutant(
        "sums.py",
        "self.leave.append(f\"    e->{name} = {plus('', two(known), number)};\")",
        "pass",
        MEANS,
    ),
    "sums-not-saved": Mutant(
        "threads.py",
        ('lines += [f"old_{name} = {variable(self.shared, name)};" for name in self.shared.sums]'),
        "pass",
        SPLITS,
    ),
    "chain-place": Mutant(
        "threads.py",
        '"place < p ? limit : 0" if moving',
        '"limit" if moving',
        RICH_46,
    ),
    "chunk-end": Mutant(
        "threads.py",
        'lines += ["if (p >= chain || stop[token])", "    goto check;"]',
        'lines += ["if (p > chain || stop[token])", "    goto check;"]',
        GAP,
    ),
    "no-stop": Mutant(
        "threads.py",
        'lines += ["if (p >= chain || stop[token])", "    goto check;"]',
        'lines += ["if (p >= chain)", "    goto check;"]',
        GAP,
    ),
    "means-overwritten": Mutant(
        "lookups.py",
        "return copied(call, len(insert.values)) if insert.mean else call",
        "return call",
        TWO_MEANS,
    ),
}

"""Unsound changes of the generator of specialised code, and the tests that notice each.

A mutant is a piece of text in a file of ``executor/native`` with what stands there instead. Each
takes away, weakens or turns one condition under which specialised code is the same as plain code.
"""

from __future__ import annotations

from dataclasses import dataclass

APART = "test_native_uses.py::test_marks_that_do_not_move_the_cursor_and_tokens_that_look_elsewhere"
KEYS = "test_native_uses.py::test_a_first_token_that_writes_nothing_and_a_key_of_no_table"
AHEAD = "test_native_uses.py::test_a_model_with_a_cursor_that_runs_ahead"
FORKS = "test_native_forks.py"
GAP = "test_native_uses.py::test_a_distance_of_which_there_is_no_path_between_near_and_far_ones"
INTEGERS = "test_native_integers.py"
LATE_CHAINED = "test_native_uses.py::test_what_depends_on_few_keys_comes_after_a_new_one[chained]"
LATE_GREATEST = "test_native_uses.py::test_what_depends_on_few_keys_comes_after_a_new_one[greatest]"
LATE_ZERO = "test_native_uses.py::test_what_depends_on_few_keys_comes_after_a_new_one[zero]"
MEANS = "test_native_uses.py::test_greatest_keys_in_a_row_where_means_are_kept"
OUTPUTS = "test_native_outputs.py"
RICH_33 = "test_native_uses.py::test_models_with_everything[33]"
RICH_46 = "test_native_uses.py::test_more_models_with_everything[46]"
ROUNDING = "test_native_rounding.py"
SPLITS = "test_native_uses.py::test_a_model_that_splits"
SUMS = "test_native_sums.py"
WINNERS = "test_native_winners.py"


@dataclass(frozen=True)
class Mutant:
    """``old`` occurs once in the file; ``noticed_by``: a test, or a file of quick ones."""

    file: str
    old: str
    new: str
    noticed_by: str


MUTANTS: dict[str, Mutant] = {
    "columns-unit": Mutant(
        "columns.py",
        "if abs(unit) <= FINEST and size < two(LONGEST + unit):",
        "if abs(unit) <= FINEST:",
        INTEGERS,
    ),
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
            "self.effect(structure)\n            if self.several"
        ),
        "if self.several",
        LATE_ZERO,
    ),
    "exact-54": Mutant(
        "exprs.py",
        "return size < two(53 + least)",
        "return size < two(54 + least)",
        ROUNDING,
    ),
    "exact-always": Mutant(
        "exprs.py",
        "return size < two(53 + least)",
        "return True",
        ROUNDING,
    ),
    "in-order-54": Mutant(
        "exprs.py",
        "part.size) >= two(53 + least)",
        "part.size) >= two(54 + least)",
        ROUNDING,
    ),
    "in-order-total-only": Mutant(
        "exprs.py",
        "if max(-low, high, part.size) >=",
        "if max(-low, high) >=",
        ROUNDING,
    ),
    "merged-inexactly": Mutant(
        "exprs.py",
        "if self._is_exact_in_order(parts) and _is_exactly_merged(parts):",
        "if self._is_exact_in_order(parts):",
        ROUNDING,
    ),
    "merged-then-inexact": Mutant(
        "exprs.py",
        "if self.is_exact([(1.0, merged)]):",
        "if True:",
        ROUNDING,
    ),
    "factor-no-power": Mutant(
        "exprs.py",
        "if factor == 1.0 or frexp(abs(factor))[0] == 0.5:",
        "if True:",
        ROUNDING,
    ),
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
    "product-not-widened": Mutant(
        "integers.py",
        "if min(gates.grain, value.range.grain) <= ROUNDED or not values.is_exact:",
        "if False:",
        INTEGERS,
    ),
    "integer-of-fraction": Mutant(
        "integers.py",
        "least = min(least, unit + grain_of(factor))",
        "least = min(least, unit)",
        INTEGERS,
    ),
    "integer-most": Mutant(
        "integers.py",
        "MOST = 2.0**61",
        "MOST = 2.0**70",
        INTEGERS,
    ),
    "integer-round-up": Mutant(
        "integers.py",
        "+ (2**shift - 1) * up",
        "",
        INTEGERS,
    ),
    "integer-step-zero": Mutant(
        "integers.py",
        "values = value.range.joined(Range(0.0, 0.0, NO_GRAIN))",
        "values = value.range",
        INTEGERS,
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
        'return text if below else f"at_most({text}, p)"',
        "return text",
        AHEAD,
    ),
    "query-before-insert": Mutant(
        "lookups.py",
        "self.effect(node.of)\n",
        "\n",
        LATE_CHAINED,
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
    "great-itself": Mutant(
        "paths.py",
        "if splits.key is None or tail.back:",
        "if splits.key is None:",
        MEANS,
    ),
    "quiet": Mutant(
        "paths.py",
        "quiet = all(tail.linear(tail.added(name)).constant == 0.0 for name in self._sums)",
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
    "ranges-54": Mutant(
        "ranges.py",
        "self.size <= two(53 + self.grain)",
        "self.size <= two(54 + self.grain)",
        ROUNDING,
    ),
    "widened-grain": Mutant(
        "ranges.py",
        "frexp(least)[1] - 53 if least else ROUNDED)",
        "frexp(least)[1] - 52 if least else ROUNDED)",
        ROUNDING,
    ),
    "scaled-grain": Mutant(
        "ranges.py",
        "grain = self.grain + grain_of(factor)",
        "grain = self.grain + max(0, grain_of(factor))",
        ROUNDING,
    ),
    "joined-grain": Mutant(
        "ranges.py",
        "max(self.high, other.high), min(self.grain, other.grain)",
        "max(self.high, other.high), max(self.grain, other.grain)",
        ROUNDING,
    ),
    "product-ends": Mutant(
        "ranges.py",
        "ends = [a * b for a in (one.low, one.high) for b in (other.low, other.high)]",
        "ends = [one.low * other.low, one.high * other.high]",
        ROUNDING,
    ),
    "product-grain": Mutant(
        "ranges.py",
        "max(ROUNDED, min(one.grain + other.grain, NO_GRAIN))",
        "max(one.grain, other.grain)",
        ROUNDING,
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
    "sum-bound-no-token": Mutant(
        "tails.py",
        "min(high, SUM_BOUND + most)",
        "min(high, SUM_BOUND)",
        SUMS,
    ),
    "sum-bound-small": Mutant(
        "tails.py",
        "low, high = max(low, -SUM_BOUND + least), min(high, SUM_BOUND + most)",
        "low, high = max(low, -100.0), min(high, 100.0)",
        SUMS,
    ),
    "sum-grain": Mutant(
        "tails.py",
        "grain = added.grain if Range(low, high, added.grain).is_exact else ROUNDED",
        "grain = added.grain",
        SUMS,
    ),
    "special-sum-error": Mutant(
        "tails.py",
        "exact.range.size * 2.0**-51 >= two(unit - 1)",
        "exact.range.size * 2.0**-51 >= two(unit + 1)",
        SUMS,
    ),
    "special-sum-any-error": Mutant(
        "tails.py",
        "if exact.range.size * 2.0**-51 >= two(unit - 1):",
        "if False:",
        SUMS,
    ),
    "special-sum-binade": Mutant(
        "tails.py",
        ("if not low > 0 or frexp(low * (1 - 2.0**-40))[1] != frexp(high * (1 + 2.0**-40))[1]:"),
        "if not low > 0:",
        SUMS,
    ),
    "special-sum-exact": Mutant(
        "tails.py",
        "return self.combine(whole_sum) if self.is_exact(whole_sum) else None",
        "return self._merged(whole_sum, exact.range)",
        LATE_ZERO,
    ),
    "special-sum-constant": Mutant(
        "tails.py",
        "if name is None or expr.const or expr.terms[0][0] != 1.0:",
        "if name is None:",
        SUMS,
    ),
    "mean-count": Mutant(
        "tails.py",
        "counts and form.p == form.const == 1.0 and found.terms",
        "counts and form.p == 1.0 and found.terms",
        SUMS,
    ),
    "mean-count-tokens": Mutant(
        "tails.py",
        "counts = not (node.gate.variables or form.columns or form.square)",
        "counts = True",
        SUMS,
    ),
    "mean-value": Mutant(
        "tails.py",
        ("if len(value.variables) != 1 or value.variables[0][0] != 1.0 or not value.form.is_zero:"),
        "if len(value.variables) != 1:",
        SUMS,
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

"""Unsound changes of what is known of numbers: ranges, exact sums, integers, means as sums."""

from __future__ import annotations

from native_mutant import INTEGERS, LATE_ZERO, ROUNDING, SUMS, Mutant

NUMBERS: dict[str, Mutant] = {
    "columns-unit": Mutant(
        "columns.py",
        "if abs(unit) <= FINEST and size < two(LONGEST + unit):",
        "if abs(unit) <= FINEST:",
        INTEGERS,
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
}

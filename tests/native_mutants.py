"""Unsound changes of the generator of specialised code, and the tests that notice each.

A mutant is a piece of text in a file of ``executor/native`` with what stands there instead. Each
takes away, weakens or turns one condition under which specialised code is the same as plain code.
"""

from __future__ import annotations

from native_mutant import Mutant
from native_mutants_choices import CHOICES
from native_mutants_code import CODE
from native_mutants_numbers import NUMBERS

MUTANTS: dict[str, Mutant] = {**NUMBERS, **CODE, **CHOICES}
assert len(MUTANTS) == len(NUMBERS) + len(CODE) + len(CHOICES), "two have one name"

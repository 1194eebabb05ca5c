"""One unsound change of the generator of specialised code, and the tests that notice such ones."""

from __future__ import annotations

from dataclasses import dataclass

AFTER_NOW = "test_native_uses.py::test_positions_after_the_current_token[0.0]"
APART = "test_native_uses.py::test_marks_that_do_not_move_the_cursor_and_tokens_that_look_elsewhere"
KEYS = "test_native_uses.py::test_a_first_token_that_writes_nothing_and_a_key_of_no_table"
AHEAD = "test_native_uses.py::test_a_model_with_a_cursor_that_runs_ahead"
FORKS = "test_native_forks.py"
GAP = "test_native_uses.py::test_a_distance_of_which_there_is_no_path_between_near_and_far_ones"
INTEGERS = "test_native_integers.py"
LATE_CHAINED = "test_native_uses.py::test_what_depends_on_few_keys_comes_after_a_new_one[chained]"
LATE_GREATEST = "test_native_uses.py::test_what_depends_on_few_keys_comes_after_a_new_one[greatest]"
LATE_ZERO = "test_native_uses.py::test_what_depends_on_few_keys_comes_after_a_new_one[zero]"
LATE_TABLE = "test_native_uses.py::test_what_depends_on_few_keys_comes_after_a_new_one[table]"
MEANS_FETCHED = "test_native_uses.py::test_models_without_a_plan[484]"
MEANS_LEFT = "test_native_uses.py::test_models_without_a_plan[160]"
MEANS = "test_native_uses.py::test_greatest_keys_in_a_row_where_means_are_kept"
OUTPUTS = "test_native_outputs.py"
RICH_33 = "test_native_uses.py::test_models_with_everything[33]"
RICH_46 = "test_native_uses.py::test_more_models_with_everything[46]"
ROUNDING = "test_native_rounding.py"
SPLITS = "test_native_uses.py::test_a_model_that_splits"
SUMS = "test_native_sums.py"
TWO_MEANS = "test_native_uses.py::test_a_record_that_is_read_after_the_next_is_found[mean-hull]"
WINNERS = "test_native_winners.py"


@dataclass(frozen=True)
class Mutant:
    """``old`` occurs once in the file; ``noticed_by``: a test, or a file of quick ones."""

    file: str
    old: str
    new: str
    noticed_by: str

"""However an engine is used, in pieces, in chunks, with stops: the tokens are those of a scan."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compiler import compile_program
from executor.checkpoint import Checkpoint
from executor.hull_engine import HullEngine
from executor.loading import build_checkpoint
from executor.native import NativeEngine, paths
from native_changed import changed_model
from native_free import free_model
from native_models import native_model, split_model
from native_rich import Mode, rich_model
from native_rough import rough_model
from native_small import (
    ahead_model,
    apart_model,
    gap_model,
    late_model,
    late_zero_model,
    two_queries_model,
)
from native_uses import (
    Oracle,
    Use,
    all_ways,
    in_chunks,
    kinds_of_stops,
    many_at_random,
    scan_of,
)

PROGRAMS = Path(__file__).parent.parent / "programs"
ROUNDS = 30
RICH = (33, 225, 234)
FREE = (0, 1, 2, 3, 160, 484)


def check_all_ways(checkpoint: Checkpoint, seed: int) -> None:
    """A random prompt of even tokens, so that some keys turn up late; then every way."""
    rng = np.random.default_rng(seed)
    vocab = checkpoint.config.vocab_size
    prompt = [*checkpoint.rom, *(2 * rng.integers(0, vocab // 2, 90)).tolist()]
    engine = NativeEngine(checkpoint, say=lambda line: None, optimisation="-O0")
    uses = all_ways(engine, prompt, kinds_of_stops(checkpoint, seed), seed)
    check(uses, scan_of(checkpoint))


def check_many(checkpoint: Checkpoint, seed: int) -> None:
    """Many random uses, against plain code; a few against the scan engine too."""
    check(against_plain_code(checkpoint, seed)[:4], scan_of(checkpoint))


def check_rough(seed: int) -> None:
    """Against plain code alone: a scan adds up in another order."""
    against_plain_code(rough_model(seed), seed)


def against_plain_code(checkpoint: Checkpoint, seed: int) -> list[Use]:
    engine = NativeEngine(checkpoint, say=lambda line: None, optimisation="-O0")
    plain = NativeEngine(checkpoint, say=lambda line: None, optimisation="-O0", specialise=False)
    return many_at_random(engine, plain, checkpoint, seed, ROUNDS)


def check(uses: list[Use], oracle: Oracle) -> None:
    """Uses that begin alike are compared with one run of the slow engine."""
    known = dict[tuple[int, ...], list[int]]()
    for use in sorted(uses, key=lambda one: -len(one.tokens)):
        tokens = tuple(use.tokens)
        longer = next((one for one in known if one[: len(tokens)] == tokens), tokens)
        if longer not in known:
            known[longer] = oracle(list(longer))
        use.check(lambda _, found=known[longer]: found)  # type: ignore[misc]


@pytest.fixture
def _short(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Small code is compiled fast, and kept elsewhere than other tests' code of these models."""
    monkeypatch.setattr(paths, "MOST_LINES", 4000)
    monkeypatch.setenv("TRANSPUTER_CACHE", str(tmp_path_factory.getbasetemp() / "uses"))


@pytest.mark.usefixtures("_short")
def test_a_model_that_splits() -> None:
    check_all_ways(split_model(0), 0)


@pytest.mark.long
@pytest.mark.usefixtures("_short")
def test_a_model_with_a_cursor_that_runs_ahead() -> None:
    check_all_ways(split_model(6, stride=3), 6)


@pytest.mark.usefixtures("_short")
def test_greatest_keys_in_a_row_where_means_are_kept() -> None:
    check_many(native_model(10), 10)


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("seed", RICH)
def test_models_with_everything(seed: int) -> None:
    check_many(rich_model(seed), seed)


@pytest.mark.usefixtures("_short")
def test_sums_that_are_rounded() -> None:
    check_rough(12)


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("read", ["zero", "chained", "greatest", "table", "hull"])
def test_what_depends_on_few_keys_comes_after_a_new_one(read: str) -> None:
    check_many(late_model(read), 1)


@pytest.mark.usefixtures("_short")
def test_marks_that_do_not_move_the_cursor_and_tokens_that_look_elsewhere() -> None:
    check_many(apart_model(), 1)


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize(
    "bent", [False, pytest.param(True, marks=pytest.mark.long)], ids=["table", "bent"]
)
def test_a_first_token_that_writes_nothing_and_a_key_of_no_table(bent: bool) -> None:
    check_many(late_zero_model(bent), 1)


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("fraction", [0.0, 0.5, 0.1])
def test_positions_after_the_current_token(fraction: float) -> None:
    """They are the current one, which is another for each token of a trace."""
    model = ahead_model(fraction)
    check(against_plain_code(model, 1)[:4], scan_of(model))


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("of_token", [True, False], ids=["few", "hull"])
@pytest.mark.parametrize("mode", ["latest", "mean"])
def test_a_record_that_is_read_after_the_next_is_found(mode: Mode, of_token: bool) -> None:
    model = two_queries_model(mode, of_token)
    uses = against_plain_code(model, 1)
    if mode == "latest":
        check(uses[:4], scan_of(model))


@pytest.mark.usefixtures("_short")
def test_a_distance_of_which_there_is_no_path_between_near_and_far_ones() -> None:
    check_many(gap_model(), 1)


@pytest.mark.long
@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("seed", sorted(set(range(300)) - set(RICH)))
def test_more_models_with_everything(seed: int) -> None:
    check_all_ways(rich_model(seed), seed)
    check_many(rich_model(seed), seed)


@pytest.mark.long
@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("seed", range(100))
def test_more_sums_that_are_rounded(seed: int) -> None:
    check_rough(seed)


@pytest.mark.long
@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("seed", range(1, 60))
def test_more_models(seed: int) -> None:
    check_all_ways(split_model(seed, stride=1 + seed % 3, least=-(seed % 5)), seed)
    check_all_ways(native_model(seed), seed)


@pytest.mark.long
@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("seed", [*range(300), 434])
def test_models_with_all_head_classes(seed: int) -> None:
    check_many(native_model(seed), seed)


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("seed", FREE)
def test_models_without_a_plan(seed: int) -> None:
    against_plain_code(free_model(seed), seed)


@pytest.mark.long
@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize("seed", sorted(set(range(600)) - set(FREE)))
def test_more_models_without_a_plan(seed: int) -> None:
    against_plain_code(free_model(seed), seed)


@pytest.mark.usefixtures("_short")
@pytest.mark.parametrize(
    "seed", [*range(4), *(pytest.param(n, marks=pytest.mark.long) for n in range(4, 210))]
)
def test_models_with_weights_changed(seed: int) -> None:
    """Against plain code alone: a scan adds up in another order."""
    against_plain_code(changed_model(seed), seed)


def check_the_machine(name: str, count: int) -> None:
    """The default machine at work on a program."""
    model = build_checkpoint()
    program = compile_program(PROGRAMS / name)
    words = [*program.tokens, *program.input_tokens((), b"")]
    prompt = [*model.rom, *model.encode(words)]
    engine = NativeEngine(model, say=lambda line: None)
    whole = in_chunks(engine, prompt, count, count)
    written = sorted(set(whole.written.values()))
    stops = [{token} for token in written[::9]]
    stops += [set(written[i::3]) for i in range(3)]
    check(
        all_ways(engine, prompt, stops, 0, count), lambda tokens: HullEngine(model).predict(tokens)
    )


def test_the_machine() -> None:
    check_the_machine("hello.c", 200)


@pytest.mark.long
@pytest.mark.parametrize("name", ["bits.c", "primes.c", "gcd.c", "xorshift.c", "crc32.c", "sort.c"])
def test_the_machine_with_other_programs(name: str) -> None:
    check_the_machine(name, 1000)

"""The random C programs: what a seed decides, how many are judged, how failing ones are reduced."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from compiler.legalise_i64 import Int64
from compiler.wasm_types import Instruction
from debian import Unavailable
from differential import LEFT_OUT, REFUSED, RIGHT, WRONG, Verdict
from suite_fuzz.__main__ import Judging, same_fault, until_judged
from suite_fuzz.arithmetic import Arithmetic
from suite_fuzz.csmith import find_csmith, settings
from suite_fuzz.kind import LEVELS, Written
from suite_fuzz.reduce import reduced


def test_a_seed_decides_everything_and_seeds_cover_all_settings() -> None:
    assert settings(7) == settings(7)
    options, levels, arguments = zip(*(settings(seed) for seed in range(300)), strict=True)
    assert set(levels) == set(LEVELS) and set(arguments) == {(), ("1",)}
    for option in ("--float", "--longlong", "--no-longlong", "--no-math64", "--no-safe-math"):
        assert 20 < sum(option in drawn for drawn in options) < 280


def test_programs_of_our_own_depend_on_the_seed_alone_and_agree(tmp_path: Path) -> None:
    kind, path = Arithmetic(), tmp_path / "p.c"
    texts = []
    for seed in (1, 1, 2):
        kind.write(seed, path)
        texts.append(path.read_text())
    assert texts[0] == texts[1] != texts[2]
    verdict = Judging(kind, 1_000_000)(3)
    assert verdict.outcome == RIGHT, verdict.reason
    assert verdict.n_trace > 10_000


@pytest.mark.long
def test_a_compiler_s_fault_is_found_and_reduced(monkeypatch: pytest.MonkeyPatch) -> None:
    right = Int64._compare

    def wrong(self: Int64, instruction: Instruction) -> None:
        right(self, replace(instruction, op=instruction.op.replace("lt_s", "le_s")))

    monkeypatch.setattr(Int64, "_compare", wrong)
    judging = Judging(SmallKind(), 1_000_000)
    verdict = judging(1)
    assert verdict.outcome == WRONG
    smallest = judging.reduced(verdict)
    assert "< b" in smallest and "harmless" not in smallest


def test_a_generator_that_fails_is_left_out() -> None:
    class Broken(SmallKind):
        def write(self, seed: int, target: Path) -> Written:
            raise subprocess.TimeoutExpired("csmith", 60)

    verdict = Judging(Broken(), 1000)(5)
    assert (verdict.name, verdict.outcome) == ("5", LEFT_OUT) and "csmith" in verdict.reason


class SmallKind:
    """One small program that compares."""

    name = "small"

    def write(self, seed: int, target: Path) -> Written:
        target.write_text(
            "#include <stdio.h>\nvolatile long long a = 5, b = 5;\n"
            'int harmless(void)\n{\n    return printf("x");\n}\n'
            "int main(void)\n{\n    harmless();\n    return a < b;\n}\n"
        )
        return Written("-O0")


def test_programs_without_an_end_are_replaced() -> None:
    def judge_all(seeds: Sequence[int]) -> Iterator[Verdict]:
        return (Verdict(str(s), "-O0", LEFT_OUT if s % 3 == 0 else RIGHT) for s in seeds)

    verdicts = list(until_judged(10, 0, judge_all))
    assert [int(verdict.name) for verdict in verdicts] == list(range(15))
    assert sum(verdict.outcome == RIGHT for verdict in verdicts) == 10


TEXT = """int unused;
int g(int x)
{
    return x;
}

int main()
{
    int a = 1;
    if (a)
    {
        for (;;)
        {
            wrong(a);
            break;
        }
    }
    return 0;
}
"""


def balanced(text: str) -> bool:
    return text.count("{") == text.count("}") and "main()\n{" in text


def test_reducing_keeps_what_fails_and_nothing_else() -> None:
    smallest = reduced(TEXT, lambda text: balanced(text) and "wrong(a)" in text)
    assert [line.strip() for line in smallest.splitlines()] == ["int main()", "{", "wrong(a);", "}"]


def test_reducing_takes_blocks_away_from_around_what_fails() -> None:
    def fails(text: str) -> bool:
        return balanced(text) and "wrong(a)" in text and ("for" in text) == ("break" in text)

    smallest = reduced(TEXT, fails)
    assert fails(smallest) and "if" not in smallest and "unused" not in smallest


def test_reducing_ends_after_so_many_tries() -> None:
    asked: list[str] = []

    def fails(text: str) -> bool:
        asked.append(text)
        return "wrong" in text

    smallest = reduced(TEXT, fails, most_tries=3)
    assert len(asked) == 3 and "wrong" in smallest


def test_the_same_fault_is_told_by_outcome_and_reason() -> None:
    verdict = Verdict("1", "-O0", WRONG, "output byte 3: model")
    assert same_fault(Verdict("1", "-O0", WRONG, "output byte 3: model 5"), verdict)
    assert not same_fault(Verdict("1", "-O0", WRONG, "crash: IndexError"), verdict)
    assert not same_fault(Verdict("1", "-O0", REFUSED, "output byte 3: model"), verdict)


@pytest.mark.long
def test_random_programs_agree(tmp_path: Path) -> None:
    try:
        judging = Judging(find_csmith(), 20_000_000)
    except Unavailable as error:
        pytest.skip(str(error))
    verdicts = list(until_judged(10, 1000, lambda seeds: map(judging, seeds)))
    assert all(verdict.outcome in (RIGHT, LEFT_OUT) for verdict in verdicts), verdicts

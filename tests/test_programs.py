"""Every program of the project inside the model: against wasmtime, the oracle, and all engines."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import pytest

from c_programs import STANDARD
from compiler import compile_program
from compiler.program import Program
from executor import check
from executor.decode import decode, make_engine
from executor.loading import build_checkpoint
from executor.oracle import trace_tokens
from probe import prompt_ids

PROGRAMS = Path(__file__).parent.parent / "programs"
EASY = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"
UNSOLVABLE = "55" + "0" * 79
MATRIX = b"3  4 1 3  2 0 5  3 2 2"


@dataclass(frozen=True)
class Case:
    """A program and what to run it on; small enough for the default tests."""

    name: str
    args: tuple[str, ...] = ()
    stdin: bytes = b""
    output: bytes | None = None


CASES = (
    Case("add.tok", output=b"\x08"),
    Case("hello.c", output=b"Hello from inside a transformer!\n"),
    Case("collatz.c", ("6",)),
    Case("fibonacci.c", ("5",)),
    Case("gcd.c", ("48", "36")),
    Case("primes.c", ("20",)),
    Case("crc32.c", ("a",)),
    Case("xorshift.c", ("2",)),
    Case("sort.c", stdin=b"3 1 2"),
    Case("ackermann.c", ("1", "2")),
    Case("hungarian.c", stdin=MATRIX),
    Case("sudoku.c", (UNSOLVABLE,)),
    Case("bits.c", ("1", "4")),
)
LARGE = (
    *(Case(case.name) for case in CASES[1:10]),
    Case("hungarian.c", stdin=(PROGRAMS / "data/hungarian10.txt").read_bytes()),
    Case("sudoku.c", (EASY,)),
    Case("bits.c", ("2", "256")),
)


def named(cases: tuple[Case, ...]) -> list[object]:
    return [pytest.param(case, id=case.name) for case in cases]


def compiled(case: Case, opt: str = "-O2") -> Program:
    return compile_program(PROGRAMS / case.name, opt=opt, libc="tiny")


def test_every_program_has_a_case() -> None:
    files = {path.name for path in PROGRAMS.iterdir() if path.suffix in (".c", ".tok")}
    assert files - STANDARD == {case.name for case in CASES}


def agrees(case: Case, opt: str) -> None:
    """Output, exit code and memory equal wasmtime's, every token equals the oracle's."""
    result = check(compiled(case, opt), case.args, case.stdin)
    assert result.agrees, result.differences
    if case.output is not None:
        assert result.result is not None and result.result.output == case.output


@pytest.mark.parametrize("case", named(CASES))
def test_program_agrees_with_wasmtime(case: Case) -> None:
    agrees(case, "-O2")


@pytest.mark.long
@pytest.mark.parametrize("opt", ["-O0", "-O1", "-O3"])
@pytest.mark.parametrize("case", named(CASES))
def test_program_agrees_at_every_level(case: Case, opt: str) -> None:
    agrees(case, opt)


@pytest.mark.long
@pytest.mark.parametrize("case", named(LARGE))
def test_program_agrees_on_its_usual_input(case: Case) -> None:
    agrees(case, "-O2")


def sequence(case: Case, most: int) -> tuple[list[int], int]:
    """Prompt and expected trace as ids, at most ``most`` tokens of trace; the prompt's length."""
    model, program = build_checkpoint(), compiled(case)
    prompt = prompt_ids(model, program, case.args, case.stdin)
    trace = model.encode(islice(trace_tokens(program, case.args, case.stdin), most))
    return prompt + trace, len(prompt)


def teacher_forced(engine_name: str, case: Case, most: int) -> None:
    """After every token of the expected trace the engine's next token is the expected one."""
    ids, start = sequence(case, most)
    engine = make_engine(
        engine_name, build_checkpoint("softmax" if engine_name == "torch" else "hard")
    )
    engine.feed(ids[: start - 1])
    assert engine.predict(ids[start - 1 : -1]) == ids[start:]


FEW = tuple(case for case in CASES if case.name == "gcd.c")


@pytest.mark.parametrize("case", named(FEW))
def test_standard_engine_predicts_the_first_tokens(case: Case) -> None:
    teacher_forced("standard", case, 1500)


@pytest.mark.long
@pytest.mark.parametrize("case", named(CASES))
def test_standard_engine_predicts_many_tokens(case: Case) -> None:
    teacher_forced("standard", case, 5000)


@pytest.mark.parametrize("case", named(FEW))
def test_torch_module_predicts_a_window(case: Case) -> None:
    """The module itself: plain softmax through nn.MultiheadAttention."""
    teacher_forced("torch", case, 500)


@pytest.mark.long
@pytest.mark.parametrize("case", named(CASES))
def test_torch_module_predicts_a_long_window(case: Case) -> None:
    teacher_forced("torch", case, 2000)


@pytest.mark.parametrize("engine_name", ["hull", "standard", "torch"])
def test_engines_decode_the_same_tokens(engine_name: str) -> None:
    """Free running, not forced: the article's program on every engine."""
    ids, start = sequence(CASES[0], 100)
    model = build_checkpoint("softmax" if engine_name == "torch" else "hard")
    engine = make_engine(engine_name, model)
    assert list(decode(engine, ids[:start], model.config.stop_tokens, 100)) == ids[start:]

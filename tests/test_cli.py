"""The verb run: exit codes, what goes where; programs in C and calls of their functions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from cli_tools import Run, gcd_program, run_here
from command_line import ARTICLE, FOREVER, HELLO, ROOT, start, write_tok
from executor import cli
from executor.trace import read_trace, split_trace

run = pytest.fixture(run_here)
gcd_c = pytest.fixture(gcd_program, scope="module")


@pytest.fixture
def tok(tmp_path: Path) -> Callable[..., Path]:
    """Writes a token program of (opcode, immediate) pairs."""
    return partial(write_tok, tmp_path / "program.tok")


# --- run --------------------------------------------------------------------------------------


def test_the_article_s_program_writes_the_article_s_trace(run: Run) -> None:
    assert run("run", "--trace", "-", ROOT / "programs/add.tok") == (0, ARTICLE, "")


@pytest.mark.parametrize("engine", ["hull", "standard", "torch"])
def test_other_engines_write_the_same_trace(run: Run, engine: str) -> None:
    if engine == "torch":
        pytest.importorskip("torch")
    arguments = ("run", "--engine", engine, "--trace", "-", ROOT / "programs/add.tok")
    assert run(*arguments) == (0, ARTICLE, "")


def test_output_is_the_program_s_bytes_and_nothing_else(run: Run, tok: Callable[..., Path]) -> None:
    code = [("i32.const", 0xFF), "output", ("i32.const", 0), "output", "halt"]
    assert run("run", tok(*code)) == (0, "\xff\x00", "")


def test_each_stream_of_the_program_goes_to_ours(
    run: Run, tok: Callable[..., Path], tmp_path: Path
) -> None:
    words = ((byte, stream) for byte, stream in (("o", 0), ("e", 2), ("f", 2), ("p", 1), ("g", 2)))
    code = [part for byte, to in words for part in (("i32.const", ord(byte)), ("output", to))]
    program = tok(*code, "halt")
    assert run("run", program) == (0, "op", "efg")
    assert run("run", "--trace", "-", program)[1].count("out(") == 5
    assert run("trace", program)[1].count("to standard error") == 3
    together = start("run", program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert together.communicate(timeout=120)[0] == b"oefpg"


def test_a_trap_exits_134_and_says_where(run: Run, tok: Callable[..., Path]) -> None:
    code, out, err = run("run", tok(*HELLO, "unreachable"))
    assert (code, out) == (134, "h\n")
    assert err.startswith("transputer: trap: unreachable at ")
    assert len(err.splitlines()) == 1


def test_the_token_limit_exits_124_after_the_output_so_far(
    run: Run, tok: Callable[..., Path]
) -> None:
    code, out, err = run("run", "--max-tokens", "2**6", tok(*FOREVER))
    assert (code, out) == (124, "h\n")
    assert err == (
        "transputer: error: program.tok: stopped after 64 tokens: "
        "the limit of tokens that was asked for\n"
    )


def test_a_trace_file_holds_the_whole_trace(
    run: Run, tok: Callable[..., Path], tmp_path: Path
) -> None:
    trace = tmp_path / "trace.txt"
    assert run("run", "--trace", trace, tok(*HELLO, "halt"))[:2] == (0, "h\n")
    assert trace.read_text().splitlines()[1] == "out(h)"
    assert len(list(read_trace(split_trace(trace.read_text())))) == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["program.tok", "trace.txt"]


def test_a_limited_run_leaves_a_valid_partial_trace(
    run: Run, tok: Callable[..., Path], tmp_path: Path
) -> None:
    trace = tmp_path / "trace.txt"
    assert run("run", "--trace", trace, "--max-tokens", 15, tok(*FOREVER))[0] == 124
    tokens = list(split_trace(trace.read_text()))
    assert len(tokens) == 15
    assert len(list(read_trace(tokens, partial=True))) == 4
    end = "\nbranch_taken 00 00\n# unfinished: stopped at a limit after 15 tokens\n"
    assert trace.read_text().endswith(end)


def test_devices_can_take_a_trace(run: Run, tok: Callable[..., Path]) -> None:
    assert run("run", "--trace", os.devnull, tok(*HELLO, "halt"))[0] == 0
    assert not Path(os.devnull).is_file()


def test_the_input_of_a_token_file_is_read_unless_another_is_given(
    run: Run, tok: Callable[..., Path], tmp_path: Path
) -> None:
    code = [("i32.const", 0), ("input", 22), "output", "halt"]
    program = tok(*code, tail="in(q) eof")
    other = tmp_path / "input"
    other.write_bytes(b"z")
    assert run("run", program)[1] == "q"
    assert run("run", "--stdin", other, program)[1] == "z"


def test_run_imports_no_torch() -> None:
    code = (
        "import sys\nfrom executor.cli import main\n"
        "main(['run', 'programs/add.tok'])\nassert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)


# --- C, calls ---------------------------------------------------------------------------------


def test_a_c_program_exits_with_main_s_result(run: Run, gcd_c: Path) -> None:
    assert run("run", "--check", gcd_c, "one", "--two")[:2] == (4, "")


def test_standard_input_is_read_by_programs_that_can_read_it(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "echo.c"
    path.write_text("""
        #include <stdio.h>
        int main(void) { int c, n = 0; while ((c = getchar()) != EOF) putchar(c), n++; return n; }
    """)
    assert run("run", path) == (14, "standard input", "")
    assert run("run", "--stdin", os.devnull, path) == (0, "", "")


@pytest.mark.parametrize(
    ("given", "seen"),
    [
        (["x.c", "--", "-x", "--check"], ["-x", "--check"]),
        (["x.c", "-x", "--", "y"], ["-x", "--", "y"]),
        (["x.c", "--", "--"], ["--"]),
        (["x.c", "--"], []),
        (["--check", "x.c", "-h"], ["-h"]),
        (["--", "x.c", "--", "a"], ["a"]),
        (["--", "x.c", "-x"], ["-x"]),
    ],
)
def test_two_dashes_may_stand_before_the_program_s_arguments(
    given: list[str], seen: list[str]
) -> None:
    options = cli.parse(["run", *given])
    assert (options.file, options.args) == ("x.c", seen)


@pytest.mark.parametrize(
    ("verb", "given", "said"),
    [
        ("run", ["x.c", "48", "--check"], "--check"),
        ("trace", ["x.c", "--report", "-O2", "--colour"], "--report -O2"),
        ("explain", ["--at", "3", "x.c", "--head=2.5"], "--head=2.5"),
        ("check", ["x.c", "-5", "--", "--chec"], None),
        ("run", ["x.c", "--", "--check"], None),
        ("run", ["x.c", "--head", "2.5"], None),
    ],
)
def test_an_option_behind_the_file_goes_to_the_program_with_a_word(
    verb: str, given: list[str], said: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    options = cli.parse([verb, *given])
    err = capsys.readouterr().err
    assert options.args[-1] == given[-1]
    if said is None:
        assert err == ""
    else:
        assert err.count("\n") == 1 and f"after x.c all goes to the program, {said} too; " in err


@pytest.mark.parametrize(
    ("call", "printed"),
    [("gcd(48, 36)", "12\n"), ("gcd(4294967295, 0)", "4294967295\n"), ("nothing()", "")],
)
def test_a_call_prints_the_value_by_its_c_type(
    run: Run, gcd_c: Path, call: str, printed: str
) -> None:
    assert run("run", "--call", call, gcd_c) == (0, printed, "")


def test_flags_for_the_compiler_hold_for_programs_and_calls(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "old.c"
    path.write_text("int f(int x) { return x + ADD; }\nmain() { return f(1); }\n")
    flags = "--cflags=-std=gnu89 -w '-DADD=2 + 3'"
    assert run("run", flags, path) == (6, "", "")
    assert run("run", flags, "--call", "f(4)", path) == (0, "9\n", "")
    for wrong, message in (
        ("--cflags='", "No closing quotation"),
        ("--cflags=-c", "-c: not a flag"),
    ):
        code, _, err = run("run", wrong, path)
        assert code == 125 and message in err


def test_a_call_can_be_negative_and_is_checked(run: Run, gcd_c: Path) -> None:
    code, out, err = run("run", "--check", "--call", "low()", gcd_c)
    assert (code, out) == (0, "-1\n")
    assert err.startswith("transputer: agrees with wasmtime: ")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("gcd(48)", "gcd takes 2 arguments, not 1"),
        ("gcd(-1, 2)", "argument 1 is -1, which is not unsigned (0 to 4294967295)"),
        ("lcm(1, 2)", "no function lcm is defined here"),
        ("hidden()", "static"),
        ("gcd 1 2", "expected a function and its arguments"),
        ("gcd(one, 2)", "must be numbers"),
    ],
)
def test_calls_that_do_not_fit_are_refused(run: Run, gcd_c: Path, call: str, message: str) -> None:
    code, out, err = run("run", "--call", call, gcd_c)
    assert (code, out) == (125, "")
    assert message in err and len(err.splitlines()) == 1

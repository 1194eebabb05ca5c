"""The command line: exit codes, what goes where, one clear line for everything that is wrong."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from command_line import FOREVER, HELLO, ROOT, heard, start, write_tok
from executor import cli
from executor.trace import read_trace, split_trace

ARTICLE = """\
03 00 00 00 commit(+1,sts=1,bt=0)
05 00 00 00 commit(+1,sts=1,bt=0)
08 00 00 00 commit(-1,sts=1,bt=0)
out(08)
halt
"""
GCD = """\
unsigned gcd(unsigned a, unsigned b) { while (b) { unsigned t = a % b; a = b; b = t; } return a; }
int low(void) { return -1; }
void nothing(void) { }
static int hidden(void) { return 1; }
int main(int argc, char **argv) { return argc + hidden(); }
"""

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Calls ``main`` in this process: (exit code, standard output, standard error as ``heard``)."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"standard input")))

    def call(*arguments: object) -> tuple[int, str, str]:
        code = cli.main([str(argument) for argument in arguments])
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        return code, out.decode("latin-1"), heard(err.decode())

    return call


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


# --- C, calls ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gcd_c(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("c") / "gcd.c"
    path.write_text(GCD)
    return path


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


@pytest.mark.parametrize("verb", ["run", "trace", "explain", "check"])
def test_a_token_program_takes_no_arguments(run: Run, verb: str) -> None:
    code, out, err = run(verb, ROOT / "programs/add.tok", "4")
    assert (code, out) == (125 if verb == "run" else 2, "")
    assert "add.tok: a token program takes no arguments" in err and one_line(err)


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


# --- errors -----------------------------------------------------------------------------------


def one_line(err: str) -> bool:
    return err.startswith("transputer: error: ") and "Traceback" not in err and "bug" not in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["nowhere.c"],
        ["nowhere.tok"],
        [str(ROOT)],
        [str(ROOT / "README.txt")],
        ["--engine", "quantum", "x.c"],
        ["--max-tokens", "none", "x.c"],
        ["--max-tokens", "0", "x.c"],
        ["--surprise", "x.c"],
        [],
        ["--stdin", "nowhere", str(ROOT / "programs/add.tok")],
        ["--model", "nowhere", str(ROOT / "programs/add.tok")],
        ["--trace", "nowhere/trace.txt", str(ROOT / "programs/add.tok")],
        ["--trace", str(ROOT), str(ROOT / "programs/add.tok")],
        ["--call", "f()", str(ROOT / "programs/add.tok")],
        ["--call", "", str(ROOT / "programs/add.tok")],
        ["--"],
        ["--stdin", "--", str(ROOT / "programs/add.tok")],
        ["-I", "--", str(ROOT / "programs/add.tok")],
        ["--trace", "", str(ROOT / "programs/add.tok")],
        ["--max-memory", "much", str(ROOT / "programs/add.tok")],
        ["--max-memory", "M", str(ROOT / "programs/add.tok")],
        ["--checkpoint", "nowhere/run", str(ROOT / "programs/add.tok")],
        ["--checkpoint", str(ROOT), str(ROOT / "programs/add.tok")],
        ["--checkpoint-every", "0", str(ROOT / "programs/add.tok")],
        ["--checkpoint-every", "nan", str(ROOT / "programs/add.tok")],
        ["--resume", "nowhere", str(ROOT / "programs/add.tok")],
        ["--resume", str(ROOT), str(ROOT / "programs/add.tok")],
    ],
)
def test_errors_of_run_exit_125_with_one_line(run: Run, arguments: list[str]) -> None:
    code, out, err = run("run", *arguments)
    assert (code, out) == (125, "")
    assert one_line(err)


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["walk"],
        ["compile"],
        ["compile", "nowhere.c"],
        ["compile", "-o", "/nowhere/x.tok", str(ROOT / "programs/add.tok")],
        ["compile", "--wasm", "x.wasm", str(ROOT / "programs/add.tok")],
        ["trace", "nowhere.wat"],
        ["trace", "--from", "nowhere", str(ROOT / "programs/add.tok")],
        ["check", "nowhere.wasm"],
        ["build"],
        ["build", "--out", str(ROOT / "programs")],
        ["build", "--tokens", "100", "--out", "x"],
        ["build", "--softmax", "--tokens", "2**40", "--out", "x"],
        ["info", "--model", "nowhere"],
    ],
)
def test_errors_of_other_verbs_exit_2(run: Run, arguments: list[str]) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert one_line(err)


def test_a_damaged_model_is_told(run: Run, tmp_path: Path) -> None:
    assert run("build", "--out", tmp_path / "m")[0] == 0
    weights = tmp_path / "m" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8])
    code, out, err = run("run", "--model", tmp_path / "m", ROOT / "programs/add.tok")
    assert (code, out) == (125, "")
    assert one_line(err) and "model.safetensors: damaged" in err


def test_an_unexpected_exception_is_called_a_bug(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("executor.cli_run.prepare", broken)
    code, out, err = run("run", "x.c")
    assert (code, out) == (125, "")
    assert "a bug in transputer" in err and "ZeroDivisionError: oops" in err
    assert run("compile", "x.c")[0] == 2
    monkeypatch.setenv("TRANSPUTER_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        run("run", "x.c")


# --- the other verbs --------------------------------------------------------------------------


def test_compile_prints_a_program_that_compiles_again(run: Run, tmp_path: Path) -> None:
    code, text, err = run("compile", ROOT / "programs/add.tok")
    assert (code, err) == (0, "")
    again = tmp_path / "again.tok"
    assert run("compile", "--out", again, ROOT / "programs/add.tok") == (0, "", "")
    assert again.read_text() == text
    assert run("run", "--trace", "-", again)[1] == ARTICLE


def test_compile_reports_and_writes_the_module(run: Run, gcd_c: Path, tmp_path: Path) -> None:
    wasm = tmp_path / "x.wasm"
    code, out, _ = run("compile", "--report", "--wasm", wasm, gcd_c)
    assert code == 0
    assert wasm.read_bytes().startswith(b"\0asm")
    report = dict(line.split(None, 1) for line in out.partition("\n\n")[0].splitlines())
    assert report["program"] == "gcd.c" and "source " in report["code"]


def test_trace_prints_instructions_with_their_tokens(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("trace", ROOT / "programs/add.tok")
    lines = [line.split() for line in out.splitlines()]
    assert code == 0 and len(lines) == 5
    assert "i32.add" in lines[2] and "08" in lines[2] and lines[2][-4:] == ["=", "8", "|", "8"]
    file = tmp_path / "trace.txt"
    file.write_text(ARTICLE)
    assert run("trace", "--from", file, ROOT / "programs/add.tok")[1] == out
    file.write_text(ARTICLE.replace("08 00 00 00 commit(-1", "08 00 00 00 commit(+1"))
    code, _, err = run("trace", "--from", file, ROOT / "programs/add.tok")
    assert code == 2 and "does not come from i32.add" in err
    file.write_text("\n".join(ARTICLE.split()[:12]))
    code, cut, err = run("trace", "--from", file, ROOT / "programs/add.tok")
    assert code == 2 and "the trace ends after 12 tokens, without halt or trap" in err
    assert cut.splitlines() == [*out.splitlines()[:2], "       2  unfinished: 08 00"]


def test_check_agrees_on_a_right_model(run: Run, gcd_c: Path) -> None:
    code, out, err = run("check", gcd_c, "x")
    assert (code, err) == (0, "")
    assert out.startswith("gcd.c: agrees with wasmtime: ")


def test_check_shows_the_first_instruction_that_a_wrong_model_gets_wrong(
    run: Run, tmp_path: Path
) -> None:
    import numpy as np

    from executor.checkpoint import Checkpoint, save_checkpoint
    from executor.loading import build_checkpoint

    right = build_checkpoint()
    head = right.weights["head.weight"].copy()
    eight, nine = right.encode(["08", "09"])
    head[[eight, nine]] = head[[nine, eight]]
    wrong = Checkpoint(
        right.config, right.vocabulary, {**right.weights, "head.weight": head}, right.rom
    )
    assert not np.array_equal(head, right.weights["head.weight"])
    folder = save_checkpoint(wrong, tmp_path / "wrong")
    code, out, _ = run("check", "--model", folder, ROOT / "programs/add.tok")
    assert code == 1
    assert out.splitlines()[1].startswith("trace token 11 differs, in i32.add")
    assert out.splitlines()[2].split() == [
        "expected:", "08", "00", "00", "00", "commit(-1,sts=1,bt=0)",
    ]  # fmt: skip
    assert out.splitlines()[3].split() == ["model:", "09"]


def test_build_and_info_describe_the_same_model(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("build", "--out", tmp_path / "m")
    assert code == 0 and "hard attention" in out
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["model"]["d_model"] == 36 and config["attention"] == "hard"
    code, described, _ = run("info", "--model", tmp_path / "m")
    assert (code, described) == run("info")[:2]
    values = dict(line.split(None, 1) for line in described.splitlines())
    assert (values["d_model"], values["heads"], values["layers"]) == ("36", "18", "7")
    assert int(values["d_ffn"]) <= 36
    assert int(values["non-zeros"].replace(",", "")) < int(values["parameters"].replace(",", ""))


def test_info_prints_the_generated_code(run: Run) -> None:
    source = run("info", "--source")[1]
    compile(source, "generated", "exec")
    assert "def step(token, p):" in source


def test_run_imports_no_torch() -> None:
    code = (
        "import sys\nfrom executor.cli import main\n"
        "main(['run', 'programs/add.tok'])\nassert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True)

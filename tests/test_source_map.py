"""Places in the source: where traps, traces and differences say that an instruction comes from."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from compiler import compile_program, compile_wasm
from compiler.errors import Place
from compiler.program import Program
from compiler.source_map import read_sections
from executor.listing import listing
from executor.oracle import trace_tokens
from executor.replay import Step, replay
from tests.command_line import transputer

DIVIDE = """\
static int quotient(int a, int b) {
  return a / b;
}
int main(int argc, char **argv) {
  volatile int zero = 0;
  argc = argc * 3;
  return quotient(argc, zero);
}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: paths of sources are relative to it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def last_step(program: Program, args: Sequence[str] = ()) -> Step:
    """Where a run ends, by the interpreter of token programs."""
    return list(replay(program, trace_tokens(program, args)))[-1]


@pytest.mark.parametrize("opt", ["-O0", "-O2"])
def test_a_trap_names_the_line_that_was_written(here: Path, opt: str) -> None:
    Path("divide.c").write_text(DIVIDE)
    place = last_step(compile_program("divide.c", opt=opt)).place
    assert (place.file, place.line) == ("divide.c", 2)
    assert (place.instruction, place.text) == ("i32.div_s", "return a / b;")


def test_the_command_says_where_a_program_trapped(here: Path) -> None:
    Path("divide.c").write_text(DIVIDE)
    code, _, said = transputer("run", "-O0", "--stdin", "/dev/null", "divide.c")
    assert code == 134
    assert "trap: integer divide by zero at divide.c:2 (quotient, i32.div_s)" in said


@pytest.mark.parametrize("opt", ["-O0", "-O2"])
def test_a_trace_shows_each_line_once_until_it_changes(here: Path, opt: str) -> None:
    Path("sub").mkdir()
    Path("sub/divide.c").write_text(DIVIDE)
    code, shown, _ = transputer("trace", opt, "--stdin", "/dev/null", "sub/divide.c")
    lines = shown.splitlines()
    headings = [line.strip() for line in lines if line.strip().startswith("sub/divide.c:")]
    assert headings[-1].startswith("sub/divide.c:2 (") and headings[-1].endswith("return a / b;")
    assert any(line.endswith("argc = argc * 3;") for line in headings)
    assert all(a != b for a, b in zip(headings, headings[1:], strict=False))
    assert " divide.c:2 " in lines[-1] and "trap(divide_by_zero)" in lines[-1]


def test_a_module_brings_its_own_line_table(here: Path) -> None:
    Path("divide.c").write_text(DIVIDE)
    Path("divide.wasm").write_bytes(compile_program("divide.c", opt="-O0").wasm)
    assert last_step(compile_program("divide.wasm")).place.where.startswith("divide.c:2 (quotient,")
    Path("divide.c").unlink()
    place = last_step(compile_program("divide.wasm")).place
    assert (place.source, place.text) == ("divide.c:2", "")


def without(wasm: bytes, prefix: str) -> bytes:
    """The module with the custom sections of such names renamed."""
    sections = read_sections(wasm)
    for name in sections.custom:
        if name.startswith(prefix):
            text = bytes([len(name)]) + name.encode()
            assert wasm.count(text) == 1
            wasm = wasm.replace(text, bytes([len(name)]) + b"x" * len(name))
    return wasm


def test_a_module_without_debug_information_has_functions_alone(here: Path) -> None:
    Path("divide.c").write_text(DIVIDE)
    wasm = compile_program("divide.c", opt="-O0").wasm
    program = compile_wasm(without(wasm, ".debug"), "divide.wasm")
    place = last_step(program).place
    assert program.source_map.problem == ""
    assert place == Place(function="quotient", instruction="i32.div_s", number=place.number)
    assert place.where == f"quotient+{place.number}: i32.div_s"
    nameless = compile_wasm(without(without(wasm, ".debug"), "name"), "divide.wasm")
    assert last_step(nameless).place.function.startswith("func[")


def test_line_directives_and_names_beyond_ascii_are_followed(here: Path) -> None:
    Path("größe 1.c").write_text(DIVIDE)
    program = compile_program("größe 1.c", opt="-O0")
    assert last_step(program).place.where == "größe 1.c:2 (quotient, i32.div_s)"
    assert "".join(listing([last_step(program)])).strip().startswith("größe 1.c:2 (quotient): ret")
    Path("made.c").write_text(f'#line 70 "grammar.y"\n{DIVIDE}')
    place = last_step(compile_program("made.c", opt="-O0")).place
    assert (place.source, place.text) == ("grammar.y:71", "")
    Path("grammar.y").write_text("\n" * 70 + "$$ = \t$1 / $2;\x1b[0m\n")
    place = last_step(compile_program("made.c", opt="-O0")).place
    assert place.text == "$$ =  $1 / $2;\\x1b[0m"


def test_damaged_debug_information_is_ignored_with_a_word(here: Path) -> None:
    Path("divide.c").write_text(DIVIDE)
    wasm = compile_program("divide.c", opt="-O2").wasm
    good = compile_wasm(wasm, "divide.wasm")
    rng = random.Random(6)
    problems = 0
    for _ in range(200):
        broken = bytearray(wasm)
        name, content = rng.choice(
            [item for item in read_sections(wasm).custom.items() if item[0].startswith(".debug")]
        )
        start = wasm.index(content)
        for _ in range(rng.randrange(1, 4)):
            broken[start + rng.randrange(len(content))] = rng.randrange(256)
        program = replace(good, wasm=bytes(broken))
        places = [program.place(index) for index in range(len(program.origins))]
        problems += bool(program.source_map.problem)
        assert all(place.function and place.where for place in places), name
    assert problems > 20
    assert compile_wasm(bytes(broken), "divide.wasm").tokens == good.tokens


def test_a_line_table_cut_short_keeps_no_crash(here: Path) -> None:
    Path("divide.c").write_text(DIVIDE)
    good = compile_program("divide.c", opt="-O0")
    wasm = good.wasm
    content = read_sections(wasm).custom[".debug_line"]
    start = wasm.index(content)
    for size in range(len(content)):
        broken = wasm[: start + size] + bytes(len(content) - size) + wasm[start + len(content) :]
        program = replace(good, wasm=broken)
        assert program.place(3).function
        assert size > len(content) - 2 or program.source_map.problem

"""Places in the source: where traps, traces and differences say that an instruction comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import transputer
from compiler import compile_program, source_map, toolchain
from compiler.errors import UnsupportedError
from compiler.source_map import read_sections
from compiler.toolchain_find import zig_folder
from executor.checking import follow
from executor.listing import listing
from executor.oracle import trace_tokens
from executor.replay import replay
from source_programs import DIVIDE, RATIO, last_step, own_folder

here = pytest.fixture(own_folder)


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


def test_a_trace_of_the_source_leaves_libraries_out(here: Path) -> None:
    Path("divide.c").write_text(DIVIDE)
    options = ("trace", "--stdin", "/dev/null")
    rows = transputer(*options, "divide.c")[1].splitlines()
    code, shown, _ = transputer(*options, "--source", "divide.c")
    own = shown.splitlines()
    assert code == 0 and [row for row in rows if "divide.c:" in row] == own
    assert 2 < len(own) < len(rows) / 2
    first_row = next(row for row in own if row.split()[0].isdecimal())
    some = transputer(*options, "--source", "--count", 2, "divide.c")[1].splitlines()
    assert first_row in some and sum(row.split()[0].isdecimal() for row in some) == 2


@pytest.mark.parametrize("width", [80, 110, 130, 150, 170])
def test_a_trace_fits_the_screen_and_its_columns_stay(
    here: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    Path("divide.c").write_text(DIVIDE)
    monkeypatch.setenv("COLUMNS", str(width))
    shown = transputer("trace", "--stdin", "/dev/null", "divide.c")[1]
    rows = [row for row in shown.splitlines() if row.split()[0].isdecimal()]
    assert max(map(len, shown.splitlines())) <= width
    consts = [row for row in rows if "  i32.const " in row]
    assert len(consts) > 20
    assert len({row.rindex("commit(+1") for row in consts}) == 1


def test_a_module_brings_its_own_line_table(here: Path) -> None:
    Path("divide.c").write_text(DIVIDE)
    Path("divide.wasm").write_bytes(compile_program("divide.c", opt="-O0").wasm)
    assert last_step(compile_program("divide.wasm")).place.where.startswith("divide.c:2 (quotient,")
    Path("divide.c").unlink()
    place = last_step(compile_program("divide.wasm")).place
    assert (place.source, place.text) == ("divide.c:2", "")


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


def test_what_is_refused_is_named_by_its_line(here: Path) -> None:
    Path("refused.c").write_text(
        '__attribute__((import_module("env"), import_name("it"))) int outside(int);\n'
        "int main(void) {\n  return 1 +\n    outside(3);\n}\n"
    )
    with pytest.raises(UnsupportedError) as refused:
        compile_program("refused.c")
    assert str(refused.value).startswith(
        "refused.c:4, in function main, at call outside: nothing provides the import env.it"
    )
    assert refused.value.remedy


def test_no_path_of_this_machine_is_in_a_module(here: Path) -> None:
    Path("divide.c").write_text(
        "#include <stdio.h>\n" + DIVIDE.replace("argc = argc", 'puts("");\n  argc = argc')
    )
    for libc in ("tiny", "wasi"):
        wasm = compile_program("divide.c", opt="-O2", libc=libc).wasm
        assert b"(library)" in wasm or libc == "wasi"
        for path in (here, Path.home(), zig_folder(), Path(source_map.__file__).parent):
            assert bytes(path) not in wasm, path


@pytest.mark.parametrize("opt", ["-O0", "-O2"])
def test_line_tables_change_no_token(here: Path, opt: str, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("ratio.c").write_text(RATIO)
    program = compile_program("ratio.c", opt=opt)
    monkeypatch.setattr(toolchain, "_debug_flags", lambda _: ("-g0",))
    plain = compile_program("ratio.c", opt=opt)
    assert plain.tokens == program.tokens
    assert ".debug_line" not in read_sections(plain.wasm).custom


@pytest.mark.parametrize(
    ("version", "kind"),
    [(2, "-g"), (3, "-gline-tables-only"), (5, "-g"), (5, "-gline-tables-only")],
)
def test_every_version_of_dwarf_says_the_same(
    here: Path, version: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Version 4 is what the tests above have read."""
    Path("sub").mkdir()
    Path("sub/ratio.c").write_text(RATIO)
    program = compile_program("sub/ratio.c", opt="-O2")
    flags = (kind, f"-gdwarf-{version}", "-fdebug-compilation-dir=.")
    monkeypatch.setattr(toolchain, "_debug_flags", lambda _: flags)
    other = compile_program("sub/ratio.c", opt="-O2")
    assert (other.tokens, other.source_map.problem) == (program.tokens, "")
    for index in range(len(program.origins)):
        assert other.place(index) == program.place(index)
    assert any(place.inlined for place in map(program.place, range(len(program.origins))))


def test_the_first_difference_names_its_line(here: Path) -> None:
    Path("divide.c").write_text(DIVIDE)
    program = compile_program("divide.c", opt="-O0")
    tokens = list(trace_tokens(program, ()))
    first = next(s for s in replay(program, tokens) if s.place.text.startswith("argc = argc"))
    at = first.event.position
    tokens[at : at + 1] = ["7f" if tokens[at] != "7f" else "7e"]
    difference = follow(program, (), b"", [tokens]).difference
    assert difference.startswith(
        f"trace token {at + 1} differs, in {first.instruction}, divide.c:6 ("
    )

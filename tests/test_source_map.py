"""Places in the source: where traps, traces and differences say that an instruction comes from."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import wasmtime

from command_line import transputer
from compiler import compile_program, compile_wasm, source_map, toolchain
from compiler.errors import Place, UnsupportedError
from compiler.program import Program
from compiler.source_map import read_sections
from compiler.toolchain_find import zig_folder
from compiler.wasm import decode
from executor import run
from executor.checking import follow
from executor.listing import listing
from executor.oracle import trace_tokens
from executor.replay import Step, replay

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
    expected = Place(function="quotient", instruction="i32.div_s")
    assert replace(place, number=-1, offset=-1) == expected
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
    for _ in range(80):
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
    assert problems > 10
    assert compile_wasm(bytes(broken), "divide.wasm").tokens == good.tokens


def test_the_command_says_that_debug_information_is_damaged(here: Path) -> None:
    Path("divide.c").write_text(DIVIDE)
    wasm = compile_program("divide.c", opt="-O0").wasm
    content = read_sections(wasm).custom[".debug_line"]
    broken = wasm.replace(content, content[:4] + b"\x63" + content[5:])
    Path("broken.wasm").write_bytes(broken)
    for verb, code in (("run", 134), ("trace", 0), ("check", 0)):
        done, out, said = transputer(verb, "--stdin", "/dev/null", "broken.wasm")
        assert done == code, (out, said)
        assert "broken.wasm: debug information ignored: .debug_line, byte 6: " in said
        assert verb != "run" or "at quotient+14: i32.div_s\n  called from main\n" in said


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


# --- functions and calls -----------------------------------------------------------------------

RATIO = """\
#include <transputer.h>
static inline __attribute__((always_inline)) long long ratio(long long a, int b) {
  return a /
         b;
}
static __attribute__((noinline)) int half(int a, int b) {
  if (a > 70)
    return (int)ratio(a * 70000LL, b);
  return half(a + 10, b);
}
int main(int argc, char **argv) {
  volatile int zero = 0;
  print_int(half(argc + 60, zero));
  return 0;
}
"""


@pytest.mark.parametrize("opt", ["-O0", "-O2"])
def test_a_trap_tells_the_calls_that_led_there_inlined_ones_too(here: Path, opt: str) -> None:
    """The division of 64 bits is done by a function of the compiler, which nobody asks about."""
    Path("ratio.c").write_text(RATIO)
    code, _, said = transputer("run", opt, "--stdin", "/dev/null", "ratio.c")
    assert code == 134
    assert "at ratio.c:3 (ratio, i64.div_s)\n  called from ratio.c:8 (half)\n" in said
    assert said.endswith("  called from ratio.c:13 (main)\n")
    assert said.count("called from ratio.c:9 (half)") == (opt == "-O0")


def test_a_result_has_the_places_of_a_trap(here: Path) -> None:
    Path("divide.c").write_text(DIVIDE)
    result = run("divide.c")
    assert [place.source for place in result.places] == ["divide.c:2", "divide.c:7"]
    assert [place.function for place in result.places] == ["quotient", "main"]
    Path("divide.c").write_text(DIVIDE.replace("zero = 0", "zero = 1"))
    assert run("divide.c").places == ()


def test_deep_recursion_is_told_in_short(here: Path) -> None:
    Path("deep.c").write_text(
        "int deep(int n) { volatile char pad[99]; pad[n % 9] = 1; return deep(n + 1) + pad[0]; }\n"
        "int main(void) { return deep(0); }\n"
    )
    _, _, said = transputer("run", "deep.c")
    lines = said.splitlines()
    assert lines[0].startswith("transputer: trap: out of bounds memory access at deep.c:1 (deep,")
    assert lines[1:9] == ["  called from deep.c:1 (deep)"] * 8
    assert "more calls" in lines[9]
    assert lines[10:] == ["  called from deep.c:2 (main)"]


def test_what_one_wasm_instruction_becomes_keeps_its_place(here: Path) -> None:
    Path("wide.c").write_text(
        "long long a = 5, b = 6;\nint main(void) {\n  a +=\n    b * 3;\n  return a != 23;\n}\n"
    )
    program = compile_program("wide.c", opt="-O0")
    places = [program.place(index) for index in range(len(program.origins))]
    own = [place for place in places if place.function == "main"]
    assert {place.line for place in own if place.instruction == "i64.add"} == {3}
    assert {place.line for place in own if place.instruction in ("i64.mul", "i64.const 3")} == {4}
    assert sum(place.instruction == "i64.add" for place in own) > 4
    numbers = {place.number: place.instruction for place in own if place.number >= 0}
    body = next(f for f in decode(program.wasm, "w").functions if f.name == "main").code
    assert all(body[number].text.startswith(text[:5]) for number, text in numbers.items())


def test_functions_that_the_compiler_adds_have_instructions_of_their_own(here: Path) -> None:
    """Of the runtime, and of WASI's calls that are linked into a finished module."""
    text = """(module (import "wasi_snapshot_preview1" "random_get"
        (func $random (param i32 i32) (result i32)))
      (memory (export "memory") 1)
      (func (export "_start") (drop (call $random (i32.const 0) (i32.const 16)))
        (drop (i64.div_u (i64.load (i32.const 0)) (i64.load (i32.const 8))))))"""
    program = compile_wasm(bytes(wasmtime.wat2wasm(text)), "added.wasm")
    for name in ("(random_get)", "(i64.div_u)"):
        origins = [origin for origin in program.origins if origin.function == name]
        assert len({origin.instruction for origin in origins}) > 3, origins
        assert {origin.offset for origin in origins} == {-1}


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


@pytest.mark.parametrize("opt", ["-O0", "-O2"])
def test_lines_and_functions_agree_at_every_instruction(here: Path, opt: str) -> None:
    """Two sections of the module, which know nothing of each other."""
    Path("ratio.c").write_text(RATIO)
    program = compile_program("ratio.c", opt=opt)
    owners = dict.fromkeys(range(2, 6), "ratio") | dict.fromkeys(range(6, 11), "half")
    owners |= dict.fromkeys(range(11, 17), "main")
    seen = set()
    for place in map(program.place, range(len(program.origins))):
        for frame in (place, *place.inlined):
            if frame.file == "ratio.c":
                assert frame.function == owners[frame.line], place
                seen.add(frame.function)
    assert seen == {"ratio", "half", "main"}


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


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_no_damage_makes_a_place_fail(here: Path, seed: int) -> None:
    Path("ratio.c").write_text(RATIO)
    good = compile_program("ratio.c", opt="-O2")
    rng = random.Random(seed)
    debug = [c for n, c in read_sections(good.wasm).custom.items() if n.startswith(".debug")]
    for _ in range(500):
        content = rng.choice(debug)
        start, broken = good.wasm.index(content), bytearray(good.wasm)
        at = start + rng.randrange(len(content))
        end = min(start + len(content), at + rng.choice((1, 1, 2, 8, 40)))
        other = start + rng.randrange(len(content))
        piece = rng.choice(
            (rng.randbytes(end - at), b"\xff" * (end - at), broken[other:][: end - at])
        )
        broken[at:end] = piece[: end - at].ljust(end - at, b"\0")
        program = replace(good, wasm=bytes(broken))
        for index in range(0, len(program.origins), 3):
            assert str(program.place(index)) and program.place(index).where


@pytest.mark.long
@pytest.mark.parametrize("opt", ["-O0", "-O2"])
def test_a_trap_in_cxx_names_the_method(here: Path, opt: str) -> None:
    Path("shape.cpp").write_text(
        "#include <vector>\n"
        "struct Shape { virtual int area(int k) const = 0; };\n"
        "struct Square : Shape {\n"
        "  int area(int k) const override { return 9 / k; }\n"
        "};\n"
        "int main(int argc, char **argv) {\n"
        "  std::vector<Shape *> shapes;\n"
        "  shapes.push_back(new Square);\n"
        "  return shapes[0]->area(argc - 1);\n"
        "}\n"
    )
    program = compile_program("shape.cpp", opt=opt)
    result = run(program)
    place = result.places[0]
    assert (place.source, place.instruction) == ("shape.cpp:4", "i32.div_s")
    assert "area" in place.function
    assert not any("[abi:" in origin.function for origin in program.origins)
    assert result.places[-1].source == "shape.cpp:9"

"""Functions in the source: calls that led to a trap, inlined ones, and what the compiler adds."""

from __future__ import annotations

from pathlib import Path

import pytest
import wasmtime

from command_line import transputer
from compiler import compile_program, compile_wasm
from compiler.wasm import decode
from executor import run
from source_programs import DIVIDE, RATIO, own_folder

here = pytest.fixture(own_folder)


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

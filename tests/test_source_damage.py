"""Debug information that is missing or damaged: it is ignored with a word, and nothing fails."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from command_line import transputer
from compiler import compile_program, compile_wasm
from compiler.errors import Place
from compiler.source_map import read_sections
from source_programs import DIVIDE, RATIO, last_step, own_folder

here = pytest.fixture(own_folder)


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

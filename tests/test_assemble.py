"""The assembler: addresses, initial memory, immediates and origins."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from compiler import isa
from compiler.assemble import assemble, data_section, word_tokens
from compiler.errors import CompileError, UnsupportedError
from compiler.lower_code import Label, Native, NativeFunction
from compiler.pipeline import compile_wasm
from compiler.program import Origin
from wat_programs import assembled, compiled

HERE = Origin("f", "nop", 3)


def run_section(tokens: list[str]) -> tuple[int, dict[int, int], int]:
    """Memory size, initial bytes and final cursor, as the trace format defines them."""
    size, cursor, memory = 0, 0, {}
    for position, token in enumerate(tokens):
        word = "".join(reversed(tokens[position - 4 : position]))
        if token == isa.MEMORY:
            size = int(word, 16)
        elif token == isa.SEGMENT:
            step = int(word, 16)
            cursor += step - (1 << 32) if step >= 1 << 31 else step
        elif token.startswith("data("):
            memory[cursor] = int(token[5:7], 16)
            cursor += 1
    return size, memory, cursor


def test_no_memory_needs_no_section() -> None:
    assert data_section(None, [], "t") == []


def test_memory_without_data_still_moves_the_cursor_to_the_code() -> None:
    tokens = data_section(65536, [], "t")
    assert tokens == ["00", "00", "01", "00", "memory", "0a", "00", "00", "00", "segment"]


BASES = (0, 4080, 70000, (1 << 31) - 100, (1 << 32) - 70000)


@pytest.mark.parametrize("seed", range(300))
def test_the_section_leaves_the_memory_that_the_segments_describe(seed: int) -> None:
    rng = random.Random(seed)
    base = rng.choice(BASES)
    parts = [
        (rng.randrange(301), bytes(rng.choices((0, 0, 0, 1, 255), k=rng.randrange(31))))
        for _ in range(rng.randrange(7))
    ]
    parts = [(base + address, content) for address, content in parts]
    expected: dict[int, int] = {}
    for address, content in parts:
        expected.update(enumerate(content, start=address))
    tokens = data_section(0xFFFF0000, parts, "t")
    size, memory, cursor = run_section(tokens)
    assert size == 0xFFFF0000
    assert {a: v for a, v in memory.items() if v} == {a: v for a, v in expected.items() if v}
    assert cursor == len(tokens)


@pytest.mark.parametrize("last", range((1 << 31), (1 << 31) + 40))
def test_the_cursor_comes_back_from_the_farthest_that_one_directive_reaches(last: int) -> None:
    tokens = data_section(0xFFFF0000, [(last, b"x")], "t")
    _, memory, cursor = run_section(tokens)
    assert memory == {last: ord("x")} and cursor == len(tokens)


def test_runs_of_zeros_are_skipped_when_that_is_shorter() -> None:
    short = data_section(65536, [(0, b"a" + bytes(5) + b"b")], "t")
    assert short.count("data(00)") == 5
    long = data_section(65536, [(0, b"a" + bytes(5000) + b"b")], "t")
    assert len(long) == 5 + 1 + 5 + 1 + 5


def test_data_outside_the_memory_is_refused() -> None:
    with pytest.raises(CompileError, match="segment 1 .address 65534, 3 bytes. does not fit"):
        data_section(65536, [(0, b"abc"), (65534, b"abc")], "t")


def test_branches_calls_and_returns_count_tokens() -> None:
    first = NativeFunction("a", "a", (
        Native("call", 0, HERE, callee="b"), Label(7), Native("i32.const", -1, HERE),
        Native("br_if", 0, HERE, target=7), Native("input", 0, HERE), Native("halt", 0, HERE),
    ))  # fmt: skip
    second = NativeFunction("b", "b", (Native("i32.const", 3, HERE), Native("return", 0, HERE)))
    code = assemble([first, second], None, [], "t")
    call, const, branch, read, _, _, back = (code.tokens[1 + 5 * k : 6 + 5 * k] for k in range(7))
    assert call == ("call", *word_tokens(25))
    assert const == ("i32.const", "ff", "ff", "ff", "ff")
    assert branch == ("br_if", *word_tokens(-5))
    assert read == ("input", *word_tokens(len(code.tokens)))
    assert back == ("return", *word_tokens(0))  # one instruction after the first, less one
    assert len(code.origins) == 7


def test_every_instruction_has_the_origin_of_its_wasm_instruction() -> None:
    text = """(module (func $add (param i32) (result i32)
        (i32.add (local.get 0) (i32.ctz (i32.mul (local.get 0) (i32.const 10)))))
      (func (export "main") (result i32) (call $add (i32.const 5))))"""
    program = compiled(text)
    code = program.tokens[program.tokens.index("{") + 1 : -1]
    assert len(program.origins) == len(code) // 5
    origins = [replace(origin, offset=-1) for origin in program.origins]
    places = set(zip(code[::5], origins, strict=True))
    assert ("i32.ctz", Origin("add", "i32.ctz", 4)) in places
    assert ("i32.add", Origin("add", "i32.add", 5)) in places
    assert Origin("main", "call add", 1) in origins
    offsets = {o.offset for o in program.origins if (o.function, o.index) == ("add", 4)}
    assert [program.wasm[offset] for offset in offsets] == [0x68]  # the byte of i32.ctz


def test_the_program_knows_its_memory_and_reports_its_size() -> None:
    wat = """(module (memory 2) (data (i32.const 9) "hi")
      (func (export "main") (result i32) (i32.const 1)))"""
    program = compiled(wat)
    assert program.memory_bytes == 2 * 65536
    assert program.tokens[:5] == ("00", "00", "02", "00", "memory")
    assert program.has_result
    assert program.wasm == assembled(wat)
    assert program.report["prompt_tokens"] == len(program.tokens)
    assert program.report["data_tokens"] == program.tokens.index("{")
    functions = program.report["functions"]
    assert isinstance(functions, dict)
    assert sum(functions.values()) == 5 * len(program.origins)


def test_too_much_memory_is_refused() -> None:
    """Squares of addresses must be exact."""
    text = '(module (memory {}) (func (export "main")))'
    most = compiled(text.format(isa.MAX_MEMORY_PAGES))
    assert most.memory_bytes == 65536 * isa.MAX_MEMORY_PAGES
    for pages in (isa.MAX_MEMORY_PAGES + 1, 65536):
        with pytest.raises(UnsupportedError, match=f"{pages} pages"):
            compiled(text.format(pages))


def test_data_at_an_imported_address_is_refused() -> None:
    text = """(module (import "env" "b" (global i32)) (memory 1)
      (data (global.get 0) "x") (func (export "main")))"""
    with pytest.raises(UnsupportedError, match="not a constant"):
        compile_wasm(assembled(text), "t.wasm")


def test_too_many_locals_are_refused() -> None:
    """Local addresses are exact below 2^26 only, so a function cannot have any number of locals."""

    def module(count: int) -> str:
        return f"""(module (global $g (mut i32) (i32.const 1))
          (func (export "main") (result i32) (local {"i32 " * count})
            {" ".join(f"(global.set $g (local.tee {n} (global.get $g)))" for n in range(count))}
            (i32.const 0) {" ".join(f"(i32.add (local.get {n}))" for n in range(count))}))"""

    compiled(module(isa.MAX_LOCALS))
    with pytest.raises(UnsupportedError, match="in function .*more than 4095 locals"):
        compiled(module(isa.MAX_LOCALS + 1))


@pytest.mark.parametrize("segment", ["(i32.const 5) 0", "(i32.const -1) 0", "(i32.const 1) 0 0"])
def test_elements_outside_the_table_are_refused(segment: str) -> None:
    text = f'(module (table 2 funcref) (elem {segment}) (func (export "main")))'
    with pytest.raises(CompileError, match="element segment 0 .* does not fit the table of 2"):
        compiled(text)
    compiled('(module (table 2 funcref) (elem (i32.const 0) 0 0) (func (export "main")))')

"""Token programs as text: reading, errors with their line, and writing."""

from __future__ import annotations

import pytest

from compiler.errors import CompileError
from compiler.tokfile import compile_tok, format_tok, parse_tok
from executor.oracle import execute, trace_tokens
from test_lower_control import FIBONACCI
from wat_programs import compiled

ADD = """# the article's example
{ i32.const 03 00 00 00  i32.const 05 00 00 00   ;; two numbers
  i32.add 00 00 00 00 output 00 00 00 00
  halt 00 00 00 00 }
"""
ECHO = """00 00 01 00 memory
10 00 00 00 segment data(41) data(00)
ff ff ff ff segment
03 00 00 00 segment
{ i32.const 01 00 00 00 input 30 00 00 00 output 00 00 00 00 halt 00 00 00 00 }
in(a) in(b) eof"""


def test_the_articles_program_writes_the_articles_trace() -> None:
    program = compile_tok(ADD, "add.tok")
    assert list(trace_tokens(program)) == [
        "03",
        "00",
        "00",
        "00",
        "commit(+1,sts=1,bt=0)",
        "05",
        "00",
        "00",
        "00",
        "commit(+1,sts=1,bt=0)",
        "08",
        "00",
        "00",
        "00",
        "commit(-1,sts=1,bt=0)",
        "out(08)",
        "halt",
    ]
    assert execute(program).output == b"\x08"


def test_memory_data_and_input_are_read() -> None:
    text = ECHO.replace("ff ff ff ff segment\n03", "05")
    text = text.replace("input 30", "input 27")
    with pytest.raises(CompileError) as caught:
        parse_tok(text, "echo.tok")
    remedy = caught.value.remedy.removeprefix("the last directive before '{' must be: ")
    file = parse_tok(text.replace("05 00 00 00 segment", remedy), "echo.tok")
    assert file.stdin == b"ab"
    assert file.program.memory_bytes == 65536
    result = execute(file.program, stdin=file.stdin)
    assert (result.output, result.memory) == (b"b", {16: 0x41})
    assert compile_tok(text.replace("05 00 00 00 segment", remedy), "e").report["stdin"] == b"ab"


def test_the_missing_seek_is_spelled_out() -> None:
    head = "00 00 01 00 memory 10 00 00 00 segment data(41)\n"
    code = "{ halt 00 00 00 00 }"
    with pytest.raises(CompileError) as caught:
        parse_tok(head + code, "seek.tok")
    remedy = caught.value.remedy.removeprefix("the last directive before '{' must be: ")
    assert remedy == "ff ff ff ff segment"  # from 17 to 16 tokens
    assert execute(compile_tok(f"{head} {remedy} {code}", "seek.tok")).memory == {16: 0x41}


@pytest.mark.parametrize(("old", "new", "line", "reason"), [
    ("i32.add", "i32.plus", 3, "unknown instruction 'i32.plus'"),
    ("05 00 00", "5 00 00", 2, "'5' is not a byte"),
    ("05 00 00 00", "05 00 00", 3, "'i32.add' is not a byte"),
    ("{ i32", "[ i32", 2, "unknown token '['"),
    (" }", "", 4, "the file ends where an instruction or '}' is expected"),
    ("}", "} in(3) out(4)", 4, "'out(4)' is not an input byte"),
    ("i32.add 00", "i32.load 00", 3, "without memory"),
    ("output 00 00 00 00", "br 03 00 00 00", 3, "does not lead to an instruction"),
    ("output 00 00 00 00", "br_if 32 00 00 00", 3, "does not lead to an instruction"),
    ("output 00 00 00 00", "input 00 00 00 00", 3, "the input begins at token 27"),
    ("{ i32", "00 00 00 00 segment { i32", 2, "the cursor is at 0 where the code begins at 5"),
    ("{ i32", "00 00 01 00 memory data(00) { i32", 2, "at 1 where the code begins at 6"),
    ("{ i32", "00 00 00 00 segment 00 00 00 00 memory { i32", 2, "'memory' must stand first"),
    ("{ i32", "00 00 00 00 { i32", 2, "'segment' must stand"),
    ("{ i32", "data(00) { i32", 2, "outside the memory"),
    ("{ i32", "0a' { i32", 2, "unknown token \"0a'\""),
])  # fmt: skip
def test_errors_name_the_line_and_the_token(old: str, new: str, line: int, reason: str) -> None:
    assert old in ADD
    with pytest.raises(CompileError) as caught:
        compile_tok(ADD.replace(old, new, 1), "add.tok")
    assert caught.value.place.file == f"add.tok:{line}"
    assert reason in caught.value.reason


def test_an_empty_file_is_refused() -> None:
    for text in ("", "# nothing\n", "{ }"):
        with pytest.raises(CompileError):
            compile_tok(text, "empty.tok")


def test_a_program_survives_being_written_and_read() -> None:
    text = """(module
      (import "transputer" "input" (func $in (param i32) (result i32))) (memory 1)
      (data (i32.const 100) "hello, token world; and more") (data (i32.const 5000) "x")
      (func (export "main") (result i32) (i32.rem_s (call $in (i32.const 0)) (i32.const 7))))"""
    for program in (compiled(text), compiled(FIBONACCI, ("fib", 5))):
        written = format_tok(program, b"A\n#")
        assert "in(A) in(0a) in(#) eof" in written
        file = parse_tok(written, "again.tok")
        assert file.program.tokens == program.tokens
        assert file.stdin == b"A\n#"
        assert file.program.memory_bytes == program.memory_bytes
    assert max(map(len, format_tok(compiled(text)).splitlines())) < 180

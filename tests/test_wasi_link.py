"""Finished modules that import WASI: linked with our calls, beside wasmtime's own WASI."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import wasmtime

from compiler import compile_wasm
from compiler.errors import CompileError, UnsupportedError
from compiler.wasi_link import WASI_MODULE, build_wasi, wasi_binary, wasi_module
from executor import check
from executor.checking import CheckResult
from executor.runner import RunResult
from wasi_programs import EVERYTHING, INPUT, main, original, run_real

BOTH = pytest.mark.parametrize("opt", ["-O0", "-O2"])


def inside(wasm: bytes, args: Sequence[str] = (), stdin: bytes = b"") -> RunResult:
    """A run inside the model, which must agree with the reference."""
    checked: CheckResult = check(compile_wasm(wasm, "program.c"), args, stdin)
    assert checked.agrees, checked.differences
    assert checked.result is not None
    return checked.result


def same(text: str, args: Sequence[str] = (), stdin: bytes = b"", opt: str = "-O2") -> RunResult:
    """The result of a program as zig links it, which must be that under wasmtime's WASI."""
    wasm = original(text, opt)
    real, ours = run_real(wasm, args, stdin), inside(wasm, args, stdin)
    assert (ours.output, ours.errors) == (real.stdout, real.stderr)
    assert (ours.trap is not None, ours.trap or ours.exit_code) == (
        real.trap,
        ours.trap or real.exit_code & 0xFF,
    )
    return ours


def test_a_module_of_another_compiler_does_what_it_does_under_wasi() -> None:
    text = main(
        """
  char line[40]; int n = 0;
  for (int i = 1; i < argc; i++) printf("<%s>", argv[i]);
  while (fgets(line, sizeof line, stdin)) n++, fputs(line, stdout);
  fprintf(stderr, "%d lines, %d arguments\\n", n, argc);
  FILE *file = fopen("none.txt", "r");
  printf("\\n%d %s %d", file != NULL, strerror(errno), getenv("HOME") != NULL);
  fflush(stdout);
  exit(40 + n);
"""
    )
    result = same(text, ["a", "", "ä b"], b"one\n\0two\nthree")
    assert result.exit_code == 43
    assert result.errors == b"3 lines, 4 arguments\n"


@pytest.mark.long
@BOTH
def test_one_of_everything(opt: str) -> None:
    same(EVERYTHING, ["one", "", "two words", "ä"], INPUT, opt)


@pytest.mark.long
def test_time_random_numbers_and_traps() -> None:
    text = main(
        """
  unsigned char bytes[3] = {0}; getentropy(bytes, 3);
  struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); usleep(50);
  return t.tv_nsec > 0 && (bytes[0] | bytes[1] | bytes[2]) ? argc : 9;
"""
    )
    assert inside(original(text)).exit_code == 1
    assert inside(original(main("abort();"))).trap == "unreachable"


# --- modules written by hand ------------------------------------------------------------------


def module(imports: str, body: str, memory: str = '(memory (export "memory") 1)') -> bytes:
    """A module whose ``_start`` has this body; ``imports`` are lines of name and type."""
    lines = [line.split(maxsplit=1) for line in imports.strip().splitlines()]
    declared = "".join(
        f'(import "{WASI_MODULE}" "{name}" (func ${name} {type_}))' for name, type_ in lines
    )
    return bytes(wasmtime.wat2wasm(f'(module {declared} {memory} (func (export "_start") {body}))'))


ERRORS = [
    ("fd_prestat_get", "(param i32 i32) (result i32)", "(i32.const 3) (i32.const 0)", 8),
    ("fd_close", "(param i32) (result i32)", "(i32.const 3)", 8),
    ("fd_seek", "(param i32 i64 i32 i32) (result i32)",
     "(i32.const 1) (i64.const 0) (i32.const 0) (i32.const 0)", 70),
    ("fd_write", "(param i32 i32 i32 i32) (result i32)",
     "(i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0)", 8),
    ("path_open", "(param i32 i32 i32 i32 i32 i64 i64 i32 i32) (result i32)",
     "(i32.const 3)" + "(i32.const 0)" * 4 + "(i64.const 0)" * 2 + "(i32.const 0)" * 2, 44),
    ("clock_time_get", "(param i32 i64 i32) (result i32)",
     "(i32.const 9) (i64.const 0) (i32.const 0)", 28),
    ("sock_shutdown", "(param i32 i32) (result i32)", "(i32.const 0) (i32.const 0)", 8),
]  # fmt: skip


@pytest.mark.parametrize(("name", "type_", "arguments", "error"), ERRORS, ids=lambda x: str(x)[:20])
def test_calls_that_fail_say_why(name: str, type_: str, arguments: str, error: int) -> None:
    imports = f"{name} {type_}\nproc_exit (param i32)"
    assert (
        inside(module(imports, f"(call $proc_exit (call ${name} {arguments}))")).exit_code == error
    )


def test_the_module_s_memory_holds_results_and_nothing_else() -> None:
    """Arguments are asked for after input has been read, and again."""
    imports = """fd_read (param i32 i32 i32 i32) (result i32)
        args_sizes_get (param i32 i32) (result i32)
        args_get (param i32 i32) (result i32)
        random_get (param i32 i32) (result i32)
        proc_exit (param i32)"""
    wasm = module(
        imports,
        """(i32.store (i32.const 0) (i32.const 64)) (i32.store (i32.const 4) (i32.const 3))
        (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
        (drop (call $args_sizes_get (i32.const 12) (i32.const 16)))
        (drop (call $args_get (i32.const 80) (i32.const 100)))
        (drop (call $fd_read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 20)))
        (drop (call $random_get (i32.const 24) (i32.const 2)))
        (call $proc_exit (i32.load (i32.const 20)))""",
    )
    program = compile_wasm(wasm, "p.wasm")
    checked = check(program, ["xy", ""], b"abcd\ne")
    assert checked.agrees, checked.differences
    assert checked.reference is not None and checked.result is not None
    memory = checked.reference.memory
    words = [int.from_bytes(memory[at : at + 4], "little") for at in range(0, 24, 4)]
    assert words == [64, 3, 3, 3, len("p.wasm") + 1 + 3 + 1, 2]
    assert checked.result.exit_code == 2
    assert memory[64:67] == b"d\nc"  # the second line's end over the first three bytes
    assert [int.from_bytes(memory[at : at + 4], "little") for at in (80, 84, 88)] == [100, 107, 110]
    assert memory[100:111] == b"p.wasm\0xy\0\0"
    assert not any(memory[26:64]) and not any(memory[92:100]) and not any(memory[111:])


def test_what_wasi_does_not_have_is_refused_where_it_is_reached() -> None:
    imports = "fd_nothing (param i32)\nproc_exit (param i32)"
    wasm = module(imports, "(call $fd_nothing (i32.const 1))")
    with pytest.raises(UnsupportedError, match="provides the import .*fd_nothing"):
        compile_wasm(wasm, "p.wasm")
    assert inside(module(imports, "(call $proc_exit (i32.const 5))")).exit_code == 5


def test_modules_that_cannot_be_linked() -> None:
    body = "(call $proc_exit (i64.const 5))"
    with pytest.raises(CompileError, match=r"proc_exit is \(i32\) -> \(\), not \(i64\) -> \(\)"):
        compile_wasm(module("proc_exit (param i64)", body), "p.wasm")
    with pytest.raises(CompileError, match="exports no memory"):
        compile_wasm(module("proc_exit (param i32)", "", "(memory 1)"), "p.wasm")


def test_a_called_function_reads_its_input_after_the_arguments() -> None:
    wasm = bytes(
        wasmtime.wat2wasm(f"""(module
        (import "{WASI_MODULE}" "fd_read" (func $read (param i32 i32 i32 i32) (result i32)))
        (memory (export "memory") 1) (data (i32.const 0) "\\10\\00\\00\\00\\04")
        (func (export "f") (param i32) (result i32)
          (drop (call $read (i32.const 0) (i32.const 0) (i32.const 1) (i32.const 8)))
          (i32.add (local.get 0) (i32.load8_u (i32.const 16)))))""")
    )
    checked = check(compile_wasm(wasm, "p.wasm", call=("f", 1)), stdin=b"A", call=("f", 1))
    assert checked.agrees, checked.differences
    assert checked.result is not None and checked.result.value == 66


def test_the_calls_take_no_memory_of_their_own() -> None:
    calls = wasi_module()
    assert not calls.data and not calls.elements and calls.memories[0].imported is not None
    reads = {i.args[0] for f in calls.functions for i in f.code if i.op == "global.get"}
    assert 0 not in reads  # the linker's stack pointer


def test_the_compiled_calls_are_those_of_the_sources() -> None:
    assert build_wasi() == wasi_binary()

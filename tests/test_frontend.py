"""The front end compiles every form of program, with nothing in it that the machine lacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from c_programs import compiled, export_names, opcodes, run, run_c
from compiler.frontend import to_wasm
from compiler.wasm import decode

BOTH = pytest.mark.parametrize("opt", ["-O0", "-O2"])
MOVES = {"i64.const", "i64.load", "i64.store"}


@BOTH
@pytest.mark.parametrize("head", ["int main(void)", "int main()"])
def test_main_without_parameters_returns_its_exit_code_and_reads_no_arguments(head, opt):
    wasm = compiled(head + " { return 42; }", opt)
    assert run(wasm).exit_code == 42
    assert "transputer_wants_args" not in export_names(wasm)


@BOTH
def test_main_with_parameters_gets_them_and_then_the_input(opt):
    text = """
    #include <stdio.h>
    int main(int argc, char **argv) {
      for (int i = 1; i < argc; i++) puts(argv[i]);
      if (argv[argc]) return 99;
      for (int c; (c = getchar()) != EOF;) putchar(c);
      if (getchar() != EOF) return 98; /* the end of the input stays */
      return argc;
    }"""
    wasm = compiled(text, opt)
    assert "transputer_wants_args" in export_names(wasm)
    result = run(wasm, ["one", "", "\udcff\x01 x"], b"in\0put")
    assert result.exit_code == 4
    assert result.output == b"one\n\n\xff\x01 x\nin\0put"
    assert run(wasm).exit_code == 1


@BOTH
def test_end_of_main_is_exit_code_zero(opt):
    assert run(compiled("int main(void) { }", opt)).exit_code == 0


@BOTH
def test_exit_ends_the_run_from_any_depth(opt):
    text = """
    #include <stdlib.h>
    static void deep(int n) { if (n == 0) exit(7); deep(n - 1); }
    int main(void) { deep(20); return 1; }"""
    result = run(compiled(text, opt))
    assert (result.exit_code, result.value, result.trap) == (7, 7, None)


@pytest.mark.parametrize("opt", ["-O1", "-O2", "-O3"])
def test_assert_stays_in_optimised_code(opt):
    text = """
    #include <assert.h>
    int main(int argc, char **argv) { assert(argc == 2); return 0; }"""
    wasm = compiled(text, opt)
    assert run(wasm, ["x"]).exit_code == 0
    failed = run(wasm)
    assert failed.trap == "unreachable"
    assert failed.errors.endswith(b":3: assertion failed: argc == 2\n")


def test_unoptimised_code_has_no_sanitizer_traps():
    text = """
    #include <stdio.h>
    int main(int argc, char **argv) { int x = 0x7fffffff; x += argc; print_int(x); return 0; }"""
    assert run_c(text, opt="-O0") == "-2147483648"


@BOTH
def test_overflow_of_the_stack_traps_before_it_reaches_the_data(opt):
    text = """
    #include <stdio.h>
    int data[100];
    int deep(volatile int *p, int n) {
      volatile int a[50];
      a[n % 50] = *p;
      return n ? deep(a, n - 1) + a[0] : 0;
    }
    int main(void) { deep(data, 1000); return 0; }"""
    result = run(compiled(text, opt))
    assert result.trap == "out of bounds memory access"
    assert len(result.memory) == 65536


def test_stack_size_can_be_chosen(tmp_path):
    path = tmp_path / "big.c"
    path.write_text("int main(int c, char **v) { volatile int a[400000]; a[c] = 5; return a[c]; }")
    for libc, usual in (("tiny", 32 << 10), ("wasi", 1 << 20)):
        assert run(to_wasm(path, libc=libc).wasm).trap == "out of bounds memory access"
        assert run(to_wasm(path, libc=libc, stack_bytes=1 << 21).wasm).exit_code == 5
        path.write_text(path.read_text().replace("400000", str(usual // 4 - 100)))
        assert run(to_wasm(path, libc=libc).wasm).exit_code == 5
        path.write_text(path.read_text().replace(str(usual // 4 - 100), "400000"))


@pytest.mark.parametrize("libc", ["tiny", "wasi"])
def test_memory_size_can_be_chosen(tmp_path, libc):
    path = tmp_path / "size.c"
    path.write_text(
        "#include <stdlib.h>\nint main(void) { char *volatile p = malloc(3000000);"
        " if (p) p[2999999] = 7; return p ? p[2999999] : 1; }"
    )
    for megabytes, code in ((2, 1), (4, 7), (63, 7)):
        wasm = to_wasm(path, libc=libc, memory_bytes=megabytes << 20).wasm
        result = run(wasm)
        assert (result.exit_code, len(result.memory)) == (code, megabytes << 20)
    assert run(to_wasm(path, libc=libc).wasm).exit_code == (7 if libc == "wasi" else 1)


def test_several_files_folders_and_macros_make_one_program(tmp_path):
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "part.h").write_text("int part(int);\n")
    (tmp_path / "a.c").write_text(
        '#include "part.h"\nint main(void) { return part(BASE) + PLAIN; }\n'
    )
    (tmp_path / "b.c").write_text('#include "part.h"\nint part(int x) { return x * 2; }\n')
    source = to_wasm(
        [tmp_path / "a.c", str(tmp_path / "b.c")],
        include=[tmp_path / "include"],
        define=["BASE=20", "PLAIN"],
    )
    assert source.name == "a.c"
    assert run(source.wasm).exit_code == 41


def test_flags_for_the_compiler_change_what_a_file_means(tmp_path):
    path = tmp_path / "old.c"
    path.write_text("twice(x) { return 2 * x; }\nmain() { return twice(VALUE) + inline(1); }\n")
    with path.open("a") as file:
        file.write("inline(x) { return x; }\n")  # no keyword in C89
    assert run(to_wasm(path, flags=["-std=c89", "-w", "-DVALUE=4"]).wasm).exit_code == 9


def test_exports_make_single_functions_callable_without_main():
    wasm = compiled(
        "int twice(int x) { return 2 * x; } int half(int x) { return x / 2; }", exports=("half",)
    )
    names = export_names(wasm)
    assert "half" in names
    assert not names & {"twice", "transputer_main"}


def test_a_program_may_define_library_functions_itself():
    text = """
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    size_t strlen(const char *s) { return 3; }
    int abs(int x) { return 5; }
    int putchar(int c) { transputer_output('*'); return c; }
    int main(void) { putchar('a'); print_int(strlen("")); print_int(abs(-1)); puts("ok");
                     return strcmp("a", "a"); }"""
    assert run_c(text) == "*35ok\n"


def test_function_names_and_lines_stay_in_the_module():
    wasm = compiled(
        "int helper(int x) { return x < 2 ? x : helper(x - 1) + helper(x - 2); }\n"
        "int main(int c, char **v) { return helper(c + 2); }"
    )
    assert "helper" in {function.name for function in decode(wasm, "test").functions}
    assert b".debug_line" in wasm


def test_the_same_source_gives_the_same_module(tmp_path):
    path = tmp_path / "same.c"
    path.write_text('#include <stdio.h>\nint main(void) { puts("x"); return 0; }\n')
    assert to_wasm(path).wasm == to_wasm(path).wasm


def test_warnings_are_handed_on(tmp_path):
    path = tmp_path / "warns.c"
    path.write_text('int main(void) { return 5 == 6 == 7; int x = "a" == "b"; }\n')
    source = to_wasm(path)
    assert "warns.c:1:" in source.warnings
    assert "warning" in source.warnings


# Each of these becomes 64-bit arithmetic, or an instruction newer than WebAssembly 1.0, in the
# compilers' usual configuration.
PLAIN = {
    "closed form of a sum": "int f(int n) { int s = 0; for (int i = 0; i < n; i++) s += i * i;"
    " return s; }",
    "merged stores": "int f(int *p) { p[0] = 1; p[1] = 2; p[2] = 3; p[3] = 4; return 0; }",
    "cleared buffer": "int f(char *p) { for (int i = 0; i < 64; i++) p[i] = 0; return 0; }",
    "small lookup table": "unsigned char f(int c) { switch (c) { case 0: return 'a';"
    " case 1: return 'b'; case 2: return 'c'; case 3: return 'q'; case 4: return 'g';"
    " case 5: return 'r'; case 6: return 'w'; case 7: return 'e'; } return 0; }",
    "sign extension": "int f(int x) { return (signed char)x + (short)x; }",
    "large copy": "struct s { int a[50]; } x, y; int f(void) { x = y; return 0; }",
    "clearing": "int a[500]; int f(void) { for (int i = 0; i < 500; i++) a[i] = 0; return a[5]; }",
    "median by shift": "unsigned f(unsigned a, unsigned b) { return (a & b) + ((a ^ b) >> 1); }",
    "division by ten": "unsigned f(unsigned x) { return x / 10 + x % 7; }",
    "signed remainder": "int f(int x) { return x / 7 + x % 10; }",
}


@pytest.mark.parametrize("opt", ["-O0", "-O1", "-O2", "-O3"])
def test_32_bit_code_has_only_32_bit_instructions(opt):
    functions = [text.replace(" f(", f" f{i}(") for i, text in enumerate(PLAIN.values())]
    exports = tuple(f"f{i}" for i in range(len(PLAIN)))
    found = opcodes(
        compiled(
            "\n".join(functions).replace("x, y;", "v1, v2;").replace("x = y", "v1 = v2"),
            opt,
            exports,
        )
    )
    assert not {
        op
        for op in found
        if not op.startswith("i32") and "." in op and not op.startswith(("local.", "global."))
    }
    assert not found & {"i32.extend8_s", "i32.extend16_s", "memory.copy", "memory.fill"}


@BOTH
def test_copies_of_small_structs_move_64_bits_at_most(opt):
    text = """
    struct pair { int a, b; } x, y, z[4];
    void take(struct pair *p);
    int f(struct pair *p) {
      struct pair local = {0}, two = {1, 2};
      x = y; z[1] = *p; *p = two; z[2] = local;
      return z[1].a;
    }"""
    found = opcodes(compiled(text.replace("void take(struct pair *p);", ""), opt, ("f",)))
    assert {op for op in found if op.startswith("i64")} <= MOVES


def test_text_format_is_assembled(tmp_path):
    path = tmp_path / "seven.wat"
    path.write_text('(module (func (export "main") (result i32) i32.const 7))')
    source = to_wasm(path)
    assert source.name == "seven.wat"
    assert run(source.wasm).value == 7


def test_binary_format_is_taken_as_it_is(tmp_path):
    wasm = compiled("int main(void) { return 9; }")
    path = tmp_path / "nine.wasm"
    path.write_bytes(wasm)
    assert to_wasm(str(path)).wasm == wasm


def test_names_that_look_like_options_are_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("-O3.c", "@x.c", "a b.c"):
        Path(name).write_text("int main(void) { return 3; }")
        assert run(to_wasm(name).wasm).exit_code == 3

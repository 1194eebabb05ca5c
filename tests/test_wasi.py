"""The WASI library over byte output and input does what it does over wasmtime's WASI."""

from __future__ import annotations

import pytest

from c_programs import export_names, opcodes, run
from compiler.errors import CompileError, UsageError
from compiler.frontend import to_wasm
from compiler.wasm import decode
from wasi_programs import EVERYTHING, INPUT, ended, linked, main, original, run_real, same

BOTH = pytest.mark.parametrize("opt", ["-O0", "-O2"])


@BOTH
def test_one_of_everything(opt):
    output = same(EVERYTHING, ["one", "", "two words", "ä"], INPUT, opt)
    assert output.endswith(b"1 -1\nbye\n")
    assert b"5 17 -2500 word 255 abc\n" in output


def test_nothing_of_wasi_is_left_to_import():
    for text in (EVERYTHING, main("return 0;")):
        module = decode(linked(text), "test")
        imported = {f.imported.module for f in module.functions if f.imported}
        assert imported <= {"transputer"}
        assert "memory.grow" not in opcodes(linked(text))


@pytest.mark.parametrize("head", ["int main(void)", "int main()", "int main(int c, char **v)"])
def test_every_form_of_main_returns_its_exit_code(head):
    wasm = linked(head + " { return 42; }")
    assert run(wasm).exit_code == 42
    assert ("transputer_wants_args" in export_names(wasm)) is ("char" in head)


def test_arguments_of_every_length():
    text = main(
        'for (int i = 1; i < argc; i++) printf("%zu ", strlen(argv[i])); return argv[argc] != 0;'
    )
    args = ["", "x" * 100_000, "\x01", ""]
    assert same(text, args) == b"0 100000 1 0 "


def test_input_holds_any_byte():
    text = main(
        "unsigned sum = 0, n = 0;"
        "for (int c; (c = getchar()) != EOF; n++) sum = sum * 31 + c;"
        'printf("%u %u", n, sum);'
    )
    data = bytes(range(256)) * 3 + b"\0\n\0"
    assert same(text, stdin=data).startswith(b"771 ")
    assert same(text) == b"0 0"


def test_reading_stops_after_a_line():
    text = main(
        "char line[80]; fgets(line, 80, stdin); return transputer_position;",
        "#include <transputer.h>",
    )
    assert ended(text, stdin=b"12345\nnot read yet\n").exit_code == len("program.c") + 2 + 1 + 6


def test_output_comes_at_once():
    text = main('puts("seen"); printf("seen too"); putchar(65); __builtin_trap();')
    assert run(linked(text)).output == b"seen\nseen too"


def test_closed_streams_take_nothing_more():
    text = main(
        r"""
  printf("%d", 1); printf("%d %d ", close(0), close(0)); printf("%d\n", getchar()); fflush(stdout);
  close(1); printf("lost");
  int failed = fflush(stdout) || ferror(stdout);
  fprintf(stderr, "%d %d\n", failed, (int)write(1, "x", 1)); return errno == EBADF;
"""
    )
    assert same(text, stdin=b"x") == b"10 -1 -1\n"


def test_buffers_as_a_program_sets_them():
    text = main(
        r"""
  static char room[100];
  setvbuf(stdout, room, _IOFBF, sizeof room); putchar('a'); printf("b%dc\n", 7); puts("d");
  fwrite("efghij", 2, 3, stdout); fprintf(stderr, "first "); fflush(stdout);
  setvbuf(stderr, NULL, _IOLBF, 64); fputs("e1\ne2", stderr); return fputc('\n', stderr);
"""
    )
    assert same(text) == b"ab7c\nd\nefghij"


@pytest.mark.parametrize("end", ["return 3;", "exit(4);", "_exit(5);"])
def test_a_normal_end_flushes_every_stream(end):
    text = main(
        rf"""
  FILE *more = fdopen(1, "w"), *lines = fdopen(2, "a");
  putc('a', more); putchar('d'); putc('e', lines);
  char *memory; size_t size;
  FILE *kept = open_memstream(&memory, &size); putc('f', kept); getchar();
  {end}
"""
    )
    assert same(text, stdin=b"xyz") == (b"" if end[0] == "_" else b"ad")


def test_what_prints_nothing_links_no_streams():
    assert len(linked("int main(void) { return 0; }")) < 1000


def test_abort_and_assert_trap():
    head = "#include <assert.h>"
    assert run(linked(main("abort();"))).trap == "unreachable"
    failed = run(linked(main("assert(argc == 2); return 0;", head)))
    assert failed.trap == "unreachable"
    assert b"Assertion failed: argc == 2" in failed.errors
    assert run(linked(main("assert(argc == 2); return 0;", head)), ["x"]).exit_code == 0


def test_one_function_can_be_called_and_what_it_prints_is_seen(tmp_path):
    path = tmp_path / "part.c"
    path.write_text('#include <stdio.h>\nint f(int x) { printf("f(%d)", x); return x + 1; }\n')
    from executor.reference import run_reference

    result = run_reference(to_wasm(path, libc="wasi", exports=["f"]).wasm, call=("f", 4))
    assert (result.value, result.output) == (5, b"f(4)")


def test_warnings_are_said_every_time(tmp_path):
    path = tmp_path / "warns.c"
    path.write_text('int main(void) { return "a" == "b"; }\n')
    for libc in ("wasi", "tiny"):
        first, second = (to_wasm(path, libc=libc).warnings for _ in range(2))
        assert first == second
        assert f"{path}:1:" in first


def test_errors_say_what_to_do(tmp_path):
    path = tmp_path / "wrong.c"
    path.write_text("int missing(void);\nint main(void) { return missing(); }\n")
    with pytest.raises(CompileError, match="nothing in the C library defines missing"):
        to_wasm(path, libc="wasi")
    path.write_text("int other(void) { return 0; }\n")
    with pytest.raises(CompileError, match="write `int main"):
        to_wasm(path, libc="wasi")
    path.write_text("char huge[20 << 20]; int main(void) { return huge[5]; }\n")
    with pytest.raises(CompileError, match="must fit the memory .16 MiB"):
        to_wasm(path, libc="wasi")
    with pytest.raises(UsageError, match="no such C library"):
        to_wasm(path, libc="glibc")
    path.write_text("#include <stdio.h>\nint main(void) { return fputs(0, 0); }\n")
    with pytest.raises(CompileError, match="--libc=wasi takes all of it"):
        to_wasm(path, libc="tiny")
    path = tmp_path / "plus.cpp"
    path.write_text("int main() { return 0; }\n")
    with pytest.raises(UsageError, match="C\\+\\+ needs the whole library"):
        to_wasm(path, libc="tiny")


CXX = r"""
#include <algorithm>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <vector>
struct Shape {
  virtual ~Shape() = default;
  virtual double area() const = 0;
};
struct Square : Shape {
  double side;
  explicit Square(double side) : side(side) {}
  double area() const override { return side * side; }
};
struct Global {
  Global() { std::puts("made"); }
  ~Global() { std::puts("gone"); }
} global;
int main(int argc, char **argv) {
  std::vector<std::string> words(argv + 1, argv + argc);
  std::sort(words.begin(), words.end());
  std::map<std::string, int> counts;
  for (std::string word; std::cin >> word;) counts[word]++;
  for (auto &word : words) std::cout << word << ' ';
  for (auto &[word, n] : counts) std::cout << word << '=' << n << '\n';
  std::unique_ptr<Shape> shape = std::make_unique<Square>(1.5);
  std::cout << shape->area() << std::endl;
  return int(counts.size());
}
"""


@pytest.mark.long
@BOTH
def test_cxx_with_its_library(opt):
    ours = run(linked(CXX, opt, ".cpp"), ["b", "a"], b"x y x\n")
    real = run_real(original(CXX, opt, ".cpp"), ["b", "a"], b"x y x\n")
    assert (ours.output, ours.exit_code) == (real.stdout, real.exit_code)
    assert ours.output == b"made\na b x=2\ny=1\n2.25\ngone\n"


@pytest.mark.long
def test_a_megabyte_of_input():
    text = main(
        "unsigned n = 0, lines = 0;"
        "for (int c; (c = getchar()) != EOF; n++) lines += c == 10;"
        'printf("%u %u", n, lines);'
    )
    data = (b"x" * 99 + b"\n") * 10_486
    assert same(text, stdin=data) == b"1048600 10486"

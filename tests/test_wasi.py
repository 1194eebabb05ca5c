"""The WASI library over byte output and input does what it does over wasmtime's WASI."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import pytest

from c_programs import export_names, opcodes, run
from compiler.errors import CompileError, UsageError
from compiler.frontend import to_wasm
from compiler.wasm import decode
from executor.reference import ReferenceResult
from wasi_programs import linked, original, run_real

BOTH = pytest.mark.parametrize("opt", ["-O0", "-O2"])


def same(text: str, args: Sequence[str] = (), stdin: bytes = b"", opt: str = "-O2") -> bytes:
    """Standard output of a program, which must be that of the original, as standard error."""
    ours, real = run(linked(text, opt), args, stdin), run_real(original(text, opt), args, stdin)
    assert (ours.trap is not None, real.trap or real.exit_code & 0xFF) == (
        real.trap,
        True if ours.trap else ours.exit_code,
    )
    assert (ours.output, ours.errors) == (real.stdout, real.stderr)
    return ours.output


def main(body: str, head: str = "") -> str:
    """A program whose main has this body; the headers that most need are there."""
    headers = ("errno", "stdio", "stdlib", "string", "ctype", "math", "stdint", "time", "unistd",
               "fcntl", "signal")  # fmt: skip
    includes = "\n".join(f"#include <{name}.h>" for name in headers)
    return f"{includes}\n{head}\nint main(int argc, char **argv) {{\n{body}\n}}\n"


def ended(text: str, args: Sequence[str] = (), stdin: bytes = b"") -> ReferenceResult:
    """The result of a program that must end by itself."""
    result = run(linked(text), args, stdin)
    assert result.trap is None, result
    return result


EVERYTHING = main(
    r"""
  printf("%d %i %u %x %X %o %c %s", -5, 7, 3000000000u, 255, 255, 8, 'c', "text");
  printf(" %% %p\n", (void *)16);
  printf("[%5d|%-5d|%05d|%+d|% d|%.3d|%*d|%-*d]\n", 1, 2, 3, 4, 5, 6, 7, 8, 9, 10);
  printf("%lld %llu %hhd %hd %zu %jd\n", -1234567890123456789LL, 18446744073709551615ULL, 300,
         70000, sizeof(int), (intmax_t)-1);
  printf("%f %.3f %e %g %g %a %G %10.2f|%-10.1e|\n", 3.14159, 2.0 / 3, 12345.678, 1e-5, 1e20, 0.1,
         1e-20, -1.5, 1234.5);
  printf("%f %f %g %.0f\n", INFINITY, -NAN < 0 ? 1.0 : 2.0, -0.0, 2.5);
  printf("%g %g %g %g\n", sqrt(2), pow(2, 0.5), sin(1), exp(1));
  for (int i = 0; i < argc; i++) printf("<%s>", i ? argv[i] : "0");
  int a; double x; char word[10], set[10]; unsigned h;
  printf("\n%d", scanf("%d %lf %9s %x %[a-c]", &a, &x, word, &h, set));
  printf(" %d %g %s %u %s\n", a, x, word, h, set);
  int numbers[] = {5, 3, -9, 5, 0, 77, -2, 3};
  qsort(numbers, 8, sizeof *numbers, compare);
  for (int i = 0; i < 8; i++) printf("%d ", numbers[i]);
  int key = 77, *found = bsearch(&key, numbers, 8, sizeof *numbers, compare);
  printf("%d\n", (int)(found - numbers));
  char *text = strdup("a,b;c"), *part = strtok(text, ",;");
  for (; part; part = strtok(NULL, ",;")) printf("(%s)", part);
  char buffer[40];
  printf("%d %s\n", snprintf(buffer, 8, "%s", "truncated"), buffer);
  printf("%ld %lu %d %g\n", strtol("-0x1f", NULL, 0), strtoul("777", NULL, 8), atoi("12x"),
         atof("1e3"));
  printf("%d%d%d %c\n", !!isalpha('a'), !!isdigit('a'), !!isspace('\t'), toupper('q'));
  FILE *file = fopen("none.txt", "r");
  printf("%d %s\n", file != NULL, strerror(errno));
  printf("%d ", open("/etc/passwd", O_RDONLY)); perror("open");
  printf("%d %d\n", remove("x"), rename("x", "y"));
  printf("%d %s\n", getenv("HOME") != NULL, setlocale_name());
  printf("%ld\n", (long)lseek(0, 0, SEEK_CUR) == -2 ? 1L : 0L);
  fprintf(stderr, "to stderr %d\n", 1);
  char line[80];
  while (fgets(line, sizeof line, stdin)) printf("line %zu: %s", strlen(line), line);
  printf("%d %d\n", feof(stdin) != 0, getchar());
  atexit(bye);
  exit(42);
""",
    """#include <locale.h>
static int compare(const void *a, const void *b) {
  int x = *(const int *)a, y = *(const int *)b;
  return (x > y) - (x < y);
}
static const char *setlocale_name(void) { return setlocale(LC_ALL, ""); }
static void bye(void) { puts("bye"); }""",
)
INPUT = b"17 -2.5e3 word ff abcd rest\nsecond line\n\nlast without end"


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


def test_an_overflow_of_the_stack_traps_and_a_larger_stack_helps(tmp_path):
    path = tmp_path / "deep.c"
    path.write_text(main("volatile char a[1100000]; a[argc] = 5; return a[argc];"))
    assert run(to_wasm(path, libc="wasi").wasm).trap == "out of bounds memory access"
    assert run(to_wasm(path, libc="wasi", stack_bytes=1 << 21).wasm).exit_code == 5


MEMORY = r"""
  static unsigned char *block[200]; static size_t size[200];
  unsigned state = 1, held = 0;
  for (int step = 0; step < 3000; step++) {
    state = state * 1664525 + 1013904223;
    unsigned i = (state >> 8) % 200, n = (state >> 16) % ((state >> 4) % 7 ? 300 : 90000);
    if (block[i]) for (size_t k = 0; k < size[i]; k += 1 + size[i] / 5) if (block[i][k] != (unsigned char)(i + k)) return 1;
    unsigned char *p;
    switch (state >> 29) {
      case 0: case 1: free(block[i]); block[i] = 0; size[i] = 0; continue;
      case 2: p = realloc(block[i], n); if (p) for (size_t k = 0; k < size[i] && k < n; k += 1 + size[i] / 5) if (p[k] != (unsigned char)(i + k)) return 2; break;
      case 3: free(block[i]); p = calloc(n / 4, 4); n = n / 4 * 4; if (p) for (size_t k = 0; k < n; k++) if (p[k]) return 3; break;
      case 4: free(block[i]); p = aligned_alloc(64, n); HIDE(p); if ((size_t)p % 64) return 4; break;
      default: free(block[i]); p = malloc(n); HIDE(p); if ((size_t)p % 16) return 5;
    }
    if (!p && n) return 6;
    block[i] = p; size[i] = p ? n : 0; held++;
    for (size_t k = 0; k < size[i]; k++) p[k] = (unsigned char)(i + k);
  }
  for (int i = 0; i < 200; i++) for (int k = 0; k < i; k++)
    if (block[i] && block[k] && size[i] && block[i] < block[k] + size[k] && block[k] < block[i] + size[i]) return 7;
  return held > 1000 ? 0 : 8;
"""  # noqa: E501


def test_memory_functions_keep_what_they_hold():
    hide = '#define HIDE(p) __asm__("" : "+r"(p)) /* its alignment must not be taken for granted */'
    assert ended(main(MEMORY, hide)).exit_code == 0


def test_memory_that_is_used_up():
    text = main(
        r"""
  size_t total = 0, blocks = 0; void *last = 0;
  for (void *p; (p = malloc(10000)); total += 10000, blocks++) *(void **)p = last, last = p;
  if (errno != ENOMEM) return 1;
  void *volatile all[] = {
      malloc(-1u), malloc(-1u / 2), calloc(65536, 65536), realloc(last, 1u << 31)};
  for (int i = 0; i < 4; i++) if (all[i]) return 2;
  void *end; if (posix_memalign(&end, 1 << 20, 1 << 25) != ENOMEM || aligned_alloc(24, 1)) return 3;
  if (sbrk(1 << 25) != (void *)-1) return 4;
  for (void *p = last; p; p = last) last = *(void **)p, free(p);
  if (!malloc(10000)) return 5;
  printf("%zu", total / 1000000); return 0;
"""
    )
    assert ended(text).output == b"9"  # blocks of 2^14 bytes in 15 MiB


def test_sorting_is_stable_and_right_for_every_size():
    text = main(
        r"""
  static struct { short key; char pad[3]; int place; } item[100];
  unsigned state = 7;
  for (int n = 0; n < 100; n++) {
    for (int i = 0; i < n; i++) {
      state = state * 69069 + 1;
      item[i].key = state >> 28, item[i].place = i;
    }
    qsort(item, n, sizeof *item, compare);
    for (int i = 1; i < n; i++)
      if (item[i - 1].key > item[i].key ||
          (item[i - 1].key == item[i].key && item[i - 1].place > item[i].place)) return 1;
  }
  return 0;
""",
        "static int compare(const void *a, const void *b) { return *(short *)a - *(short *)b; }",
    )
    assert ended(text).exit_code == 0


def test_time_goes_on_and_random_numbers_repeat():
    text = main(
        r"""
  time_t start = time(0); clock_t ticks = clock();
  while (clock() - ticks < CLOCKS_PER_SEC / 100) {}
  struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t);
  usleep(5000); nanosleep(&(struct timespec){2, 0}, 0);
  struct tm *now = gmtime(&start);
  unsigned char bytes[4]; getentropy(bytes, 4);
  printf("%d %d %02x%02x%02x%02x", now->tm_year, time(0) - start >= 2, bytes[0], bytes[1], bytes[2],
         bytes[3]);
  return 0;
"""
    )
    assert ended(text).output == ended(text).output
    assert ended(text).output.startswith(b"100 1 ")


@pytest.mark.parametrize(
    ("body", "has_doubles", "has_long_doubles"),
    [
        ('printf("%d %s\\n", argc, argv[0]);', False, False),
        ("double x; scanf(\"%lf\", &x); printf(\"%f\\n\", x / argc);", True, False),
        ('float x = argc; printf("%g\\n", x);', True, False),
        ('printf("%g\\n", atof("2.5"));', True, False),
        ('long double x = argc; printf("%Lg\\n", x / 3);', True, True),
    ],
)  # fmt: skip
def test_printf_is_linked_for_the_types_that_the_program_has(body, has_doubles, has_long_doubles):
    text = main(body)
    module = decode(linked(text), "test")
    assert same(text, stdin=b"7.25") != b""
    names = {function.name for function in module.functions}
    assert ("__extenddftf2" in names or "__multf3" in names) is has_long_doubles
    assert any(op.startswith("f64") for op in opcodes(linked(text))) is has_doubles


def test_printf_without_floats_never_prints_something_else():
    head = "extern int printf(const char *, ...);"
    text = head + 'int main(void) { printf("%d %f", 1, 2LL); return 0; }'
    result = run(linked(text))
    assert result.trap == "unreachable"
    assert b"use a double in the program" in result.errors
    text = '#include <stdio.h>\nint main(void) { char x[8]; return scanf("%lf", (void *)x); }'
    result = run(linked(text), stdin=b"1.5")
    assert result.trap == "unreachable"
    assert b"has a float or double" in result.errors


@pytest.mark.parametrize("opt", ["-O0", "-O2"])
@pytest.mark.parametrize(
    "body",
    [
        'errno = ENOENT; printf("%m|%-30m|%.4m|%d", 5);',
        'const char *form = argc ? "\\"%5.3m\\"" : ""; errno = EBADF; printf(form);',
        'char form[] = {37, 109, 0}; errno = 999; printf(form);',
        '#define FORM(x) "%" #x\n errno = ERANGE; fprintf(stdout, FORM(m));',
        'double m = argc; errno = EDOM; printf("%g %m", m);',
    ],
)  # fmt: skip
def test_texts_of_errors_are_linked_where_a_format_asks_for_them(body, opt):
    assert same(main(body + " return 0;"), opt=opt) != b""


def test_formats_without_a_text_of_errors_leave_them_out_and_never_print_something_else():
    text = main('int m = argc * 5, mul = m % 3; printf("%d%% more %d", m, mul); return 0;')
    assert b"Bad file descriptor" not in linked(text)
    made = 'char form[] = "%d"; form[argc] = "m"[0]; return printf(form, 1);'
    result = run(linked(main(made)))
    assert result.trap == "unreachable"
    assert b"%m in a format is linked only where" in result.errors


def test_hello_is_short():
    wasm = linked('#include <stdio.h>\nint main(void) { printf("Hello, %d!\\n", 42); return 0; }')
    module = decode(wasm, "test")
    assert sum(len(function.code) for function in module.functions) < 4_000
    assert run(wasm).instructions < 2_500


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


@pytest.mark.long
def test_printf_of_doubles_is_that_of_the_original():
    text = main(
        r"""
  double x;
  while (scanf("%lf", &x) == 1) {
    printf("%g %f %e %.0f %.15g %.17g %a %.3a %25.20f %.40g\n", x, x, x, x, x, x, x, x, x, x);
    printf("%.9g %g\n", (double)(float)x, fmod(x, 3));
    for (int i = 0; i < 16; i++) printf("%.*a %.*e ", i, x, i, x);
  }
"""
    )
    digest = hashlib.sha256(b"doubles").digest()
    numbers = [
        f"{int.from_bytes(digest[i : i + 4], 'big')}e{digest[i] % 600 - 310}" for i in range(28)
    ]
    numbers += ["0", "-0", "inf", "nan", "1e308", "5e-324", "2.2250738585072014e-308", "0.1", "9.5"]
    same(text, stdin=" ".join(numbers).encode())

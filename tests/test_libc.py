"""The small C library against Python's own functions, at -O0 and -O2."""

from __future__ import annotations

import random
import tomllib
from pathlib import Path

import pytest

from c_programs import compiled, run, run_c

BOTH = pytest.mark.parametrize("opt", ["-O0", "-O2"])
EDGES = [0, 1, -1, 9, 10, -10, 99, 100, 43690, 43697, 43698, 43699, 81919, 99999, 100000,
         2**31 - 1, -(2**31), -(2**31) + 1, 1000000000, 999999999]  # fmt: skip
ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def numbers() -> list[int]:
    chosen = random.Random(7)
    return EDGES + [chosen.randrange(-(2**31), 2**31) >> chosen.randrange(31) for _ in range(200)]


@BOTH
def test_print_helpers(numbers, opt):
    text = """
    #include <stdio.h>
    int main(void) {
      for (int x; read_int(&x) == 1;) {
        print_int(x); putchar(' '); print_uint(x); putchar(' '); print_hex(x); print_str("\\n");
      }
      return 0;
    }"""
    expected = "".join(f"{x} {x % 2**32} {x % 2**32:x}\n" for x in numbers)
    assert run_c(text, opt=opt, stdin=" ".join(map(str, numbers)).encode()) == expected


def test_every_decimal_digit_is_right():
    """Around all multiples of ten up to 100,000, and a sample of those above."""
    text = """
    static unsigned tenth_of(unsigned n);
    #include "stdio.c"
    static unsigned tenth_of(unsigned n) { return tenth(n); }
    int check(void) {
      for (unsigned n = 0; n < 100000; n++) if (tenth_of(n) != n / 10) return (int)n;
      for (unsigned q = 9990; q < 429496729; q += 997)
        for (unsigned n = 10 * q - 1; n <= 10 * q + 1; n++)
          if (tenth_of(n) != n / 10) return (int)n;
      for (unsigned n = 4294967280u; n; n++) if (tenth_of(n) != n / 10) return (int)n;
      return -1;
    }
    int main(void) { return check() != -1; }"""
    assert run_c(text) == ""


def test_printf_matches_python():
    conversions = ["d", "5d", "-7d", "07d", "+d", " d", "+6d", "u", "12u", "x", "08x", "X", "-9x"]
    text = """
    #include <stdio.h>
    int main(void) {
      int written = 0;
      for (int x; read_int(&x) == 1;) {
        written += printf("[FORMATS]\\n", x, x, x, x, x, x, x, x, x, x, x, x, x);
      }
      printf("%d", written);
      return 0;
    }""".replace("FORMATS", "|".join("%" + c for c in conversions))
    rows = []
    for x in EDGES:
        shown = ["%" + c.replace("u", "d") if c[-1] in "uxX" else "%" + c for c in conversions]
        values = [x % 2**32 if c[-1] in "uxX" else x for c in conversions]
        rows.append("[" + "|".join(f % v for f, v in zip(shown, values, strict=True)) + "]\n")
    output = run_c(text, stdin=" ".join(map(str, EDGES)).encode())
    expected = "".join(rows)
    assert output == f"{expected}{len(expected)}"


def test_printf_of_text():
    text = r"""
    #include <stdio.h>
    int main(void) {
      printf("%s|%6s|%-6s|%.2s|%c|%3c|%%|%*d|%-*d|%.*s|%ld|%zu|%hd\n", "abc", "abc", "abc",
             "abc", 'x', 'y', 5, 42, 5, 42, 1, "xyz", 7L, (size_t)8, (short)9);
      return 0;
    }"""
    expected = "abc|   abc|abc   |ab|x|  y|%|   42|42   |x|7|8|9\n"
    assert run_c(text) == expected
    assert run_c(text, opt="-O0") == expected


@pytest.mark.parametrize("conversion", ["%lld", "%n", "%.3d"])
def test_printf_traps_rather_than_print_something_else(conversion):
    text = f'#include <stdio.h>\nint main(void) {{ printf("{conversion}", 5, 6); return 0; }}'
    assert run(compiled(text)).trap == "unreachable"


def test_read_int_reads_numbers_and_stops_where_there_is_none():
    text = """
    #include <stdio.h>
    int main(void) {
      for (int x, status;;) {
        status = read_int(&x);
        if (status == 1) { print_int(x); putchar(' '); continue; }
        print_int(status);
        if (status < 0) return 0;
        putchar('<'); putchar(getchar()); putchar('>');
      }
    }"""
    assert run_c(text, stdin=b"  12\t-7\r\n+3 x-4y5") == "12 -7 3 0<x>-4 0<y>5 -1"
    assert run_c(text, stdin=b"- 1 4294967297") == "0<->1 1 -1"
    assert run_c(text) == "-1"


SCANNED = [
    (b" 12 -7+3", "%d%d%d"), (b"1,2", "%d ,%d"), (b"1 ,2", "%d ,%d"), (b"x", "%d%d%d"), (b"", "%d"),
    (b"7", "%d%d"), (b"12345", "%2d%2d%d"), (b"ff 1F +a", "%x%x%x"), (b"4294967295", "%u"),
    (b"-", "%d"), (b"1 2 3", "%*d%d"), (b"50% 7", "%d%%%d"), (b"ab12", "ab%d"), (b"ac12", "ab%d"),
    (b"a", "ab%d"), (b" 5", " %ld"), (b"- 5", "%d"), (b"\t\n6\r\n", "%d\\n%d"), (b"12a", "%d%x"),
]  # fmt: skip


@pytest.mark.parametrize("libc", ["tiny", "wasi"])
def test_scanf_reads_what_the_whole_library_reads(libc):
    """Number of values, the values, and the byte that comes next; for both libraries the same."""
    cases = "".join(
        f'case {i}: n = scanf("{text}", &x[0], &x[1], &x[2]); break;'
        for i, (_, text) in enumerate(SCANNED)
    )
    text = f"""
    #include <stdio.h>
    #include <stdlib.h>
    int main(int argc, char **argv) {{
      int x[3] = {{-9, -9, -9}}, n = 0;
      switch (atoi(argv[1])) {{ {cases} }}
      printf("%d %d %d %d %d", n, x[0], x[1], x[2], getchar());
      return 0;
    }}"""
    wasm = compiled(text, libc=libc)
    found = [run(wasm, [str(i)], data).output for i, (data, _) in enumerate(SCANNED)]
    expected = [
        "3 12 -7 3 -1", "2 1 2 -9 -1", "2 1 2 -9 -1", "0 -9 -9 -9 120", "-1 -9 -9 -9 -1",
        "1 7 -9 -9 -1", "3 12 34 5 -1", "3 255 31 10 -1", "1 -1 -9 -9 -1",
        "0 -9 -9 -9 -1", "1 2 -9 -9 32", "2 50 7 -9 -1", "1 12 -9 -9 -1", "0 -9 -9 -9 99",
        "-1 -9 -9 -9 -1", "1 5 -9 -9 -1", "0 -9 -9 -9 32", "1 6 -9 -9 -1", "2 12 10 -9 -1",
    ]  # fmt: skip
    assert found == [line.encode() for line in expected]


def test_scanf_of_text():
    text = """
    #include <stdio.h>
    int main(void) {
      char word[9] = "", short_[4] = "", two[3] = "", one;
      int n = scanf("%s%3s%*s%c%2c%s", word, short_, &one, two, word);
      printf("%d %s %s <%c> %s", n, word, short_, one, two);
      return 0;
    }"""
    assert run_c(text, stdin=b"  first abcdef\nxy\tlast") == "5 last abc <\n> xy"


@pytest.mark.parametrize("conversion", ["%lld", "%hd", "%f", "%[a]", "%n"])
def test_scanf_traps_rather_than_store_something_else(conversion):
    text = f'#include <stdio.h>\nint main(void) {{ char x[8]; return scanf("{conversion}", x); }}'
    assert run(compiled(text), stdin=b"5").trap == "unreachable"


@BOTH
def test_memory_functions_for_every_alignment_and_size(opt):
    text = """
    #include <string.h>
    static unsigned char a[64], b[64], want[64];
    static void fill(void) {
      for (int i = 0; i < 64; i++) a[i] = b[i] = want[i] = (unsigned char)(i * 7 + 3);
    }
    static int same(const unsigned char *p) {
      for (int i = 0; i < 64; i++) if (p[i] != want[i]) return 0;
      return 1;
    }
    int main(void) {
      for (int to = 0; to < 6; to++) for (int from = 0; from < 12; from++)
        for (int size = 0; size < 19; size++) {
          fill();
          for (int i = 0; i < size; i++) want[to + i] = (unsigned char)(255 - b[from + i]);
          for (int i = 0; i < 64; i++) b[i] = (unsigned char)(255 - b[i]);
          if (memcpy(a + to, b + from, size) != a + to || !same(a)) return 1;
          fill();
          for (int i = 0; i < size; i++) want[to + i] = b[from + i];
          if (memmove(a + to, a + from, size) != a + to || !same(a)) return 2;
          fill();
          for (int i = 0; i < size; i++) want[from + i] = 0xa5;
          if (memset(a + from, 0x1a5, size) != a + from || !same(a)) return 3;
          fill();
          if (memcmp(a + from, b + from, size) != 0) return 4;
          if (size) {
            b[from + size - 1]++;
            if (memcmp(a + from, b + from, size) >= 0) return 5;
            if (memcmp(b + from, a + from, size) <= 0) return 6;
            if (memchr(a + from, a[from + size - 1], size) != a + from + size - 1) return 7;
          }
          if (memchr(a + from, 2, size)) return 8;
        }
      return 0;
    }"""
    assert run_c(text, opt=opt) == ""


def test_string_functions():
    text = r"""
    #include <string.h>
    #define CHECK(c) if (!(c)) return __LINE__
    int main(void) {
      char t[20];
      CHECK(strlen("") == 0 && strlen("hello") == 5);
      CHECK(!strcmp("", "") && strcmp("a", "b") < 0 && strcmp("b", "a") > 0);
      CHECK(strcmp("ab", "a") > 0 && strcmp("a", "ab") < 0 && strcmp("\xff", "a") > 0);
      CHECK(!strncmp("abc", "abd", 2) && strncmp("abc", "abd", 3) < 0 && !strncmp("a", "b", 0));
      CHECK(strcpy(t, "one") == t && !strcmp(t, "one") && strcat(t, "two") == t);
      CHECK(!strcmp(t, "onetwo") && strchr(t, 'o') == t && strrchr(t, 'o') == t + 5);
      CHECK(strchr(t, 0) == t + 6 && strrchr(t, 0) == t + 6 && !strchr(t, 'x') && !strrchr(t, 'x'));
      strncpy(t, "ab", 5);
      CHECK(!memcmp(t, "ab\0\0\0o", 6));
      strncpy(t, "abcdef", 3);
      CHECK(!memcmp(t, "abc\0\0o", 6));
      return 0;
    }"""
    assert run(compiled(text)).value == 0
    assert run(compiled(text, "-O0")).value == 0


def test_character_classes_match_python():
    names = ["isdigit", "islower", "isupper", "isalpha", "isalnum", "isxdigit", "isspace",
             "isprint", "isgraph", "iscntrl", "ispunct"]  # fmt: skip
    text = "#include <ctype.h>\n#include <stdio.h>\nint main(void) {\n"
    text += "for (int c = -1; c < 256; c++) {\n"
    text += "".join(f"putchar({name}(c) ? '1' : '0');\n" for name in names)
    text += "print_int(tolower(c)); putchar(' '); print_int(toupper(c)); putchar('\\n'); }\n"
    text += "return 0; }"
    python = {
        "isdigit": str.isdigit, "islower": str.islower, "isupper": str.isupper,
        "isalpha": str.isalpha, "isalnum": str.isalnum,
        "isxdigit": lambda c: c in "0123456789abcdefABCDEF",
        "isspace": lambda c: c in " \t\n\v\f\r", "isprint": lambda c: " " <= c <= "~",
        "isgraph": lambda c: "!" <= c <= "~", "iscntrl": lambda c: c < " " or c == "\x7f",
        "ispunct": lambda c: "!" <= c <= "~" and not c.isalnum(),
    }  # fmt: skip
    rows = []
    for code in range(-1, 256):
        c = chr(code) if 0 <= code < 128 else None
        flags = "".join(str(int(bool(c is not None and python[name](c)))) for name in names)
        low, up = (ord(c.lower()), ord(c.upper())) if c else (code, code)
        rows.append(f"{flags}{low} {up}\n")
    assert run_c(text) == "".join(rows)
    assert run_c(text, opt="-O0") == "".join(rows)


def test_numbers_from_text():
    cases = {"42": 42, "  -17x": -17, "+5": 5, "": 0, "x1": 0, "-2147483648": -(2**31)}
    text = """
    #include <stdio.h>
    #include <stdlib.h>
    int main(int c, char **v) { for (int i = 1; i < c; i++) { print_int(atoi(v[i])); putchar(' '); }
                                return abs(-3) + abs(4) - 7; }"""
    assert run_c(text, args=list(cases)) == "".join(f"{value} " for value in cases.values())


def test_the_heap_gives_distinct_aligned_zeroed_blocks_until_it_is_full():
    text = """
    #include <stdio.h>
    #include <stdlib.h>
    int main(void) {
      char *last = 0;
      int blocks = 0;
      for (int *p; (p = calloc(25, sizeof *p)); blocks++) {
        if ((unsigned)p % 8 || (char *)p < last) return 1;
        for (int i = 0; i < 25; i++) { if (p[i]) return 2; p[i] = -1; }
        last = (char *)(p + 25);
        free(p);
      }
      if (malloc(0xffffffff) || malloc(0x7fffffff) || calloc(0x10000, 0x10000)) return 3;
      return blocks > 250 ? 0 : 4;
    }"""
    assert run_c(text) == ""


def test_arguments_that_do_not_fit_into_memory_trap():
    text = "int main(int argc, char **argv) { return argc; }"
    assert run(compiled(text), ["x" * 20_000]).exit_code == 2
    for args in (["x" * 40_000], [""] * 7_000):
        assert run(compiled(text), args).trap == "out of bounds memory access"


def test_random_numbers_repeat_with_their_seed():
    text = """
    #include <stdio.h>
    #include <stdlib.h>
    int main(void) { for (int s = 1; s < 3; s++) for (int r = 0; r < 2; r++) {
        srand(s); for (int i = 0; i < 3; i++) { print_int(rand()); putchar(' '); } putchar(';'); }
      return 0; }"""
    first, again, other, _, _ = run_c(text).split(";")
    assert first == again != other
    assert all(0 <= int(number) < 2**31 for number in first.split())


def test_typical_calls_stay_cheap():
    """Executed instructions; the model writes about five tokens for each."""
    head = "#include <stdio.h>\nint main(void) { "
    base = run(compiled(head + "return 0; }")).instructions
    for body, most in [
        ('puts("hello");', 70),
        ("print_int(7);", 40),
        ("print_int(12345);", 200),
        ("print_int(-2147483648);", 600),
        ('printf("%d\\n", 42);', 320),
    ]:
        assert run(compiled(head + body + " return 0; }")).instructions - base <= most, body


def test_the_wheel_holds_the_library_and_the_programs():
    with open(ROOT / "pyproject.toml", "rb") as file:
        setuptools = tomllib.load(file)["tool"]["setuptools"]
    packages = set(setuptools["packages"])
    for top in ("compiler", "executor", "hullcache", "programs"):
        for path in (ROOT / top).rglob("__init__.py"):
            assert ".".join(path.parent.relative_to(ROOT).parts) in packages
    for package, patterns in setuptools["package-data"].items():
        if package == "*":
            continue
        folder = ROOT / package.replace(".", "/")
        packed = {path for pattern in patterns for path in folder.glob(pattern)}
        missed = {
            path
            for path in folder.rglob("*")
            if path.is_file()
            and path.suffix not in (".py", ".pyc")
            and path.name != "py.typed"
            and all(
                (part / "__init__.py").exists() is (part == folder)
                for part in path.parents
                if part.is_relative_to(folder)
            )
        }
        assert packed and missed == packed

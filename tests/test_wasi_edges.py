"""What a C program meets at its limits, run inside the model by the native engine."""

from __future__ import annotations

from pathlib import Path

import pytest

from command_line import transputer
from executor import check, run
from executor.runner import RunResult

HEADERS = "".join(
    f"#include <{name}.h>\n"
    for name in ("errno", "stdio", "stdlib", "string", "time", "unistd", "fcntl", "dirent")
)


def c_file(folder: Path, body: str, head: str = "") -> Path:
    """A program whose main has this body."""
    path = folder / "program.c"
    path.write_text(f"{HEADERS}{head}\nint main(int argc, char **argv) {{\n{body}\n}}\n")
    return path


def checked(path: Path, args: list[str] | None = None, stdin: bytes = b"") -> RunResult:
    """A run that agrees with wasmtime."""
    result = check(path, args or [], stdin, engine="native")
    assert result.agrees, result.differences
    assert result.result is not None
    return result.result


TRAPS = {
    "a null function": ("void (*volatile f)(void) = 0; f();", "uninitialized element"),
    "division": ("volatile int zero = argc - 1; return 5 / zero;", "integer divide by zero"),
    "an address": (
        "volatile int *p = (int *)(64 << 20); return *p;",
        "out of bounds memory access",
    ),
    "abort": ("abort();", "unreachable"),
}


@pytest.mark.parametrize("name", TRAPS)
def test_a_trap_comes_after_the_output_and_names_the_line(tmp_path: Path, name: str) -> None:
    body, reason = TRAPS[name]
    path = c_file(tmp_path, f'puts("before");\n{body}')
    code, out, err = transputer("run", "--engine", "native", path)
    assert (code, out) == (134, "before\n")
    assert f"trap: {reason} at " in err
    if name != "abort":
        assert "program.c:12" in err
    assert checked(path).trap == reason


def test_calls_that_nest_too_deep_trap(tmp_path: Path) -> None:
    head = (
        "int deep(int n, int *p) { int here = n + *p; return n ? deep(n - 1, &here) + here : 0; }"
    )
    path = c_file(tmp_path, "return deep(argc < 2 ? 1000000 : 1000, &argc) & 7;", head)
    assert run(path, engine="native").trap == "call stack exhausted"
    assert checked(path, ["short"]).trap is None


@pytest.mark.long
def test_how_deep_calls_nest_is_each_machine_s_own(tmp_path: Path) -> None:
    """wasmtime gets deeper, and so writes more, to memory and to the output, before it traps."""
    head = """
  int deep(int n, int *p) {
    int here = n + *p;
    putchar('.');
    return n ? deep(n - 1, &here) + here : 0;
  }"""
    path = c_file(tmp_path, "return deep(1000000, &argc) & 7;", head)
    assert checked(path).trap == "call stack exhausted"


def test_a_stack_that_overflows_traps(tmp_path: Path) -> None:
    head = (
        "int deep(int n) {"
        " volatile char here[4000]; here[n] = 1; return n ? deep(n - 1) : here[0]; }"
    )
    path = c_file(tmp_path, "return deep(argc < 2 ? 1000 : 200);", head)
    assert checked(path).trap == "out of bounds memory access"
    assert checked(path, ["short"]).exit_code == 1
    larger = run(path, engine="native"), transputer("run", "--stack", "8M", path)
    assert (larger[0].trap, larger[1][0]) == ("out of bounds memory access", 1)


def test_memory_runs_out_with_an_error_of_the_program(tmp_path: Path) -> None:
    body = """
  size_t blocks = 0;
  for (void *volatile block; (block = malloc(100000));) blocks++;
  printf("%zu %s", blocks, strerror(errno));
  void *volatile small = malloc(10), *volatile huge = malloc(1 << 30);
  return !!small + !!huge * 2;"""
    path = c_file(tmp_path, body)
    result = checked(path)
    assert (result.output, result.exit_code) == (b"153 Out of memory", 1)
    assert transputer("run", "--memory", "4M", path)[1] == "30 Out of memory"


def test_an_endless_loop_is_stopped(tmp_path: Path) -> None:
    path = c_file(tmp_path, 'puts("once"); for (volatile int i = 0;; i++) {}')
    code, out, err = transputer("run", "--max-tokens", 100_000, path)
    assert (code, out) == (124, "once\n")
    assert "stopped after 100,000 tokens: the limit of tokens that was asked for" in err


def test_any_byte_comes_in_and_goes_out(tmp_path: Path) -> None:
    """Invalid UTF-8 and NULs, on both streams and from standard input."""
    body = "for (int c; (c = getchar()) != EOF;) { putchar(c); fputc(c ^ 255, stderr); }"
    data = b"\0\n\xff\xfe\x80abc\0\0\xc3(\r\n\x1a" + bytes(range(256))
    result = checked(c_file(tmp_path, body), stdin=data)
    assert result.output == data
    assert result.errors == bytes(byte ^ 255 for byte in data)
    (tmp_path / "in").write_bytes(data)
    code, out, err = transputer("run", "--stdin", tmp_path / "in", tmp_path / "program.c")
    assert (code, out.encode("latin-1"), err.encode("latin-1")) == (0, data, result.errors)


def test_arguments_of_every_length(tmp_path: Path) -> None:
    body = 'for (int i = 0; i <= argc; i++) printf("%zu ", argv[i] ? strlen(argv[i]) : 999);'
    args = ["", "x" * 3000, "ä", "--", "", "-O2"]
    path = c_file(tmp_path, body)
    expected = b"9 0 3000 2 2 0 3 999 "
    assert checked(path, args).output == expected
    assert transputer("run", path, *args)[1].encode() == expected
    assert checked(path, ["", ""]).output == b"9 0 0 999 "


def test_environment_files_clock_and_random_numbers(tmp_path: Path) -> None:
    body = r"""
  extern char **environ;
  printf("%d %d ", environ && environ[0], getenv("PATH") != NULL);
  FILE *file = fopen("/etc/passwd", "r");
  printf("%d %s ", file != NULL, strerror(errno));
  printf("%d %d ", open("new", O_CREAT | O_WRONLY, 0600), errno == ENOENT);
  printf("%d %d ", opendir("/") != NULL, remove("x"));
  time_t first = time(NULL);
  struct timespec a, b;
  clock_gettime(CLOCK_MONOTONIC, &a);
  clock_gettime(CLOCK_MONOTONIC, &b);
  printf("%d %d ", b.tv_nsec > a.tv_nsec || b.tv_sec > a.tv_sec, gmtime(&first)->tm_year);
  unsigned char random[8] = {0}, zero[8] = {0};
  printf("%d %d", getentropy(random, 8), memcmp(random, zero, 8) != 0);"""
    path = c_file(tmp_path, body)
    output = b"0 0 0 No such file or directory -1 1 0 -1 1 100 0 1"
    assert checked(path).output == output
    assert checked(path).output == output  # and the same again


@pytest.mark.long
def test_a_megabyte_of_input_of_which_a_part_is_read(tmp_path: Path) -> None:
    body = 'char line[80]; fgets(line, 80, stdin); fputs(line, stdout); printf("%d", argc);'
    path = c_file(tmp_path, body)
    result = run(path, ["a"], b"first line\n" + b"x" * (1 << 20), engine="native")
    assert (result.output, result.exit_code) == (b"first line\n2", 0)
    assert result.n_prompt > 1 << 20


@pytest.mark.long
def test_a_megabyte_of_input(tmp_path: Path) -> None:
    """Byte by byte from the machine it fits; through a stream it is more than a run can be."""
    body = """
  int start = transputer_position, k = start;
  if (argc > 1) while (getchar() != EOF) k++;
  else while (transputer_input(k) >= 0) k++;
  printf("%d", k - start);"""
    path = c_file(tmp_path, body, "#include <transputer.h>")
    (tmp_path / "in").write_bytes(b"0123456789abcde\n" * (1 << 16))
    assert transputer("run", "--stdin", tmp_path / "in", path)[:2] == (0, "1048576")
    code, out, err = transputer("run", "--stdin", tmp_path / "in", path, "stream")
    assert (code, out) == (124, "")
    assert "stopped after 67,108,864 tokens" in err


@pytest.mark.long
def test_a_very_long_argument(tmp_path: Path) -> None:
    path = c_file(tmp_path, 'printf("%zu", strlen(argv[1]));')
    assert transputer("run", path, "y" * 100_000)[:2] == (0, "100000")

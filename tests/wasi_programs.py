"""Programs linked with the WASI library, beside the same ones under wasmtime's own WASI."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import wasmtime

from c_programs import run
from compiler.frontend import to_wasm
from compiler.toolchain import cache_folder, find_toolchain
from executor.reference import ReferenceResult

PROGRAMS = Path(__file__).parent.parent / "programs"


@dataclass(frozen=True)
class Real:
    """What a program did under wasmtime's WASI."""

    stdout: bytes
    stderr: bytes
    exit_code: int
    trap: bool


@cache
def linked(text: str, opt: str = "-O2", suffix: str = ".c") -> bytes:
    """The module of a program given as text, with the WASI library."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"program{suffix}"
        path.write_text(text)
        return to_wasm(path, opt=opt, libc="wasi").wasm


@cache
def original(text: str, opt: str = "-O2", suffix: str = ".c") -> bytes:
    """The module that zig makes of the same program, with the WASI calls left in."""
    zig = find_toolchain().clang[0]
    cache = str(cache_folder() / "zig")
    environment = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
    with tempfile.TemporaryDirectory() as folder:
        path, output = Path(folder) / f"program{suffix}", Path(folder) / "program.wasm"
        path.write_text(text)
        driver = "cc" if suffix == ".c" else "c++"
        flags = ["-mcpu=mvp", "-s", "-UNDEBUG", "-fno-sanitize=all", "-D_WASI_EMULATED_SIGNAL"]
        flags += ["-D_WASI_EMULATED_PROCESS_CLOCKS", "-D_WASI_EMULATED_GETPID"]
        flags += [] if suffix == ".c" else ["-fno-exceptions", "-fno-rtti"]
        command = [zig, driver, "--target=wasm32-wasi", opt, *flags, str(path), "-o", str(output)]
        subprocess.run(command, check=True, env=environment, capture_output=True, timeout=900)
        return output.read_bytes()


def run_real(wasm: bytes, args: Sequence[str] = (), stdin: bytes = b"") -> Real:
    """Runs a module under wasmtime's WASI, with no files and an empty environment."""
    config = wasmtime.Config()
    config.cranelift_nan_canonicalization = True  # the sign of a NaN would be the host machine's
    engine = wasmtime.Engine(config)
    store = wasmtime.Store(engine)
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / name for name in ("in", "out", "err")]
        files[0].write_bytes(stdin)
        wasi = wasmtime.WasiConfig()
        wasi.argv = ["program.c", *args]
        wasi.stdin_file, wasi.stdout_file, wasi.stderr_file = map(str, files)
        store.set_wasi(wasi)
        linker = wasmtime.Linker(engine)
        linker.define_wasi()
        code, trap = 0, False
        try:
            instance = linker.instantiate(store, wasmtime.Module(engine, wasm))
            start = instance.exports(store)["_start"]
            assert isinstance(start, wasmtime.Func)
            start(store)
        except wasmtime.ExitTrap as end:
            code = end.code
        except wasmtime.Trap:
            trap = True
        store.close()
        return Real(files[1].read_bytes(), files[2].read_bytes(), code, trap)


def same(text: str, args: Sequence[str] = (), stdin: bytes = b"", opt: str = "-O2") -> bytes:
    """Standard output of a program, which must be that of the original, as standard error."""
    ours, real = run(linked(text, opt), args, stdin), run_real(original(text, opt), args, stdin)
    assert (ours.trap is not None, real.trap or real.exit_code & 0xFF) == (
        real.trap,
        True if ours.trap else ours.exit_code,
    )
    assert (ours.output, ours.errors) == (real.stdout, real.stderr)
    return ours.output


def ended(text: str, args: Sequence[str] = (), stdin: bytes = b"") -> ReferenceResult:
    """The result of a program that must end by itself."""
    result = run(linked(text), args, stdin)
    assert result.trap is None, result
    return result


def main(body: str, head: str = "") -> str:
    """A program whose main has this body; the headers that most need are there."""
    headers = ("errno", "stdio", "stdlib", "string", "ctype", "math", "stdint", "time", "unistd",
               "fcntl", "signal")  # fmt: skip
    includes = "\n".join(f"#include <{name}.h>" for name in headers)
    return f"{includes}\n{head}\nint main(int argc, char **argv) {{\n{body}\n}}\n"


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

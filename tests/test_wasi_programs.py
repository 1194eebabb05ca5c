"""The programs that use the standard library: natively compiled, and with the WASI library."""

from __future__ import annotations

import base64
import hashlib
import math
import os
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from c_programs import run
from compiler.frontend import to_wasm
from compiler.toolchain import cache_folder, find_toolchain
from executor.reference import ReferenceResult
from wasi_programs import PROGRAMS

LEVELS = pytest.mark.parametrize("opt", ["-O2", pytest.param("-O0", marks=pytest.mark.long)])
MOST_INSTRUCTIONS = 400_000
"""Two million tokens; floating point comes on top."""
JSON = (PROGRAMS / "data/planets.json").read_bytes()
ROADS = (PROGRAMS / "data/roads.txt").read_bytes()
SOURCE = b'int f(int x) { /* a\n */ return x+=1; }\nchar *s = "a\\"b"; // end\n'


@dataclass(frozen=True)
class Case:
    """One run of a program: its own workload first, then what goes wrong."""

    name: str
    args: tuple[str, ...] = ()
    stdin: bytes = b""


CASES = (
    Case("json.c", stdin=JSON),
    Case("json.c", stdin=b'{"a": [1, 2.5e-3, "\\"x\\u00e4", [], {}], "b": nul}'),
    Case("json.c"),
    Case("matrix.c"),
    Case("matrix.c", ("11",)),
    Case("queens.c"),
    Case("queens.c", ("3",)),
    Case("sha256.c", ("abc", "")),
    Case("sha256.c", stdin=bytes(range(200))),
    Case("base64.c", stdin=bytes(range(100))),
    Case("base64.c", ("-d",), b"QUJD\nREU=\n"),
    Case("base64.c", ("-d",), b"QUJ*"),
    Case("factorial.c"),
    Case("factorial.c", ("0",)),
    Case("factorial.c", ("x",)),
    Case("dijkstra.c", stdin=ROADS),
    Case("dijkstra.c", stdin=b"a b"),
    Case("regex.c", stdin=b"a 3.14 b\nnone\nx 7"),
    Case("regex.c", ("^a*b?$",), b"aab\nabb\n\n"),
    Case("regex.c", ("[^ab]",), b"abba\n"),
    Case("tokens.c", stdin=SOURCE),
    Case("mandelbrot.c"),
    Case("mandelbrot.c", ("1", "1")),
)


@cache
def module(name: str, opt: str) -> bytes:
    return to_wasm(PROGRAMS / name, opt=opt, libc="wasi").wasm


@pytest.fixture(scope="module")
def natives(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Every program as a native one; no fused multiplication, which WebAssembly does not have."""
    folder = tmp_path_factory.mktemp("native")
    zig, zig_cache = find_toolchain().clang[0], str(cache_folder() / "zig")
    caches = {"ZIG_GLOBAL_CACHE_DIR": zig_cache, "ZIG_LOCAL_CACHE_DIR": zig_cache}
    made = {}
    for name in dict.fromkeys(case.name for case in CASES):
        made[name] = folder / name.removesuffix(".c")
        command = (zig, "cc", "-O1", "-ffp-contract=off", str(PROGRAMS / name), "-lm")
        subprocess.run(
            (*command, "-o", str(made[name])),
            check=True,
            env={**os.environ, **caches},
            timeout=600,
        )
    return made


@LEVELS
@pytest.mark.parametrize("case", [pytest.param(c, id=f"{c.name} {i}") for i, c in enumerate(CASES)])
def test_program_does_what_it_does_natively(natives, case, opt):
    ours: ReferenceResult = run(module(case.name, opt), case.args, case.stdin)
    native = subprocess.run(
        ("program.c", *case.args),
        executable=natives[case.name],
        input=case.stdin,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (ours.trap, ours.exit_code) == (None, native.returncode)
    assert (ours.output, ours.errors) == (native.stdout, native.stderr)
    assert ours.instructions < MOST_INSTRUCTIONS


def output(name: str, args: tuple[str, ...] = (), stdin: bytes = b"") -> bytes:
    return run(module(name, "-O2"), args, stdin).output


def test_programs_are_right():
    data = bytes(range(256))
    assert output("sha256.c", ("abc",)).split()[0].decode() == hashlib.sha256(b"abc").hexdigest()
    assert output("sha256.c", stdin=data).split()[0].decode() == hashlib.sha256(data).hexdigest()
    encoded = output("base64.c", stdin=data)
    assert base64.b64decode(encoded) == data
    assert output("base64.c", ("-d",), encoded) == data
    assert output("factorial.c", ("100",)) == f"100! = {math.factorial(100)}\n".encode()
    assert b"92 solutions" in output("queens.c", ("8",))
    assert b"d            6  a - c - b - d\n" in output("dijkstra.c", stdin=ROADS)


@pytest.mark.parametrize("path", sorted(PROGRAMS.glob("*.c")), ids=lambda path: path.name)
def test_program_compiles_without_a_warning_and_small_programs_with_both_libraries(path):
    source = to_wasm(path, libc="wasi")
    assert source.warnings == ""
    if path.name not in {case.name for case in CASES}:
        assert to_wasm(path, libc="tiny").warnings == ""


SMALL = [
    Case("ackermann.c", ("1", "2")),
    Case("collatz.c", ("6",)),
    Case("crc32.c", ("a",)),
    Case("fibonacci.c", ("5",)),
    Case("gcd.c", ("48", "36")),
    Case("hello.c"),
    Case("hungarian.c", stdin=b"3  4 1 3  2 0 5  3 2 2"),
    Case("primes.c", ("20",)),
    Case("sort.c", stdin=b"3 1 2"),
    Case("xorshift.c", ("2",)),
]


@pytest.mark.parametrize("case", [pytest.param(case, id=case.name) for case in SMALL])
def test_both_libraries_do_the_same(case):
    tiny = to_wasm(PROGRAMS / case.name, libc="tiny").wasm
    small, whole = (run(wasm, case.args, case.stdin) for wasm in (tiny, module(case.name, "-O2")))
    assert (small.output, small.exit_code) == (whole.output, whole.exit_code)
    assert small.instructions < whole.instructions

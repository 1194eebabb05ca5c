"""Compiling and running C under the reference, for the tests of the front end."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from compiler.frontend import to_wasm
from compiler.program import Program
from compiler.wasm import decode
from executor.reference import DEFAULT_FUEL, ReferenceResult, run_reference

PROGRAMS = Path(__file__).parent.parent / "programs"
STANDARD = frozenset(
    f"{name}.c"
    for name in (
        "json", "matrix", "queens", "sha256", "base64", "factorial", "dijkstra", "regex", "tokens",
        "mandelbrot",
    )
)  # fmt: skip
"""Programs that need the whole C library (``test_wasi_programs.py``)."""


@cache
def compiled(
    text: str, opt: str = "-O2", exports: tuple[str, ...] = (), libc: str = "tiny"
) -> bytes:
    """The module of a C program given as text."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "program.c"
        path.write_text(text)
        return to_wasm(path, opt=opt, exports=exports, libc=libc).wasm


def smallest_libc(name: str) -> str:
    """The smaller C library that a program of the project compiles with."""
    return "wasi" if name in STANDARD else "tiny"


@cache
def compiled_program(name: str, opt: str = "-O2") -> bytes:
    """The module of one of the project's programs."""
    return to_wasm(PROGRAMS / name, opt=opt, libc="tiny").wasm


def export_names(wasm: bytes) -> set[str]:
    """Names of all exports."""
    return set(decode(wasm, "test").exports)


def opcodes(wasm: bytes) -> set[str]:
    """Every opcode that the module's functions hold."""
    module = decode(wasm, "test")
    return {step.op for function in module.functions for step in function.code}


def run(
    wasm: bytes, args: Sequence[str] = (), stdin: bytes = b"", fuel: int = DEFAULT_FUEL
) -> ReferenceResult:
    """Runs a module's entry as the command line would."""
    wants_args = "transputer_wants_args" in export_names(wasm)
    program = Program("program.c", (), wasm, wants_args=wants_args)
    return run_reference(wasm, input=program.input_bytes(args, stdin), fuel=fuel)


def run_c(text: str, *, opt: str = "-O2", args: Sequence[str] = (), stdin: bytes = b"") -> str:
    """Output of a C program that must end by itself with exit code 0."""
    result = run(compiled(text, opt), args, stdin)
    assert (result.trap, result.exit_code) == (None, 0), result
    return result.output.decode("latin-1")

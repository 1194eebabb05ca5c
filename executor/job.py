"""A program made ready to run: compiled, for its own entry or for a call, and its input."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

from compiler.errors import UsageError
from compiler.program import Program
from executor.call import Call, Prototype, prototype, split_call

Path = str | os.PathLike[str]
ProgramSource = Program | Path | bytes | Sequence[Path]
"""A compiled program, or what ``compile_program`` takes: a path, several C files that make one
program, or the bytes of a .wasm."""


@dataclass(frozen=True)
class Job:
    """A program ready to run: compiled, and the function that is called, if not its own entry."""

    program: Program
    call: Call | None = None
    prototype: Prototype | None = None


def prepare(
    program: ProgramSource,
    call: Call | None = None,
    *,
    opt: str = "-O2",
    include: Sequence[Path] = (),
    define: Sequence[str] = (),
    clang: Path | None = None,
    sysroot: Path | None = None,
    libc: str | None = None,
    stack_bytes: int | None = None,
    memory_bytes: int | None = None,
) -> Job:
    """Compile what is not compiled yet, for its own entry or for a call.

    Args:
        opt, include, define, clang, sysroot, libc, stack_bytes, memory_bytes: for C and C++, see
            ``compile_program``.

    Raises:
        UsageError: for a call that does not fit the function's prototype.
        CompileError: from the compiler.
    """
    from compiler import compile_program, compile_wasm

    def compiled(call: Call | None = None) -> Program:
        if not isinstance(program, Program):
            return compile_program(
                program,
                call=call,
                opt=opt,
                include=include,
                define=define,
                clang=clang,
                sysroot=sysroot,
                libc=libc,
                stack_bytes=stack_bytes,
                memory_bytes=memory_bytes,
            )
        if call is None:
            return program
        if not program.wasm:
            raise UsageError(f"{program.name}: a token program has no functions to call")
        return compile_wasm(program.wasm, program.name, call=call)

    if call is None:
        return Job(compiled())
    name, arguments = split_call(call)
    if isinstance(program, Program | bytes):
        kind = Prototype(name)
    else:
        sources = [program] if isinstance(program, str | os.PathLike) else program
        kind = prototype(
            sources,
            name,
            opt=opt,
            include=include,
            define=define,
            clang=clang,
            sysroot=sysroot,
            libc=libc,
        )
    kind.check(arguments)
    return Job(compiled(call), call, kind)


def own_input(program: Program) -> bytes:
    """The input that stands in a .tok file, empty for other programs."""
    stdin = program.report.get("stdin", b"")
    return stdin if isinstance(stdin, bytes) else b""

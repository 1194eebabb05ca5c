"""A program made ready to run: compiled, for its own entry or for a call, and its input."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

from compiler.errors import UsageError
from compiler.options import COptions
from compiler.program import Program
from executor.call import Call, Prototype, prototype, split_call, wasm_prototype

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


def prepare(program: ProgramSource, call: Call | None = None, **options: Unpack[COptions]) -> Job:
    """Compile what is not compiled yet, for its own entry or for a call.

    Args:
        options: for C and C++, see ``compile_program``.

    Raises:
        UsageError: for a call that does not fit the function's prototype.
        CompileError: from the compiler.
    """
    from compiler.kept import compile_kept

    kind = None
    if call is not None:
        name, arguments = split_call(call)
        if not isinstance(program, Program | bytes):
            sources = [program] if isinstance(program, str | os.PathLike) else program
            kind = prototype(sources, name, **options)
        if kind is not None:
            kind.check(arguments)
    if not isinstance(program, Program):
        program = compile_kept(program, call=call, **options)
    elif call is not None:
        if not program.wasm:
            raise UsageError(f"{program.name}: a token program has no functions to call")
        from compiler import compile_wasm

        program = compile_wasm(program.wasm, program.name, call=call)
    if call is not None and kind is None:
        kind = wasm_prototype(name, program.parameters, program.results)
    return Job(program, call, kind)


def own_input(program: Program) -> bytes:
    """The input that stands in a .tok file, empty for other programs."""
    stdin = program.report.get("stdin", b"")
    return stdin if isinstance(stdin, bytes) else b""

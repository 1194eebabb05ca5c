"""From C, WebAssembly or token programs to tokens, and from a machine to weights.

The verbs are :func:`compile_program`, :func:`compile_wasm` and :func:`build_weights`. Each stage
is a module of its own: ``frontend`` (source to WebAssembly), ``wasm``, ``lower``, ``assemble``
(WebAssembly to tokens); ``graph``, ``machine``, ``schedule``, ``weights`` (a machine to tensors).
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from compiler.errors import UsageError

if TYPE_CHECKING:
    from compiler.program import Program
    from compiler.weights import Array

PathLike = str | os.PathLike[str]


def compile_program(
    source: PathLike | Sequence[PathLike] | bytes,
    *,
    call: Sequence[str | int | float] | None = None,
    entry: str | None = None,
    opt: str = "-O2",
    include: Sequence[PathLike] = (),
    define: Sequence[str] = (),
    flags: Sequence[str] = (),
    clang: PathLike | None = None,
    sysroot: PathLike | None = None,
    libc: str | None = None,
    stack_bytes: int | None = None,
    memory_bytes: int | None = None,
) -> Program:
    """Compile a program to tokens.

    Args:
        source: path of a ``.c``, ``.cpp``, ``.wat``, ``.wasm`` or ``.tok`` file, several C and C++
            files of one program, or the bytes of a WebAssembly module.
        call: ``(function, *arguments)``: a program that calls this function of a C file, or
            export of a module, with these numbers, instead of the program's own entry.
        entry: the export to run instead of the usual ones, for modules.
        opt, include, define, flags, clang, sysroot, libc, stack_bytes, memory_bytes: for C and
            C++, see :func:`compiler.frontend.to_wasm`.

    Raises:
        UsageError: for arguments that make no sense or a file that cannot be read.
        CompileError: for a source that is wrong; its subclass UnsupportedError for one that is
            right but cannot be run exactly.
    """
    if isinstance(source, bytes):
        return compile_wasm(source, "module.wasm", call=call, entry=entry)
    paths = [source] if isinstance(source, str | os.PathLike) else list(source)
    if len(paths) == 1 and Path(paths[0]).suffix == ".tok":
        if call is not None or entry is not None:
            raise UsageError(f"{paths[0]}: a token program has no functions to call")
        return _compile_tok(Path(paths[0]))
    from compiler.frontend import SOURCE_SUFFIXES, to_wasm

    called = [str(call[0])] if call else []
    is_c = bool(paths) and Path(paths[0]).suffix in SOURCE_SUFFIXES
    built = to_wasm(
        paths,
        opt=opt,
        include=include,
        define=define,
        flags=flags,
        exports=called if is_c else (),
        clang=clang,
        sysroot=sysroot,
        libc=libc,
        stack_bytes=stack_bytes,
        memory_bytes=memory_bytes,
    )
    program = compile_wasm(built.wasm, built.name, call=call, entry=entry)
    report = program.report | ({"warnings": built.warnings} if built.warnings else {})
    return replace(program, compiled=is_c, report=report)


def compile_wasm(
    content: bytes,
    name: str,
    *,
    call: Sequence[str | int | float] | None = None,
    entry: str | None = None,
) -> Program:
    """Compile a WebAssembly module, see :func:`compiler.pipeline.compile_wasm`."""
    from compiler.pipeline import compile_wasm as compile_module

    return compile_module(content, name, call=call, entry=entry)


def build_weights() -> dict[str, Array]:
    """The default machine's weights as named arrays, see :mod:`compiler.weights`."""
    from compiler.build import build_machine

    return build_machine().arrays


def _compile_tok(path: Path) -> Program:
    from compiler.frontend import read_source
    from compiler.tokfile import compile_tok

    try:
        text = read_source(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise UsageError(f"{path}: not a text file (byte {error.start} is not UTF-8)") from None
    return compile_tok(text, path.name)


__all__ = ["build_weights", "compile_program", "compile_wasm"]

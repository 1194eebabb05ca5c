"""The front end: a source file in, a validated WebAssembly module out.

C and C++ files (one program of one or several) go through a compiler, ``.wat`` through wasmtime's
assembler, ``.wasm`` is read as it is. Whatever is wrong with the file is reported here, in one
message that names it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from compiler import isa, toolchain
from compiler.errors import CompileError, Place, UsageError
from compiler.options import COptions

MAX_FILE_BYTES = 64 * 1024 * 1024
SOURCE_SUFFIXES = (".c", *toolchain.CXX_SUFFIXES)
"""C and C++: of these, several files may make one program."""
SUFFIXES = (*SOURCE_SUFFIXES, ".wat", ".wasm")
_EXPECTED = ".c, .cpp, .wat, .wasm, .tok"
"""Kinds of program files; token programs (.tok) need no front end."""


@dataclass(frozen=True)
class WasmSource:
    """A WebAssembly module and where it comes from.

    Attributes:
        name: file name of the (first) source, for messages and ``argv[0]``.
        wasm: the binary module; it has passed wasmtime's validation.
        warnings: what the C compiler said about a program that it accepted.
    """

    name: str
    wasm: bytes
    warnings: str = ""


def to_wasm(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    *,
    opt: str = "-O2",
    include: Sequence[str | os.PathLike[str]] = (),
    define: Sequence[str] = (),
    flags: Sequence[str] = (),
    exports: Sequence[str] = (),
    clang: str | os.PathLike[str] | None = None,
    sysroot: str | os.PathLike[str] | None = None,
    libc: str | None = None,
    stack_bytes: int | None = None,
    memory_bytes: int | None = None,
    timeout: float = toolchain.TIMEOUT_SECONDS,
) -> WasmSource:
    """Turns source files into one WebAssembly module.

    Args:
        paths: one file, or several C and C++ files that make one program.
        opt: ``-O0`` to ``-O3``, ``-Os`` or ``-Oz``; this and what follows is for C and C++.
        include: folders to search for headers.
        define: macros, ``NAME`` or ``NAME=VALUE``.
        flags: more flags for the compiler: language, warnings, macros and ``-f...``.
        exports: functions to export: to call one instead of running ``main``, which then need not
            exist.
        clang: a system clang to use instead of the bundled zig.
        sysroot: folder of a system clang's WASI library, see ``find_toolchain``.
        libc: ``wasi`` or ``tiny``; C++ needs ``wasi``. None for ``toolchain.DEFAULT_LIBC``, or
            what the language needs.
        stack_bytes: size of the C stack; None for 1 MiB with ``wasi``, 32 KiB with ``tiny``.
        memory_bytes: size of the memory: stack, data and heap; None for 16 MiB with ``wasi``, as
            many pages as stack and data fill with ``tiny``.
        timeout: seconds after which a compiler is stopped.

    Raises:
        UsageError: no such file, a folder, an unreadable file, an unknown suffix or option.
        CompileError: the file is not what its suffix says, or does not compile.
    """
    sources, contents = _read_all(paths)
    kind, warnings = sources[0].suffix, ""
    if kind in SOURCE_SUFFIXES:
        _check_options(opt, define, exports)
        _check_sizes(stack_bytes, memory_bytes)
        for source, content in zip(sources, contents, strict=True):
            _check_c_text(source, content)
        wasm, warnings = toolchain.compile_c(
            toolchain.find_toolchain(clang, sysroot),
            sources,
            opt=opt,
            include=include,
            define=define,
            flags=flags,
            exports=exports,
            libc=libc or default_libc(sources),
            stack_bytes=stack_bytes,
            memory_bytes=memory_bytes,
            timeout=timeout,
        )
    elif kind == ".wat":
        wasm = _assemble(sources[0], contents[0])
    else:
        wasm = contents[0]
    _validate(sources[0], wasm)
    return WasmSource(sources[0].name, wasm, warnings)


def fingerprint(
    paths: Sequence[str | os.PathLike[str]],
    exports: Sequence[str] = (),
    **options: Unpack[COptions],
) -> list[bytes]:
    """All that the result of :func:`to_wasm` depends on, for the same arguments.

    Raises:
        UsageError, CompileError: something is wrong with them; ``to_wasm`` says what.
    """
    sources, contents = _read_all(paths)
    names = [source.name.encode("utf-8", "surrogateescape") for source in sources]
    if sources[0].suffix not in SOURCE_SUFFIXES:
        return [*names, *contents]
    found = toolchain.find_toolchain(options.get("clang"), options.get("sysroot"))
    libc = options.get("libc") or default_libc(sources)
    made = toolchain.fingerprint(found, sources, libc, exports, options)
    return [*names, *made]


def _read_all(
    paths: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
) -> tuple[list[Path], list[bytes]]:
    """The sources of one program, and what is in them."""
    listed = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    sources = [Path(os.fspath(path)) for path in listed]
    if not sources:
        raise UsageError("no source file given")
    _check_kinds(sources)
    return sources, [read_source(source) for source in sources]


def default_libc(sources: Sequence[Path]) -> str:
    """The C library for a program that asks for none."""
    cxx = any(source.suffix in toolchain.CXX_SUFFIXES for source in sources)
    return toolchain.WASI if cxx else toolchain.DEFAULT_LIBC


def _check_kinds(sources: Sequence[Path]) -> None:
    for source in sources:
        if source.suffix not in SUFFIXES:
            read_source(source)  # a file that is not there has no kind
            raise UsageError(f"{source}: unknown kind of file, expected {_EXPECTED}")
    if len(sources) > 1 and any(source.suffix not in SOURCE_SUFFIXES for source in sources):
        raise UsageError("several files make one program only if all of them are C or C++")


def read_source(source: Path) -> bytes:
    """The content of a source file of any kind.

    Raises:
        UsageError: no such file, a folder, larger than 64 MiB, or unreadable.
    """
    try:
        if source.is_dir():
            raise UsageError(f"{source}: is a folder, not a file")
        if not source.exists():
            raise UsageError(f"{source}: no such file")
        if not source.is_file():
            raise UsageError(f"{source}: not a regular file")
        if source.stat().st_size > MAX_FILE_BYTES:
            raise UsageError(f"{source}: larger than {MAX_FILE_BYTES >> 20} MiB")
        return source.read_bytes()
    except OSError as error:
        raise UsageError(f"{source}: cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # a NUL in the name
        raise UsageError(f"{str(source)!r}: {error}") from None


def _check_options(opt: str, define: Sequence[str], exports: Sequence[str]) -> None:
    if opt not in toolchain.OPTIMISATION_LEVELS:
        levels = ", ".join(toolchain.OPTIMISATION_LEVELS)
        raise UsageError(f"{opt}: unknown optimisation level, expected one of {levels}")
    for text in define:
        if not text.partition("=")[0].isidentifier():
            raise UsageError(f"-D{text}: expected NAME or NAME=VALUE")
    for name in exports:
        if not name.isidentifier():
            raise UsageError(f"{name}: not the name of a function")


def _check_sizes(stack_bytes: int | None, memory_bytes: int | None) -> None:
    from compiler.wasm_types import PAGE_BYTES

    most = isa.MAX_MEMORY_PAGES * PAGE_BYTES
    if stack_bytes is not None and (not 1024 <= stack_bytes < most or stack_bytes % 16):
        raise UsageError(
            f"a C stack of {stack_bytes} bytes: expected 1024 to {most - 16}, by sixteens"
        )
    if memory_bytes is not None and (not 0 < memory_bytes <= most or memory_bytes % PAGE_BYTES):
        raise UsageError(
            f"a memory of {memory_bytes} bytes: expected {PAGE_BYTES} (64K) to {most}, "
            "in pages of 64K"
        )


def _check_c_text(source: Path, content: bytes) -> None:
    """A compiler's hundreds of messages about a file that is no text would help nobody."""
    position = content.find(b"\0")
    if position >= 0:
        reason = f"is not C: it holds a zero byte (the first is byte {position})"
        raise CompileError(reason, Place(file=str(source)))


def _assemble(source: Path, content: bytes) -> bytes:
    import wasmtime

    place = Place(file=str(source))
    try:
        return bytes(wasmtime.wat2wasm(content.decode("utf-8")))
    except UnicodeDecodeError as error:
        reason = f"is not WebAssembly text: byte {error.start} is not UTF-8"
        raise CompileError(reason, place) from None
    except wasmtime.WasmtimeError as error:
        raise CompileError(f"is not WebAssembly text:\n{_clip(str(error))}", place) from None


def _validate(source: Path, wasm: bytes) -> None:
    import wasmtime

    from compiler.wasm import MAGIC

    place = Place(file=str(source))
    if not wasm.startswith(MAGIC):
        reason = "is not a WebAssembly module: it does not start with \\0asm and version 1"
        raise CompileError(reason, place)
    try:
        wasmtime.Module.validate(wasmtime.Engine(), wasm)
    except wasmtime.WasmtimeError as error:
        raise CompileError(f"is not a valid module: {_clip(str(error))}", place) from None


def _clip(text: str) -> str:
    """At most ten lines of 300 characters."""
    lines = [line[:300] for line in text.strip().splitlines()]
    return "\n".join(lines[:10] + (["..."] if len(lines) > 10 else []))

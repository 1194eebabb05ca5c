"""Compiles and links C and C++: source files in, one WebAssembly module out.

The compiler is the clang of the PyPI package ziglang (with its wasm-ld, no system package needed)
or a system clang with the wasm32 target. It is called itself rather than as ``zig cc``, whose cache
swallows the warnings of what it has compiled before.

Two C libraries can be linked: ``wasi``, the whole standard library (see ``wasi_library.py``), and
``tiny``, a small one of our own (see ``tiny_library.py``).
"""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from compiler import tiny_library, wasi_library
from compiler.errors import CompileError, Place, UsageError
from compiler.library import CODE_FLAGS, CXX_SUFFIXES, Kit
from compiler.options import COptions
from compiler.printed import printed_types
from compiler.tiny_library import library_archive
from compiler.toolchain_find import Toolchain, find_toolchain, zig_folder
from compiler.toolchain_run import TIMEOUT_SECONDS, as_argument, cache_folder, refused, run, shorten

__all__ = [
    "CXX_SUFFIXES", "DEFAULT_LIBC", "ENTRY", "LIBRARIES", "OPTIMISATION_LEVELS", "TIMEOUT_SECONDS",
    "TINY", "Toolchain", "WASI", "cache_folder", "compile_c", "find_toolchain",
    "fingerprint", "library_archive", "preprocess",
]  # fmt: skip

OPTIMISATION_LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os", "-Oz")
ENTRY = "transputer_main"
TINY, WASI = "tiny", "wasi"
LIBRARIES = (WASI, TINY)
"""The C libraries that a program can be linked with."""
DEFAULT_LIBC = WASI
_ALLOWED_FLAG = re.compile(
    r"-(std=|W(?![alp],)|[DUI]).+|-f[\w-]+(=[\w-]+)?|-w|-ansi|-pedantic(-errors)?"
)
"""Flags that change what a C file means or what is said of it, and neither what is made of it nor
which other files are read."""

_LONGEST_STEM = 50


_READS_FILE = re.compile(r"-f(profile|plugin|pass-plugin|.*=)")
"""Flags that may name a file whose content is no part of the preprocessed text."""


def compile_c(
    toolchain: Toolchain,
    sources: Sequence[Path],
    *,
    opt: str = "-O2",
    include: Sequence[str | os.PathLike[str]] = (),
    define: Sequence[str] = (),
    flags: Sequence[str] = (),
    exports: Sequence[str] = (),
    libc: str = DEFAULT_LIBC,
    stack_bytes: int | None = None,
    memory_bytes: int | None = None,
    timeout: float = TIMEOUT_SECONDS,
) -> tuple[bytes, str]:
    """Compiles and links C and C++ files with one of the libraries.

    Args:
        flags: more flags for the compiler, after our own.
        exports: names of functions to export; with any, the program needs no ``main``, and
            ``main`` is not its entry.
        libc: one of ``LIBRARIES``; C++ needs ``wasi``.
        stack_bytes: of the C stack, which lies below the data, so that an overflow leaves the
            memory and traps; None for the library's own size, as for ``memory_bytes``.

    Returns:
        The module and the compiler's warnings.

    Raises:
        CompileError: the compiler's or linker's messages, or no end after ``timeout`` seconds.
        UsageError: no usable cache folder, no such library.
    """
    place = Place(file=", ".join(map(str, sources)))
    options = _options(opt, include, define, flags)
    kit, debug = _kit(toolchain, libc, sources, timeout), _debug_flags(toolchain)
    with tempfile.TemporaryDirectory(prefix="transputer-") as name:
        objects, messages, types = [], [], set[str]()
        for number, source in enumerate(sources):
            target = Path(name) / str(number) / f"{_stem(source)}.o"
            target.parent.mkdir()
            known = (*kit.flags(source), *options)
            command = (*known, *debug, "-c", as_argument(source), "-o", str(target))
            messages.append(_clang(toolchain, command, source, kit, timeout))
            objects.append(target)
            if kit.needs_types:
                types |= printed_types(toolchain, known, source, timeout)
        output = Path(name) / f"{_stem(sources[0])}.wasm"  # names the module
        command = (
            *toolchain.linker, "--no-entry", "--error-limit=20",
            *kit.layout(stack_bytes, memory_bytes),
            *(f"--export={name}" for name in exports or (ENTRY,)),
            *map(str, kit.linked(objects, types)), "-o", str(output),
        )  # fmt: skip
        folders = [(f"{target.parent}{os.sep}", "") for target in objects]
        linked = run(command, timeout=timeout, place=place, names=folders, remedies=kit.remedy)
        if "warning:" in linked:
            # A call through a wrong declaration: it would be linked to a function that traps.
            raise refused(linked, place, kit.remedy)
        return output.read_bytes(), shorten("".join(messages))


def preprocess(
    toolchain: Toolchain,
    source: Path,
    *,
    opt: str = "-O2",
    include: Sequence[str | os.PathLike[str]] = (),
    define: Sequence[str] = (),
    flags: Sequence[str] = (),
    libc: str = DEFAULT_LIBC,
    timeout: float = TIMEOUT_SECONDS,
) -> str:
    """The text of a C file as :func:`compile_c` sees it: headers in, macros replaced.

    Raises:
        CompileError: the preprocessor's messages, or no end after ``timeout`` seconds.
    """
    kit = _kit(toolchain, libc, [source], timeout)
    options = (*_options(opt, include, define, flags), "-P")
    return _preprocessed(toolchain, kit, source, options, timeout).decode("utf-8", "replace")


def fingerprint(
    toolchain: Toolchain,
    sources: Sequence[Path],
    libc: str,
    exports: Sequence[str],
    options: COptions,
    timeout: float = TIMEOUT_SECONDS,
) -> list[bytes]:
    """All that the result of :func:`compile_c` depends on: equal means the same module.

    Raises:
        CompileError: what the preprocessor says, or a source or flag that reads other files.
        UsageError: as ``compile_c``.
    """
    kit = _kit(toolchain, libc, sources, timeout)
    include, define = options.get("include", ()), options.get("define", ())
    given = _options(options.get("opt", "-O2"), include, define, options.get("flags", ()))
    if any(_READS_FILE.match(flag) for flag in given):
        raise CompileError("a flag names a file")
    tools = {Path(command[0]) for command in (toolchain.clang, toolchain.linker)}
    for types in ((), ("double",), ("fp128",), ("%m",)):
        tools |= set(kit.libraries(types))
    states = [(str(path), path.stat().st_size, path.stat().st_mtime_ns) for path in sorted(tools)]
    known = [(str(source), kit.flags(source)) for source in sources]
    layout = kit.layout(options.get("stack_bytes"), options.get("memory_bytes"))
    names = (toolchain.identity, given, known, layout, tuple(exports), libc)
    parts = [repr((names, states)).encode("utf-8", "surrogatepass")]
    for source in sources:
        text = _preprocessed(toolchain, kit, source, given, timeout)
        if b".incbin" in text:
            raise CompileError("reads a file while it is assembled", Place(file=str(source)))
        parts += [text, source.read_bytes()]  # messages show the source itself
    return parts


def _preprocessed(
    toolchain: Toolchain, kit: Kit, source: Path, options: Sequence[str], timeout: float
) -> bytes:
    with tempfile.TemporaryDirectory(prefix="transputer-") as folder:
        output = Path(folder) / "preprocessed"
        command = (*kit.flags(source), *options, "-E", as_argument(source), "-o", str(output))
        _clang(toolchain, command, source, kit, timeout)
        return output.read_bytes()


def _clang(
    toolchain: Toolchain, options: Sequence[str], source: Path, kit: Kit, timeout: float
) -> str:
    """Runs clang on one source; what it says of it."""
    return run(
        (*toolchain.clang, *CODE_FLAGS, *options),
        timeout=timeout,
        place=Place(file=str(source)),
        names=[(str(source), _printable(str(source)))],
        remedies=kit.remedy,
    )


def _kit(toolchain: Toolchain, libc: str, sources: Sequence[Path], timeout: float) -> Kit:
    cxx = any(source.suffix in CXX_SUFFIXES for source in sources)
    if libc == WASI:
        return wasi_library.kit(toolchain, cxx)
    if libc != TINY:
        raise UsageError(f"{libc}: no such C library, expected one of {', '.join(LIBRARIES)}")
    if cxx:
        raise UsageError("C++ needs the whole library: --libc=wasi")
    return tiny_library.kit(toolchain, timeout)


def _options(
    opt: str,
    include: Sequence[str | os.PathLike[str]],
    define: Sequence[str],
    flags: Sequence[str],
) -> tuple[str, ...]:
    """The user's options as arguments of clang."""
    for flag in flags:
        if not _ALLOWED_FLAG.fullmatch(flag):
            kinds = "-std=..., -w, -W..., -f..., -D..., -U..., -I..., -ansi, -pedantic"
            raise UsageError(f"{flag}: not a flag that can be passed on; these can: {kinds}")
    folders = (f"-I{os.fspath(path)}" for path in include)
    return (opt, *folders, *(f"-D{text}" for text in define), *flags)


def _debug_flags(toolchain: Toolchain) -> tuple[str, ...]:
    """Line tables, which change nothing of the code: paths as the user gives them, and none of
    ours."""
    from compiler.source_map import LIBRARY_FOLDER

    folders = [Path(__file__).parent]
    if toolchain.sysroot is None:
        folders.append(zig_folder() / "lib")
    else:
        clang = Path(shutil.which(toolchain.clang[0]) or "/").resolve()
        folders += [toolchain.sysroot / "include", clang.parent.parent / "lib"]
    maps = (f"-fdebug-prefix-map={folder}={LIBRARY_FOLDER}" for folder in folders)
    return ("-gline-tables-only", "-fdebug-compilation-dir=.", *maps)


def _stem(source: Path) -> str:
    """The name of a source without suffix, shorter than a linker's temporary names may be."""
    return source.stem[:_LONGEST_STEM]


def _printable(name: str) -> str:
    return "".join(c if c.isprintable() else "?" for c in name)

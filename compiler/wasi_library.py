"""The WASI C library: the whole standard library, over the machine's byte output and input.

With zig, ``zig cc`` compiles its wasi-libc once (some 30 seconds; for C++ its libc++ too) and says
which archives it links; they are kept in our cache. A system clang has them in its sysroot. What
the library asks of WASI is defined by ``compiler/wasi``, linked before it, so that nothing of WASI
is left to import.

printf and scanf of floating point are long. Of the library's three builds (wasi-libc's own
switches) the least is linked that a program of its types can need: none, double, or long double,
which is emulated. The texts of errors, for ``%m``, are linked if a string of the program may be
such a format. A conversion that was left out, which only a program that hides its types or makes
its formats could ask for, prints what is missing and aborts.
"""

from __future__ import annotations

import hashlib
import re
import shutil
import tempfile
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from compiler import tiny_library
from compiler.errors import CompileError, Place, UsageError
from compiler.library import CODE_FLAGS, LIBRARY_FLAGS, Kit
from compiler.printed import DOUBLE, ERRORS, LONG_DOUBLE, NONE, printf_kind
from compiler.toolchain_find import Toolchain, zig_folder
from compiler.toolchain_run import TIMEOUT_SECONDS, cache_folder, remedy, run

BUILD_SECONDS = 900.0
"""Limit for building the library, which happens once."""
MEMORY_BYTES, STACK_BYTES = 16 << 20, 1 << 20
"""Usual sizes of the memory (stack, data and heap; it does not grow) and of the stack in it. What
is not used costs nothing."""

_TARGET = "--target=wasm32-wasip1"
_C_FLAGS = (
    "-D_WASI_EMULATED_PROCESS_CLOCKS", "-D_WASI_EMULATED_SIGNAL", "-D_WASI_EMULATED_MMAN",
    "-D_WASI_EMULATED_GETPID",
)  # fmt: skip
_SHIM_FLAGS = ("-fno-builtin",)
_CXX_FLAGS = ("-fno-exceptions", "-fno-rtti")
_NO_FLOATS = (
    "-D__wasilibc_printscan_no_floating_point",
    '-D__wasilibc_printscan_floating_point_support_option="use a double in the program"',
)
_NO_LONG_DOUBLES = (
    "-D__wasilibc_printscan_no_long_double",
    '-D__wasilibc_printscan_full_support_option="use a long double in the program"',
)
_ERRORS = "-Dstrerror=transputer_error_text"
_PRINTF: dict[str, tuple[tuple[str, tuple[str, ...]], ...]] = {
    NONE: (
        ("src/stdio/vfprintf.c", (*_NO_FLOATS, _ERRORS)),
        ("src/stdio/vfscanf.c", _NO_LONG_DOUBLES),
    ),
    DOUBLE: (
        ("src/stdio/vfprintf.c", (*_NO_LONG_DOUBLES, _ERRORS)),
        ("src/stdio/vfscanf.c", _NO_LONG_DOUBLES),
        ("src/internal/floatscan.c", _NO_LONG_DOUBLES),
        ("src/stdlib/strtod.c", _NO_LONG_DOUBLES),
    ),
}
"""Sources of wasi-libc, and their flags, for the builds that zig's library does not have."""


@dataclass(frozen=True)
class WasiLibrary:
    """Where the library is: compiler flags, archives in order, and those that go before them for a
    kind of printf, and for one without ``%m`` or with it."""

    c_flags: tuple[str, ...]
    cxx_flags: tuple[str, ...]
    printf: dict[str, tuple[Path, ...]]
    archives: tuple[Path, ...]
    errors: tuple[tuple[Path, ...], tuple[Path, ...]] = ((), ())


def kit(toolchain: Toolchain, cxx: bool) -> Kit:
    """How to compile and link with this library, which is built if it is not in the cache.

    Args:
        cxx: with the C++ library too; the complete printf then, which it may call.

    Raises:
        CompileError, UsageError: it cannot be built, or there is none.
    """
    library = (
        _zig_library(toolchain, cxx)
        if toolchain.sysroot is None
        else _system_library(toolchain, toolchain.sysroot, cxx)
    )
    shims = _shims(toolchain, library)

    def libraries(types: Collection[str]) -> list[Path]:
        printf = (*library.printf[printf_kind(types, cxx)], *library.errors[ERRORS in types])
        return [shims, *printf, *library.archives]

    flags = (*_own_headers(), *library.c_flags, *_C_FLAGS)
    return Kit(
        c_flags=flags,
        cxx_flags=(*_own_headers(), *library.cxx_flags, *library.c_flags, *_C_FLAGS, *_CXX_FLAGS),
        libraries=libraries,
        remedy=_remedy,
        stack_bytes=STACK_BYTES,
        memory_bytes=MEMORY_BYTES,
        needs_types=not cxx,
    )


# --- our own part ------------------------------------------------------------------------------


def _folder() -> Path:
    return Path(str(files("compiler.wasi")))


def _own_headers() -> tuple[str, ...]:
    return ("-isystem", str(_folder() / "include"))


def _shims(toolchain: Toolchain, library: WasiLibrary) -> Path:
    """The archive of our own sources, from the cache or built now."""
    own = [*sorted(_folder().glob("*.c")), tiny_library.folder() / "string.c"]
    flags = (*_own_headers(), *library.c_flags, *_SHIM_FLAGS)
    headers = sorted(_folder().rglob("*.h"))
    return _built(toolchain, "libwasi.a", [(path, flags) for path in own], headers)


def _built(
    toolchain: Toolchain,
    name: str,
    sources: Sequence[tuple[Path, Sequence[str]]],
    headers: Sequence[Path] = (),
) -> Path:
    """An archive of sources with their flags, from the cache or built now."""
    flags = (toolchain.identity, CODE_FLAGS, LIBRARY_FLAGS, [(p.name, f) for p, f in sources])
    digest = hashlib.sha256(repr(flags).encode())
    for path in (*(path for path, _ in sources), *headers):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    folder = cache_folder() / f"wasi-{digest.hexdigest()[:16]}"
    if not folder.exists():
        with tempfile.TemporaryDirectory(prefix="wasi-", dir=folder.parent) as temporary:
            _archive(toolchain, Path(temporary) / name, sources)
            _enter(Path(temporary), folder)
    return folder / name


def _archive(
    toolchain: Toolchain, archive: Path, sources: Sequence[tuple[Path, Sequence[str]]]
) -> None:
    objects = [archive.parent / f"{archive.stem}-{source.stem}.o" for source, _ in sources]
    for (source, flags), target in zip(sources, objects, strict=True):
        command = (*toolchain.clang, *CODE_FLAGS, *LIBRARY_FLAGS, "-fno-unroll-loops", *flags, "-c")
        run(
            (*command, str(source), "-o", str(target)),
            timeout=TIMEOUT_SECONDS,
            place=Place(file=f"the C library's {source.name}"),
        )
    command = (*toolchain.archive, "rcs", str(archive), *map(str, objects))
    run(command, timeout=TIMEOUT_SECONDS)
    for target in objects:
        target.unlink()


def _enter(temporary: Path, folder: Path) -> None:
    """Moves a finished folder into the cache; another process may have been faster."""
    try:
        shutil.copytree(temporary, new := Path(f"{temporary}.new"))
        new.rename(folder)
    except OSError:
        shutil.rmtree(new, ignore_errors=True)
        if not folder.exists():
            raise


# --- zig's part --------------------------------------------------------------------------------


def _zig_library(toolchain: Toolchain, cxx: bool) -> WasiLibrary:
    built = _zig_archives(toolchain, cxx)
    cxx_flags = (built / "flags").read_text().splitlines() if cxx else []
    printf: dict[str, tuple[Path, ...]] = {LONG_DOUBLE: ()}
    if not cxx:
        printf[NONE], printf[DOUBLE] = (_zig_printf(toolchain, kind) for kind in (NONE, DOUBLE))
    archives = (_zig_streams(toolchain), *sorted(built.glob("*.a")))
    c_flags = (_TARGET, *_zig_headers())
    return WasiLibrary(c_flags, tuple(cxx_flags), printf, archives, _zig_errors(toolchain))


def _zig_streams(toolchain: Toolchain) -> Path:
    """The lowest part of stdio, our own, which must know the library's streams from inside."""
    flags = (*_musl_flags(_musl()), *_own_headers(), *_SHIM_FLAGS)
    sources = [(_folder() / "musl" / "streams.c", flags)]
    return _built(toolchain, "libstreams.a", sources, sorted(_folder().rglob("*.h")))


def _zig_printf(toolchain: Toolchain, kind: str) -> tuple[Path, ...]:
    """A build of printf and scanf that zig's library does not have."""
    musl = _musl()
    flags = (*_musl_flags(musl), f"-I{musl / 'src' / 'stdio'}")
    sources = [(musl / name, (*flags, *more)) for name, more in _PRINTF[kind]]
    if kind == DOUBLE:
        sources[0] = (_rounding(sources[0][0]), sources[0][1])
    if kind == NONE:
        sources.append((_folder() / "musl" / "floatscan.c", (_TARGET, *_zig_headers())))
    return (_built(toolchain, f"libprintf-{kind}.a", sources),)


def _zig_errors(toolchain: Toolchain) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """What our builds of printf call for ``%m``: something that refuses, and the texts."""
    flags = (_TARGET, *_zig_headers())
    folder = _folder() / "musl"
    refusing, all_ = (
        _built(toolchain, f"lib{name}.a", [(folder / f"{name}.c", flags)])
        for name in ("no_errors", "errors")
    )
    return (refusing,), (all_,)


def _rounding(vfprintf: Path) -> Path:
    """A copy of the source in our cache that rounds ``%.12a``, where the original, with no type
    longer than double, prints a thirteenth digit."""
    text = vfprintf.read_text()
    wrong, right = "\t\tif (re) {", "\t\tif (re || p==LDBL_MANT_DIG/4-1) {"
    if text.count(wrong) != 1:
        raise CompileError("not the source that is known", Place(file=str(vfprintf)))
    copy = cache_folder() / "vfprintf.c"
    if not copy.exists() or copy.read_text() != text.replace(wrong, right):
        with tempfile.NamedTemporaryFile("w", dir=copy.parent, delete=False) as file:
            file.write(text.replace(wrong, right))
        Path(file.name).replace(copy)
    return copy


def _zig_headers() -> tuple[str, ...]:
    lib = zig_folder() / "lib"
    folders = (
        lib / "include",
        lib / "libc/include/wasm-wasi-musl",
        lib / "libc/include/generic-musl",
    )
    return ("-nostdlibinc", *(part for path in folders for part in ("-isystem", str(path))))


def _musl() -> Path:
    return zig_folder() / "lib" / "libc" / "wasi" / "libc-top-half" / "musl"


def _musl_flags(musl: Path) -> tuple[str, ...]:
    """For compiling files of the library itself, with its private headers."""
    top, plain = musl.parent, zig_folder() / "lib" / "libc" / "musl"
    folders = (
        top / "headers/private", musl / "src/include", musl / "src/internal", musl / "arch/wasm32",
        plain / "src/include", plain / "src/internal",
    )  # fmt: skip
    private = tuple(f"-I{path}" for path in folders)
    return (_TARGET, *private, *_zig_headers(), "-std=gnu17", "-D_GNU_SOURCE", "-w")


def _zig_archives(toolchain: Toolchain, cxx: bool) -> Path:
    """The folder of zig's own archives, in the order of their names, from the cache or built now.

    For C++ there is also a file ``flags``, the compiler's, one a line.
    """
    digest = hashlib.sha256(repr((toolchain.identity, _ZIG_BUILD)).encode()).hexdigest()[:16]
    folder = cache_folder() / f"zig-{'cxx' if cxx else 'c'}-{digest}"
    if folder.exists():
        return folder
    with tempfile.TemporaryDirectory(prefix="zig-", dir=folder.parent) as name:
        text = "int main() { return 0; }\n"
        source = Path(name) / ("empty.cpp" if cxx else "empty.c")
        source.write_text(text)
        zig = toolchain.clang[0]
        command = (zig, "c++" if cxx else "cc", *_ZIG_BUILD, *(_CXX_FLAGS if cxx else ()))
        said = run(
            (*command, str(source), "-o", f"{name}/empty.wasm"),
            timeout=BUILD_SECONDS,
            place=Place(file="the C library"),
        )
        source.unlink()
        Path(name, "empty.wasm").unlink(missing_ok=True)
        _keep(said, Path(name), cxx)
        _enter(Path(name), folder)
    return folder


_ZIG_BUILD = ("--target=wasm32-wasi", "-mcpu=mvp", "-O2", "-s", "--verbose")
"""How zig is made to build its library: optimised, without line tables of its own."""


def _keep(said: str, folder: Path, cxx: bool) -> None:
    """Copies the archives that zig says it links, numbered in their order."""
    cache = re.escape(str(cache_folder() / "zig"))
    links = [line for line in said.splitlines() if line.startswith("wasm-ld ")]
    found = re.findall(rf"{cache}/o/[0-9a-f]+/lib[\w+]+\.a", links[-1]) if links else []
    names = {Path(path).name for path in found}
    wanted = {"libc.a", "libcompiler_rt.a"} | ({"libc++.a", "libc++abi.a"} if cxx else set())
    if not wanted <= names:
        missing = ", ".join(sorted(wanted - names))
        raise CompileError(
            f"zig does not say where it keeps {missing}", Place(file="the C library")
        )
    for number, path in enumerate(found):
        shutil.copy(path, folder / f"{number}-{Path(path).name}")
    if cxx:
        lib = zig_folder() / "lib"
        defined = re.findall(r"-D (_LIB\w+(?:=\S+)?)", said)
        flags = [f"-D{name}" for name in dict.fromkeys(defined)]
        for name in ("libcxx/include", "libcxxabi/include"):
            flags += ["-isystem", str(lib / name)]
        (folder / "flags").write_text("\n".join(flags))


# --- a system's part ---------------------------------------------------------------------------


def _system_library(toolchain: Toolchain, sysroot: Path, cxx: bool) -> WasiLibrary:
    """The library in a sysroot, as the WASI SDK and Debian lay it out."""
    names = [name for name in _SYSTEM_NAMES if (sysroot / "lib" / name / "libc.a").exists()]
    if not names:
        raise UsageError(
            f"{sysroot}: no WASI library is here (lib/wasm32-wasi/libc.a); name its folder with "
            "--sysroot, or the WASI SDK's in WASI_SDK_PATH, or take --libc=tiny"
        )
    name, lib = names[0], sysroot / "lib" / names[0]
    include = sysroot / "include" / name
    include = include if (include / "stdio.h").exists() else sysroot / "include"
    target = f"--target={name}"
    place = Place(file="the C library")
    query = (*toolchain.clang, target, "-rtlib=compiler-rt", "-print-libgcc-file-name")
    runtime = Path(run(query, timeout=TIMEOUT_SECONDS, place=place).strip())
    archives = (lib / "libc.a", *sorted(lib.glob("libwasi-emulated-*.a")), runtime)
    cxx_flags: tuple[str, ...] = ()
    if cxx:
        folders = (include / "c++" / "v1", sysroot / "include" / "c++" / "v1")
        found = [path for path in folders if (path / "vector").exists()]
        if not found or not (lib / "libc++.a").exists():
            raise UsageError(f"{sysroot}: no C++ library for WASI is here")
        cxx_flags = ("-nostdinc++", "-isystem", str(found[0]))
        archives = (lib / "libc++.a", lib / "libc++abi.a", *archives)
    missing = [path for path in archives if not path.exists()]
    if missing:
        raise UsageError(
            f"{missing[0]}: missing; the compiler's runtime library for wasm32 is needed"
        )
    return WasiLibrary(
        c_flags=(target, "-nostdlibinc", "-isystem", str(include)),
        cxx_flags=cxx_flags,
        printf={
            NONE: (lib / "libc-printscan-no-floating-point.a",),
            DOUBLE: (),
            LONG_DOUBLE: (lib / "libc-printscan-long-double.a",),
        },
        archives=archives,
    )


_SYSTEM_NAMES = ("wasm32-wasip1", "wasm32-wasi")


def _remedy(messages: str) -> str:
    known = remedy(messages, "the C library")
    if not known and "initial memory too small" in messages:
        return (
            f"data and stack must fit the memory ({MEMORY_BYTES >> 20} MiB, or what --memory says)"
        )
    return known

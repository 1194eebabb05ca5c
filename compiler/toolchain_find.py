"""Finds a C compiler: the clang of the PyPI package ziglang, or the system's."""

from __future__ import annotations

import os
import re
import shutil
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from compiler.errors import CompileError, UsageError
from compiler.toolchain_run import TIMEOUT_SECONDS, run

_SYSTEM_TARGET, _ZIG_TARGET = "wasm32-unknown-unknown", "wasm32-freestanding"


@dataclass(frozen=True)
class Toolchain:
    """A C compiler.

    ``compile`` and ``archive`` are argument prefixes, of a driver that compiles and links without a
    library and of an archiver; ``link_flags`` are what the driver needs for linking. ``clang`` and
    ``linker`` are the bare compiler (``--target`` is still to be said) and ``wasm-ld``; ``headers``
    are flags for the compiler's own headers. ``identity`` changes with the version, and names the
    compiled library in the cache. ``sysroot`` is the folder of a system's WASI library, None for
    zig's.
    """

    compile: tuple[str, ...]
    archive: tuple[str, ...]
    link_flags: tuple[str, ...]
    identity: str
    clang: tuple[str, ...] = ()
    linker: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()
    sysroot: Path | None = None


def find_toolchain(
    clang: str | os.PathLike[str] | None = None,
    sysroot: str | os.PathLike[str] | None = None,
) -> Toolchain:
    """The bundled zig, or the system's clang at ``clang`` (a path, or a name on the PATH).

    Args:
        sysroot: folder of the WASI library of a system clang; by default that of the WASI SDK which
            the environment variable ``WASI_SDK_PATH`` names, or ``/usr``.

    Raises:
        UsageError: that clang does not exist or does not run, or ziglang is not installed.
    """
    if clang is None:
        if sysroot is not None:
            raise UsageError("--sysroot is for a system clang: name it with --clang")
        return _zig()
    path = shutil.which(os.fspath(clang))
    if path is None:
        raise UsageError(f"{os.fspath(clang)}: no such compiler")
    try:
        banner = run((path, "--version"), timeout=TIMEOUT_SECONDS)
    except CompileError as error:
        raise UsageError(f"{path}: does not run as a compiler: {error.reason}") from None
    if sysroot is None:
        sdk = os.environ.get("WASI_SDK_PATH", "")
        sysroot = Path(sdk) / "share" / "wasi-sysroot" if sdk else Path("/usr")
    return Toolchain(
        compile=(path, f"--target={_SYSTEM_TARGET}"),
        archive=_tool(path, "llvm-ar", "ar"),
        link_flags=("-Wl,--stack-first",),
        identity=f"{path} {banner} {os.fspath(sysroot)}",
        clang=(path,),
        linker=_tool(path, "wasm-ld", "wasm-ld"),
        sysroot=Path(sysroot),
    )


def _tool(clang: str, name: str, zig_name: str) -> tuple[str, ...]:
    """A tool beside a clang, or zig's, which reads any object.

    Debian's tools carry the version of their clang; what the links lead to has plain names.
    """
    suffix = re.search(r"clang(-\d+)?$", clang)
    version = (suffix and suffix[1]) or ""
    for beside in (Path(clang).with_name(name + version), Path(clang).resolve().with_name(name)):
        if beside.exists():
            return (str(beside),)
    return (sys.executable, "-m", "ziglang", zig_name)


def zig_folder() -> Path:
    """The folder of the package ziglang.

    Raises:
        UsageError: it is not installed.
    """
    spec = find_spec("ziglang")
    if spec is None or not spec.submodule_search_locations:
        message = "no C compiler: install the package ziglang, or name a clang"
        raise UsageError(message)
    return Path(spec.submodule_search_locations[0])


def _zig_version(folder: Path) -> str:
    """The package's version; read off a folder's name, because importlib.metadata starts slowly."""
    for path in folder.parent.glob("ziglang-*.dist-info"):
        return path.stem.partition("-")[2]
    from importlib.metadata import version

    return version("ziglang")


def _zig() -> Toolchain:
    folder = zig_folder()
    zig = str(folder / "zig")
    return Toolchain(
        compile=(zig, "cc", f"--target={_ZIG_TARGET}"),
        archive=(zig, "ar"),
        link_flags=(),  # zig puts the stack first itself
        identity=f"zig {_zig_version(folder)}",
        clang=(zig, "clang"),
        linker=(zig, "wasm-ld"),
        headers=("-nostdlibinc", "-isystem", str(folder / "lib" / "include")),
    )

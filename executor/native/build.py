"""From C source to a loaded library, once: a cache on disk keeps what was compiled.

A library is named after a hash of its source, flags and platform, and after the hash of its own
bytes: a damaged file is recognised and made again, and processes that compile the same at the same
time cannot disturb each other. Where no cache folder can be written, a temporary one serves.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from compiler.store import cache_folders, evict, make_folder
from executor.native.errors import NativeUnavailable

FLAGS = (
    "-std=gnu11", "-fPIC", "-shared", "-ffp-contract=off", "-fno-math-errno", "-fwrapv",
    "-fstrict-aliasing", "-w",
)  # fmt: skip
"""No -march: the cache may be shared by different machines. No fused multiply-add: exact order.
Integers wrap around: those of a path whose guesses fail may overflow, and are not used. Writing a
token changes no pointer, so the pointers of an engine are not read again after each."""
TIMEOUT_SECONDS = 300.0
PART = "native"
"""The part of the cache where engines are."""
Say = Callable[[str], None]
_NONE = "none was found (cc, gcc, clang or the package ziglang)"


def load(source: str, say: Say, optimisation: str = "-O2") -> ctypes.CDLL:
    """The library of a C source, from the cache or compiled now.

    Args:
        say: is told in one line what takes long or had to be done differently.

    Raises:
        NativeUnavailable: if it can neither be compiled nor loaded.
    """
    library = kept_library(source, optimisation)
    if library is not None:
        return library
    flags, key, folders = (*FLAGS, optimisation), _key(source, optimisation), cache_folders(PART)
    say("compiling the native engine (once for each model)")
    problem = ""
    for folder in folders:
        try:
            make_folder(folder)
            return _compiled(folder, key, source, flags)
        except OSError as error:
            problem = f"{folder}: {error.strerror or error}"
    try:
        with tempfile.TemporaryDirectory(prefix="transputer-") as temporary:
            library = _compiled(Path(temporary), key, source, flags)
    except OSError as error:
        raise NativeUnavailable(
            f"the native engine cannot be stored: {problem}; {error.strerror or error}; "
            f"set TRANSPUTER_CACHE to a folder that can be written"
        ) from None
    say(f"the native engine cannot be kept for the next time: {problem}")
    return library


def kept_library(source: str, optimisation: str) -> ctypes.CDLL | None:
    """The library of a C source, if it is in the cache."""
    key = _key(source, optimisation)
    for folder in cache_folders(PART):
        library = _found(folder, key)
        if library is not None:
            return library
    return None


def _key(source: str, optimisation: str) -> str:
    parts = (*FLAGS, optimisation, sys.platform, platform.machine(), source)
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def check_compiler() -> None:
    """Raises NativeUnavailable where nothing is that may be a C compiler."""
    if next(_compilers(), None) is None:
        raise NativeUnavailable(f"no C compiler works: {_NONE}")


def _found(folder: Path, key: str) -> ctypes.CDLL | None:
    """The library in a folder, None if there is none that is whole."""
    with contextlib.suppress(OSError):
        for path in sorted(folder.glob(f"engine-{key}-*")):
            library = _load_whole(path)
            if library is not None:
                return library
    return None


def _compiled(folder: Path, key: str, source: str, flags: Sequence[str]) -> ctypes.CDLL:
    """Compile into a folder and load. Raises OSError if the folder cannot be used."""
    path = _compile_any(folder, key, source, flags)
    library = _load_whole(path)
    if library is None:
        raise NativeUnavailable(f"the compiled engine {path} cannot be loaded")
    return library


def _load_whole(path: Path) -> ctypes.CDLL | None:
    """Load a library whose bytes agree with its name; others are removed."""
    digest = path.stem.rpartition("-")[2]
    if hashlib.sha256(path.read_bytes()).hexdigest()[:32] == digest:
        try:
            library = ctypes.CDLL(str(path))
        except OSError:
            return None
        with contextlib.suppress(OSError):
            os.utime(path)  # it was used
        return library
    path.unlink(missing_ok=True)
    return None


def _compilers() -> Iterator[tuple[str, ...]]:
    """C compilers that may be here, as the beginning of a command."""
    for name in ("cc", "gcc", "clang"):
        path = shutil.which(name)
        if path:
            yield (path,)
    if importlib.util.find_spec("ziglang") is not None:
        yield (sys.executable, "-m", "ziglang", "cc", "-fno-sanitize=all")


def _compile_any(folder: Path, key: str, source: str, flags: Sequence[str]) -> Path:
    """Compile with the first compiler that works; the library's final path."""
    reasons = []
    with tempfile.TemporaryDirectory(dir=folder, prefix="build-") as build:
        c_file, library = Path(build) / "engine.c", Path(build) / "engine.so"
        c_file.write_text(source, encoding="utf-8")
        for compiler in _compilers():
            reason = _run([*compiler, *flags, "-o", str(library), str(c_file), "-lm"], folder)
            if not reason:
                digest = hashlib.sha256(library.read_bytes()).hexdigest()[:32]
                path = folder / f"engine-{key}-{digest}.so"
                os.replace(library, path)
                evict(folder)
                return path
            reasons.append(f"{' '.join(compiler)}: {reason}")
    tried = "; ".join(reasons) or _NONE
    raise NativeUnavailable(f"no C compiler works: {tried}")


def _run(command: list[str], folder: Path) -> str:
    """Run a compiler; empty if it made the library, else why not, in one line.

    Raises:
        OSError: the disk is full.
    """
    zig = str(folder / "zig")  # compiled parts of its C library, used again
    environment = {**os.environ, "LC_ALL": "C"}
    environment |= {"ZIG_GLOBAL_CACHE_DIR": zig, "ZIG_LOCAL_CACHE_DIR": zig}
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            env=environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"not finished after {TIMEOUT_SECONDS:g} s"
    except OSError as error:
        return error.strerror or str(error)
    if done.returncode == 0 and Path(command[command.index("-o") + 1]).is_file():
        return ""
    if b"No space left on device" in done.stderr or b"NoSpaceLeft" in done.stderr:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    messages = done.stderr.decode("utf-8", "replace").strip().splitlines()
    errors = [line for line in messages if "error" in line] or messages
    return (errors[0] if errors else f"exit code {done.returncode}")[:200]

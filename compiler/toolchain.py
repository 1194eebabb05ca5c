"""Runs a C compiler: C sources in, one WebAssembly module out.

The compiler is ``python -m ziglang cc`` (the PyPI package ziglang: clang and wasm-ld, no system
package needed) or a system clang with the wasm32 target and wasm-ld. Both get the same flags:

- ``-mcpu=mvp``: nothing beyond WebAssembly 1.0. ``-UNDEBUG``: zig defines NDEBUG from -O1 on, and
  ``assert`` would vanish. ``-fno-sanitize=all``: zig turns UBSan traps on at -O0.
- ``-fhosted -fno-builtin``: ``main`` is what C says it is (zig would compile freestanding), yet
  loops do not become calls of memset, nor small calls of memcpy 64-bit moves.
- Three LLVM switches keep 64-bit operations out of 32-bit programs: the exit value of a counting
  loop in closed form (``replexitval``), several stores merged to one (``combiner-store-merging``)
  and small lookup tables packed into a constant (``switch-to-lookup``). What remains are copies
  and clearings of 8-byte pieces of structs and arrays (i64.load, i64.store, i64.const).
- ``disable-lsr``: loop strength reduction makes addresses for machines with more registers and
  addressing modes; without it programs execute up to 5 % fewer instructions.
- Function names and line tables stay in the module: errors and traces use them.
"""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from compiler.errors import CompileError, Place, UsageError

OPTIMISATION_LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os", "-Oz")
STACK_BYTES = 32 * 1024
"""Default size of the C stack. It lies below the data, so that an overflow leaves the memory
and traps; together with up to 32 KiB of data and heap it makes one page."""
TIMEOUT_SECONDS = 120.0
ENTRY = "transputer_main"

_CODE_FLAGS = (
    "-mcpu=mvp", "-nostdlib", "-UNDEBUG", "-fno-sanitize=all", "-fhosted", "-fno-builtin",
    "-mllvm", "-replexitval=never",
    "-mllvm", "-combiner-store-merging=false",
    "-mllvm", "-switch-to-lookup=false",
    "-mllvm", "-disable-lsr",
)  # fmt: skip
_DEBUG_FLAGS = ("-gline-tables-only", "-fdebug-compilation-dir=.")
_LIBRARY_FLAGS = ("-O2", "-g0")
_PLAIN_PATH = re.compile(r"[\w./ ,+=@%~-]*")
_LONGEST_NAME = 128
_SHOWN_LINES, _SHOWN_COLUMNS = 40, 300


@dataclass(frozen=True)
class Toolchain:
    """A C compiler driver.

    ``compile`` and ``archive`` are argument prefixes; ``identity`` changes with the version, and
    names the compiled library in the cache.
    """

    compile: tuple[str, ...]
    archive: tuple[str, ...]
    link_flags: tuple[str, ...]
    identity: str


def find_toolchain(clang: str | os.PathLike[str] | None = None) -> Toolchain:
    """The bundled zig, or the system's clang at ``clang`` (a path, or a name on the PATH).

    Raises:
        UsageError: that clang does not exist or does not run, or ziglang is not installed.
    """
    zig = (sys.executable, "-m", "ziglang")
    if clang is None:
        try:
            version = importlib.metadata.version("ziglang")
        except importlib.metadata.PackageNotFoundError:
            message = "no C compiler: install the package ziglang, or name a clang"
            raise UsageError(message) from None
        return Toolchain(
            compile=(*zig, "cc", "--target=wasm32-freestanding"),
            archive=(*zig, "ar"),
            link_flags=(),  # zig puts the stack first itself
            identity=f"zig {version}",
        )
    path = shutil.which(os.fspath(clang))
    if path is None:
        raise UsageError(f"{os.fspath(clang)}: no such compiler")
    try:
        banner = _run((path, "--version"), timeout=TIMEOUT_SECONDS)
    except CompileError as error:
        raise UsageError(f"{path}: does not run as a compiler: {error.reason}") from None
    # Debian's archiver carries the version of its clang; zig's reads any object.
    suffix = re.search(r"clang(-\d+)?$", path)
    beside = Path(path).with_name(f"llvm-ar{(suffix and suffix[1]) or ''}")
    return Toolchain(
        compile=(path, "--target=wasm32-unknown-unknown"),
        archive=(str(beside),) if beside.exists() else (*zig, "ar"),
        link_flags=("-Wl,--stack-first",),
        identity=f"{path} {banner}",
    )


def compile_c(
    toolchain: Toolchain,
    sources: Sequence[Path],
    *,
    opt: str = "-O2",
    include: Sequence[str | os.PathLike[str]] = (),
    define: Sequence[str] = (),
    exports: Sequence[str] = (),
    stack_bytes: int = STACK_BYTES,
    timeout: float = TIMEOUT_SECONDS,
) -> tuple[bytes, str]:
    """Compiles and links C files with the small library.

    Args:
        exports: names of functions to export; with any, the program needs no ``main``, and
            ``main`` is not its entry.

    Returns:
        The module and the compiler's warnings.

    Raises:
        CompileError: the compiler's or linker's messages, or no end after ``timeout`` seconds.
        UsageError: no usable cache folder.
    """
    library = library_archive(toolchain, timeout=timeout)
    names = exports or (ENTRY,)
    with tempfile.TemporaryDirectory(prefix="transputer-") as folder:
        staged = _stage(sources, Path(folder))
        output = Path(folder) / f"{staged.paths[0].stem}.wasm"  # names the module
        command = (
            *toolchain.compile, opt, *_CODE_FLAGS, *_DEBUG_FLAGS, *staged.flags,
            *_search_flags(include, define),
            *(_as_argument(source) for source in staged.paths), str(library),
            *toolchain.link_flags,
            "-Wl,--no-entry", f"-Wl,-z,stack-size={stack_bytes}",
            *(f"-Wl,--export={name}" for name in names),
            "-o", str(output),
        )  # fmt: skip
        place = Place(file=", ".join(map(str, sources)))
        messages = _run(command, timeout=timeout, place=place, names=staged.names)
        if re.search(r"^wasm-ld\S*: warning:", messages, re.MULTILINE):
            # A call through a wrong declaration: it would be linked to a function that traps.
            raise _refused(messages, place)
        try:
            return output.read_bytes(), _shorten(messages)
        except FileNotFoundError:
            raise CompileError("the compiler wrote no output", place) from None


def preprocess(
    toolchain: Toolchain,
    source: Path,
    *,
    opt: str = "-O2",
    include: Sequence[str | os.PathLike[str]] = (),
    define: Sequence[str] = (),
    timeout: float = TIMEOUT_SECONDS,
) -> str:
    """The text of a C file as :func:`compile_c` sees it: headers in, macros replaced.

    Raises:
        CompileError: the preprocessor's messages, or no end after ``timeout`` seconds.
    """
    with tempfile.TemporaryDirectory(prefix="transputer-") as folder:
        staged = _stage([source], Path(folder))
        output = Path(folder) / "preprocessed"
        command = (
            *toolchain.compile, opt, *_CODE_FLAGS, *staged.flags,
            *_search_flags(include, define), "-E", "-P", _as_argument(staged.paths[0]),
            "-o", str(output),
        )  # fmt: skip
        _run(command, timeout=timeout, place=Place(file=str(source)), names=staged.names)
        try:
            return output.read_text("utf-8", "replace")
        except FileNotFoundError:
            message = "the preprocessor wrote no output"
            raise CompileError(message, Place(file=str(source))) from None


def library_archive(toolchain: Toolchain, *, timeout: float = TIMEOUT_SECONDS) -> Path:
    """The compiled small library, from the cache or built now (about a second).

    It is an archive, so that a program's own functions take precedence and only what is used is
    linked. It enters the cache whole, by one rename.
    """
    folder = _library_folder()
    digest = hashlib.sha256(repr((toolchain.identity, _CODE_FLAGS, _LIBRARY_FLAGS)).encode())
    for path in sorted(folder.glob("*.[ch]")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    cache = cache_folder()
    archive = cache / f"libc-{digest.hexdigest()[:16]}.a"
    if archive.exists():
        return archive
    with tempfile.TemporaryDirectory(prefix="libc-", dir=cache) as temporary:
        objects = []
        for source in sorted(folder.glob("*.c")):
            target = Path(temporary) / f"{source.stem}.o"
            flags = (*_CODE_FLAGS, *_LIBRARY_FLAGS, "-isystem", str(folder))
            command = (*toolchain.compile, *flags, "-c", str(source), "-o", str(target))
            _run(command, timeout=timeout, place=Place(file=f"the C library's {source.name}"))
            objects.append(str(target))
        built = Path(temporary) / "libc.a"
        _run((*toolchain.archive, "rcs", str(built), *objects), timeout=timeout)
        built.replace(archive)
    return archive


def cache_folder() -> Path:
    """A folder of ours that can be written: below XDG_CACHE_HOME, ``~/.cache`` or, where the home
    folder is unusable, the temporary folder.

    Raises:
        UsageError: none of them can be written.
    """
    for folder in _cache_candidates():
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if hasattr(os, "getuid") and folder.stat().st_uid != os.getuid():
                continue  # somebody else's, in a shared temporary folder
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError:
            continue
    raise UsageError("no folder for the compiler's cache can be written: set XDG_CACHE_HOME")


def _cache_candidates() -> list[Path]:
    candidates = []
    xdg = os.environ.get("XDG_CACHE_HOME", "")
    if os.path.isabs(xdg):
        candidates.append(Path(xdg) / "transputer")
    home = Path(os.path.expanduser("~"))
    if home.is_absolute() and home.is_dir() and home != Path(home.anchor):
        candidates.append(home / ".cache" / "transputer")
    user = os.getuid() if hasattr(os, "getuid") else "user"
    candidates.append(Path(tempfile.gettempdir()) / f"transputer-{user}")
    return candidates


def _library_folder() -> Path:
    return Path(str(files("compiler.libc")))


def _search_flags(
    include: Sequence[str | os.PathLike[str]], define: Sequence[str]
) -> tuple[str, ...]:
    return (
        "-isystem", str(_library_folder()),
        *(f"-I{os.fspath(path)}" for path in include),
        *(f"-D{text}" for text in define),
    )  # fmt: skip


@dataclass(frozen=True)
class _Staged:
    """Sources under names that the compiler can take, what it needs to find their headers, and
    pairs of what its messages call them and what the user does."""

    paths: tuple[Path, ...]
    flags: tuple[str, ...]
    names: tuple[tuple[str, str], ...]


def _stage(sources: Sequence[Path], folder: Path) -> _Staged:
    """Copies sources with unusual names into ``folder``: zig cannot read the list of dependencies
    of ``a:b.c``, and long names do not fit its cache. ``#include "..."`` looks in the source's own
    folder, or in a link to it if that has an unusual name too (``../`` is not found there then)."""
    paths: list[Path] = []
    flags: list[str] = []
    names: list[tuple[str, str]] = []
    for number, source in enumerate(sources):
        if _PLAIN_PATH.fullmatch(str(source)) and len(os.fsencode(source.name)) <= _LONGEST_NAME:
            paths.append(source)
            continue
        copy, headers = folder / f"renamed-{number}.c", source.parent
        if not _PLAIN_PATH.fullmatch(str(headers)):
            headers = folder / f"headers-{number}"
            headers.symlink_to(source.parent.resolve(), target_is_directory=True)
        text = source.read_bytes().removeprefix(b"\xef\xbb\xbf")
        copy.write_bytes(f'#line 1 "{_in_quotes(str(source))}"\n'.encode() + text)
        paths.append(copy)
        flags += ["-iquote", str(headers)]
        names += [
            (str(copy), str(source)),
            (str(headers), str(source.parent)),
            (f"{copy.stem}.o", f"{source.stem}.o"),
        ]
    if names:  # the same module whatever the folder is called
        flags.append(f"-fdebug-prefix-map={folder}=.")
    return _Staged(tuple(paths), tuple(flags), tuple(names))


def _in_quotes(name: str) -> str:
    name = "".join(c if c.isprintable() else "?" for c in name)
    return name.replace("\\", r"\\").replace('"', r"\"")


def _as_argument(source: Path) -> str:
    """A path that no compiler takes for an option."""
    text = str(source)
    return os.path.join(os.curdir, text) if text.startswith(("-", "@")) else text


def _environment() -> dict[str, str]:
    """Zig keeps compiled objects in these two folders; without them it needs a usable home."""
    zig = str(cache_folder() / "zig")
    return {**os.environ, "ZIG_GLOBAL_CACHE_DIR": zig, "ZIG_LOCAL_CACHE_DIR": zig, "LC_ALL": "C"}


def _run(
    command: Sequence[str],
    *,
    timeout: float,
    place: Place | None = None,
    names: Sequence[tuple[str, str]] = (),
) -> str:
    """Runs a command to its end and returns what it printed, with the first of each two ``names``
    replaced by the second; kills it and its children when the time is over."""
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env=_environment(),
            start_new_session=True,
        )
    except OSError as error:
        raise CompileError(f"cannot start {command[0]}: {error.strerror}", place) from None
    try:
        raw, _ = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        raise CompileError(f"the compiler did not finish in {timeout:g} s", place) from None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    messages = raw.decode("utf-8", "replace")
    for ours, theirs in names:
        messages = messages.replace(ours, theirs)
    if process.returncode != 0:
        raise _refused(messages, place)
    return messages


def _refused(messages: str, place: Place | None) -> CompileError:
    reason = f"the compiler refuses it:\n{_shorten(messages)}"
    return CompileError(reason, place, _remedy(messages))


def _remedy(messages: str) -> str:
    """What the user can do about a compiler's or linker's messages; empty if they say it."""
    missing = re.findall(r"undefined symbol: (\S+)", messages)
    if any(name in ("main", "__main_argc_argv") for name in missing):
        return "write `int main(void)` or `int main(int argc, char **argv)`, or call one function"
    if missing:
        names = ", ".join(sorted(set(missing)))
        return f"no source file and nothing in the small C library defines {names}"
    mismatch = re.search(r"function signature mismatch: (\S+)", messages)
    if mismatch:
        return f"the declarations of {mismatch[1]} must agree in all files"
    if "symbol exported via --export not found" in messages:
        return "only functions that are not static can be called"
    if re.search(r"fatal error: '[^']*' file not found", messages):
        headers = ", ".join(sorted(path.name for path in _library_folder().glob("*.h")))
        return f"the small C library has {headers}; -I adds a folder of your own headers"
    return ""


def _shorten(messages: str) -> str:
    """The messages without control characters and folders of zig's cache, in at most 40 lines of
    300 characters."""
    messages = re.sub(r"[^\s:(]*/zig/o/[0-9a-f]{32}/", "", messages)
    lines = [
        "".join(c if c.isprintable() or c == "\t" else "?" for c in line[:_SHOWN_COLUMNS])
        for line in messages.rstrip().split("\n")
    ]
    if len(lines) > _SHOWN_LINES:
        hidden = len(lines) - _SHOWN_LINES
        lines[_SHOWN_LINES:] = [f"... and {hidden} more lines"]
    return "\n".join(lines)

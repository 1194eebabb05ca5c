"""Runs compilers and linkers: a command in, its messages out; and the folder of the cache.

A command is stopped, with its children, when its time is over. Its messages are shown to the user,
so they are freed of our own folders and cut to a readable length.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from compiler.errors import CompileError, Place, UsageError
from compiler.store import cache_folders, make_folder

TIMEOUT_SECONDS = 120.0
_SHOWN_LINES, _SHOWN_COLUMNS = 40, 300
_NO_SPACE = re.compile(
    r"^(?! *\d* \|).*"
    r"(NoSpaceLeft|DiskQuota|FileTooBig"
    r"|(No space left on device|Disk quota exceeded|File too large)'?)$",
    re.MULTILINE,
)
"""How compilers and linkers end a line about a full disk; not one in which they show the source."""


def cache_folder() -> Path:
    """A folder of ours that can be written, for compiled libraries.

    Raises:
        UsageError: there is none.
    """
    for folder in cache_folders("libraries"):
        try:
            make_folder(folder)
            with tempfile.TemporaryFile(dir=folder):
                return folder
        except OSError:
            continue
    raise UsageError(
        "no folder for the compiler's cache can be written: set TRANSPUTER_CACHE to one"
    )


def _environment() -> dict[str, str]:
    """Zig keeps compiled objects in these two folders; without them it needs a usable home."""
    zig = str(cache_folder() / "zig")
    return {**os.environ, "ZIG_GLOBAL_CACHE_DIR": zig, "ZIG_LOCAL_CACHE_DIR": zig, "LC_ALL": "C"}


def run(
    command: Sequence[str],
    *,
    timeout: float,
    place: Place | None = None,
    names: Sequence[tuple[str, str]] = (),
    remedies: Callable[[str], str] | None = None,
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
    too_large = process.returncode == -signal.SIGXFSZ
    if too_large or (process.returncode != 0 and _NO_SPACE.search(messages)):
        raise UsageError(
            f"the compiler cannot write all of its files: the disk under {cache_folder()} or "
            f"{tempfile.gettempdir()} is full; TRANSPUTER_CACHE and TMPDIR name other folders"
        )
    if process.returncode != 0:
        raise refused(messages, place, remedies)
    return messages


def refused(
    messages: str, place: Place | None, remedies: Callable[[str], str] | None = None
) -> CompileError:
    """The error for messages of a compiler or linker."""
    reason = f"the compiler refuses it:\n{shorten(messages)}"
    return CompileError(reason, place, (remedies or remedy)(messages))


def remedy(messages: str, library: str = "") -> str:
    """What the user can do about a compiler's or linker's messages; empty if they say it.

    Args:
        library: what the C library is called, if one is linked: it may not define a name.
    """
    missing = re.findall(r"undefined symbol: (\S+)", messages)
    if any(name in ("main", "__main_argc_argv", "__main_void") for name in missing):
        return "write `int main(void)` or `int main(int argc, char **argv)`, or call one function"
    mismatch = re.search(r"function signature mismatch: (\S+)", messages)
    if mismatch:
        return f"the declarations of {mismatch[1]} must agree in all files"
    if "symbol exported via --export not found" in messages:
        return "only functions that are not static can be called"
    if missing and library:
        names = ", ".join(sorted(set(missing)))
        return f"no source file and nothing in {library} defines {names}"
    return ""


def as_argument(source: Path) -> str:
    """A path that no compiler takes for an option."""
    text = str(source)
    return os.path.join(os.curdir, text) if text.startswith(("-", "@")) else text


def shorten(messages: str) -> str:
    """The messages without control characters, in at most 40 lines of 300 characters."""
    lines = [
        "".join(c if c.isprintable() or c == "\t" else "?" for c in line[:_SHOWN_COLUMNS])
        for line in messages.rstrip().split("\n")
    ]
    if len(lines) > _SHOWN_LINES:
        hidden = len(lines) - _SHOWN_LINES
        lines[_SHOWN_LINES:] = [f"... and {hidden} more lines"]
    return "\n".join(lines)

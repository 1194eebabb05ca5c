"""Files of Debian packages, got by name with apt-get and kept in the project's cache.

Nothing is installed, so nobody has to be root, unless the lists of packages are missing.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path

from compiler.toolchain import cache_folder

SECONDS = 300
"""Limit for each call of a tool."""
_QUICKLY = ("-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=20")
"""Where there is no network, apt-get shall say so soon."""


class Unavailable(Exception):
    """A package cannot be had here; the text says why."""


def files_of(packages: tuple[str, ...], keep: Callable[[Path, Path], None]) -> Path:
    """The folder with what ``keep(unpacked, folder)`` took from these packages, unpacked together.

    Raises:
        Unavailable: no Debian, no network, or no such package.
    """
    folder = cache_folder() / "debian" / "-".join(packages)
    if folder.exists():
        return folder
    for tool in ("apt-get", "dpkg-deb"):
        if shutil.which(tool) is None:
            raise Unavailable(f"there is no {tool} here to get {' and '.join(packages)} with")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="new-", dir=folder.parent) as name:
        unpacked, kept = Path(name) / "unpacked", Path(name) / "kept"
        kept.mkdir()
        for package in packages:
            _run("dpkg-deb", "--extract", str(_downloaded(package, Path(name))), str(unpacked))
        keep(unpacked, kept)
        try:
            kept.rename(folder)
        except OSError:
            if not folder.exists():  # else another process was faster
                raise
    return folder


def _downloaded(package: str, folder: Path) -> Path:
    try:
        _run("apt-get", *_QUICKLY, "download", package, cwd=folder)
    except Unavailable:
        _run("apt-get", *_QUICKLY, "update")  # the lists may be missing or old
        _run("apt-get", *_QUICKLY, "download", package, cwd=folder)
    return next(folder.glob(f"{package}_*.deb"))


def _run(tool: str, *options: str, cwd: Path | None = None) -> None:
    name = f"{tool} {options[-1]}"
    try:
        subprocess.run(
            (tool, *options), check=True, cwd=cwd, timeout=SECONDS,
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )  # fmt: skip
    except subprocess.CalledProcessError as error:
        said = [line for line in error.stderr.splitlines() if line.startswith("E:")]
        raise Unavailable(f"{name}: {said[0] if said else error}") from None
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{name}: no end after {SECONDS} s") from None

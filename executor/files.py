"""Files that appear whole or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import BinaryIO


class PendingFile:
    """A file being written beside its place; ``keep`` moves it there, ``discard`` forgets it.

    Until then it is called ``NAME.*.partial``. A target that is no regular file (``/dev/null``,
    a pipe) is written directly.

    Raises:
        OSError: as from opening or renaming.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).resolve()
        self._temporary: str | None = None
        self.file: BinaryIO
        if self._path.exists() and not self._path.is_file():
            self.file = open(self._path, "wb")  # noqa: SIM115 - closed by keep or discard
        else:
            descriptor, self._temporary = tempfile.mkstemp(
                dir=self._path.parent, prefix=f"{self._path.name[:50]}.", suffix=".partial"
            )
            self.file = os.fdopen(descriptor, "wb")

    def keep(self) -> None:
        """Finish: the file is now at its place, with the permissions of a new file."""
        try:
            self.file.close()
            if self._temporary is not None:
                os.chmod(self._temporary, 0o666 & ~_umask())
                os.replace(self._temporary, self._path)
        except OSError:
            self.discard()
            raise

    def discard(self) -> None:
        """Give up: nothing is left."""
        with contextlib.suppress(OSError):
            self.file.close()
        if self._temporary is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._temporary)


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Write a whole file. Raises OSError."""
    pending = PendingFile(path)
    try:
        pending.file.write(data)
    except BaseException:
        pending.discard()
        raise
    pending.keep()


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current

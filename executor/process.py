"""What the operating system has to do with a run: memory, Ctrl-C, and patience on a terminal."""

from __future__ import annotations

import contextlib
import os
import resource
import shutil
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Self

from executor.managed import Managed

PATIENCE_TERMINAL, PATIENCE = 1.0, 3.0
"""Seconds without a word to a terminal, and to a file or pipe."""
PIPED, WIDEST = 80, 120
"""Columns of a paragraph: where nobody says, at most."""


def resident_bytes() -> int:
    """Memory that this process holds now; where the system does not say, the most it ever held."""
    try:
        with open("/proc/self/statm", "rb") as file:
            return int(file.read().split()[1]) * resource.getpagesize()
    except OSError:
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024


def cores() -> int:
    """Processor cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def screen_width(narrowest: int = 60) -> int | None:
    """Columns of the terminal that standard output is, at least ``narrowest``; None for a file or
    pipe, unless COLUMNS says how wide that is."""
    if sys.stdout.isatty() or "COLUMNS" in os.environ:
        return max(shutil.get_terminal_size().columns, narrowest)
    return None


class Interrupts(Managed):
    """Puts Ctrl-C off to where nothing is left half done; a context manager.

    The first Ctrl-C is raised by ``check``, the second one at once, wherever that is.
    """

    def __init__(self) -> None:
        self._asked = False
        self._installed = False

    def __enter__(self) -> Self:
        # An ignored signal (a job in the background) stays so; other threads get none.
        ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if ours and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._ask)
            self._installed = True
        return self

    def leave(self, error: BaseException | None) -> None:
        if self._installed:
            signal.signal(signal.SIGINT, signal.default_int_handler)

    def check(self) -> None:
        """Raises KeyboardInterrupt if Ctrl-C was pressed."""
        if self._asked:
            raise KeyboardInterrupt

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True


def say(message: str) -> None:
    """One line on standard error; where nobody can hear it, nothing."""
    with contextlib.suppress(OSError):
        print(f"transputer: {message}", file=sys.stderr, flush=True)


def write_error(data: bytes) -> None:
    """What the program writes to standard error; where nobody can hear it, nothing."""
    with contextlib.suppress(OSError):
        sys.stderr.flush()
        sys.stderr.buffer.write(data)
        sys.stderr.buffer.flush()


@contextlib.contextmanager
def patience(message: str) -> Iterator[None]:
    """Says ``message`` if what happens inside takes long."""
    timer = threading.Timer(PATIENCE_TERMINAL if sys.stderr.isatty() else PATIENCE, say, [message])
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()

"""A progress line on a terminal that never gets in the way of the program's own output."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from executor.process import resident_bytes

if TYPE_CHECKING:
    from rich.progress import Progress

INTERVAL = 0.25
"""Seconds between two updates."""


class ProgressLine:
    """``1,234,567 tokens  3,012 tokens/s  210 MB  0:06:50`` on standard error; nothing if piped.

    ``tick`` often; call ``hide`` before writing to the terminal. The line comes back at the next
    tick, but only where the cursor is at the start of a line.
    """

    def __init__(self) -> None:
        self._first = 0
        self._enabled = sys.stderr.isatty()
        self._shares_terminal = sys.stdout.isatty()
        self._progress: Progress | None = None
        self._shown = False
        self._line_start = True
        self._started = self._next = time.monotonic()
        self._next += INTERVAL

    def restart(self, delay: float) -> None:
        """Another run begins; nothing is shown of it for ``delay`` seconds."""
        self._first, self._started = 0, time.monotonic()
        self._next = self._started + delay

    def tick(self, n_tokens: int, *, reading: bool = False) -> None:
        """Show the number of tokens so far, at most every ``INTERVAL`` seconds.

        Args:
            reading: the model reads what is there already; the clock of tokens/s starts after it.
        """
        if reading:
            self._first, self._started = n_tokens, time.monotonic()
        if not self._enabled or time.monotonic() < self._next or not self._line_start:
            return
        now = time.monotonic()
        self._next = now + INTERVAL
        if self._progress is None:
            self._progress = _line()
        if not self._shown:
            self._progress.start()
            self._shown = True
        speed = (n_tokens - self._first) / max(now - self._started, 1e-9)
        memory = resident_bytes() / 1e6
        state = f"{speed:,.0f} tokens/s  {memory:,.0f} MB"
        if reading:
            state = "reading the prompt"
        task = self._progress.task_ids[0]
        self._progress.update(task, completed=n_tokens, state=state, refresh=True)

    def hide(self, written: bytes = b"", *, errors: bool = False) -> None:
        """Take the line away, because ``written`` is about to go to the terminal.

        Args:
            errors: it goes to standard error.
        """
        if written and not errors and not self._shares_terminal:
            return
        if self._shown and self._progress is not None:
            self._progress.stop()
            self._shown = False
        if written:
            self._line_start = written.endswith(b"\n")


def _line() -> Progress:
    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    progress = Progress(
        TextColumn("{task.completed:,.0f} tokens  {task.fields[state]}"),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        transient=True,
        auto_refresh=False,
    )
    progress.add_task("", total=None, state="")
    return progress

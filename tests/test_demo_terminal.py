"""The demonstrations on a terminal: pictures, Ctrl-C, and terminals that cannot redraw."""

from __future__ import annotations

import codecs
import contextlib
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from fcntl import ioctl

import pytest

from command_line import ROOT
from test_demo import EASY, LEAST, MATRIX

ESCAPE = "\x1b"


class Terminal:
    """The command on a terminal of its own."""

    def __init__(self, *arguments: str, size: tuple[int, int] = (80, 24), **environment: str):
        self.text = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            columns, lines = size
            ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            unset = {"NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR"}
            kept = {k: v for k, v in os.environ.items() if k not in unset}
            os.chdir(ROOT)
            os.execve(
                sys.executable,
                [sys.executable, "-m", "executor", "demo", *arguments],
                {**kept, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **environment},
            )

    def read_until(self, wanted: str | None, seconds: float = 120) -> None:
        """Read up to some text, or to the end."""
        end = time.monotonic() + seconds
        while wanted is None or wanted not in self.text:
            ready, _, _ = select.select([self.file], [], [], max(end - time.monotonic(), 0))
            assert ready, f"not in time: {wanted!r} after {self.text[-500:]!r}"
            try:
                data = os.read(self.file, 1 << 16)
            except OSError:  # the other side is closed
                data = b""
            if not data:
                assert wanted is None, self.text[-500:]
                return
            self.text += self._decoder.decode(data)

    def exit_code(self) -> int:
        """After the end."""
        self.read_until(None)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.file)
        return os.waitstatus_to_exitcode(status)


SHOW_CURSOR, HIDE_CURSOR, OTHER_SCREEN, OWN_SCREEN = (
    f"{ESCAPE}[?{code}" for code in ("25h", "25l", "1049h", "1049l")
)
COLOUR = re.compile(ESCAPE + r"\[(?:\d+;)*(?:3[0-8]|9[0-7])[;m]")


def restored(text: str) -> bool:
    """Whether the cursor and the user's own screen are back."""
    return all(
        0 <= text.rfind(begun) < text.rfind(ended)
        for begun, ended in ((HIDE_CURSOR, SHOW_CURSOR), (OTHER_SCREEN, OWN_SCREEN))
    )


def test_ctrl_c_restores_the_terminal() -> None:
    terminal = Terminal("sudoku", "--speed", "3000", "--fps", "10")
    before = termios.tcgetattr(terminal.file)
    terminal.read_until("guesses 0")
    assert COLOUR.search(terminal.text)
    os.write(terminal.file, b"\x03")
    with contextlib.suppress(termios.error):
        terminal.read_until(OWN_SCREEN)
        assert termios.tcgetattr(terminal.file) == before
    assert terminal.exit_code() == 130
    assert restored(terminal.text) and "Traceback" not in terminal.text


def test_the_last_picture_stays_without_colours_where_none_are_wanted() -> None:
    terminal = Terminal("hungarian", MATRIX, "--speed", "max", NO_COLOR="1")
    assert terminal.exit_code() == 0
    assert restored(terminal.text) and not COLOUR.search(terminal.text)
    stays = terminal.text[terminal.text.rfind(OWN_SCREEN) :]
    assert f"rows assigned 3 of 3   cost {LEAST}" in re.sub(r"\x1b\[[\d;]*m", "", stays)


@pytest.mark.parametrize(
    ("arguments", "environment"),
    [(("--plain",), {}), ((), {"TERM": "dumb"}), ((), {"TERM": ""})],
)
def test_a_terminal_that_cannot_redraw_gets_text(
    arguments: tuple[str, ...],
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from executor.demo.verb import is_live

    monkeypatch.setattr("sys.stdout", open(pty.openpty()[1], "w"))  # noqa: SIM115
    monkeypatch.setenv("TERM", "xterm")
    assert is_live(plain=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert not is_live(plain="--plain" in arguments)


@pytest.mark.long
@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
def test_the_default_puzzle_on_terminals_of_two_sizes(size: tuple[int, int]) -> None:
    terminal = Terminal("sudoku", size=size)
    assert terminal.exit_code() == 0
    assert restored(terminal.text)
    assert "solved, and there is no other solution" in terminal.text


@pytest.mark.long
def test_a_dumb_terminal_sees_no_escape_codes() -> None:
    terminal = Terminal("sudoku", EASY, TERM="dumb")
    assert terminal.exit_code() == 0
    assert ESCAPE not in terminal.text and "There is no other." in terminal.text

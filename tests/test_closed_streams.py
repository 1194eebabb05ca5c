"""A standard stream that the caller closed, or that is full, never makes a traceback."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ADD = "programs/add.tok"


def shell(command: str) -> subprocess.CompletedProcess[bytes]:
    """Run a shell line in which T is the command line of ``transputer``."""
    line = command.replace("T ", f"{sys.executable} -m executor ")
    return subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (f"T run {ADD} >&-", 0),
        (f"T run {ADD} 2>&-", 0),
        (f"T run {ADD} <&-", 0),
        ("T info >&-", 0),
        ("T run nosuch.c 2>&-", 125),
        ("T run nosuch.c 2>/dev/full", 125),
        ("T check nosuch.c >&- 2>&-", 2),
    ],
)
def test_closed_and_full_streams(command: str, code: int) -> None:
    done = shell(command)
    assert done.returncode == code, done
    assert b"Traceback" not in done.stderr and b"a bug in" not in done.stderr
    assert b"error" not in done.stdout

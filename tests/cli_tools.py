"""What tests of single commands share: calling one in this process, a program in C, a trace."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import heard
from executor import cli

GCD = """\
unsigned gcd(unsigned a, unsigned b) { while (b) { unsigned t = a % b; a = b; b = t; } return a; }
int low(void) { return -1; }
void nothing(void) { }
static int hidden(void) { return 1; }
int main(int argc, char **argv) { return argc + hidden(); }
"""

Run = Callable[..., tuple[int, str, str]]


def run_here(capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Calls ``main`` in this process: (exit code, standard output, standard error as ``heard``)."""
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"standard input")))

    def call(*arguments: object) -> tuple[int, str, str]:
        code = cli.main([str(argument) for argument in arguments])
        sys.stdout.flush()
        out, err = capfdbinary.readouterr()
        return code, out.decode("latin-1"), heard(err.decode())

    return call


def gcd_program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with ``GCD``."""
    path = tmp_path_factory.mktemp("c") / "gcd.c"
    path.write_text(GCD)
    return path

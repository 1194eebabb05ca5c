"""Programs that read from a terminal: lines are typed while the program runs inside the model."""

from __future__ import annotations

import os
import pty
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from command_line import start
from compiler import compile_program
from executor.dialogue import reads_input

GAME = """
#include <stdio.h>
int main(void) {
  char name[20];
  int sum = 0, number;
  printf("name? ");
  if (!fgets(name, sizeof name, stdin)) return 2;
  printf("hello %s", name);
  fprintf(stderr, "(numbers)\\n");
  while (scanf("%d", &number) == 1) {
    if (number == 0) { puts("zero"); return 5; }
    printf("sum %d\\n", sum += number);
  }
  puts("end");
  return 0;
}
"""
SILENT = '#include <stdio.h>\nint main(void) { printf("%d", getchar() + getchar()); return 0; }\n'


class Terminal:
    """A process of ours whose input and output are a terminal; its standard error is a pipe."""

    def __init__(self, *arguments: object) -> None:
        self.master, slave = pty.openpty()
        self.process = start("run", *arguments, stdin=slave, stdout=slave, stderr=subprocess.PIPE)
        os.close(slave)

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def until(self, text: str) -> str:
        """What is shown up to this text."""
        shown = ""
        while text not in shown:
            piece = os.read(self.master, 1000).decode()
            shown += piece.replace("\r\n", "\n")
        return shown

    def end(self) -> tuple[int, str, str]:
        """The exit code, what is shown up to the end, and all of standard error."""
        assert self.process.stderr is not None
        errors, shown = self.process.stderr.read().decode(), ""
        self.process.stderr.close()
        code = self.process.wait(60)
        try:
            while piece := os.read(self.master, 1000):
                shown += piece.decode().replace("\r\n", "\n")
        except OSError:
            pass  # the other side is closed
        os.close(self.master)
        return code, shown, errors


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("dialogue")
    (path / "game.c").write_text(GAME)
    (path / "silent.c").write_text(SILENT)
    yield path


def test_a_program_answers_each_line_before_the_next_is_typed(folder: Path) -> None:
    terminal = Terminal(folder / "game.c")
    assert terminal.until("name? ").endswith("name? ")
    terminal.type("Ada\n")
    assert terminal.until("hello Ada\n") == "Ada\nhello Ada\n"
    terminal.type("4 5\n")
    assert terminal.until("sum 9\n") == "4 5\nsum 4\nsum 9\n"
    terminal.type("0\n")
    assert terminal.end() == (5, "0\nzero\n", "(numbers)\n")


def test_the_end_of_the_input_is_typed_too(folder: Path) -> None:
    terminal = Terminal(folder / "game.c", "one argument")
    terminal.until("name? ")
    terminal.type("Ada\n7\n\x04")
    shown = terminal.until("end\n")
    assert shown.count("hello Ada") == 1 and "sum 7\nend\n" in shown
    assert terminal.end() == (0, "", "(numbers)\n")


def test_a_silent_program_is_announced_and_traces_hold_the_whole_run(folder: Path) -> None:
    trace = folder / "trace"
    terminal = Terminal("--check", "--trace", trace, folder / "silent.c")
    terminal.type("ab\n")
    code, shown, errors = terminal.end()
    assert (code, shown) == (0, f"ab\n{ord('a') + ord('b')}")
    announced, checked = errors.splitlines()
    assert announced == "transputer: waiting for input; Ctrl-D ends it"
    assert "agrees with wasmtime" in checked
    lines = trace.read_text().splitlines()
    assert lines[-1] == "halt" and lines.count("out(1)") == 1


def test_programs_that_read_arguments_alone_do_not_wait(folder: Path) -> None:
    terminal = Terminal("programs/gcd.c", "6", "4")
    assert terminal.end() == (0, "gcd(6, 4) = 2\n", "")


def test_who_reads_standard_input(folder: Path) -> None:
    for libc in ("wasi", "tiny"):
        for name, reads in [("gcd.c", False), ("hello.c", False), ("sort.c", True)]:
            assert reads_input(compile_program(f"programs/{name}", libc=libc)) is reads
    assert not reads_input(compile_program("programs/add.tok"))

"""The README's commands print what it says, and its Python runs."""

from __future__ import annotations

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from command_line import heard
from page_commands import ROOT, Page, run

README = Page.read("README.md")
NAME = "transputer"
TRANSPUTER = f".venv/bin/{NAME} "


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the README's relative paths mean what they say."""
    path = tmp_path_factory.mktemp("readme")
    (path / "programs").symlink_to(ROOT / "programs")
    return path


def test_console_blocks_show_real_output(folder: Path) -> None:
    checked = 0
    for command, expected in README.commands():
        if command == "make demo":
            makefile = (ROOT / "Makefile").read_text()
            recipe = re.search(r"^demo:.*\n\t(.*)$", makefile, re.MULTILINE)
            puzzle = re.search(r"^PUZZLE \?= (\d+)$", makefile, re.MULTILINE)
            assert recipe is not None and puzzle is not None
            command, _, expected = expected.partition("\n")
            shown = recipe[1].replace("$(BIN)", ".venv/bin").replace("$(PUZZLE)", puzzle[1])
            assert shown == command
        if command.startswith("printf "):
            subprocess.run(command, cwd=folder, shell=True, check=True)
        if command.startswith(TRANSPUTER):
            arguments = shlex.split(command.removeprefix(TRANSPUTER))
            done = run(["-m", "executor", *arguments], folder)
            assert (done.returncode, heard(done.stdout)) == (0, expected), command
            checked += 1
    assert checked >= 5


def test_python_blocks_run(folder: Path) -> None:
    """After the console blocks, which write the model that the first Python block loads."""
    if not (folder / "model").exists():
        run(["-m", "executor", "build", "--softmax", "--out", "model"], folder)
    blocks = README.python()
    assert len(blocks) >= 2
    outputs = [run(["-c", text], folder) for text in blocks]
    assert all(done.returncode == 0 for done in outputs), [done.stdout for done in outputs]
    trace = "08 00 00 00 commit(-1,sts=1,bt=0) out(08) halt"
    assert outputs[0].stdout.strip().endswith(trace)

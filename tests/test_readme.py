"""The README's commands print what it says, and its Python runs."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from command_line import heard

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(console|python)\n(.*?)```", README, re.DOTALL)
NAME = "transputer"
TRANSPUTER = f".venv/bin/{NAME} "


def commands() -> list[tuple[str, str]]:
    """(command, expected output) of every console block, in order."""
    found = []
    for kind, text in BLOCKS:
        if kind == "console":
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                found.append((command, output))
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which the README's relative paths mean what they say."""
    path = tmp_path_factory.mktemp("readme")
    (path / "programs").symlink_to(ROOT / "programs")
    return path


def run(arguments: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )


def test_console_blocks_show_real_output(folder: Path) -> None:
    checked = 0
    for command, expected in commands():
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
    blocks = [text for kind, text in BLOCKS if kind == "python"]
    assert len(blocks) >= 2
    outputs = [run(["-c", text], folder) for text in blocks]
    assert all(done.returncode == 0 for done in outputs), [done.stdout for done in outputs]
    trace = "08 00 00 00 commit(-1,sts=1,bt=0) out(08) halt"
    assert outputs[0].stdout.strip().endswith(trace)

"""The tutorial's commands print what it says, its machines stand in files, its Python runs."""

from __future__ import annotations

import ast
import re
import shlex
import sys
from pathlib import Path

import pytest

import own_machines as own
from command_line import heard, transputer
from page_commands import ROOT, Page, pinned, run

PAGE = Page.read("docs/tutorial.md")
FILES = {name: (own.FOLDER / f"{name}.py").read_text(encoding="utf-8") for name in own.NAMES}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder like a fresh clone after ``make venv``."""
    path = tmp_path_factory.mktemp("tutorial")
    (path / "programs").symlink_to(ROOT / "programs")
    script = path / ".venv/bin/transputer"
    script.parent.mkdir(parents=True)
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m executor "$@"\n')
    script.chmod(0o755)
    return path


def test_console_blocks_show_real_output(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One after the other; as on a terminal, errors stand among the output."""
    if not pinned():
        pytest.skip("other versions of the packages may place otherwise")
    monkeypatch.chdir(folder)
    for command, expected in PAGE.commands():
        in_shell = bool(set("|>") & set(command))
        shown = run(["-c", command], folder, "bash").stdout if in_shell else _here(command)
        assert heard(shown) == expected, command
    assert len(PAGE.commands()) >= 10


def _here(command: str) -> str:
    program, *arguments = shlex.split(command)
    assert program == ".venv/bin/transputer"
    _, out, err = transputer(*arguments)
    return out + err


def test_every_machine_of_the_page_stands_in_a_file() -> None:
    """Statement by statement; only where lines are broken may differ."""
    bodies = ["\n".join(_statements(text, whole=True)) for text in FILES.values()]
    parts = [text for text in PAGE.python() if "import" not in text]
    assert len(parts) >= 5
    for text in parts:
        assert any("\n".join(_statements(text)) in body for body in bodies), text


def _statements(text: str, *, whole: bool = False) -> list[str]:
    """Statements of a text, or of the function machine() of a whole file, in one spelling."""
    body = ast.parse(text).body
    if whole:
        (function,) = (node for node in body if isinstance(node, ast.FunctionDef))
        body = function.body
    return list(map(ast.unparse, body))


def test_python_blocks_run(folder: Path) -> None:
    """After the console blocks, which build what they load."""
    if not (folder / "machines/verbs-softmax").exists():
        for name, kind in (("verbs", []), ("verbs-softmax", ["--softmax"])):
            file, out = "programs/machines/verbs.py", f"machines/{name}"
            run(["-m", "executor", "build", "--machine", file, *kind, "--out", out], folder)
    blocks = [text for text in PAGE.python() if "print(" in text]
    sentences = [one for text in blocks for one in re.findall(r'"(\w[\w ]+ \.)"', text)]
    assert len(blocks) == len(sentences) == 3
    done = run(["-c", "\n".join(blocks)], folder)
    for line, sentence in zip(done.stdout.splitlines(), sentences, strict=True):
        assert line.endswith(own.parities(sentence)), done.stdout


def test_the_files_are_explained_whole() -> None:
    """Every method of the language that a machine uses is in the table."""
    table = (ROOT / "docs/tutorial.md").read_text(encoding="utf-8").partition("on one page")[2]
    used = set(re.findall(r"graph\.(\w+)", "".join(FILES.values()))) - {"token", "Graph"}
    assert used and all(f"graph.{name}" in table for name in used)

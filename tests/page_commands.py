"""Pages of the documentation as tests: their console blocks and their Python."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).parent.parent


@dataclass(frozen=True)
class Page:
    """Blocks of a page: ``console`` or ``python``, and the text of each."""

    blocks: Sequence[tuple[str, str]]

    @staticmethod
    def read(name: str) -> Page:
        """A page by its path in the project."""
        text = (ROOT / name).read_text(encoding="utf-8")
        return Page(re.findall(r"```(console|python)\n(.*?)```", text, re.DOTALL))

    def commands(self) -> list[tuple[str, str]]:
        """(command, expected output) of every console block, in order."""
        found = []
        for kind, text in self.blocks:
            if kind == "console":
                for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                    command, _, output = part.partition("\n")
                    found.append((command, output))
        return found

    def python(self) -> list[str]:
        """The Python blocks."""
        return [text for kind, text in self.blocks if kind == "python"]


def run(
    arguments: list[str], folder: Path, program: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    """Python, or another program, in a folder, with our code; output and errors together."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run(
        [program, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
        check=False,
    )


def pinned() -> bool:
    """Whether the packages that place and draw are those that the documentation was made with."""
    text = (ROOT / "constraints.txt").read_text()
    try:
        used = {name: version(name) for name in ("matplotlib", "ortools", "numpy")}
    except PackageNotFoundError:
        return False
    return all(f"\n{name}=={number}\n" in text for name, number in used.items())

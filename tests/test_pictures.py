"""The pictures of the documentation: all there, all shown, and drawn again byte for byte."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from page_commands import ROOT, pinned

FOLDER = ROOT / "docs" / "pictures"
CHEAP = ("verbs", "parabola")


def drawn(folder: Path, *names: str) -> None:
    if not pinned():
        pytest.skip("other versions of the packages may draw otherwise")
    command = [sys.executable, str(ROOT / "docs" / "draw"), "--folder", str(folder), *names]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    subprocess.run(command, check=True, env=environment, timeout=240, capture_output=True)
    found = sorted(file.name for file in folder.iterdir())
    assert found == sorted(f"{name}.svg" for name in names or (file.stem for file in shown()))
    for file in folder.iterdir():
        assert file.read_bytes() == (FOLDER / file.name).read_bytes(), file.name


def shown() -> set[Path]:
    """The pictures that pages show."""
    pages = [*ROOT.glob("docs/*.md"), ROOT / "README.md"]
    links = [
        (page, link)
        for page in pages
        for link in re.findall(r"!\[[^]]*\]\(([^)]+)\)", page.read_text())
    ]
    found = {(page.parent / link).resolve() for page, link in links}
    return {file for file in found if file.parent == FOLDER.resolve()}


def test_every_picture_is_there_and_shown() -> None:
    assert {file.resolve() for file in FOLDER.iterdir()} == shown()
    assert len(shown()) >= 8
    assert all(file.stat().st_size < 200_000 for file in shown())


def test_some_pictures_are_drawn_again_byte_for_byte(tmp_path: Path) -> None:
    drawn(tmp_path, *CHEAP)


@pytest.mark.long
def test_all_pictures_are_drawn_again_byte_for_byte(tmp_path: Path) -> None:
    drawn(tmp_path)

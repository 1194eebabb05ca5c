"""Unsound changes of the generator of specialised code are noticed, each by the tests named there.

For every entry of ``native_mutants`` a copy of the package is changed in one place, and the tests
are run on the copy.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from native_mutants import MUTANTS, Mutant

ROOT = Path(__file__).parent.parent
NATIVE = Path("executor") / "native"
COPIED, LINKED = ("executor", "tests"), ("compiler", "hullcache", "programs")
TESTS_FAILED = 1


def test_every_mutant_is_a_change_in_one_place() -> None:
    """A list that no longer fits the sources has to be brought up to date."""
    texts = {name: (ROOT / NATIVE / one.file).read_text("utf-8") for name, one in MUTANTS.items()}
    assert [name for name, one in MUTANTS.items() if texts[name].count(one.old) != 1] == []
    assert len({(one.file, one.old, one.new) for one in MUTANTS.values()}) == len(MUTANTS)


@pytest.mark.long
@pytest.mark.parametrize("name", MUTANTS)
def test_the_mutant_is_noticed(tmp_path: Path, name: str) -> None:
    make_mutant(tmp_path, MUTANTS[name])
    options = ("-q", "-x", "-m", "", "-p", "no:cacheprovider")
    cache = {"TRANSPUTER_CACHE": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, f"tests/{MUTANTS[name].noticed_by}"],
        cwd=tmp_path, env={**os.environ, **cache}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == TESTS_FAILED, done.stdout[-2000:] + done.stderr[-500:]


def make_mutant(folder: Path, mutant: Mutant) -> None:
    """A copy of the project with one change."""
    for part in COPIED:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / part, folder / part, ignore=ignored)
    for part in LINKED:
        (folder / part).symlink_to(ROOT / part)
    shutil.copy(ROOT / "pyproject.toml", folder)
    path = folder / NATIVE / mutant.file
    path.write_text(path.read_text("utf-8").replace(mutant.old, mutant.new), "utf-8")

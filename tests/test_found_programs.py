"""Programs that once failed, small ones made by ``suite_fuzz``; each must agree with wasmtime.

Their first line says how each is compiled, and which arguments it is given: ``// -O1 -fwrapv 1``.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from differential import RIGHT, compiled, judge

FOUND = sorted((Path(__file__).parent / "found").glob("*.c"))


@pytest.mark.parametrize("path", FOUND, ids=lambda path: path.stem)
def test_a_program_that_once_failed(path: Path) -> None:
    opt, *words = path.read_text().splitlines()[0].split()[1:]
    flags = [word for word in words if word.startswith("-")]
    args = words[len(flags) :]
    verdict = judge(path.stem, opt, lambda: compiled(path, opt, flags), args=args)
    assert verdict.outcome == RIGHT, verdict.reason

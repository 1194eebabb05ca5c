"""Where no C compiler works: the Python engine takes over, or one line says what is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from command_line import ADD, ROOT, transputer
from executor.checkpoint import Checkpoint


def without_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    native = pytest.importorskip("executor.native")

    def refuse(checkpoint: Checkpoint, **_: object) -> None:
        raise native.NativeUnavailable("no C compiler works here")

    monkeypatch.setattr(native, "NativeEngine", refuse)
    monkeypatch.setattr("executor.native.tiers.NativeEngine.kept", refuse)


def test_without_a_compiler_the_python_engine_takes_over_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    without_compiler(monkeypatch)
    code, out, err = transputer("run", ADD)
    assert (code, out) == (0, "\x08")
    assert err.startswith("transputer: no C compiler works here; the Python engine takes over")
    assert len(err.splitlines()) == 1


WITHOUT_ZIG = """
import importlib.util, sys
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "ziglang" else real(name, *more)
sys.modules["ziglang"] = None
from executor.cli import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("program", ["add.tok", "gcd.c"])
def test_a_machine_without_any_compiler(tmp_path: Path, program: str) -> None:
    """Nothing on the PATH, no package ziglang, and nothing in the cache."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_ZIG, "run", ROOT / "programs" / program],
        env={"PATH": "", "TRANSPUTER_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if program == "gcd.c":
        assert (done.returncode, done.stdout) == (125, "")
        assert done.stderr.startswith("transputer: error: no C compiler: install the package zig")
    else:
        assert (done.returncode, done.stdout) == (0, "\x08")
        assert done.stderr.startswith("transputer: no C compiler works: none was found (cc, gcc,")
        assert "the Python engine takes over" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_native_by_name_needs_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    without_compiler(monkeypatch)
    code, out, err = transputer("run", "--engine", "native", ADD)
    assert (code, out, err) == (125, "", "transputer: error: no C compiler works here\n")
    assert transputer("check", "--engine", "native", ADD)[0] == 2

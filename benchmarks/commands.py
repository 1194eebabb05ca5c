"""Commands as a user types them: seconds from the command line to the end of its output.

Warm: everything that is kept on disk is there. Cold: a folder for caches that is empty, so that the
C library and the engine are compiled first.

    python benchmarks/commands.py [--quick] [--out FILE]
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import common
from common import Json, significant, spread, take_turns

PUZZLE = "800000000003600000070090200050007000000045700000100030001000068008500010090000400"
COMMANDS = {
    "run programs/hello.c": ("run", str(common.PROGRAMS / "hello.c")),
    "run programs/sudoku.c PUZZLE": ("run", str(common.PROGRAMS / "sudoku.c"), PUZZLE),
    "run --check programs/sudoku.c PUZZLE": (
        *("run", "--check"),
        str(common.PROGRAMS / "sudoku.c"),
        PUZZLE,
    ),
    "check programs/gcd.c": ("check", str(common.PROGRAMS / "gcd.c")),
    "info": ("info",),
}


def measure(quick: bool) -> Json:
    """All of it."""
    rounds = 3 if quick else 7
    with tempfile.TemporaryDirectory() as folder:
        cache = {"XDG_CACHE_HOME": folder, "TRANSPUTER_CACHE": str(Path(folder) / "native")}
        cold = None if quick else timed("run programs/sudoku.c PUZZLE", cache)()
    for name in COMMANDS:
        timed(name, {})()
    rows = take_turns({name: timed(name, {}) for name in COMMANDS}, rounds)
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "warm_seconds": {name: spread(values) for name, values in rows.items()},
        "cold_seconds": None if cold is None else significant(cold),
        "most_megabytes": round(children.ru_maxrss / 1024),
    }


def timed(name: str, environment: dict[str, str]) -> Callable[[], float]:
    """A measurement of one command."""

    def call() -> float:
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "executor", *COMMANDS[name]],
            env={**os.environ, **environment},
            check=True,
            capture_output=True,
        )
        return time.perf_counter() - began

    return call


if __name__ == "__main__":
    common.main(measure, __doc__)

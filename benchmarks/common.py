"""What all benchmarks share: where they ran, how they take turns, how they write what they found.

A benchmark is a script with a function that measures and returns a JSON object; :func:`main`
gives it its command line: ``--quick`` for less of everything, ``--out FILE`` for the JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path

FOLDER = Path(__file__).parent
PROGRAMS = FOLDER.parent / "programs"
PUZZLE = "800000000003600000070090200050007000000045700000100030001000068008500010090000400"
"""What the article calls the hardest Sudoku."""
PACKAGES = ("numpy", "torch", "wasmtime", "ziglang")

Json = dict[str, object]


def main(measure: Callable[[bool], Json], text: str | None) -> None:
    """The command line of a benchmark: measure, then print the JSON or write it."""
    parser = argparse.ArgumentParser(
        description=text, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="less of everything, rougher figures")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the JSON there")
    options = parser.parse_args()
    started = time.time()
    result = measure(options.quick)
    where: Json = {"quick": options.quick, "seconds": round(time.time() - started), **machine()}
    text = json.dumps({"where": where, **result}, indent=1) + "\n"
    if options.out is None:
        print(text, end="")
        return
    options.out.parent.mkdir(parents=True, exist_ok=True)
    temporary = options.out.with_name(options.out.name + ".new")
    temporary.write_text(text)
    os.replace(temporary, options.out)


def machine() -> Json:
    """Processor, system, versions and commit: what figures depend on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        **{name: version(name) for name in PACKAGES},
        "compiler": _first_line(["cc", "--version"]),
        "commit": _first_line(["git", "-C", str(FOLDER), "rev-parse", "--short", "HEAD"]),
        "date": time.strftime("%Y-%m-%d"),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _first_line(command: Sequence[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "none"
    return done.stdout.splitlines()[0] if done.stdout else "none"


def take_turns(
    candidates: Mapping[str, Callable[[], float]], rounds: int
) -> dict[str, list[float]]:
    """Call every candidate once a round, in alternating order; what each returned."""
    found: dict[str, list[float]] = {name: [] for name in candidates}
    for number in range(rounds):
        names = list(candidates)
        for name in names if number % 2 == 0 else names[::-1]:
            found[name].append(candidates[name]())
    return found


def spread(values: Sequence[float], digits: int = 3) -> Json:
    """Median, least and greatest, rounded to significant digits."""
    return {
        "median": significant(statistics.median(values), digits),
        "least": significant(min(values), digits),
        "greatest": significant(max(values), digits),
    }


def significant(value: float, digits: int = 3) -> float:
    """A number to so many significant digits; integers stay integers."""
    rounded = float(f"{value:.{digits}g}")
    return int(rounded) if rounded.is_integer() else rounded


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The slope of a straight line through the points in a log-log plot, by least squares."""
    import numpy as np

    slope: float = np.polyfit(np.log(sizes), np.log(costs), 1)[0]
    return round(float(slope), 3)

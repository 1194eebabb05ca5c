"""The official suite as a table: passed, refused, failed.

    python -m suite_wasm [--engine native] [--sample N --seed S] [FILE ...]

Files are names of the suite, such as ``i32``; all of them by default. The suite is found through
the environment variable TRANSPUTER_SUITES. Exits with 1 if anything failed.
"""

from __future__ import annotations

import argparse
import os
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from compiler.errors import TransputerError
from executor.config import AUTO, ENGINES
from executor.loading import build_checkpoint
from suite_wasm.judge import FAILED, PASSED, REFUSED, Judge, Verdict
from suite_wasm.machine import ORACLE
from suite_wasm.script import convert

SUITES = "TRANSPUTER_SUITES"
OUTCOMES = (PASSED, REFUSED, FAILED)


def scripts(names: list[str], sample: int | None = None, seed: int = 0) -> list[Path]:
    """The .wast files of the suite, in order; of those named, and ``sample`` of these."""
    folder = Path(os.environ.get(SUITES, "")) / "wasm-spec"
    found = {path.stem: path for path in sorted(folder.glob("*.wast"))}
    unknown = sorted(set(names) - set(found))
    if SUITES not in os.environ or not found or unknown:
        raise SystemExit(f"{SUITES}={os.environ.get(SUITES, '')}: no {' '.join(unknown) or folder}")
    chosen = [found[name] for name in names] or list(found.values())
    if sample is not None and sample < len(chosen):
        chosen = sorted(random.Random(seed).sample(chosen, sample))
    return chosen


def judge_file(judge: Judge, wast: Path) -> list[Verdict]:
    """All verdicts on one file."""
    with tempfile.TemporaryDirectory() as folder:
        return list(judge.script(convert(wast, Path(folder))))


def head(width: int) -> str:
    """The head of the table."""
    return f"{'':{width}}  passed refused  failed  refused because of"


def row(name: str, verdicts: list[Verdict], width: int) -> str:
    """One line of the table."""
    counts = Counter(verdict.outcome for verdict in verdicts)
    reasons = Counter(verdict.reason for verdict in verdicts if verdict.outcome == REFUSED)
    why = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common())
    numbers = " ".join(f"{counts[outcome]:7}" for outcome in OUTCOMES)
    return f"{name:{width}} {numbers}  {why}".rstrip()


def sums(verdicts: list[Verdict], width: int) -> list[str]:
    """A line for each kind of command, and one for all."""
    kinds = sorted({verdict.command.kind for verdict in verdicts})
    by_kind = [(kind, [v for v in verdicts if v.command.kind == kind]) for kind in kinds]
    return [row(name, found, width) for name, found in (*by_kind, ("all", verdicts))]


def main() -> int:
    """Run, print, and say whether all is well."""
    parser = argparse.ArgumentParser(prog="suite_wasm", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("files", nargs="*", metavar="FILE", help="i32, call_indirect, ...")
    parser.add_argument("--engine", choices=(AUTO, *ENGINES[:3], ORACLE), default=AUTO)
    parser.add_argument("--sample", type=int, help="only so many files")
    parser.add_argument("--seed", type=int, default=0, help="which ones --sample takes")
    options = parser.parse_args()
    judge = Judge(options.engine, None if options.engine == ORACLE else build_checkpoint())
    width = len("assert_uninstantiable")
    everything: list[Verdict] = []
    start = time.monotonic()
    print(head(width))
    for wast in scripts(options.files, options.sample, options.seed):
        verdicts = judge_file(judge, wast)
        print(row(wast.stem, verdicts, width), flush=True)
        for verdict in verdicts:
            if verdict.outcome == FAILED:
                print(f"{wast.name}:{verdict.command.line}: {verdict.reason}", file=sys.stderr)
        everything += verdicts
    print("", *sums(everything, width), sep="\n")
    seconds = time.monotonic() - start
    print(f"\n{judge.runs} runs, {judge.tokens:,} tokens, engine {options.engine}, {seconds:.0f} s")
    return int(any(verdict.outcome == FAILED for verdict in everything))


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TransputerError as error:
        sys.exit(f"suite_wasm: {error}")

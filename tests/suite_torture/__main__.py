"""GCC's torture tests inside the model: right, refused, limit, wrong.

    python -m suite_torture [--sample N --seed S] [-O 0] [--jobs 2] [NAME ...]

The programs come from the Debian package gcc-12-source. Each is compiled by the front end with the
WASI library and run under wasmtime and inside the model. Programs that no compiler makes a right
module of are in skipped.txt, with reasons, and not tried. Exits with 1 if a program is wrong or
under 99 % are right, with 77 if the package cannot be had.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from compiler.errors import TransputerError
from debian import Unavailable
from differential import (
    MAX_TOKENS,
    RIGHT,
    WRONG,
    Results,
    Verdict,
    compiled,
    counted,
    judge,
    judged,
    table,
)
from executor.reference import ReferenceResult
from suite_torture.listing import right_with_plain_zig
from suite_torture.programs import LEVELS, TortureProgram, all_programs, skipped

UNAVAILABLE_EXIT = 77
LEAST_RIGHT = 0.99


def ended_well(reference: ReferenceResult) -> str:
    """What is wrong with how a self-checking program ended; empty for nothing."""
    if reference.trap is not None:
        return f"wasmtime: trap: {reference.trap}"
    return f"wasmtime: exit code {reference.exit_code}" if reference.exit_code else ""


class Judging:
    """Judges (program, level) pairs; a value, so that other processes can."""

    def __init__(self, max_tokens: int) -> None:
        self.max_tokens = max_tokens

    def __call__(self, task: tuple[TortureProgram, str]) -> Verdict:
        program, opt = task
        return judge(
            program.name,
            opt,
            lambda: compiled(program.path, opt, program.flags),
            expected=ended_well,
            max_tokens=self.max_tokens,
        )


def chosen(
    programs: Sequence[TortureProgram], names: Sequence[str], sample: int | None, seed: int
) -> list[TortureProgram]:
    """Those whose names begin with one of ``names``, if any, and ``sample`` of these."""
    found = [program for program in programs if program.name.startswith(tuple(names) or "")]
    if sample is not None and sample < len(found):
        found = sorted(random.Random(seed).sample(found, sample), key=lambda p: p.name)
    return found


def failed(verdicts: Sequence[Verdict], levels: Sequence[str]) -> bool:
    """Whether something is wrong, or too little right."""
    counts = [counted(verdicts, opt) for opt in levels]
    return any(
        count[WRONG] or count[RIGHT] < LEAST_RIGHT * count.total() or not count for count in counts
    )


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(
        prog="suite_torture", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="beginnings of names, as 2002")
    parser.add_argument(
        "-O", dest="opt", action="append", choices="0123sz", help="level; -O0 and -O2 by default"
    )
    parser.add_argument("--sample", type=int, help="only so many programs")
    parser.add_argument("--seed", type=int, default=0, help="which ones --sample takes")
    parser.add_argument("--optional", action="store_true", help="no packages is no failure")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--max-tokens", type=int, default=MAX_TOKENS, help="limit for each run")
    parser.add_argument(
        "--results", type=Path, metavar="FILE",
        help="JSON lines, one for each verdict; what is right there is not run again",
    )  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print all verdicts, as JSON")
    parser.add_argument(
        "--skipped", action="store_true",
        help="instead, compile what skipped.txt lists by zig cc alone; name what runs right",
    )  # fmt: skip
    return parser.parse_args(argv)


def main() -> int:
    """Run, print, and say whether all is well."""
    options = arguments()
    levels = [f"-O{level}" for level in options.opt or ()] or list(LEVELS)
    try:
        programs = all_programs()
    except Unavailable as error:
        print(f"suite_torture: skipped: {error}", file=sys.stderr)
        return 0 if options.optional else UNAVAILABLE_EXIT
    left_out = skipped()
    picked = chosen(programs, options.names, options.sample, options.seed)
    tasks = [(program, opt) for opt in levels for program in picked]
    if options.skipped:
        listed = [task for task in tasks if (task[0].name, task[1]) in left_out]
        return right_with_plain_zig(listed)
    verdicts = run([task for task in tasks if (task[0].name, task[1]) not in left_out], options)
    print(f"{len(tasks) - len(verdicts)} of skipped.txt not tried")
    return int(failed(verdicts, levels))


def run(tasks: Sequence[tuple[TortureProgram, str]], options: argparse.Namespace) -> list[Verdict]:
    """The verdicts on these programs and levels; those that are not right are printed, and sums."""
    start, results = time.monotonic(), Results(options.results)
    verdicts = [v for p, opt in tasks if (v := results.known.get((p.name, opt)))]
    rest = [task for task in tasks if (task[0].name, task[1]) not in results.known]
    for verdict in judged(rest, Judging(options.max_tokens), options.jobs):
        verdicts.append(verdict)
        results.add(verdict)
        if verdict.outcome != RIGHT:
            print(f"{verdict.name} {verdict.opt}: {verdict.outcome}: {verdict.reason}", flush=True)
    if options.json:
        print(json.dumps([asdict(verdict) for verdict in verdicts], indent=1))
    print(*table(verdicts), sep="\n")
    print(f"{sum(v.n_trace for v in verdicts):,} tokens, {time.monotonic() - start:.0f} s")
    return verdicts


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TransputerError as error:
        sys.exit(f"suite_torture: {error}")

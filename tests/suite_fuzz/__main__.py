"""Random C programs inside the model, compared with wasmtime: right, refused, limit, wrong.

    python -m suite_fuzz [-n 300] [--seed 0] [--jobs 2]

Csmith (of the Debian packages csmith and libcsmith-dev) writes a program for each seed: small and
larger ones, with and without 64-bit arithmetic, with float, at -O0 to -O2. Programs without an end
in sight are replaced by those of further seeds. One that is not right is reduced and kept as a test
in tests/found. Exits with 1 if there was one, with 77 if Csmith cannot be had.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from compiler import toolchain
from compiler.errors import TransputerError
from debian import Unavailable
from differential import (
    LEFT_OUT,
    MAX_TOKENS,
    RIGHT,
    Verdict,
    compiled,
    judge,
    judged,
    table,
)
from suite_fuzz.csmith import Csmith, Settings, find_csmith, settings
from suite_fuzz.reduce import reduced

UNAVAILABLE_EXIT = 77
FLAGS = ("-Wno-incompatible-pointer-types",)
"""Csmith passes the address of a float as one of bytes."""
FUEL = 12_000_000
"""Instructions within which a program has to end: a little less than the model's own limit."""
MOST_REDUCED = 3
"""Failing programs that are reduced; the faults of more are often the same."""
FOUND = Path(__file__).parent.parent / "found"
"""Reduced programs that once failed; ``test_found_programs.py`` runs them."""


class Judging:
    """Judges the program of a seed; a value, so that other processes can."""

    def __init__(self, csmith: Csmith, max_tokens: int) -> None:
        self.csmith = csmith
        self.max_tokens = max_tokens

    def __call__(self, seed: int) -> Verdict:
        wanted = settings(seed)
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / f"seed-{seed}.c"
            self.csmith.generate(wanted, source)
            return self.source(source, wanted)

    def source(self, source: Path, wanted: Settings) -> Verdict:
        """The verdict on a program as it stands."""
        return judge(
            str(wanted.seed),
            wanted.opt,
            lambda: compiled(source, wanted.opt, FLAGS, (self.csmith.headers,)),
            args=wanted.args,
            fuel=FUEL,
            max_tokens=self.max_tokens,
        )

    def reduced(self, verdict: Verdict) -> str:
        """The program of a verdict, without includes and as small as it gets, with the same
        outcome."""
        wanted = settings(int(verdict.name))
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / f"seed-{wanted.seed}.c"
            self.csmith.generate(wanted, source)
            tools, headers = toolchain.find_toolchain(), (self.csmith.headers,)
            text = toolchain.preprocess(tools, source, include=headers, libc=toolchain.WASI)

            def fails(candidate: str) -> bool:
                source.write_text(candidate)
                return same_fault(self.source(source, wanted), verdict)

            smallest = reduced(text, fails) if fails(text) else text
        return f"// {wanted.opt} {' '.join(wanted.args)}".rstrip() + f"\n{smallest}"


def same_fault(found: Verdict, wanted: Verdict) -> bool:
    """Whether two programs fail alike; a program that the C compiler refuses does not count."""
    kind = wanted.reason.split()[:3]
    return found.outcome == wanted.outcome and found.reason.split()[:3] == kind


def until_judged(
    wanted: int, first: int, judge_all: Callable[[Sequence[int]], Iterator[Verdict]]
) -> Iterator[Verdict]:
    """Verdicts on programs of seeds from ``first`` on, until so many are not left out."""
    count, seed = 0, first
    while count < wanted:
        seeds = range(seed, seed + wanted - count)
        seed = seeds.stop
        for verdict in judge_all(seeds):
            count += verdict.outcome != LEFT_OUT
            yield verdict


def arguments(argv: Sequence[str] | None = None) -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(prog="suite_fuzz", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("-n", type=int, default=300, help="programs")
    parser.add_argument("--seed", type=int, default=0, help="the first program's")
    parser.add_argument("--optional", action="store_true", help="no packages is no failure")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--max-tokens", type=int, default=MAX_TOKENS, help="limit for each run")
    parser.add_argument("--show", action="store_true", help="print every verdict")
    return parser.parse_args(argv)


def main() -> int:
    """Run, print, and say whether all is well."""
    options = arguments()
    try:
        judging = Judging(find_csmith(), options.max_tokens)
    except Unavailable as error:
        print(f"suite_fuzz: skipped: {error}", file=sys.stderr)
        return 0 if options.optional else UNAVAILABLE_EXIT
    print(f"{options.n} programs, seeds from {options.seed}", flush=True)
    start = time.monotonic()
    verdicts = []
    for verdict in until_judged(
        options.n, options.seed, lambda seeds: judged(seeds, judging, options.jobs)
    ):
        verdicts.append(verdict)
        if verdict.outcome != RIGHT or options.show:
            told = f"seed {verdict.name} {verdict.opt}: {verdict.outcome} {verdict.reason}"
            print(told.rstrip(), flush=True)
    ended = [verdict for verdict in verdicts if verdict.outcome != LEFT_OUT]
    print(*table(ended), sep="\n")
    last, replaced = max(int(v.name) for v in verdicts), len(verdicts) - len(ended)
    print(f"seeds {options.seed} to {last}, {replaced} of them replaced", end="; ")
    print(f"{sum(v.n_trace for v in ended):,} tokens, {time.monotonic() - start:.0f} s")
    failures = [verdict for verdict in ended if verdict.outcome != RIGHT]
    keep(judging, failures)
    return int(bool(failures))


def keep(judging: Judging, failures: Sequence[Verdict]) -> None:
    """Writes reduced programs where they are tests from now on."""
    for verdict in failures[:MOST_REDUCED]:
        FOUND.mkdir(exist_ok=True)
        target = FOUND / f"seed_{verdict.name}.c"
        target.write_text(judging.reduced(verdict))
        print(f"reduced: {target}", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TransputerError as error:
        sys.exit(f"suite_fuzz: {error}")

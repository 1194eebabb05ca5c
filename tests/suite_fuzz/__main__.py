"""Random C programs inside the model, compared with wasmtime: right, refused, limit, wrong.

    python -m suite_fuzz [-n 300] [--seed 0] [--jobs 2] [--kind csmith]

For each seed there are two programs. One is by Csmith (from the Debian packages csmith and
libcsmith-dev): small and larger ones, with and without 64-bit arithmetic, with float. The other is
of our own and dense in arithmetic. Both are compiled at -O0 to -O2. Programs without an end in
sight are replaced by those of further seeds. One that is not right is reduced and kept as a test in
tests/found. Exits with 1 if there was one, with 77 if Csmith cannot be had.
"""

from __future__ import annotations

import argparse
import subprocess
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
from suite_fuzz.arithmetic import Arithmetic
from suite_fuzz.csmith import Csmith, find_csmith
from suite_fuzz.kind import Kind, Written
from suite_fuzz.reduce import reduced

UNAVAILABLE_EXIT = 77
FUEL = 12_000_000
"""Instructions within which a program has to end: a little less than the model's own limit."""
MOST_REDUCED = 3
"""Failing programs that are reduced; the faults of more are often the same."""
FOUND = Path(__file__).parent.parent / "found"
"""Reduced programs that once failed; ``test_found_programs.py`` runs them."""


class Judging:
    """Judges the program of a seed; a value, so that other processes can."""

    def __init__(self, kind: Kind, max_tokens: int) -> None:
        self.kind = kind
        self.max_tokens = max_tokens

    def __call__(self, seed: int) -> Verdict:
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / f"seed_{seed}.c"
            try:
                written = self.kind.write(seed, source)
            except subprocess.SubprocessError as error:  # the generator's own fault
                return Verdict(str(seed), "", LEFT_OUT, str(error))
            return self.source(seed, source, written)

    def source(self, seed: int, source: Path, written: Written) -> Verdict:
        """The verdict on a program as it stands."""
        return judge(
            str(seed),
            written.opt,
            lambda: compiled(source, written.opt, written.flags, written.include),
            args=written.args,
            fuel=FUEL,
            max_tokens=self.max_tokens,
        )

    def reduced(self, verdict: Verdict) -> str:
        """The program of a verdict, as small as it gets with the same outcome; without includes, if
        some are not of the C library."""
        seed = int(verdict.name)
        with tempfile.TemporaryDirectory() as folder:
            source = Path(folder) / f"seed_{seed}.c"
            written = self.kind.write(seed, source)
            text = source.read_text()
            if written.include:
                tools = toolchain.find_toolchain()
                text = toolchain.preprocess(tools, source, include=written.include)

            def fails(candidate: str) -> bool:
                source.write_text(candidate)
                return same_fault(self.source(seed, source, written), verdict)

            smallest = reduced(text, fails) if fails(text) else text
        first = " ".join(("//", written.opt, *written.flags, *written.args))
        return f"{first}\n{smallest}"


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
    parser.add_argument("-n", type=int, default=300, help="programs of each kind")
    parser.add_argument("--seed", type=int, default=0, help="the first program's")
    parser.add_argument("--kind", choices=(Csmith.name, Arithmetic.name), help="only this kind")
    parser.add_argument("--optional", action="store_true", help="no Csmith is no failure")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--max-tokens", type=int, default=MAX_TOKENS, help="limit for each run")
    parser.add_argument("--show", action="store_true", help="print every verdict")
    return parser.parse_args(argv)


def main() -> int:
    """Run, print, and say whether all is well."""
    options = arguments()
    kinds: list[Kind] = [] if options.kind == Csmith.name else [Arithmetic()]
    missing = 0
    if options.kind != Arithmetic.name:
        try:
            kinds.append(find_csmith())
        except Unavailable as error:
            print(f"suite_fuzz: no programs by Csmith: {error}", file=sys.stderr)
            missing = 0 if options.optional else UNAVAILABLE_EXIT
    failures = [run(Judging(kind, options.max_tokens), options) for kind in kinds]
    return int(any(failures)) or missing


def run(judging: Judging, options: argparse.Namespace) -> bool:
    """Runs programs of one kind; whether one was not right."""
    name, start = judging.kind.name, time.monotonic()
    print(f"{options.n} programs of kind {name}, seeds from {options.seed}", flush=True)
    verdicts = []
    for verdict in until_judged(
        options.n, options.seed, lambda seeds: judged(seeds, judging, options.jobs)
    ):
        verdicts.append(verdict)
        if verdict.outcome != RIGHT or options.show:
            told = f"{name} {verdict.name} {verdict.opt}: {verdict.outcome} {verdict.reason}"
            print(told.rstrip(), flush=True)
    ended = [verdict for verdict in verdicts if verdict.outcome != LEFT_OUT]
    print(*table(ended), sep="\n")
    last, replaced = max(int(v.name) for v in verdicts), len(verdicts) - len(ended)
    print(f"seeds {options.seed} to {last}, {replaced} of them replaced", end="; ")
    print(f"{sum(v.n_trace for v in ended):,} tokens, {time.monotonic() - start:.0f} s", flush=True)
    failures = [verdict for verdict in ended if verdict.outcome != RIGHT]
    for verdict in failures[:MOST_REDUCED]:
        FOUND.mkdir(exist_ok=True)
        target = FOUND / f"{name}_{verdict.name}.c"
        target.write_text(judging.reduced(verdict))
        print(f"reduced: {target}", flush=True)
    return bool(failures)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except TransputerError as error:
        sys.exit(f"suite_fuzz: {error}")

"""A hull of the keys against a scan of all keys: time per step against the length of the sequence.

The same model decodes the same sequence, in two languages; in each, hull and scan are exchanged
and nothing else, and answer the same tokens:

* Python: ``HullEngine`` with ``HullHead`` and with ``StandardHead`` (NumPy) for every head.
* C: the native engine without specialisation, all heads by hulls, and all by scans.
* C as it runs: heads classified; and specialised, the default.

For a long sequence hulls answer while the scan's arrays are filled, then the scan takes over.
Candidates take turns at every length; a figure is the median of its turns, in processor time.

    python benchmarks/hull_vs_standard.py [--quick] [--out FILE]
"""

from __future__ import annotations

import resource
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import common
from common import Json, exponent, significant
from compiler import compile_program
from executor.checkpoint import Checkpoint
from executor.config import Mode
from executor.decode import Engine
from executor.hull_engine import HullEngine
from executor.loading import build_checkpoint
from executor.native import NativeEngine
from hullcache import HullHead, StandardHead, Value

ARTICLE = {"hull": 31_037, "standard": 673}
"""Tokens/s that the article names for its engine with and without the hull."""
SECONDS = 0.3
"""How long one turn takes, about."""
TURNS = 5


class FilledHead:
    """Keys for a scan; a hull answers while they are filled in."""

    scanning = False

    def __init__(self, mode: Mode, width: int) -> None:
        self.hull, self.scan = HullHead(mode, width), StandardHead(mode, width)

    def insert(self, kx: float, ky: float, value: Value) -> None:
        """Into both, and into the scan alone once it answers."""
        self.scan.insert(kx, ky, value)
        if not self.scanning:
            self.hull.insert(kx, ky, value)

    def query(self, qx: float, qy: float) -> Value:
        """The answer of the one whose turn it is."""
        return (self.scan if self.scanning else self.hull).query(qx, qy)


@dataclass
class Candidate:
    """One engine on its way along the sequence."""

    make: Callable[[], Engine]
    lengths: Sequence[int]
    scan: Callable[[Engine], None] | None = None

    def at(self, length: int, sequence: Sequence[int]) -> Engine:
        """A new engine with so many tokens, ready to go on."""
        engine = self.make()
        engine.feed(sequence[: length - 1])
        if self.scan is not None:
            self.scan(engine)
        return engine


def python_engine(model: Checkpoint, heads: list[FilledHead] | None) -> Engine:
    """The engine in Python; ``heads`` collects its heads if they are to be scans."""
    if heads is None:
        return HullEngine(model, HullHead)

    def make(mode: Mode, width: int) -> FilledHead:
        heads.append(FilledHead(mode, width))
        return heads[-1]

    return HullEngine(model, make)


def candidates(model: Checkpoint, quick: bool) -> dict[str, Candidate]:
    """What is compared, and at which lengths."""
    heads: list[FilledHead] = []

    def start_scans(engine: Engine) -> None:
        for head in heads:
            head.scanning = True
        heads.clear()

    def native_scan(engine: Engine) -> None:
        assert isinstance(engine, NativeEngine)
        engine.scan()

    def native(lookups: str) -> Callable[[], Engine]:
        special = lookups == "specialised"
        way = lookups if lookups in ("hull", "scan") else "classified"
        return lambda: NativeEngine(
            model, say=lambda line: None, optimisation="-O2", specialise=special, lookups=way
        )

    top = 5 if quick else 6
    c_lengths = ladder(3.5, top)
    return {
        "Python, hull": Candidate(
            lambda: python_engine(model, None), ladder(3.5, 4 if quick else 5.5)
        ),
        "Python, scan": Candidate(
            lambda: python_engine(model, heads), ladder(3.5, 4 if quick else 5), start_scans
        ),
        "C, hull": Candidate(native("hull"), c_lengths),
        "C, scan": Candidate(native("scan"), c_lengths, native_scan),
        "C, classified": Candidate(native("classified"), c_lengths),
        "C, specialised": Candidate(native("specialised"), c_lengths),
    }


def ladder(low: float, high: float) -> list[int]:
    """Lengths from 10^low to 10^high, two a decade."""
    return [round(10 ** (k / 2)) for k in range(round(2 * low), round(2 * high) + 1)]


def turn(engine: Engine, sequence: Sequence[int], start: int, steps: int) -> tuple[int, float]:
    """Decode from a position; how many steps, and seconds for each. Checks the tokens."""
    began = time.process_time()
    produced = engine.extend(sequence[start - 1], (), steps)
    seconds = time.process_time() - began
    assert produced.tolist() == list(sequence[start : start + len(produced)]), "wrong tokens"
    return len(produced), seconds / len(produced)


def measure_at(
    length: int, chosen: dict[str, Candidate], sequence: Sequence[int], turns: int
) -> dict[str, float]:
    """Median seconds per step of each candidate behind ``length`` tokens."""
    engines, positions, steps, found = {}, {}, {}, {}
    for name, candidate in chosen.items():
        engines[name] = candidate.at(length, sequence)
        count, each = turn(engines[name], sequence, length, 4)
        positions[name], found[name] = length + count, [each]
    most = (len(sequence) - length - 4) // (turns + 1)
    for name in chosen:
        count, each = turn(engines[name], sequence, positions[name], min(20, most))
        positions[name] += count
        steps[name] = max(1, min(int(SECONDS / each), most, max(200, length // 10)))

    def one(name: str) -> Callable[[], float]:
        def call() -> float:
            count, each = turn(engines[name], sequence, positions[name], steps[name])
            positions[name] += count
            return each

        return call

    rows = common.take_turns({name: one(name) for name in chosen}, turns)
    return {name: statistics.median(values) for name, values in rows.items()}


def sequence_of(model: Checkpoint, count: int) -> tuple[list[int], int]:
    """The tokens of ``programs/mix.c``, prompt and trace, and the length of the prompt."""
    program = compile_program(
        common.FOLDER / "programs" / "mix.c", call=("steps", count // 50), libc="tiny"
    )
    prompt = [*model.rom, *model.encode(program.tokens)]
    engine = NativeEngine(model, say=lambda line: None)
    engine.feed(prompt[:-1])
    trace: list[int] = engine.extend(prompt[-1], model.config.stop_tokens, count).tolist()
    assert len(prompt) + len(trace) > count
    return prompt + trace, len(prompt)


def bytes_a_token(make: Callable[[], Engine], sequence: Sequence[int], count: int) -> float:
    """Growth of an engine's own memory over the last half of ``count`` tokens."""
    engine = make()
    half = count // 2
    engine.feed(sequence[:half])
    assert isinstance(engine, NativeEngine)
    before = engine.nbytes
    engine.feed(sequence[half:count])
    return significant((engine.nbytes - before) / (count - half))


def measure(quick: bool) -> Json:
    """All of it."""
    model = build_checkpoint()
    everything = candidates(model, quick)
    longest = max(max(candidate.lengths) for candidate in everything.values())
    sequence, prompt = sequence_of(model, longest + longest // 2 + 20_000)
    lengths = sorted({n for candidate in everything.values() for n in candidate.lengths})
    rows: dict[str, dict[int, float]] = {name: {} for name in everything}
    for length in lengths:
        chosen = {name: c for name, c in everything.items() if length in c.lengths}
        for name, seconds in measure_at(length, chosen, sequence, 3 if quick else TURNS).items():
            rows[name][length] = seconds
    memory = min(200_000, longest)
    return {
        "program": "benchmarks/programs/mix.c",
        "prompt_tokens": prompt,
        "article_tokens_per_second": ARTICLE,
        "candidates": {
            name: {
                "lengths": list(row),
                "microseconds_per_step": [significant(1e6 * s, 4) for s in row.values()],
                "tokens_per_second": [significant(1 / s) for s in row.values()],
                "exponent": exponent(list(row), list(row.values())),
            }
            for name, row in rows.items()
        },
        "bytes_per_token": {
            name: bytes_a_token(candidate.make, sequence, memory)
            for name, candidate in everything.items()
            if name.startswith("C")
        },
        "hull_times_faster": {
            language: {
                str(length): significant(scan / rows[f"{language}, hull"][length])
                for length, scan in rows[f"{language}, scan"].items()
            }
            for language in ("Python", "C")
        },
        "peak_megabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


if __name__ == "__main__":
    common.main(measure, __doc__)

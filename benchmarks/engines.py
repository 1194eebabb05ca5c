"""The engines on two programs, in one run, taking turns: speed, memory, time to start.

    python benchmarks/engines.py [--quick] [--out FILE]

The programs are ``programs/sudoku.c`` on the article's "hardest" puzzle, and ``programs/bits.c``,
a loop of bit operations on a table of 16 KiB. ``plain`` is the native engine without paths of its
own for classes of tokens. Each engine decodes the first tokens of the trace in a process of its
own, once a round; the prompt is timed apart. JSON: for each program and engine medians, and
the spread of the speed, by processor time too; bytes a token by the growth of resident memory;
for the native engine processor seconds to generate and to compile it, and to find it in the cache.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection

import common
from common import PROGRAMS, PUZZLE, Json
from compiler import compile_program
from executor.decode import Engine, extend_chunks, feed_chunks, make_engine
from executor.loading import build_checkpoint
from executor.native import NativeEngine
from executor.process import resident_bytes

RUNS = {"sudoku": ("sudoku.c", [PUZZLE]), "bits": ("bits.c", ["8"])}
TOKENS = {"specialised": 4_000_000, "plain": 1_000_000, "hull": 10_000, "standard": 300}


REPEATS = {"specialised": 10, "plain": 1}
"""The native engine decodes the same tokens so often, each time anew: once takes milliseconds."""
SLOW = ("standard",)
"""Engines that measure once: reading the prompt takes them minutes."""


def processor() -> float:
    """Processor seconds of this process and of the compilers it has run."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def one(name: str, run: str, count: int) -> dict[str, float]:
    """One engine in this process: ``count`` tokens behind the prompt."""
    model = build_checkpoint()
    path, args = RUNS[run]
    program = compile_program(PROGRAMS / path, libc="tiny")
    prompt = [*model.rom, *model.encode([*program.tokens, *program.input_tokens(args, b"")])]
    start = processor()
    engine: Engine
    if name in ("specialised", "plain"):
        engine = NativeEngine(model, say=lambda line: None, specialise=name == "specialised")
    else:
        engine = make_engine(name, model, say=lambda line: None)
    ready = processor() - start
    rows = [decode(engine, prompt, model.config.stop_tokens, count)]
    if isinstance(engine, NativeEngine):
        for _ in range(REPEATS[name] - 1):
            engine = engine.again()
            rows.append(decode(engine, prompt, model.config.stop_tokens, count))
    written, read, seconds, busy, _ = map(sum, zip(*rows, strict=True))
    return {
        "tokens": rows[0][0],
        "prompt_tokens": len(prompt),
        "prompt_tokens_per_cpu_second": len(rows) * len(prompt) / read,
        "tokens_per_second": written / seconds,
        "tokens_per_cpu_second": written / busy,
        "bytes_per_token": rows[0][4] / rows[0][0],
        "start_cpu_seconds": ready,
    }


def decode(
    engine: Engine, prompt: list[int], stop: Collection[int], count: int
) -> tuple[int, float, float, float, int]:
    """Read a prompt and write tokens.

    Returns:
        Tokens written, processor seconds to read, seconds and processor seconds to write, and by
        how many bytes the process grew meanwhile.
    """
    begun = time.process_time()
    for _ in feed_chunks(engine, prompt[:-1]):
        pass
    read = time.process_time() - begun
    before, start, begun = resident_bytes(), time.perf_counter(), time.process_time()
    written = sum(len(chunk) for chunk in extend_chunks(engine, prompt[-1], stop, count))
    seconds, busy = time.perf_counter() - start, time.process_time() - begun
    return written, read, seconds, busy, resident_bytes() - before


def in_process(name: str, run: str, count: int, cache: str) -> dict[str, float]:
    """:func:`one` in a new process, with this cache folder for the native engine."""
    command = [sys.executable, __file__, "--one", name, run, str(count)]
    environment = {**os.environ, "TRANSPUTER_CACHE": cache}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def summary(rows: list[dict[str, float]]) -> dict[str, object]:
    """Medians over the rounds, and the spread of the speed."""
    speeds = [row["tokens_per_cpu_second"] for row in rows]
    medians = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
    return {
        "tokens": int(medians["tokens"]),
        "tokens_per_second": round(medians["tokens_per_second"]),
        "tokens_per_cpu_second": round(medians["tokens_per_cpu_second"]),
        "slowest_and_fastest": [round(min(speeds)), round(max(speeds))],
        "prompt_tokens": int(medians["prompt_tokens"]),
        "prompt_tokens_per_cpu_second": round(medians["prompt_tokens_per_cpu_second"]),
        "bytes_per_token": round(medians["bytes_per_token"], 1),
    }


def compare(run: str, counts: dict[str, int], rounds: int, cache: str) -> dict[str, object]:
    """All engines on one program, taking turns."""
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in counts}
    for number in range(rounds):
        for name, count in counts.items():
            if name not in SLOW or number == 0:
                rows[name].append(in_process(name, run, count, cache))
    result: dict[str, object] = {name: summary(measured) for name, measured in rows.items()}
    speed = {
        name: statistics.median(row["tokens_per_cpu_second"] for row in measured)
        for name, measured in rows.items()
    }
    slowest = list(counts)[-1]
    result[f"times_{slowest}"] = {name: round(s / speed[slowest], 1) for name, s in speed.items()}
    return result


def start(rounds: int) -> dict[str, object]:
    """Processor seconds until the native engine is there: made anew, and found in the cache."""
    found: dict[str, object] = {}
    for name in ("specialised", "plain"):
        cold, warm = [], []
        for _ in range(rounds):
            with tempfile.TemporaryDirectory() as cache:
                for seconds in (cold, warm):
                    seconds.append(in_process(name, "bits", 1, cache)["start_cpu_seconds"])
        found[name] = {
            "made": round(statistics.median(cold), 2),
            "found": round(statistics.median(warm), 3),
        }
    return found


def measure(quick: bool) -> Json:
    """All of it."""
    counts = {name: count // 4 if quick else count for name, count in TOKENS.items()}
    rounds = 1 if quick else 5
    result: Json = {}
    with tempfile.TemporaryDirectory() as cache:
        in_process("specialised", "bits", 1, cache)
        for run in RUNS:
            some = {
                n: c for n, c in counts.items() if not (quick and run == "sudoku" and n in SLOW)
            }
            result[run] = compare(run, some, rounds, cache)
    result["start_cpu_seconds"] = start(1 if quick else 3)
    return result


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one(sys.argv[2], sys.argv[3], int(sys.argv[4]))))
    else:
        common.main(measure, __doc__)

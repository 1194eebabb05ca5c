"""The engines on one program, in one run, taking turns: speed, memory, time to start.

    python benchmarks/engines.py [--rounds 3] [--native 3000000] [--hull 10000] [--standard 500]

The program is ``programs/sudoku.c`` on a puzzle that takes 4,100,401 tokens. Each engine decodes
the first tokens of its trace, in a process of its own, once a round; the prompt is not timed.
Prints JSON: medians and spread of tokens/s, ratios, growth of resident memory in bytes a token,
seconds to compile the native engine and to find it in the cache.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compiler import compile_program
from executor.decode import extend_chunks, feed_chunks, make_engine
from executor.loading import build_checkpoint
from executor.process import resident_bytes

PROGRAM = Path(__file__).parent.parent / "programs" / "sudoku.c"
PUZZLE = "800000000003600000070090200050007000000045700000100030001000068008500010090000400"
TOKENS = {"native": 3_000_000, "hull": 10_000, "standard": 500}


def measure(name: str, count: int) -> dict[str, float]:
    """One engine in this process: ``count`` tokens behind the prompt."""
    model = build_checkpoint()
    program = compile_program(PROGRAM)
    tokens = [*program.tokens, *program.input_tokens([PUZZLE], b"")]
    prompt = [*model.rom, *model.encode(tokens)]
    start = time.perf_counter()
    engine = make_engine(name, model, say=lambda line: None)
    ready = time.perf_counter() - start
    for _ in feed_chunks(engine, prompt[:-1]):
        pass
    before, start, busy = resident_bytes(), time.perf_counter(), time.process_time()
    stop = model.config.stop_tokens
    written = sum(len(chunk) for chunk in extend_chunks(engine, prompt[-1], stop, count))
    seconds, busy = time.perf_counter() - start, time.process_time() - busy
    return {
        "tokens": written,
        "prompt_tokens": len(prompt),
        "tokens_per_second": written / seconds,
        "tokens_per_cpu_second": written / busy,
        "bytes_per_token": (resident_bytes() - before) / written,
        "start_seconds": ready,
    }


def in_process(name: str, count: int, cache: str) -> dict[str, float]:
    """:func:`measure` in a new process, with this cache folder for the native engine."""
    command = [sys.executable, __file__, "--one", name, str(count)]
    environment = {**os.environ, "TRANSPUTER_CACHE": cache}
    done = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def summary(rows: list[dict[str, float]]) -> dict[str, object]:
    """Medians over the rounds, and the spread of the speed."""
    speeds = [row["tokens_per_second"] for row in rows]
    medians = {key: statistics.median(row[key] for row in rows) for key in rows[0]}
    return {
        "tokens": int(medians["tokens"]),
        "tokens_per_second": round(medians["tokens_per_second"]),
        "slowest_and_fastest": [round(min(speeds)), round(max(speeds))],
        "tokens_per_cpu_second": round(medians["tokens_per_cpu_second"]),
        "bytes_per_token": round(medians["bytes_per_token"], 1),
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    for name, count in TOKENS.items():
        parser.add_argument(f"--{name}", type=int, default=count, help="tokens; 0 leaves it out")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(measure(options.one[0], int(options.one[1]))))
        return
    counts = {name: getattr(options, name) for name in TOKENS if getattr(options, name)}
    rows: dict[str, list[dict[str, float]]] = {name: [] for name in counts}
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(options.rounds):
            for name, count in counts.items():
                rows[name].append(in_process(name, count, cache))
    result: dict[str, object] = {name: summary(measured) for name, measured in rows.items()}
    if "native" in rows:
        starts = [row["start_seconds"] for row in rows["native"]]
        result["native_compile_seconds"] = round(starts[0], 2)
        result["native_cache_hit_seconds"] = round(statistics.median(starts[1:] or starts), 2)
    slowest = statistics.median(row["tokens_per_second"] for row in next(reversed(rows.values())))
    result["times_" + next(reversed(rows))] = {
        name: round(statistics.median(row["tokens_per_second"] for row in measured) / slowest, 1)
        for name, measured in rows.items()
    }
    result["prompt_tokens"] = int(next(iter(rows.values()))[0]["prompt_tokens"])
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

"""Tokens a second of the engines on one program, in one run, the engines taking turns.

    python benchmarks/engines.py [--tokens 2000] [--rounds 3]

Prints JSON: for each engine the median over the rounds of tokens/s while it writes the first
``--tokens`` tokens of the 10x10 assignment problem's trace, and the ratio to ``standard``.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from itertools import islice
from pathlib import Path

from compiler import compile_program
from executor.decode import decode, make_engine
from executor.loading import build_checkpoint

PROGRAMS = Path(__file__).parent.parent / "programs"
ENGINES = ("hull", "standard")


def tokens_per_second(engine_name: str, prompt: list[int], count: int) -> float:
    """Decode ``count`` tokens after the prompt; the prompt and the set-up are not timed."""
    model = build_checkpoint()
    engine = make_engine(engine_name, model)
    stream = decode(engine, prompt, model.config.stop_tokens)
    next(stream)
    start = time.perf_counter()
    written = sum(1 for _ in islice(stream, count))
    return written / (time.perf_counter() - start)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--tokens", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    program = compile_program(PROGRAMS / "hungarian.c")
    model = build_checkpoint()
    stdin = (PROGRAMS / "data/hungarian10.txt").read_bytes()
    prompt = [*model.rom, *model.encode([*program.tokens, *program.input_tokens((), stdin)])]
    speeds: dict[str, list[float]] = {name: [] for name in ENGINES}
    for _ in range(options.rounds):
        for name in ENGINES:
            speeds[name].append(tokens_per_second(name, prompt, options.tokens))
    medians = {name: statistics.median(values) for name, values in speeds.items()}
    result = {
        "prompt_tokens": len(prompt),
        "tokens": options.tokens,
        "tokens_per_second": {name: round(value) for name, value in medians.items()},
        "times_standard": {
            name: round(value / medians["standard"], 1) for name, value in medians.items()
        },
    }
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()

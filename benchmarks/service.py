"""Starting, many runs at once, and one very long run: what a user waits for, and its memory.

    python benchmarks/service.py [--quick] [--out FILE]

``start``: seconds from the command to its end, everything in the cache; ``cold``: with caches that
are empty, so that the C library and the engine are compiled first. ``prompt``:
processor seconds to find the compiled program in the cache, and to read its prompt. ``batch``:
seconds for the same runs by threads of one process, and by as many worker processes. ``long``: a
run of so many tokens that saves checkpoints, is killed in its midst and goes on; peaks are of
resident memory.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import common
from common import PROGRAMS, PUZZLE, Json
from compiler.kept import compile_kept
from executor import BatchJob, run, run_batch
from executor.decode import make_engine
from executor.loading import open_checkpoint

SUDOKU = PROGRAMS / "sudoku.c"
HELLO = '#include <stdio.h>\nint main(void) { printf("hello %d\\n", 42); return 0; }\n'
LONG_TOKENS = 60_000_000
EXPLAINED = (70_000, 970_000)
"""Tokens of the trace; 30,000 of prompt come before."""
ROUND_TOKENS = 37
"""Tokens of one round of the long program's loop."""
LONG = """{{ i32.const {number} global.set 00 00 00 00
global.get 00 00 00 00 i32.const 01 00 00 00 i32.sub 00 00 00 00 global.set 00 00 00 00
global.get 00 00 00 00 output 00 00 00 00 global.get 00 00 00 00 br_if {back}
halt 00 00 00 00 }}"""
BACK = -7 * 5


def command(*arguments: str | os.PathLike[str], verb: str = "run") -> list[str]:
    """``transputer`` as a process of its own."""
    return [sys.executable, "-m", "executor", verb, *map(os.fspath, arguments)]


def _processor() -> float:
    """Processor seconds of this process and of those that it has started and that have ended."""
    usages = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def seconds(
    arguments: Sequence[str | os.PathLike[str]], rounds: int, verb: str = "run"
) -> dict[str, float]:
    """Medians for a command that finds everything in the cache, wall-clock and processor."""
    walls, cpus = [], []
    for number in range(rounds + 1):
        before, start = _processor(), time.perf_counter()
        subprocess.run(command(*arguments, verb=verb), check=True, stdout=subprocess.DEVNULL)
        if number:
            walls.append(time.perf_counter() - start)
            cpus.append(_processor() - before)
    return {
        "wall": round(statistics.median(walls), 3),
        "processor": round(statistics.median(cpus), 3),
    }


def prompt(rounds: int) -> dict[str, float]:
    """What a second start has to do before the first token of the trace."""
    model = open_checkpoint(None)
    found, read = [], []
    for _ in range(rounds):
        start = _processor()
        program = compile_kept(SUDOKU)
        found.append(_processor() - start)
        tokens = [*program.tokens, *program.input_tokens([PUZZLE])]
        ids = [*model.rom, *model.encode(tokens)]
        engine = make_engine("auto", model)
        start = _processor()
        engine.feed(ids[:-1])
        read.append(_processor() - start)
    return {
        "tokens": len(ids),
        "find_program": round(statistics.median(found), 5),
        "read_prompt": round(statistics.median(read), 5),
    }


def batch(runs: int) -> dict[str, float]:
    """The same puzzle so many times."""
    cores = len(os.sched_getaffinity(0))
    program = compile_kept(SUDOKU)
    jobs = [BatchJob(program, [PUZZLE])] * runs
    times: dict[str, float] = {"runs": runs, "cores": cores}

    def one(job: BatchJob) -> object:
        return run(job.program, job.args, keep_trace=False)

    for name, width in (("one_thread", 1), ("threads", cores)):
        start = time.perf_counter()
        with ThreadPoolExecutor(width) as pool:
            list(pool.map(one, jobs))
        times[name] = round(time.perf_counter() - start, 2)
    for name, width in (("one_process", 1), ("processes", cores)):
        start = time.perf_counter()
        assert not any(result.exit_code for result in run_batch(jobs, jobs=width))
        times[name] = round(time.perf_counter() - start, 2)
    return times


def long_run(folder: Path, tokens: int) -> dict[str, object]:
    """Killed after half of the time that a whole run takes, and resumed."""
    program, saved = folder / "long.tok", folder / "saved"
    data = [" ".join(f"{byte:02x}" for byte in number.to_bytes(4, "little"))
            for number in (tokens // ROUND_TOKENS + 1, BACK & 0xFFFFFFFF)]  # fmt: skip
    program.write_text(LONG.format(number=data[0], back=data[1]))
    whole = _measured(program)
    options = ("--checkpoint", saved, "--checkpoint-every", "0.2")
    process = subprocess.Popen(command(*options, program), stdout=subprocess.DEVNULL)
    time.sleep(whole["seconds"] / 2)
    process.kill()
    process.wait()
    if not saved.exists():
        raise SystemExit("a run of so few tokens cannot be killed in its midst")
    resumed = _measured("--resume", saved, *options, program)
    assert resumed.pop("output") == whole.pop("output"), "the outputs differ"
    return {"tokens": tokens, "whole": whole, "killed_and_resumed": resumed}


def _measured(*arguments: str | os.PathLike[str]) -> dict[str, float]:
    start = time.perf_counter()
    process = subprocess.Popen(
        command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdout is not None
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    took = time.perf_counter() - start
    return {
        "seconds": round(took, 2),
        "peak_megabytes": round(usage.ru_maxrss / 1024),
        "output": hash(output),
    }


def cold(folder: Path) -> float:
    """Seconds for the first start of all."""
    environment = {**os.environ, "XDG_CACHE_HOME": str(folder)}
    environment.pop("TRANSPUTER_CACHE", None)
    start = time.perf_counter()
    subprocess.run(command(SUDOKU, PUZZLE), env=environment, check=True, capture_output=True)
    return round(time.perf_counter() - start, 1)


def measure(quick: bool) -> Json:
    """All of it."""
    rounds = 3 if quick else 7
    with tempfile.TemporaryDirectory() as name:
        hello, cache = Path(name) / "hello.c", Path(name) / "cache"
        hello.write_text(HELLO)
        cache.mkdir()
        return {
            "start": {
                "printf_hello": seconds([hello], rounds),
                "hardest_sudoku": seconds([SUDOKU, PUZZLE], rounds),
            },
            "explain": {
                str(at): seconds(["--at", str(at), SUDOKU, PUZZLE], 1, verb="explain")
                for at in EXPLAINED
            },
            "cold_seconds": None if quick else cold(cache),
            "prompt": prompt(rounds),
            "batch": batch(4 if quick else 8),
            "long": None if quick else long_run(Path(name), LONG_TOKENS),
        }


if __name__ == "__main__":
    common.main(measure, __doc__)

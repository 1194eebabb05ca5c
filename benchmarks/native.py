"""The same function inside the model, in wasmtime, as native code, in Python, and as a tool call.

A tool call starts a process, computes, and reads the answer back: what an agent does that has no
machine inside. "Model" is decoding alone, prompt and trace, by a loaded engine; "model, run"
is ``executor.run``, which finds and loads the engine each time. Medians; all answers are compared.

    python benchmarks/native.py [--quick] [--out FILE]
"""

from __future__ import annotations

import ctypes
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import wasmtime

import common
from common import Json, significant, spread, take_turns
from compiler import compile_program
from executor import run
from executor.loading import build_checkpoint
from executor.native import NativeEngine

sys.path.insert(0, str(common.FOLDER / "programs"))
import same

WAYS = (
    "model",
    "model, run",
    "wasmtime",
    "native code",
    "Python",
    "tool call, native",
    "tool call, Python",
)
MAIN = """
#include <stdio.h>
#include <stdlib.h>
int {name}(int);
int main(int argc, char **argv) {{ printf("%d\\n", {name}(atoi(argv[1]))); }}
"""


@dataclass(frozen=True)
class Task:
    """A function of one number in a C file, also in same.py; large and small arguments."""

    file: str
    name: str
    large: int
    small: int


TASKS = (
    Task("mix.c", "steps", 40_000, 40),
    Task("sieve.c", "primes", 40_000, 100),
    Task("fib.c", "fib", 23, 8),
)


class Ways:
    """All the ways to compute one task, ready to be called."""

    def __init__(self, task: Task, folder: Path) -> None:
        self.task = task
        source = common.FOLDER / "programs" / task.file
        self.program = compile_program(source, call=(task.name, 0), libc="tiny")
        self.programs = {
            n: compile_program(source, call=(task.name, n), libc="tiny")
            for n in (task.large, task.small)
        }
        self.model = build_checkpoint()
        engine = wasmtime.Engine()
        self.store = wasmtime.Store(engine)
        module = wasmtime.Module(engine, self.program.wasm)
        self.exports = wasmtime.Instance(self.store, module, []).exports(self.store)
        main = folder / "main.c"
        main.write_text(MAIN.format(name=task.name))
        self.library, self.binary = folder / f"{task.name}.so", folder / task.name
        cc = [sys.executable, "-m", "ziglang", "cc", "-O2", str(source)]
        subprocess.run([*cc, "-shared", "-fPIC", "-o", str(self.library)], check=True)
        subprocess.run([*cc, str(main), "-o", str(self.binary)], check=True)
        self.native = getattr(ctypes.CDLL(str(self.library)), task.name)
        self.tokens: dict[int, int] = {}

    def call(self, way: str, n: int) -> int:
        """The answer."""
        name = self.task.name
        if way == "model, run":
            result = run(self.programs[n], model=self.model)
            self.tokens[n] = result.n_prompt + result.n_trace
            assert isinstance(result.value, int)
            return result.value
        if way == "wasmtime":
            return int(self.exports[name](self.store, n))
        if way == "native code":
            return int(self.native(n))
        if way == "Python":
            return int(getattr(same, name)(n))
        command = [str(self.binary), str(n)]
        if way == "tool call, Python":
            command = [sys.executable, same.__file__, name, str(n)]
        return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    def decoded(self, n: int) -> float:
        """Seconds to read the prompt and write the trace."""
        model = self.model
        prompt = [*model.rom, *model.encode(self.programs[n].tokens)]
        engine = NativeEngine(model, say=lambda line: None)
        began = time.perf_counter()
        engine.feed(prompt[:-1])
        engine.extend(prompt[-1], model.config.stop_tokens, 1 << 25)
        return time.perf_counter() - began

    def timed(self, way: str, n: int, expected: int) -> Callable[[], float]:
        """One measurement: seconds for a call, by enough calls to be measurable."""
        if way == "model":
            return lambda: self.decoded(n)
        began = time.perf_counter()
        assert self.call(way, n) == expected, way
        times = max(1, min(1000, int(0.02 / (time.perf_counter() - began))))

        def measured() -> float:
            began = time.perf_counter()
            for _ in range(times):
                self.call(way, n)
            return (time.perf_counter() - began) / times

        return measured


def measure(quick: bool) -> Json:
    """All of it."""
    found: Json = {}
    with tempfile.TemporaryDirectory() as folder:
        for task in TASKS:
            ways = Ways(task, Path(folder))
            found[f"{task.name}({task.large})"] = compare(ways, task.large, quick)
            found[f"{task.name}({task.small})"] = compare(ways, task.small, quick)
    return {"tasks": found}


def compare(ways: Ways, n: int, quick: bool) -> Json:
    """One task with one argument."""
    expected = ways.call("native code", n)
    rows = take_turns({way: ways.timed(way, n, expected) for way in WAYS}, rounds=3 if quick else 7)
    seconds = {way: spread(values) for way, values in rows.items()}
    medians = {way: sorted(values)[len(values) // 2] for way, values in rows.items()}
    return {
        "answer": expected,
        "tokens": ways.tokens[n],
        "seconds": seconds,
        "model_takes_times_as_long": {
            way: significant(medians["model"] / medians[way]) for way in WAYS[2:]
        },
    }


if __name__ == "__main__":
    common.main(measure, __doc__)

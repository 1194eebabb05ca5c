"""What a token costs as things grow: the trace, memory, call depth, the program; and by opcode.

All with the native engine, as it runs by default. Times are processor time per token of
the trace, medians.

    python benchmarks/scaling.py [--quick] [--out FILE]
"""

from __future__ import annotations

import statistics
import struct
import time
from collections.abc import Collection, Iterator, Sequence

import wasmtime

import common
from common import Json, significant
from compiler import compile_program, compile_wasm
from compiler.program import Program
from compiler.wasm_opcodes import SIGNATURES, TYPE_NAMES
from executor.checkpoint import Checkpoint
from executor.loading import build_checkpoint
from executor.native import NativeEngine
from executor.process import resident_bytes

SOURCES = common.FOLDER / "programs"
MILLION = 1_000_000
LONGEST = 50 * MILLION
SIZES = (1 << 10, 1 << 14, 1 << 18, 1 << 22, 1 << 25)
DEPTHS = (10, 100, 1_000, 10_000, 16_000)
LENGTHS = (100, 1_000, 10_000, 100_000)
COPIES = 40
OPERANDS = (64, 7, 123456789012, 7, 19.25, 1.5, 19.25, 1.5)
"""Two of each type, and where they are in memory."""
ADDRESSES = (0, 4, 8, 16, 24, 28, 32, 40)
GET = {"i": 5, "f": 5, "l": 10, "d": 10}
"""Tokens of a ``local.get``."""


class Bench:
    """A model, and runs of programs inside it."""

    def __init__(self, model: Checkpoint) -> None:
        self.model = model

    def start(self, program: Program) -> tuple[NativeEngine, int]:
        """An engine that has read a program; and the last token of the prompt."""
        prompt = [*self.model.rom, *self.model.encode(program.tokens)]
        engine = NativeEngine(self.model, say=lambda line: None)
        engine.feed(prompt[:-1])
        return engine, prompt[-1]

    def run(self, program: Program, rounds: int, limit: int = 1 << 25) -> dict[str, float]:
        """Tokens of the prompt and the trace, nanoseconds a token."""
        seconds, count = [], 0
        for _ in range(rounds):
            engine, token = self.start(program)
            began = time.process_time()
            count = len(engine.extend(token, self.model.config.stop_tokens, limit))
            seconds.append(time.process_time() - began)
        return {
            "prompt": len(program.tokens),
            "tokens": count,
            "nanoseconds_per_token": significant(1e9 * statistics.median(seconds) / count),
        }

    def lengths(self, count: int) -> Iterator[Json]:
        """One long run: cost of each stretch of it, and memory of the process."""
        program = compile_program(SOURCES / "mix.c", call=("steps", count // 50), libc="tiny")
        engine, token = self.start(program)
        before, done, goal = resident_bytes(), 0, 100_000
        stop = self.model.config.stop_tokens
        while done < count:
            began, start = time.process_time(), done
            while done < min(goal, count):
                chunk = engine.extend(token, stop, min(MILLION, min(goal, count) - done))
                token, done = int(chunk[-1]), done + len(chunk)
                assert token not in stop
            seconds = time.process_time() - began
            yield {
                "up_to": done,
                "nanoseconds_per_token": significant(1e9 * seconds / (done - start)),
                "bytes_per_token": significant((resident_bytes() - before) / done),
            }
            goal = round(goal * 10**0.5)

    def opcodes(self, turns: int, names: Collection[str] = SIGNATURES) -> Iterator[Json]:
        """Tokens and time of each opcode that takes numbers and gives one, and of stores."""
        kept = {letter: self._loop("", letter, letter, turns)["tokens"] for letter in "ilfd"}
        for name, signature in SIGNATURES.items():
            pops, pushes = signature.pops or "", signature.pushes or ""
            if (
                name not in names
                or not pops
                or (not pushes and ".store" not in name)
                or name.startswith("memory.")
            ):
                continue
            row = self._loop(name, pops, pushes, turns)
            narrow = "store" in name and name[-1].isdigit()  # one word of the value is fetched
            tokens = row["tokens"] - (10 if narrow else sum(GET[letter] for letter in pops))
            if pushes:
                tokens -= kept[pushes] - GET[pushes]
            yield {
                "opcode": name,
                "tokens": round(tokens),
                "nanoseconds": significant(tokens * row["nanoseconds_per_token"], 2),
            }

    def _loop(self, name: str, pops: str, pushes: str, turns: int) -> dict[str, float]:
        """Tokens of operands, an opcode and a store of its result, and nanoseconds of a token."""
        nth = dict.fromkeys("ilfd", 0)
        body = ["i32.const 128"] if pushes else []
        for letter in pops:
            body.append(f"local.get ${letter}{nth[letter]}")
            nth[letter] += 1
        body.append(name)
        if pushes:
            body.append(f"{TYPE_NAMES[pushes]}.store")
        empty, full = (
            self.run(self._module(body * copies, turns), 1, 1 << 26) for copies in (0, COPIES)
        )
        return {
            "tokens": (full["tokens"] - empty["tokens"]) / (COPIES * turns),
            "nanoseconds_per_token": full["nanoseconds_per_token"],
        }

    @staticmethod
    def _module(body: Sequence[str], turns: int) -> Program:
        """A loop around a body, with operands that the compiler cannot know."""
        data = "".join(f"\\{byte:02x}" for byte in struct.pack("<iiqqffdd", *OPERANDS))
        places = zip(("i0", "i1", "l0", "l1", "f0", "f1", "d0", "d1"), ADDRESSES, strict=True)
        types = {name: TYPE_NAMES[name[0]] for name, _ in places}
        declared = " ".join(f"(local ${name} {kind})" for name, kind in types.items())
        loads = "\n".join(
            f"(local.set ${name} ({kind}.load (i32.const {address})))"
            for (name, kind), address in zip(types.items(), ADDRESSES, strict=True)
        )
        lines = "\n".join(body)
        text = f"""(module (memory 1) (data (i32.const 0) "{data}")
            (func (export "f") (param $n i32) {declared}
            {loads}
            (loop $again
            {lines}
            (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))))"""
        return compile_wasm(bytes(wasmtime.wat2wasm(text)), "loop", call=("f", turns))


def straight(count: int) -> Program:
    """A loop around so many instructions, in functions of a hundred; about a million tokens."""
    functions = max(1, count // 100)
    body = "\n".join("(local.set 0 (i32.add (local.get 0) (i32.const 3)))" for _ in range(25))
    parts = "\n".join(
        f"(func $f{k} (param i32) (result i32) {body} (local.get 0))" for k in range(functions)
    )
    calls = "\n".join(f"(local.set $x (call $f{k} (local.get $x)))" for k in range(functions))
    text = f"""(module {parts} (func (export "f") (param $n i32) (result i32) (local $x i32)
        (loop $again
        {calls}
        (br_if $again (local.tee $n (i32.sub (local.get $n) (i32.const 1)))))
        (local.get $x)))"""
    turns = max(1, 200_000 // count)
    return compile_wasm(bytes(wasmtime.wat2wasm(text)), "straight", call=("f", turns))


def measure(quick: bool) -> Json:
    """All of it."""
    bench, rounds = Bench(build_checkpoint()), 3 if quick else 5

    def called(file: str, name: str, *arguments: int) -> dict[str, float]:
        program = compile_program(SOURCES / file, call=(name, *arguments), libc="tiny")
        return bench.run(program, rounds)

    return {
        "trace": list(bench.lengths(MILLION if quick else LONGEST)),
        "memory": [
            {"bytes": size, **called("touch.c", "touch", size, 10_000 if quick else 100_000)}
            for size in SIZES
        ],
        "call_depth": [
            {"depth": depth, **called("down.c", "dive", depth, 64_000 // depth)} for depth in DEPTHS
        ],
        "program": [{"instructions": n, **bench.run(straight(n), rounds)} for n in LENGTHS],
        "opcodes": list(bench.opcodes(10 if quick else 200)),
    }


if __name__ == "__main__":
    common.main(measure, __doc__)

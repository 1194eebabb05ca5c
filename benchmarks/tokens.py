"""Tokens of every program on its usual input, and of every opcode.

    python benchmarks/tokens.py [--page docs/tokens.md]

Prints JSON, and writes it as tables to ``--page``. The interpreter of token programs counts, whose
tokens are the model's (the tests compare them), so this takes seconds.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import wasmtime

from common import PROGRAMS
from compiler import compile_program, compile_wasm, isa
from compiler.program import Program
from executor.loading import build_checkpoint
from executor.oracle import trace_tokens
from executor.replay import replay

ARGUMENTS = {
    "sudoku": ("530070000600195000098000060800060003400803001700020006060000280000419005000080079",)
}
INPUTS = {
    "hungarian": "data/hungarian10.txt",
    "json": "data/planets.json",
    "dijkstra": "data/roads.txt",
}
"""What programs are given that need arguments or input."""
ROUTINES = ("i32.clz", "i32.ctz", "i32.popcnt", "i32.extend8_s", "i32.extend16_s")
OPERANDS = (0, 0x12345678, 0x7FFFFFFF, 0xFFFFFFFF, *(1 << k for k in range(32)))


@dataclass
class Opcodes:
    """Of each opcode: how often it was executed, and its tokens, by how many it took."""

    lengths: dict[str, Counter[int]] = field(default_factory=dict)

    def add(self, name: str, tokens: int) -> None:
        """Count one execution."""
        self.lengths.setdefault(name, Counter())[tokens] += 1

    def rows(self) -> Iterator[dict[str, object]]:
        """One row for each opcode, in the order of the instruction set."""
        for name in isa.OPCODES:
            lengths = self.lengths.get(name, Counter[int]())
            yield {
                "opcode": name,
                "executed": lengths.total(),
                "tokens": sum(length * count for length, count in lengths.items()),
                "each": sorted(lengths),
            }


def measure(program: Program, opcodes: Opcodes, args: Sequence[str], stdin: bytes) -> Counter[str]:
    """Tokens and instructions of one run."""
    counts = Counter(prompt=len(program.tokens) + len(program.input_tokens(args, stdin)))
    for step in replay(program, trace_tokens(program, args, stdin)):
        opcodes.add(step.instruction.name, len(step.event.tokens))
        counts["instructions"] += 1
        counts["trace"] += len(step.event.tokens)
        counts["divisions"] += step.instruction.name in isa.DIVISIONS
    return counts


def programs(opcodes: Opcodes) -> Iterator[dict[str, object]]:
    """One row for each program of the project."""
    for path in sorted(PROGRAMS.iterdir()):
        if path.suffix in (".c", ".tok"):
            stdin = (PROGRAMS / INPUTS[path.stem]).read_bytes() if path.stem in INPUTS else b""
            args = ARGUMENTS.get(path.stem, ())
            yield {"program": path.name, **measure(compile_program(path), opcodes, args, stdin)}


def routines() -> Iterator[dict[str, object]]:
    """One row for each of ``ROUTINES``: least and most over some operands."""
    for name in ROUTINES:
        text = """(module (func (export "f") (param i32) (result i32) {}))"""
        steps, tokens = set(), set()
        for operand in OPERANDS:
            with_it, without = (
                measure(_call(text.format(body), operand), Opcodes(), (), b"")
                for body in (f"({name} (local.get 0))", "(local.get 0)")
            )
            steps.add(with_it["instructions"] - without["instructions"])
            tokens.add(with_it["trace"] - without["trace"])
        yield {
            "instruction": name,
            "native": [min(steps), max(steps)],
            "tokens": [min(tokens), max(tokens)],
        }


def _call(text: str, operand: int) -> Program:
    return compile_wasm(bytes(wasmtime.wat2wasm(text)), "f", call=("f", operand))


def page(result: dict[str, list[dict[str, object]]], rom: int) -> str:
    """The result as a page of documentation."""

    def table(names: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
        head = [f"| {' | '.join(names)} |", f"|---|{'--:|' * (len(names) - 1)}"]
        return "\n".join([*head, *(f"| {' | '.join(map(_cell, row))} |" for row in rows)])

    by_program = [
        [row["program"], row["prompt"], row["instructions"], row["trace"], row.get("divisions", 0)]
        for row in result["programs"]
    ]
    by_opcode = [
        [f"`{row['opcode']}`", row["executed"], row["tokens"], _either(row["each"])]
        for row in result["opcodes"]
    ]
    routine = [[f"`{r['instruction']}`", r["native"], r["tokens"]] for r in result["routines"]]
    return f"""# Tokens

Made by `python benchmarks/tokens.py --page docs/tokens.md`.

## Programs

Each at `-O2` with its default arguments, `hungarian.c` on `data/hungarian10.txt`, `sudoku.c` on an
easy puzzle. The prompt is program and input; the model's tables, {rom:,} tokens, come before it.

{table(["program", "prompt", "instructions", "trace", "of which divisions"], by_program)}

## Opcodes

In all these runs together. A branch takes 6 tokens if it is taken, and `br_if` 1 if it is not.

{table(["opcode", "executed", "tokens", "tokens each"], by_opcode)}

## Counts and sign extensions

What each adds to a function, least and most over {len(OPERANDS)} operands.

{table(["instruction", "native instructions", "tokens"], routine)}
"""


def _either(values: object) -> str:
    return " or ".join(map(str, values)) or "-" if isinstance(values, list) else ""


def _cell(value: object) -> str:
    if isinstance(value, list):
        return " to ".join(map(str, dict.fromkeys(value)))
    return f"{value:,}" if isinstance(value, int) else str(value)


def main() -> None:
    """Measure, print, and write the page."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--page", type=Path, help="Markdown file to write")
    options = parser.parse_args()
    opcodes = Opcodes()
    result: dict[str, list[dict[str, object]]] = {
        "programs": list(programs(opcodes)),
        "opcodes": list(opcodes.rows()),
        "routines": list(routines()),
    }
    print(json.dumps(result, indent=1))
    if options.page is not None:
        options.page.write_text(page(result, len(build_checkpoint().rom)), "utf-8")


if __name__ == "__main__":
    main()

"""How small a machine each instruction set needs: the table in ``docs/machines.md``.

``python -m compiler.instruction_sets`` solves the default machine with ever more of its opcodes,
and the base machine, and rewrites the table (it needs the ``scheduler`` extra).
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from compiler import isa, opcode_points, rom
from compiler.errors import TransputerError
from compiler.graph import Graph
from compiler.machine import build_graph
from compiler.machine_base import build_base_graph
from compiler.machine_base_tokens import ORDER
from compiler.machine_tokens import DIGIT_WEIGHTS, ROM_START
from compiler.prune import prune
from compiler.schedule import Shape
from compiler.solve import smallest

STEPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("the 35 opcodes of the base machine", ORDER),
    ("+ and, or, xor", ("i32.and", "i32.or", "i32.xor")),
    ("+ mul", ("i32.mul",)),
    ("+ shl, shr_u, shr_s, rotl, rotr", rom.SHIFTS),
    ("+ div_u, rem_u", ("i32.div_u", "i32.rem_u")),
    ("+ div_s, rem_s", ("i32.div_s", "i32.rem_s")),
)
"""What each row adds to the one before; the last row adds what is left."""

NEEDED_BY: dict[str, tuple[str, ...]] = {
    "input_address": ("input",),
    "scaled_divisor: by zero": isa.DIVISIONS,
    "scaled_divisor: large": isa.DIVISIONS,
    "control: digits_done": isa.DIVISIONS,
    "control: divide_by_zero": isa.DIVISIONS,
}
"""Neurons that no opcode's own test opens, and the opcodes without which they do nothing."""

BEGIN, END = "<!-- instruction sets: begin -->", "<!-- instruction sets: end -->"
"""Between these lines of the page stands the table."""
PAGE = Path(__file__).parent.parent / "docs" / "machines.md"
WIDEST = Shape(d_model=64, n_heads=32, n_layers=7, d_ffn=36)


@dataclass(frozen=True)
class InstructionSet:
    """A row: some opcodes, and a graph of the machine that runs them."""

    name: str
    opcodes: frozenset[str]
    graph: Graph


def instruction_sets() -> list[InstructionSet]:
    """The rows for the default machine, the smallest first."""
    rows: list[InstructionSet] = []
    opcodes: frozenset[str] = frozenset()
    rest = tuple(set(isa.OPCODES) - {name for _, names in STEPS for name in names})
    for label, names in (*STEPS, ("+ all others", rest)):
        opcodes |= frozenset(names)
        rows.append(InstructionSet(label, opcodes, reduced_graph(opcodes)))
    return rows


def reduced_graph(opcodes: frozenset[str]) -> Graph:
    """The default machine with these opcodes alone."""
    digits: list[str] = []
    if not opcodes & set(isa.DIVISIONS):
        digits = [isa.digit_token(weight, b) for weight in DIGIT_WEIGHTS for b in range(256)]
    idle = [node for node, names in NEEDED_BY.items() if not opcodes & set(names)]
    points = opcode_points.POINTS
    return prune(build_graph(), points, opcodes, first=ROM_START, tokens=digits, nodes=idle)


def table(seconds: float) -> list[str]:
    """The lines of the table, in Markdown."""
    lines = [
        "| instruction set | opcodes | slots | d_model | heads | layers | d_ffn | least? |",
        "|---|---|---|---|---|---|---|---|",
    ]
    base = InstructionSet("**the base machine**, 35 opcodes", frozenset(ORDER), build_base_graph())
    for row in (base, *instruction_sets()):
        size = smallest(row.graph, seconds, WIDEST)
        shape = size.shape
        numbers = (shape.d_model, shape.n_heads, shape.n_layers, shape.d_ffn)
        cells = [row.name, len(row.opcodes), size.slots, *numbers]
        lines.append(f"| {' | '.join(map(str, [*cells, size.proved]))} |")
        print(lines[-1], flush=True)
    return lines


def rewritten(page: str, lines: Sequence[str]) -> str:
    """The page with the table between its two marks replaced."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise TransputerError(f"the page has no lines {BEGIN} and {END}")
    return "\n".join([before + begin, "", *lines, "", end + after])


def main(arguments: Sequence[str] | None = None) -> None:
    """Solve every instruction set and rewrite the table."""
    parser = argparse.ArgumentParser(
        prog="python -m compiler.instruction_sets", description=main.__doc__
    )
    parser.add_argument("--seconds", type=float, default=120, help="for each of the solver's runs")
    parser.add_argument("--page", type=Path, default=PAGE)
    options = parser.parse_args(arguments)
    page = options.page.read_text(encoding="utf-8")
    lines = table(options.seconds)
    options.page.write_text(rewritten(page, lines), encoding="utf-8")
    print(options.page)


if __name__ == "__main__":
    main()

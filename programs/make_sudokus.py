"""Makes ``data/sudokus.txt``: Sudokus with one solution that are hard for ``sudoku.c``.

Each starts as a random grid with clues taken away as long as the solution stays the only one. Then
clues are put back and others taken away, many times, and what makes sudoku.c work more is kept.
The program itself, run by wasmtime, says how many solutions there are and how much work it was.

    python -m programs.make_sudokus > programs/data/sudokus.txt
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

import wasmtime

from compiler.frontend import to_wasm

CELLS = 81
FEWEST_CLUES, MOST_CLUES = 22, 30
LEAST_INSTRUCTIONS, MOST_INSTRUCTIONS = 400_000, 3_600_000
"""Of WebAssembly, to find the solution and that there is no other; the model writes about five
tokens for each. Puzzles that need no guess take about 40,000."""
HARNESS = """
#include <stdio.h>
static char printed[1024];
static int length;
#define printf(...) (length = length)
#define putchar(c) (printed[length++] = (char)(c))
#define main sudoku_main
#include "sudoku.c"
char puzzle[CELLS + 1];
const char *work(void) {
  length = guesses = solutions = 0;
  wanted = 2;
  grids[0] = (grid){0};
  if (load(&grids[0], puzzle)) solve(0);
  printed[length] = 0;
  return printed;
}
"""
"""The program with its text kept in memory, to be called again and again."""


class Solver:
    """``sudoku.c`` under wasmtime."""

    def __init__(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "harness.c"
            path.write_text(HARNESS)
            here = Path(__file__).parent
            source = to_wasm(path, include=[here], exports=["work", "puzzle"], libc="tiny")
        config = wasmtime.Config()
        config.consume_fuel = True
        engine = wasmtime.Engine(config)
        self._store = wasmtime.Store(engine)
        self._store.set_fuel(MOST_INSTRUCTIONS)
        instance = wasmtime.Instance(self._store, wasmtime.Module(engine, source.wasm), [])
        exports = instance.exports(self._store)
        work, memory, puzzle = exports["work"], exports["memory"], exports["puzzle"]
        assert isinstance(work, wasmtime.Func) and isinstance(memory, wasmtime.Memory)
        assert isinstance(puzzle, wasmtime.Global)
        self._work, self._memory, self._puzzle = work, memory, puzzle.value(self._store)

    def solve(self, puzzle: str) -> tuple[list[str], int]:
        """Up to two solutions, and the instructions of it all; ``MOST_INSTRUCTIONS`` for a puzzle
        that takes more."""
        store = self._store
        store.set_fuel(MOST_INSTRUCTIONS)
        self._memory.write(store, puzzle.encode(), self._puzzle)
        try:
            at = self._work(store)
        except wasmtime.Trap:  # the fuel is used up
            return [], MOST_INSTRUCTIONS
        printed = bytes(self._memory.read(store, at, at + 2 * CELLS + 3)).split(b"\0")[0].decode()
        return printed.split(), MOST_INSTRUCTIONS - store.get_fuel()


def text(clues: dict[int, str]) -> str:
    """A puzzle as 81 characters."""
    return "".join(clues.get(cell, "0") for cell in range(CELLS))


def work(solver: Solver, clues: dict[int, str]) -> int:
    """Instructions for a puzzle with one solution that is found in time, 0 for any other."""
    solutions, instructions = solver.solve(text(clues))
    return instructions if len(solutions) == 1 and instructions < MOST_INSTRUCTIONS else 0


def thinned(solver: Solver, clues: dict[int, str], chosen: random.Random) -> dict[int, str]:
    """The clues without those that can go, down to ``FEWEST_CLUES``."""
    left = dict(clues)
    for cell in chosen.sample(sorted(clues), len(clues)):
        if len(left) == FEWEST_CLUES:
            break
        digit = left.pop(cell)
        if not work(solver, left):
            left[cell] = digit
    return left


def random_grid(solver: Solver, chosen: random.Random) -> str:
    """A full grid: what the program makes of a few random clues."""
    while True:
        cells = chosen.sample(range(CELLS), 12)
        digits = (chosen.choice("123456789") for _ in cells)
        clues = dict(zip(cells, digits, strict=True))
        solutions, _ = solver.solve(text(clues))
        if solutions:
            return solutions[0]


def hard_puzzle(solver: Solver, chosen: random.Random, steps: int) -> str:
    """A puzzle that takes at least ``LEAST_INSTRUCTIONS``, after at least so many changes."""
    grid = random_grid(solver, chosen)
    best = thinned(solver, dict(enumerate(grid)), chosen)
    most = work(solver, best)
    step = 0
    while step < steps or most < LEAST_INSTRUCTIONS or len(best) > MOST_CLUES:
        step += 1
        back = chosen.sample([cell for cell in range(CELLS) if cell not in best], 2)
        other = thinned(solver, best | {cell: grid[cell] for cell in back}, chosen)
        harder = work(solver, other)
        if harder >= most:
            best, most = other, harder
    return text(best)


def main() -> None:
    """Print puzzles, one a line."""
    parser = argparse.ArgumentParser(description="Print Sudokus that are hard for sudoku.c.")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--steps", type=int, default=100, help="least changes tried")
    options = parser.parse_args()
    solver, chosen = Solver(), random.Random(options.seed)
    for number in range(1, options.count + 1):
        print(hard_puzzle(solver, chosen, options.steps), flush=True)
        print(f"{number} of {options.count}", file=sys.stderr, end="\r", flush=True)


if __name__ == "__main__":
    main()

"""Makes ``data/sudokus.txt``: Sudokus with one solution that are hard for ``sudoku.c``.

Each starts as a random grid with clues taken away as long as the solution stays the only one. Then
clues are put back and others taken away, many times, and what makes sudoku.c work more is kept.
The program itself, run by wasmtime, says how many solutions there are and how much work it was.

    python -m programs.make_sudokus > programs/data/sudokus.txt      (some minutes)
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
from pathlib import Path

import wasmtime

from compiler.frontend import to_wasm

CELLS = 81
FEWEST_CLUES, MOST_CLUES = 22, 30
MOST_INSTRUCTIONS = 3_600_000
"""Of WebAssembly; the model writes about five tokens for each."""
LEAST_GUESSES = 20
ENTRY = "transputer_main"


class _End(Exception):
    """The program calls ``transputer.exit``."""


class Solver:
    """``sudoku.c`` under wasmtime, compiled once."""

    def __init__(self) -> None:
        config = wasmtime.Config()
        config.consume_fuel = True
        self._engine = wasmtime.Engine(config)
        source = to_wasm(Path(__file__).parent / "sudoku.c")
        self._module = wasmtime.Module(self._engine, source.wasm)

    def solve(self, puzzle: str) -> tuple[list[str], int, int]:
        """Up to two solutions, the guesses up to the last one, and the instructions of it all;
        as many as ``MOST_INSTRUCTIONS`` for a puzzle that takes more."""
        given = b"\x01sudoku.c\0\x01" + puzzle.encode() + b"\0\x012\0\0"
        printed = bytearray()
        store = wasmtime.Store(self._engine)
        store.set_fuel(MOST_INSTRUCTIONS)
        linker = wasmtime.Linker(self._engine)
        word = wasmtime.ValType.i32

        def end(code: int) -> None:
            raise _End

        def read(at: int) -> int:
            return given[at] if at < len(given) else -1

        kinds = [wasmtime.FuncType([word()], [word()] * results) for results in (0, 1, 0)]
        for name, kind, function in zip(
            ("output", "input", "exit"), kinds, (printed.append, read, end), strict=True
        ):
            linker.define_func("transputer", name, kind, function)
        entry = linker.instantiate(store, self._module).exports(store)[ENTRY]
        assert isinstance(entry, wasmtime.Func)
        with contextlib.suppress(_End, wasmtime.Trap):  # the latter when the fuel is used up
            entry(store)
        lines = printed.decode().split("\n")
        guesses = [int(line.removeprefix("guesses: ")) for line in lines if "guesses" in line]
        solutions = [line for line in lines if len(line) == CELLS]
        return solutions, max(guesses, default=0), MOST_INSTRUCTIONS - store.get_fuel()


def unique(solver: Solver, clues: dict[int, str]) -> tuple[int, int] | None:
    """Guesses and instructions if these clues have one solution that is found in time."""
    puzzle = "".join(clues.get(cell, "0") for cell in range(CELLS))
    solutions, guesses, instructions = solver.solve(puzzle)
    if len(solutions) != 1 or instructions == MOST_INSTRUCTIONS:
        return None
    return guesses, instructions


def thinned(solver: Solver, clues: dict[int, str], chosen: random.Random) -> dict[int, str]:
    """The clues without those that can go, down to ``FEWEST_CLUES``."""
    left = dict(clues)
    for cell in chosen.sample(sorted(clues), len(clues)):
        if len(left) == FEWEST_CLUES:
            break
        digit = left.pop(cell)
        if unique(solver, left) is None:
            left[cell] = digit
    return left


def random_grid(solver: Solver, chosen: random.Random) -> str:
    """A full grid: what the program makes of a few random clues."""
    while True:
        cells = chosen.sample(range(CELLS), 12)
        digits = (chosen.choice("123456789") for _ in cells)
        clues = dict(zip(cells, digits, strict=True))
        solutions, _, _ = solver.solve("".join(clues.get(i, "0") for i in range(CELLS)))
        if solutions:
            return solutions[0]


def hard_puzzle(solver: Solver, chosen: random.Random, steps: int) -> str:
    """A puzzle of at least ``LEAST_GUESSES``, after at least so many changes."""
    grid = random_grid(solver, chosen)
    best = thinned(solver, dict(enumerate(grid)), chosen)
    work = unique(solver, best) or (0, 0)
    step = 0
    while step < steps or work[0] < LEAST_GUESSES or len(best) > MOST_CLUES:
        step += 1
        back = chosen.sample([cell for cell in range(CELLS) if cell not in best], 2)
        other = thinned(solver, best | {cell: grid[cell] for cell in back}, chosen)
        harder = unique(solver, other)
        if harder is not None and harder >= work:
            best, work = other, harder
    return "".join(best.get(cell, "0") for cell in range(CELLS))


def main() -> None:
    """Print puzzles, one a line."""
    parser = argparse.ArgumentParser(description="Print Sudokus that are hard for sudoku.c.")
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=8)
    parser.add_argument("--steps", type=int, default=20, help="least changes tried")
    options = parser.parse_args()
    solver, chosen = Solver(), random.Random(options.seed)
    for number in range(1, options.count + 1):
        print(hard_puzzle(solver, chosen, options.steps), flush=True)
        print(f"{number} of {options.count}", file=sys.stderr, end="\r", flush=True)


if __name__ == "__main__":
    main()

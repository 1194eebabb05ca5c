"""The Sudoku on show: the grids of ``programs/sudoku.c`` as they stand in memory.

The program keeps one grid for each guess that stands. The one it stored to last is the one it is
at; a cell belongs to the first grid that has it filled, which is the guess it depends on. So a
guess that is taken back takes its cells along.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from rich.text import Text

from compiler.errors import UsageError
from compiler.program import Program
from executor.demo.scene import Task, beside, text_of, unexpected
from executor.runner import RunResult
from executor.watch import MemoryWatch, addresses

Array = npt.NDArray[Any]

HARDEST = "800000000003600000070090200050007000000045700000100030001000068008500010090000400"
"""Arto Inkala's."""
CELLS, DIGITS, BANDS, BAND_CELLS = 81, 9, 3, 27
SIDE = range(9)
UNITS = (
    *((f"row {r + 1}", [9 * r + c for c in SIDE]) for r in SIDE),
    *((f"column {c + 1}", [9 * r + c for r in SIDE]) for c in SIDE),
    *(
        (f"box {b + 1}", [27 * (b // 3) + 3 * (b % 3) + 9 * (i // 3) + i % 3 for i in SIDE])
        for b in SIDE
    ),
)
"""Rows, columns and boxes: name, and their cells."""

GRID_WORDS = (2 * DIGITS + 1) * BANDS
"""Of a ``grid`` in sudoku.c: candidates, examined, placed."""
GRIDS, GUESSES = "grids", "guesses"
NO_SOLUTION = b"no solution"
"""What the program says then."""
SECOND = "2"
"""Solutions to look for: whether there is another one decides about the puzzle."""

GIVEN, DEDUCED, FRAME = "bold", "green", "bright_black"
LEVELS = ("yellow", "magenta", "cyan", "red", "blue")
"""Colours of guesses one below the other, again and again."""
RULES = (tuple("┏┯┳┓"), tuple("┠┼╂┨"), tuple("┣┿╋┫"), tuple("┗┷┻┛"))
"""Of the large picture: above, between cells, between boxes, below."""
ROOMY_WIDTH, ROOMY_HEIGHT = 101, 37
"""What the picture with all candidates takes, the list of guesses beside it included."""


def read_puzzle(text: str) -> str:
    """A puzzle as 81 characters, 0 for a blank; ``text`` is one, or names a file that holds one.

    Raises:
        UsageError: if it is not 81 cells of digits, or if two equal digits see each other.
    """
    content, _ = text_of(text)
    cells = "".join(content.split()).replace(".", "0")
    wrong = next((c for c in cells if c not in "0123456789"), None)
    if wrong is not None and not any(c.isdigit() for c in cells):
        raise UsageError(f"{text}: neither a file nor a puzzle of 81 digits, 0 or . for a blank")
    if wrong is not None:
        raise UsageError(f"{wrong!r} in the puzzle is neither a digit nor . for a blank")
    if len(cells) != CELLS:
        raise UsageError(f"a puzzle has 81 cells, row by row; this one has {len(cells)}")
    problem = clash(cells)
    if problem:
        raise UsageError(f"the puzzle contradicts itself: {problem}")
    return cells


def clash(cells: str) -> str:
    """Where a digit stands twice in a row, column or box; empty for nowhere."""
    for name, unit in UNITS:
        digits = [cells[i] for i in unit if cells[i] != "0"]
        twice = next((d for d in digits if digits.count(d) > 1), None)
        if twice:
            return f"{name} has two of {twice}"
    return ""


@dataclass(frozen=True)
class Board:
    """One moment of the search.

    Attributes:
        depth: guesses that stand.
        digits: of the 81 cells, 0 where none is filled in.
        levels: the guess on which each filled cell depends, 0 for none.
        candidates: (9, 81), whether a digit may still stand in a cell.
    """

    depth: int
    digits: Array
    levels: Array
    candidates: Array


def read_board(watch: MemoryWatch, address: int, depth: int) -> Board:
    """The grids 0 to ``depth`` of the array at ``address``."""
    words = watch.words(address, GRID_WORDS * (depth + 1)).reshape(depth + 1, -1, BANDS, 1)
    bits = (words >> np.arange(BAND_CELLS) & 1).reshape(depth + 1, -1, CELLS)
    candidates, placed = bits[-1, :DIGITS], bits[:, -1].astype(bool)
    filled = placed[-1] & (candidates.sum(axis=0) == 1)
    digits = np.where(filled, candidates.argmax(axis=0) + 1, 0)
    return Board(depth, digits, placed.argmax(axis=0), candidates)


class SudokuScene:
    """See :class:`executor.demo.scene.Scene`."""

    def __init__(self, puzzle: str) -> None:
        """Args: puzzle: as :func:`read_puzzle` returns it."""
        self.puzzle = puzzle
        self.clues = CELLS - puzzle.count("0")
        self.task = Task("sudoku.c", (GRIDS, GUESSES), (puzzle, SECOND))
        self.solutions: list[str] = []
        self.guesses = 0
        self.taken_back = 0
        self.board: Board | None = None
        self._done = False
        self._at: dict[str, int] = {}

    @property
    def title(self) -> str:
        name = "Sudoku inside the model"
        if len(self.solutions) > 1:
            return f"{name}: there is more than one solution"
        if not self._done:
            return f"{name}: solved; is there another solution?" if self.solutions else name
        if self.solutions:
            return f"{name}: solved, and there is no other solution"
        return f"{name}: there is no solution"

    def begin(self, program: Program) -> None:
        self._at = addresses(program, self.task.variables)

    def look(self, watch: MemoryWatch) -> None:
        self.solutions = found_solutions(bytes(watch.output))
        self._done = watch.end is not None
        self.guesses = int(watch.words(self._at[GUESSES], 1)[0])
        offset = watch.written - self._at[GRIDS]
        inside = np.flatnonzero((offset >= 0) & (offset < 4 * GRID_WORDS * CELLS))
        if len(inside):
            depth = int(offset[inside[-1]]) // (4 * GRID_WORDS)
        elif self.board is not None:
            depth = self.board.depth
        else:
            return
        self.board = read_board(watch, self._at[GRIDS], depth)
        counted = np.flatnonzero(watch.written == self._at[GUESSES])
        if len(inside) and (not len(counted) or counted[-1] < inside[-1]):
            self.taken_back = self.guesses - depth  # else a guess has no grid yet

    def counters(self) -> str:
        standing = self.board.depth if self.board and not self._done else 0
        return (
            f"guesses {self.guesses:,}   standing {standing}   taken back "
            f"{self.guesses if self._done else self.taken_back:,}"
        )

    def question(self) -> str:
        return f"Sudoku with {self.clues} clues:\n{plain_grid(self.puzzle)}"

    def answer(self, result: RunResult) -> str:
        """Raises: UsageError: no solution, or more than one."""
        solutions = found_solutions(result.output)
        if not solutions and NO_SOLUTION in result.output:
            raise UsageError(f"this puzzle has no solution (found in {result.n_trace:,} tokens)")
        if not solutions:
            raise unexpected(self.task, result)
        if len(solutions) > 1:
            raise UsageError(
                f"this puzzle has more than one solution:\n  {solutions[0]}\n  {solutions[1]}"
            )
        first = result.output.decode("ascii", "replace").splitlines()[0]
        return f"solution ({first}):\n{plain_grid(solutions[0])}\nThere is no other."

    def picture(self, width: int, height: int) -> list[Text]:
        if self._done and self.solutions:
            return self._compact(self.solutions[0])
        if self.board is None:
            return self._compact(self.puzzle)
        if height >= ROOMY_HEIGHT and width >= ROOMY_WIDTH:
            grid = self._roomy(self.board)
        else:
            grid = self._compact(self.board.digits, self.board.levels)
        blocks = [grid, self._guess_list(self.board, len(grid))]
        if self.solutions:
            blocks.append(self._compact(self.solutions[0]))
        return beside(blocks)

    def _style(self, cell: int, level: int) -> str:
        if self.puzzle[cell] != "0":
            return GIVEN
        return DEDUCED if level == 0 else LEVELS[(level - 1) % len(LEVELS)]

    def _compact(
        self, cells: Sequence[str] | Array, levels: Sequence[int] | Array = (0,) * CELLS
    ) -> list[Text]:
        """13 lines of 25 characters."""
        digits = [int(cell) for cell in cells]
        lines = [Text("┌───────┬───────┬───────┐", FRAME)]
        for r in SIDE:
            if r in (3, 6):
                lines.append(Text("├───────┼───────┼───────┤", FRAME))
            line = Text()
            for c in SIDE:
                cell = 9 * r + c
                line.append("│ " if c % 3 == 0 else "", FRAME)
                digit = digits[cell]
                style = self._style(cell, int(levels[cell])) if digit else FRAME
                line.append(f"{digit or '·'} ", style)
            line.append("│", FRAME)
            lines.append(line)
        return [*lines, Text("└───────┴───────┴───────┘", FRAME)]

    def _roomy(self, board: Board) -> list[Text]:
        """37 lines of 73 characters, with the candidates of open cells."""
        lines = []
        for r in range(10):
            left, thin, thick, right = RULES[min(r, 1) + (r % 3 == 0 and r > 0) + (r == 9)]
            dash = "━" if r % 3 == 0 else "─"
            box = thin.join([dash * 7] * 3)
            lines.append(Text(left + thick.join([box] * 3) + right, FRAME))
            for part in range(3 if r < 9 else 0):
                line = Text.assemble(("┃", FRAME))
                for c in SIDE:
                    line.append_text(self._cell_part(board, 9 * r + c, part))
                    line.append("┃" if c % 3 == 2 else "│", FRAME)
                lines.append(line)
        return lines

    def _cell_part(self, board: Board, cell: int, part: int) -> Text:
        """One of the three lines of a cell, 7 characters."""
        digit = int(board.digits[cell])
        if digit:
            style = self._style(cell, int(board.levels[cell]))
            return Text(f"   {digit}   " if part == 1 else " " * 7, f"{style} bold")
        open_ = board.candidates[3 * part : 3 * part + 3, cell]
        marks = (str(3 * part + i + 1) if open_[i] else " " for i in range(3))
        return Text(f" {' '.join(marks)} ", FRAME)

    def _guess_list(self, board: Board, height: int) -> list[Text]:
        """For each guess that stands how many cells depend on it, the last ones if too many."""
        filled = board.digits > 0
        rows = []
        for level in range(board.depth + 1):
            count = int((filled & (board.levels == level)).sum())
            if level == 0:
                count -= self.clues
            name = "deduced" if level == 0 else f"guess {level}"
            style = DEDUCED if level == 0 else LEVELS[(level - 1) % len(LEVELS)]
            rows.append(Text(f"{name:<9}{max(count, 0):>2} {'■' * (max(count, 0) // 4)}", style))
        return [Text("cells by guess", FRAME), *rows[-(height - 1) :]]


def found_solutions(output: bytes) -> list[str]:
    """The grids that the program has printed: whole lines of 81 digits."""
    lines = output.decode("ascii", "replace").splitlines(keepends=True)
    return [line[:-1] for line in lines if len(line) == CELLS + 1 and line[:-1].isdigit()]


def plain_grid(cells: str) -> str:
    """A grid as text, blanks as dots."""
    shown = cells.replace("0", ".")
    rows = []
    for r in SIDE:
        if r in (3, 6):
            rows.append("------+-------+------")
        row = shown[9 * r : 9 * r + 9]
        rows.append(" | ".join(" ".join(row[c : c + 3]) for c in (0, 3, 6)))
    return "\n".join(rows)


def problem(puzzle: str, solution: str) -> str:
    """What is wrong with a solution by the rules; empty for nothing."""
    if len(solution) != CELLS or not set(solution) <= set("123456789"):
        return "not 81 digits from 1 to 9"
    if any(clue not in ("0", digit) for clue, digit in zip(puzzle, solution, strict=True)):
        return "a clue was changed"
    return clash(solution)

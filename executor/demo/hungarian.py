"""The assignment problem on show: costs, potentials and matching of ``programs/hungarian.c``.

A cell is *tight* where its cost is the sum of the potentials of its row and its column; only tight
cells can be matched, and potentials that leave no cost below their sum prove the matching optimal.
"""

from __future__ import annotations

import random
import re
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt
from rich.text import Text

from compiler.errors import UsageError
from compiler.program import Program
from executor.demo.scene import PROGRAMS, Task, text_of, unexpected
from executor.runner import RunResult
from executor.watch import MemoryWatch, addresses

Matrix = tuple[tuple[int, ...], ...]
Array = npt.NDArray[Any]

MAX_N, MAX_COST = 20, 1_000_000
"""Of hungarian.c."""
DEFAULT = PROGRAMS / "data" / "hungarian10.txt"
"""The article's demonstration is of this size."""
VARIABLES = ("n", "cost", "u", "v", "row_of", "col_of")
MATCHED, TIGHT, REST, LABEL = "bold green", "cyan", "", "bright_black"


def read_matrix(text: str) -> Matrix:
    """A square matrix: rows on lines or between semicolons; ``text`` is one, or names a file.

    A first line with nothing but the number of rows, as the program reads it, may precede.

    Raises:
        UsageError: if it is not square, has other than whole numbers, or is too large.
    """
    content, is_file = text_of(text)
    lines = [line.replace(",", " ").split() for line in re.split(r"[;\n]", content)]
    lines = [line for line in lines if line]
    for word in (word for line in lines for word in line):
        if not re.fullmatch(r"[-+]?[0-9]{1,9}", word):
            neither = "" if is_file else "neither a file nor "
            raise UsageError(
                f"{word!r}: {neither}a whole number; write a matrix as '3 1 2; 4 5 6; 7 8 9'"
            )
    rows = [tuple(int(word) for word in line) for line in lines]
    if len(rows) > 1 and rows[0] == (len(rows) - 1,):
        del rows[0]
    if not rows:
        raise UsageError("the matrix is empty; write one as '3 1 2; 4 5 6; 7 8 9'")
    if len(rows) > MAX_N:
        raise UsageError(f"the matrix has {len(rows)} rows, the program takes up to {MAX_N}")
    for number, row in enumerate(rows, start=1):
        if len(row) != len(rows):
            raise UsageError(
                f"the matrix is not square: it has {len(rows)} rows, row {number} has {len(row)}"
            )
        if any(abs(cost) > MAX_COST for cost in row):
            raise UsageError(f"row {number}: costs are from -{MAX_COST:,} to {MAX_COST:,}")
    return tuple(rows)


def random_matrix(n: int, seed: int, most: int = 99) -> Matrix:
    """Costs from 1 to ``most``. Raises UsageError if ``n`` is too large."""
    if not 1 <= n <= MAX_N:
        raise UsageError(f"the program takes 1 to {MAX_N} rows, not {n}")
    chosen = random.Random(seed)
    return tuple(tuple(chosen.randint(1, most) for _ in range(n)) for _ in range(n))


def program_input(matrix: Matrix) -> bytes:
    """The matrix as hungarian.c reads it."""
    lines = [str(len(matrix)), *(" ".join(map(str, row)) for row in matrix)]
    return ("\n".join(lines) + "\n").encode()


@dataclass(frozen=True)
class Memory:
    """The program's variables at one moment.

    Attributes:
        cost: (n, n).
        u, v: potentials of rows and columns.
        row_of, col_of: the matching, -1 for none.
    """

    cost: Array
    u: Array
    v: Array
    row_of: Array
    col_of: Array

    def matched(self) -> dict[int, int]:
        """Column of each row on which both directions agree; in between, a path is exchanged."""
        pairs = enumerate(self.col_of.tolist())
        return {i: j for i, j in pairs if 0 <= j < len(self.row_of) and self.row_of[j] == i}


def read_memory(watch: MemoryWatch, at: dict[str, int]) -> Memory:
    """What the program's variables hold; no rows before it has read how many there are."""
    n = min(max(int(watch.words(at["n"], 1)[0]), 0), MAX_N)
    cost = watch.words(at["cost"], MAX_N * MAX_N).reshape(MAX_N, MAX_N)[:n, :n]
    u, v, row_of, col_of = (watch.words(at[name], n) for name in VARIABLES[2:])
    return Memory(cost, u, v, row_of, col_of)


class HungarianScene:
    """See :class:`executor.demo.scene.Scene`."""

    title = "Hungarian algorithm inside the model: [assigned] costs, potentials u and v"

    def __init__(self, matrix: Matrix) -> None:
        self.matrix = matrix
        self.task = Task("hungarian.c", VARIABLES, stdin=program_input(matrix))
        self.memory: Memory | None = None
        self.cost = ""
        self._at: dict[str, int] = {}

    def begin(self, program: Program) -> None:
        self._at = addresses(program, VARIABLES)

    def look(self, watch: MemoryWatch) -> None:
        self.memory = read_memory(watch, self._at)
        said = re.findall(rb"cost:? (-?\d+)\n", bytes(watch.output))
        self.cost = said[-1].decode() if said else ""

    def counters(self) -> str:
        rows = len(self.memory.matched()) if self.memory else 0
        cost = f"   cost {int(self.cost):,}" if self.cost else ""
        return f"rows assigned {rows} of {len(self.matrix)}{cost}"

    def question(self) -> str:
        return f"assignment problem with {len(self.matrix)} rows:\n{plain_matrix(self.matrix)}"

    def answer(self, result: RunResult) -> str:
        found = read_answer(result.output)
        if found is None:
            raise unexpected(self.task, result)
        columns, cost = found
        rows = (
            f"row {i:>2} takes column {j:>2}, cost {self.matrix[i - 1][j - 1]:,}"
            for i, j in enumerate(columns, start=1)
        )
        return "\n".join(("solution:", *rows, f"optimal cost: {cost:,}"))

    def picture(self, width: int, height: int) -> list[Text]:
        memory = self.memory
        if memory is None or not len(memory.cost):
            return [Text("(reading the matrix)", LABEL)]
        n = len(memory.cost)
        costs, with_v = _width(memory.cost), _width(memory.cost, memory.v)
        side = _width(memory.u)
        # First the potentials of the columns are left out, then what is at the edge.
        fits = n + 1 <= height and _columns(width, with_v, side) >= n
        cell = with_v if fits else costs
        columns = min(n, _columns(width, cell, side))
        rows = min(n, height)
        cut = rows < n or columns < n
        rows = min(rows, height - cut)
        matched = memory.matched()
        lines = [_row(memory, i, matched.get(i, -1), columns, cell, side) for i in range(rows)]
        if rows + fits + cut < height:
            heads = " ".join(f"{j + 1:>{cell}}" for j in range(columns))
            lines.insert(0, Text(f"     {heads}  {'u':>{side}}", LABEL))
        if fits:
            potentials = " ".join(f"{number:>{cell}}" for number in memory.v.tolist())
            lines.append(Text(f"  v  {potentials}", LABEL))
        if cut:
            lines.append(Text(f"(no room for more than {rows} x {columns} of {n} x {n})", LABEL))
        return lines


def _width(*numbers: Array) -> int:
    """Characters of the longest number, and enough for the number of a column."""
    return max(2, *(len(str(number)) for array in numbers for number in array.flat))


def _columns(width: int, cell: int, side: int) -> int:
    """How many columns there is room for beside the number and the potential of a row."""
    return max((width - len("  1 ") - 1 - side - 1) // (cell + 1), 0)


def _row(memory: Memory, i: int, matched: int, columns: int, cell: int, side: int) -> Text:
    """Number of the row, its costs, its potential."""
    line = Text.assemble((f"{i + 1:>3} ", LABEL))
    for j in range(columns):
        opened = "[" if j == matched else "]" if j - 1 == matched and j else " "
        line.append(opened, MATCHED)
        tight = memory.cost[i, j] == memory.u[i] + memory.v[j]
        style = MATCHED if j == matched else TIGHT if tight else REST
        line.append(f"{memory.cost[i, j]:>{cell}}", style)
    line.append("]" if matched == columns - 1 else " ", MATCHED)
    line.append(f" {memory.u[i]:>{side}}", LABEL)
    return line


def plain_matrix(matrix: Matrix) -> str:
    """The matrix as text."""
    width = max(len(str(cost)) for row in matrix for cost in row)
    return "\n".join(" ".join(f"{cost:>{width}}" for cost in row) for row in matrix)


def read_answer(output: bytes) -> tuple[list[int], int] | None:
    """Columns, counted from 1, and cost that the program printed; None if it printed neither."""
    found = re.search(rb"assignment:((?: \d+)+)\noptimal cost: (-?\d+)\n", output)
    return None if found is None else ([int(word) for word in found[1].split()], int(found[2]))


def problem(matrix: Matrix, columns: list[int], cost: int) -> str:
    """What is wrong with an assignment by the rules; empty for nothing."""
    if sorted(columns) != list(range(1, len(matrix) + 1)):
        return "not one column for each row"
    total = sum(row[j - 1] for row, j in zip(matrix, columns, strict=True))
    return "" if total == cost else f"these costs add up to {total}, not {cost}"


def unproven(memory: Memory, cost: int) -> str:
    """Why the potentials do not prove ``cost`` optimal; empty if they do.

    Duality: no assignment costs less than the sum of potentials u[i] + v[j] <= cost[i][j].
    """
    if (memory.u[:, None] + memory.v > memory.cost).any():
        return "a potential is above a cost"
    bound = int(memory.u.sum() + memory.v.sum())
    return "" if bound == cost else f"the potentials prove {bound}, not {cost}"

"""The demonstrations as text: what they print, and what they refuse."""

from __future__ import annotations

import contextlib
import io
import re
from itertools import permutations
from pathlib import Path

import pytest

from command_line import ROOT, transputer
from executor.demo import hungarian
from executor.demo.hungarian import read_matrix

EASY = "530070000600195000098000060800060003400803001700020006060000280000419005000080079"
EASY_SOLVED = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"
MATRIX = "4 1 3; 2 0 5; 3 2 2"
LEAST = min(
    sum(row[j] for row, j in zip(read_matrix(MATRIX), columns, strict=True))
    for columns in permutations(range(3))
)
ESCAPE = "\x1b"


def test_sudoku_as_text() -> None:
    code, out, _ = transputer("demo", "sudoku", EASY)
    assert code == 0 and ESCAPE not in out
    grids = re.findall(r"(?:^[\d. |+-]+\n)+", out, re.MULTILINE)
    cells = ["".join(c for c in grid if c.isdigit() or c == ".") for grid in grids[:2]]
    assert cells == [EASY.replace("0", "."), EASY_SOLVED]
    assert "There is no other." in out
    assert re.search(r"^guesses 0   standing 0   taken back 0$", out, re.MULTILINE)
    assert re.search(r"^[\d,]+ tokens   model [\d,]+ tokens/s$", out, re.MULTILINE)


def test_hungarian_as_text(tmp_path: Path) -> None:
    file = tmp_path / "matrix.txt"
    file.write_text("3\n4 1 3\n2 0 5\n3 2 2\n")
    code, out, _ = transputer("demo", "hungarian", file)
    assert code == 0 and ESCAPE not in out
    assert f"optimal cost: {LEAST}\n" in out
    assert "rows assigned 3 of 3" in out


def test_a_random_matrix_is_the_same_for_a_seed() -> None:
    assert hungarian.random_matrix(4, 7) == hungarian.random_matrix(4, 7)
    assert hungarian.random_matrix(4, 7) != hungarian.random_matrix(4, 8)


TWICE = "55" + "0" * 79
TWO_WAYS = "".join("0" if i in (32, 35, 41, 44) else c for i, c in enumerate(EASY_SOLVED))
"""The four blanks hold two digits crosswise."""
WRONG_PUZZLES = {
    "123": "81 cells, row by row; this one has 3",
    EASY + "0": "this one has 82",
    EASY[:-1] + "x": "'x' in the puzzle is neither a digit nor .",
    EASY[:-1] + "²": "'²' in the puzzle",
    "no/such/file": "neither a file nor a puzzle",
    "": "this one has 0",
    TWICE: "contradicts itself: row 1 has two of 5",
    "5" + "0" * 8 + "5" + "0" * 71: "contradicts itself: column 1 has two of 5",
    "5" + "0" * 9 + "5" + "0" * 70: "contradicts itself: box 1 has two of 5",
    EASY[:2] + "1" + EASY[3:]: "this puzzle has no solution",
    TWO_WAYS: "this puzzle has more than one solution",
}
WRONG_MATRICES = {
    "1 2; 3": "not square: it has 2 rows, row 2 has 1",
    "1 2 3; 4 5 6": "not square",
    "1 x; 2 3": "'x': neither a file nor a whole number",
    "1 2.5; 2 3": "'2.5'",
    "1 99999999999; 2 3": "'99999999999'",
    "1 1000001; 2 3": "row 1: costs are from -1,000,000 to 1,000,000",
    " ; ": "the matrix is empty",
    ";".join(["1 " * 21] * 21): "21 rows, the program takes up to 20",
}


@pytest.mark.parametrize("puzzle", WRONG_PUZZLES)
def test_a_wrong_puzzle_is_refused_in_one_message(puzzle: str) -> None:
    code, out, err = transputer("demo", "sudoku", puzzle)
    assert code == 2 and WRONG_PUZZLES[puzzle] in err
    assert err.startswith("transputer: error: ") and "Traceback" not in err


@pytest.mark.parametrize("matrix", WRONG_MATRICES)
def test_a_wrong_matrix_is_refused_in_one_message(matrix: str) -> None:
    code, out, err = transputer("demo", "hungarian", matrix)
    assert (code, out) == (2, "") and WRONG_MATRICES[matrix] in err


@pytest.mark.parametrize(
    "arguments",
    [
        ("sudoku", "--fps", "0"),
        ("sudoku", "--fps", "61"),
        ("sudoku", "--speed", "fast"),
        ("sudoku", "--record", "picture.png"),
        ("sudoku", "--all", EASY),
        ("sudoku", "--all", "--record", "picture.svg"),
        ("hungarian", "--random", "0"),
        ("hungarian", "--random", "21"),
        ("hungarian", "--random", "3", MATRIX),
        ("hungarian", "--seed", "3", MATRIX),
        ("hungarian", "--count", "3"),
        ("hungarian", "--all", "--count", "0"),
        ("chess",),
    ],
)
def test_wrong_options_are_refused(arguments: tuple[str, ...]) -> None:
    code, out, err = transputer("demo", *arguments)
    assert (code, out) == (2, "") and err.startswith("transputer: error: ")


def test_negative_costs_are_allowed() -> None:
    assert read_matrix("-1 2; 3 -4") == ((-1, 2), (3, -4))
    assert read_matrix("1\n5") == ((5,),)


def test_the_documented_way_to_watch_a_program_works() -> None:
    text = (ROOT / "programs/README.md").read_text(encoding="utf-8")
    example = re.search(r"```python\n(.*?)```", text, re.DOTALL)
    assert example is not None
    puzzle = re.sub(r'"8\d{80}"', f'"{EASY}"', example[1])
    with contextlib.chdir(ROOT), contextlib.redirect_stdout(io.StringIO()) as out:
        exec(puzzle, {})
    n_tokens, guesses = out.getvalue().splitlines()[-1].split()
    assert int(n_tokens) > 100_000 and guesses == "0"

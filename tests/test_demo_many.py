"""Whole collections of demonstrations: every answer is right, and a wrong one would be seen."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest

from executor.demo import hungarian, many, sudoku
from executor.demo.hungarian import HungarianScene, Memory, read_matrix
from executor.demo.sudoku import SudokuScene

SOLVED = "534678912672195348198342567859761423426853791713924856961537284287419635345286179"
PUZZLE = "".join(c if i % 3 else "0" for i, c in enumerate(SOLVED))
MATRIX = read_matrix("4 1 3; 2 0 5; 3 2 2")
ASSIGNED = b"assignment: 2 1 3\noptimal cost: 5\n"
MEMORY = Memory(
    cost=np.array(MATRIX),
    u=np.array([2, 1, 2]),
    v=np.array([1, -1, 0]),
    row_of=np.array([1, 0, 2]),
    col_of=np.array([1, 0, 2]),
)


def test_a_few_of_each_collection(capsys: pytest.CaptureFixture[str]) -> None:
    puzzles = many.sudokus()
    assert many.solve(replace(puzzles, scenes=puzzles.scenes[:1])) == 0
    problems = many.assignments(20, seed=1)
    assert many.solve(replace(problems, scenes=problems.scenes[11:20:4])) == 0
    out = capsys.readouterr().out
    assert re.search(r"^1 of 1 right \(.*\): 2,[\d,]+ tokens, ", out, re.MULTILINE)
    assert re.search(r"^3 of 3 right \(.*\): ", out, re.MULTILINE)
    assert "9x9" in out and "1x1" in out


def test_a_wrong_answer_counts(capsys: pytest.CaptureFixture[str]) -> None:
    problems = many.assignments(20, seed=1)
    wrong = replace(
        problems, scenes=problems.scenes[-1:], wrong=lambda scene, output: "this is wrong"
    )
    assert many.solve(wrong) == many.WRONG
    assert "this is wrong" in capsys.readouterr().out


def test_the_puzzles_are_hard_and_different() -> None:
    scenes = many.sudokus().scenes
    assert len({scene.puzzle for scene in scenes}) == len(scenes) == 50
    assert all(22 <= scene.clues <= 30 for scene in scenes)


@pytest.mark.parametrize(
    ("solution", "wrong"),
    [
        (SOLVED, ""),
        (SOLVED[:80], "not 81 digits"),
        (SOLVED[:80] + "0", "not 81 digits"),
        (SOLVED[0] + "9" + SOLVED[2:], "a clue was changed"),
        ("1" + SOLVED[1:], "row 1 has two of 1"),
    ],
)
def test_the_rules_of_sudoku(solution: str, wrong: str) -> None:
    assert sudoku.problem(PUZZLE, SOLVED) == ""
    assert sudoku.problem(PUZZLE, solution).startswith(wrong)
    assert bool(sudoku.problem(PUZZLE, solution)) == bool(wrong)


def test_a_second_solution_is_wrong() -> None:
    scene, line = SudokuScene(PUZZLE), b"guesses: 0\n" + SOLVED.encode() + b"\n"
    assert many.wrong_sudoku(scene, line) == ""
    assert many.wrong_sudoku(scene, line + line) == "2 solutions"
    assert many.wrong_sudoku(scene, line[:-1]) == "0 solutions"


def judged(memory: Memory, output: bytes = ASSIGNED) -> str:
    """What is wrong with an answer for ``MATRIX``, SciPy aside."""
    scene = HungarianScene(MATRIX)
    scene.memory = memory
    return many.wrong_assignment(scene, output)


def test_an_assignment_must_add_up_and_be_proven(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(many, "scipy_cost", lambda matrix: None)
    assert judged(MEMORY) == ""
    assert "not one column" in judged(MEMORY, ASSIGNED.replace(b"2 1 3", b"2 2 3"))
    assert "add up to 5, not 4" in judged(MEMORY, ASSIGNED.replace(b"cost: 5", b"cost: 4"))
    # 4 + 0 + 2 adds up to 6, but the potentials prove no more than 5.
    worse = ASSIGNED.replace(b"2 1 3", b"1 2 3").replace(b"cost: 5", b"cost: 6")
    assert judged(MEMORY, worse) == "the potentials prove 5, not 6"
    assert "above a cost" in judged(replace(MEMORY, u=MEMORY.u + 1))
    assert "another matrix" in judged(replace(MEMORY, cost=MEMORY.cost + 1))
    monkeypatch.setattr(many, "scipy_cost", lambda matrix: 4)
    assert judged(MEMORY) == "SciPy finds 4, not 5"


def test_scipy_agrees_on_small_matrices() -> None:
    pytest.importorskip("scipy")
    assert many.scipy_cost(MATRIX) == 5
    assert many.scipy_cost(((-7,),)) == -7


def test_random_problems_have_every_size_and_are_the_same_for_a_seed() -> None:
    problems = list(many.random_problems(80, seed=3))
    assert problems == list(many.random_problems(80, seed=3))
    assert {len(matrix) for matrix in problems} == set(range(1, hungarian.MAX_N + 1))
    costs = {cost for matrix in problems for row in matrix for cost in row}
    assert min(costs) < -900_000 and max(costs) > 900_000 and max(map(abs, costs)) <= 1_000_000


@pytest.mark.long
def test_all_puzzles() -> None:
    assert many.solve(many.sudokus()) == 0


@pytest.mark.long
def test_two_hundred_assignment_problems() -> None:
    pytest.importorskip("scipy")
    assert many.solve(many.assignments(200, seed=0)) == 0

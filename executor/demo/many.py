"""``transputer demo ... --all``: collections solved inside the model, and each answer checked.

Checks: wasmtime runs the same module and must print the same; a Sudoku must keep to its rules, and
the model must have found that there is no second solution; an assignment must add up, and the
potentials in the program's memory, as the trace leaves it, must prove it optimal; where SciPy is
installed, its cost must be the same.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from compiler.errors import UsageError
from compiler.program import Program
from executor.batch import BatchJob, Setup, stream_batch
from executor.config import AUTO
from executor.demo import hungarian, sudoku
from executor.demo.hungarian import HungarianScene, Matrix
from executor.demo.options import N_PROBLEMS
from executor.demo.scene import PROGRAMS, Scene
from executor.demo.sudoku import SudokuScene
from executor.loading import open_checkpoint
from executor.process import say
from executor.reference import run_reference
from executor.runner import RunResult
from executor.watch import MemoryWatch

PUZZLES = PROGRAMS / "data" / "sudokus.txt"
WRONG = 1
"""Exit code if an answer is wrong."""
S = TypeVar("S", bound=Scene)


@dataclass(frozen=True)
class Collection(Generic[S]):
    """Problems of one kind.

    Attributes:
        scenes: the problems.
        checks: what is checked, for the last line.
        head: of the table's columns that ``row`` fills.
        row: what is to be said about a solved problem.
        wrong: what is wrong with an output, empty for nothing.
    """

    scenes: Sequence[S]
    checks: str
    head: str
    row: Callable[[S], str]
    wrong: Callable[[S, bytes], str]


def check_all(options: argparse.Namespace) -> int:
    """Solve and check; 1 if an answer is wrong. Prints a table as it goes."""
    _refuse_view_options(options)
    if options.demo == "sudoku":
        return solve(sudokus())
    count = N_PROBLEMS if options.count is None else options.count
    if count == 0:
        raise UsageError("--count 0: there must be at least one problem")
    return solve(assignments(count, options.seed or 0))


def _refuse_view_options(options: argparse.Namespace) -> None:
    given = options.puzzle if options.demo == "sudoku" else options.matrix or options.random
    if given is not None:
        raise UsageError("--all solves the problems of a collection; leave yours out")
    if options.record or options.speed:
        raise UsageError("--all shows a table, which cannot be recorded or slowed down")


def solve(collection: Collection[S]) -> int:
    """Run every scene to its end, on all cores, and check it."""
    program = collection.scenes[0].task.compiled()
    vocabulary = open_checkpoint(None).vocabulary
    tasks = [scene.task for scene in collection.scenes]
    jobs = [BatchJob(program, task.args, task.stdin) for task in tasks]
    setup = Setup(None, AUTO, None, None, keep_trace=True)
    print(f"  no  {collection.head}      tokens  answer")
    tokens = failures = 0
    began = time.perf_counter()
    with contextlib.closing(stream_batch(jobs, setup, say=say)) as results:
        for number, (scene, done) in enumerate(zip(collection.scenes, results, strict=True), 1):
            scene.begin(program)
            watch = MemoryWatch(program, vocabulary)
            wrong = str(done.error)
            if done.result is not None:
                for ids in done.result.chunks:
                    watch.push(ids)
                scene.look(watch)
                wrong = _differs(program, scene, done.result) or collection.wrong(
                    scene, done.output
                )
                tokens += watch.n_tokens
            failures += bool(wrong)
            row = f"{number:>4}  {collection.row(scene)}  {watch.n_tokens:>10,}"
            print(f"{row}  {wrong or 'right'}", flush=True)
    right = len(collection.scenes) - failures
    print(
        f"{right} of {len(collection.scenes)} right ({collection.checks}): "
        f"{tokens:,} tokens, {time.perf_counter() - began:.0f} s"
    )
    return WRONG if failures else 0


def _differs(program: Program, scene: Scene, result: RunResult) -> str:
    """Whether wasmtime does something else."""
    given = program.input_bytes(scene.task.args, scene.task.stdin)
    reference = run_reference(program.wasm, input=given, name=program.name)
    same = (result.output, result.exit_code) == (reference.output, reference.exit_code)
    return "" if same else "wasmtime prints something else"


def sudokus() -> Collection[SudokuScene]:
    """The puzzles of ``programs/data/sudokus.txt``."""
    lines = PUZZLES.read_text("utf-8").split()
    return Collection(
        [SudokuScene(sudoku.read_puzzle(line)) for line in lines],
        "wasmtime prints the same; the rules; no second solution",
        "clues  guesses",
        lambda scene: f"{scene.clues:>5}  {scene.guesses:>7}",
        wrong_sudoku,
    )


def wrong_sudoku(scene: SudokuScene, output: bytes) -> str:
    """What is wrong with the solutions that the model has found."""
    solutions = sudoku.found_solutions(output)
    if len(solutions) != 1:
        return f"{len(solutions)} solutions"
    return sudoku.problem(scene.puzzle, solutions[0])


def assignments(count: int, seed: int) -> Collection[HungarianScene]:
    """Random assignment problems of every size up to 20 x 20 and of several kinds of costs."""
    scipy = scipy_cost([[0]]) is not None
    return Collection(
        [HungarianScene(matrix) for matrix in random_problems(count, seed)],
        "wasmtime prints the same; the costs; the potentials prove them optimal"
        + ("; SciPy" if scipy else ""),
        " size  optimal cost",
        lambda scene: f"{len(scene.matrix):>2}x{len(scene.matrix):<2}  {scene.cost:>12}",
        wrong_assignment,
    )


def random_problems(count: int, seed: int) -> Iterator[Matrix]:
    """Sizes from 20 down and round again; costs of two digits, of few values, of all values."""
    chosen = random.Random(seed)
    kinds = ((1, 99), (0, 3), (-1000, 1000), (-hungarian.MAX_COST, hungarian.MAX_COST))
    for number in range(count):
        n = hungarian.MAX_N - number % hungarian.MAX_N
        least, most = kinds[number // hungarian.MAX_N % len(kinds)]
        yield tuple(tuple(chosen.randint(least, most) for _ in range(n)) for _ in range(n))


def wrong_assignment(scene: HungarianScene, output: bytes) -> str:
    """What is wrong with the assignment, or with the proof that none costs less."""
    found = hungarian.read_answer(output)
    if found is None:
        return "no assignment was printed"
    columns, cost = found
    wrong = hungarian.problem(scene.matrix, columns, cost)
    memory = scene.memory
    assert memory is not None
    if not wrong and memory.cost.tolist() != [list(row) for row in scene.matrix]:
        wrong = "the program's memory holds another matrix"
    other = scipy_cost(scene.matrix)
    if not wrong and other is not None and other != cost:
        wrong = f"SciPy finds {other}, not {cost}"
    return wrong or hungarian.unproven(memory, cost)


def scipy_cost(matrix: Sequence[Sequence[int]]) -> int | None:
    """The least cost according to SciPy; None where that is not installed."""
    try:
        from scipy.optimize import linear_sum_assignment
    except ImportError:
        return None
    rows, columns = linear_sum_assignment(matrix)
    return sum(int(matrix[i][j]) for i, j in zip(rows.tolist(), columns.tolist(), strict=True))

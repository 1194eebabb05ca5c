"""Judges programs by running each twice: its module under wasmtime, its tokens inside the model.

A program counts as right if its output, exit code and trap are the same; of short runs, every token
of the trace and the memory at the end are compared too.
"""

from __future__ import annotations

import json
import os
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypeVar

from compiler import compile_wasm
from compiler.errors import CompileError, LimitError, TransputerError
from compiler.frontend import to_wasm
from compiler.program import Program
from executor.checking import against, compare
from executor.checkpoint import Checkpoint
from executor.job import Job
from executor.loading import build_checkpoint
from executor.reference import DEFAULT_FUEL, ReferenceResult, run_reference
from executor.runner import Limits, start

RIGHT, REFUSED, LIMIT, WRONG, LEFT_OUT = "right", "refused", "limit", "wrong", "left out"
OUTCOMES = (RIGHT, REFUSED, LIMIT, WRONG, LEFT_OUT)
MAX_TOKENS = 66_000_000
"""Tokens of a trace, a little less than the native engine holds."""
FOLLOWED_TOKENS = 50_000
"""Length of a trace up to which its tokens and its memory are compared."""
REASON_CHARACTERS = 300
Task = TypeVar("Task")


@dataclass(frozen=True)
class Verdict:
    """What came of one program at one level; ``reason`` says why it is not right.

    ``left out`` is a program that says nothing about the model, because wasmtime does not run it
    to the end that is expected.
    """

    name: str
    opt: str
    outcome: str
    reason: str = ""
    n_prompt: int = 0
    n_trace: int = 0


@cache
def default_checkpoint() -> Checkpoint:
    """The default machine's model, built once in each process."""
    return build_checkpoint()


def compiled(
    source: Path, opt: str, flags: Sequence[str] = (), include: Sequence[Path] = ()
) -> bytes:
    """The module that the front end makes of a C file, with more flags for the compiler.

    Raises:
        CompileError: the compiler's or linker's messages.
    """
    return to_wasm(source, opt=opt, include=include, flags=("-w", *flags), libc="wasi").wasm


def judge(
    name: str,
    opt: str,
    build: Callable[[], bytes],
    *,
    args: Sequence[str] = (),
    expected: Callable[[ReferenceResult], str] = lambda _: "",
    fuel: int = DEFAULT_FUEL,
    max_tokens: int = MAX_TOKENS,
) -> Verdict:
    """The verdict on a program.

    Args:
        build: makes the module.
        args: what the program is given as its arguments.
        expected: what is wrong with a run of the reference, if that is known; empty if nothing.
        fuel: WebAssembly instructions after which the reference is given up.
    """
    try:
        wasm = build()
        program = compile_wasm(wasm, name)
        try:
            content = program.input_bytes(args)
            reference = run_reference(wasm, input=content, fuel=fuel, name=name)
        except LimitError as error:
            return Verdict(name, opt, LEFT_OUT, _clipped(error))
        if unexpected := expected(reference):
            return Verdict(name, opt, LEFT_OUT, unexpected)
        return _inside(name, opt, program, args, reference, max_tokens)
    except LimitError as error:
        return Verdict(name, opt, LIMIT, _clipped(error))
    except CompileError as error:
        return Verdict(name, opt, REFUSED, _clipped(error))
    except Exception as error:
        # Whatever else happens is a fault of ours, which must not end the run of a whole suite.
        told = isinstance(error, TransputerError)
        lines = [str(error)] if told else traceback.format_exception(error)[-2:]
        return Verdict(name, opt, WRONG, _clipped("crash: ", *lines))


def _inside(
    name: str, opt: str, program: Program, args: Sequence[str], reference: ReferenceResult,
    max_tokens: int,
) -> Verdict:  # fmt: skip
    """The verdict on a run inside the model, given the one of the reference."""
    job, model = Job(program), default_checkpoint()
    execution = start(job, args, b"", model=model, engine="native", limits=Limits(max_tokens))
    for _ in execution.chunks():
        pass
    result = execution.result()
    if result.n_trace <= FOLLOWED_TOKENS:
        differences: Sequence[str] = compare(job, result, args, b"").differences
    else:
        differences = tuple(against(result, reference, job))
    outcome, reason = (WRONG, _clipped(*differences)) if differences else (RIGHT, "")
    return Verdict(name, opt, outcome, reason, result.n_prompt, result.n_trace)


def _clipped(*parts: object) -> str:
    """One line; an error's place is the program, which a verdict names itself."""
    texts = [
        f"{replace(part.place, file='') if part.place.function else ''} {part.reason}"
        if isinstance(part, CompileError)
        else str(part)
        for part in parts
    ]
    return " ".join(" ".join(texts).split())[:REASON_CHARACTERS]


def judged(
    tasks: Sequence[Task], judge_one: Callable[[Task], Verdict], jobs: int
) -> Iterator[Verdict]:
    """The verdicts on all tasks, as they come, by so many processes."""
    if jobs <= 1:
        yield from map(judge_one, tasks)
        return
    with ProcessPoolExecutor(jobs) as pool:
        waiting = [pool.submit(judge_one, task) for task in tasks]
        try:
            for future in as_completed(waiting):
                yield future.result()
        finally:
            for future in waiting:
                future.cancel()


class Results:
    """Verdicts in a file of JSON lines, which a later run takes over; or in none."""

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self.known: dict[tuple[str, str], Verdict] = {}
        if path is not None and path.exists():
            for line in path.read_text().splitlines():
                verdict = Verdict(**json.loads(line))
                if verdict.outcome == RIGHT:
                    self.known[verdict.name, verdict.opt] = verdict

    def add(self, verdict: Verdict) -> None:
        """Appends one verdict, at once."""
        if self.path is not None:
            with self.path.open("a") as file:
                file.write(json.dumps(asdict(verdict)) + os.linesep)


def table(verdicts: Iterable[Verdict]) -> list[str]:
    """Lines that count outcomes by level, and the share of right ones."""
    found = list(verdicts)
    lines = ["level  " + " ".join(f"{outcome:>8}" for outcome in OUTCOMES) + "     right"]
    for opt in sorted({verdict.opt for verdict in found}):
        counts = counted(found, opt)
        numbers = " ".join(f"{counts[outcome]:8}" for outcome in OUTCOMES)
        lines.append(f"{opt:6} {numbers}  {100 * counts[RIGHT] / counts.total():7.2f}%")
    return lines


def counted(verdicts: Iterable[Verdict], opt: str) -> Counter[str]:
    """How many of each outcome there are at a level."""
    return Counter(verdict.outcome for verdict in verdicts if verdict.opt == opt)

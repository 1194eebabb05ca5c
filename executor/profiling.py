"""Where the tokens of a run go: a trace in, counts for each function and line of the source out.

Every token belongs to the instruction that wrote it, and that to a line. What the library and the
compiler's own functions do is also charged to the call in the source that asked for it, so that
the lines of a program add up to its whole run.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from compiler import isa
from compiler.program import Program
from compiler.report import Kind, Owner, Site, sites
from executor.call import Call
from executor.config import AUTO
from executor.decode import Ids
from executor.job import ProgramSource, prepare
from executor.loading import ModelSource
from executor.runner import Limits, start
from executor.scan import CALL, RETURN, Scanner
from executor.trace import TraceError

Array = npt.NDArray[Any]
_NOBODY = -1
"""Charged for what runs before the source's own code."""


@dataclass(frozen=True)
class Counts:
    """``calls``: how often a function was called; 0 where it is inlined, and for lines.
    ``instructions``, ``tokens``: of its own. ``library``: tokens of what it calls in libraries, and
    of what the compiler adds for it."""

    calls: int = 0
    instructions: int = 0
    tokens: int = 0
    library: int = 0

    @property
    def total(self) -> int:
        """Its own tokens and the library's for it."""
        return self.tokens + self.library


@dataclass(frozen=True)
class FunctionProfile:
    """A function of the source, and what it took."""

    owner: Owner
    counts: Counts


@dataclass(frozen=True)
class LineProfile:
    """A line of the source, its text (empty if the file is not there), and what it took."""

    file: str
    line: int
    text: str
    counts: Counts


@dataclass(frozen=True)
class Profile:
    """What a run took.

    Attributes:
        program: its name.
        tokens, instructions: of the whole trace.
        uncharged: tokens of what runs before and after the source's own code.
        functions, lines: with any token, those with the most, in all, first.
    """

    program: str
    tokens: int
    instructions: int
    uncharged: int
    functions: tuple[FunctionProfile, ...]
    lines: tuple[LineProfile, ...]

    def as_json(self) -> dict[str, object]:
        """The same as values that JSON can hold."""
        return {
            "program": self.program,
            "tokens": self.tokens,
            "instructions": self.instructions,
            "uncharged": self.uncharged,
            "functions": [{**asdict(f.owner), **asdict(f.counts)} for f in self.functions],
            "lines": [
                {"file": line.file, "line": line.line, "text": line.text, **asdict(line.counts)}
                for line in self.lines
            ],
        }


class Profiler(Scanner):
    """A scanner that counts as it reads.

    Attributes:
        executed, tokens, entered: of each instruction, how often it was executed, the tokens that
            took, and the calls that went there.

    ``push`` costs some ten nanoseconds a token, and half a microsecond for each call.
    """

    def __init__(self, program: Program, vocabulary: tuple[str, ...]) -> None:
        super().__init__(vocabulary)
        self.program = program
        self.sites = sites(program)
        n = (len(program.tokens) - program.tokens.index(isa.OPEN) - 2) // isa.INSTRUCTION_TOKENS
        self.executed, self.tokens, self.entered = np.zeros((3, n), np.int64)
        own = [site.within.kind is Kind.SOURCE for site in self.sites]
        self._own = own or [True] * n
        self._debtors: list[int | None] = [None if n and self._own[0] else _NOBODY]
        self._debts: dict[int, int] = defaultdict(int)
        self._since = 0
        self._read_before = 0

    def _apply(self, ids: Array, at: Array, ends: Array) -> bool:
        cursors = self._cursors(ids, at, ends)
        if not super()._apply(ids, at, ends):
            return False
        index, rest = np.divmod(cursors[:-1], isa.INSTRUCTION_TOKENS)
        n = len(self.executed)
        if index.min() < 0 or index.max() >= n or rest.any():
            raise TraceError(f"{self.program.name}: the trace leaves the program")
        self.executed += np.bincount(index, minlength=n)
        lengths = np.diff(at, prepend=-1)
        self.tokens += np.bincount(index, lengths, n).astype(np.int64)
        self._follow_calls(index, cursors[1:], at + (self._read_before + 1), ends)
        self._read_before += int(at[-1]) + 1
        return True

    def _follow_calls(self, index: Array, following: Array, read: Array, ends: Array) -> None:
        """Charge what was read between calls and returns to who asked for it.

        ``following``: the cursor after each instruction; ``read``: the tokens up to its end.
        """
        jumps = np.flatnonzero((ends == CALL) | (ends == RETURN))
        targets = following.take(jumps) // isa.INSTRUCTION_TOKENS
        calling = ends.take(jumps) == CALL
        self.entered += np.bincount(targets[calling], minlength=len(self.entered))
        own, debtors, debts = self._own, self._debtors, self._debts
        rows = zip(
            calling.tolist(), index.take(jumps).tolist(), targets.tolist(),
            read.take(jumps).tolist(), strict=True,
        )  # fmt: skip
        for call, site, target, now in rows:
            debtor = debtors[-1]
            if debtor is not None:
                debts[debtor] += now - self._since
            self._since = now
            if not call:
                debtors.pop()
            elif own[target]:
                debtors.append(None)
            else:
                debtors.append(site if debtor is None else debtor)

    def profile(self) -> Profile:
        """What has been read so far."""
        debts = dict(self._debts)
        if (debtor := self._debtors[-1]) is not None:
            debts[debtor] = debts.get(debtor, 0) + self._read_before - self._since
        functions: dict[Owner, _Sum] = defaultdict(_Sum)
        lines: dict[_Line, _Sum] = defaultdict(_Sum)
        for index, site in enumerate(self.sites):
            if not self.executed[index]:
                continue
            executed, tokens = int(self.executed[index]), int(self.tokens[index])
            functions[site.owner].add(executed, tokens)
            functions[site.within].calls += int(self.entered[index])
            if site.asked is None:
                continue
            line = lines[_line(site)]
            if site.asked is site.owner:
                line.add(executed, tokens)
            for total in (line, functions[site.asked]):
                total.library += debts.get(index, 0) + tokens * (site.asked is not site.owner)
        by_function = [FunctionProfile(owner, total.counts()) for owner, total in functions.items()]
        by_line = [LineProfile(*line, total.counts()) for line, total in lines.items() if line[0]]
        return Profile(
            program=self.program.name,
            tokens=self.n_tokens,
            instructions=int(self.executed.sum()),
            uncharged=debts.get(_NOBODY, 0),
            functions=tuple(sorted(by_function, key=lambda row: -row.counts.total)),
            lines=tuple(sorted(by_line, key=lambda row: -row.counts.total)),
        )


_Line = tuple[str, int, str]


def _line(site: Site) -> _Line:
    """File, number and text of the line of an instruction; number 0 for code without one."""
    file = site.place.file or (site.asked.file if site.asked else "")
    return file, site.place.line, site.place.text


@dataclass
class _Sum:
    """Counts that grow."""

    calls: int = 0
    instructions: int = 0
    tokens: int = 0
    library: int = 0

    def add(self, instructions: int, tokens: int) -> None:
        self.instructions += instructions
        self.tokens += tokens

    def counts(self) -> Counts:
        return Counts(self.calls, self.instructions, self.tokens, self.library)


def profile(
    program: ProgramSource,
    args: Sequence[str] = (),
    stdin: bytes = b"",
    *,
    call: Call | None = None,
    model: ModelSource = None,
    engine: str = AUTO,
    max_tokens: int | None = None,
    max_memory: int | None = None,
) -> Profile:
    """Run a program inside the model and count where its tokens go.

    The arguments, and the errors raised, are those of :func:`executor.run`.
    """
    job = prepare(program, call)
    limits = Limits(max_tokens, max_memory)
    execution = start(job, args, stdin, model=model, engine=engine, limits=limits, keep_trace=False)
    return profile_of(job.program, execution.vocabulary, (c.ids for c in execution.chunks()))


def profile_of(program: Program, vocabulary: tuple[str, ...], chunks: Iterable[Ids]) -> Profile:
    """The profile of a trace, given in chunks of ids.

    Raises:
        TraceError: if it is none of this program.
    """
    profiler = Profiler(program, vocabulary)
    for ids in chunks:
        profiler.push(ids)
    return profiler.profile()

"""``--report``: where the tokens of a prompt or of a run go, as tables or as JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator

from compiler.errors import LimitError
from compiler.report import Kind, Owner, PromptReport
from executor.cli_run import trace_chunks
from executor.job import Job
from executor.profiling import Profile, Profiler
from executor.trace_file import unended

_LONGEST = 48
"""Characters of a name or a line that are shown."""
_MOST_ROWS = 30
"""Rows of a table that are shown; JSON has all."""


def trace_report(options: argparse.Namespace, job: Job) -> int:
    """The verb ``trace --report``: of a run, or of the trace in a file; at a limit up to there."""
    vocabulary, chunks = trace_chunks(options, job)
    profiler = Profiler(job.program, vocabulary)
    try:
        for ids in chunks:
            profiler.push(ids)
    except LimitError:
        print_report(profiler.profile(), options.json)
        raise
    if profiler.end is None:
        raise unended(options.trace, profiler.n_tokens)
    print_report(profiler.profile(), options.json)
    return 0


def print_report(report: PromptReport | Profile, as_json: bool) -> None:
    """To standard output."""
    print(json.dumps(report.as_json(), indent=1) if as_json else as_text(report))


def as_text(report: PromptReport | Profile) -> str:
    """The tables of a report."""
    lines = _prompt(report) if isinstance(report, PromptReport) else _profile(report)
    return "\n".join(line.rstrip() for line in lines)


def _prompt(report: PromptReport) -> Iterator[str]:
    kinds = ", ".join(f"{kind} {tokens:,}" for kind, tokens in report.by_kind.items())
    yield f"{'program':<10} {report.program}"
    yield f"{'entry':<10} {report.entry or 'the first instruction'}"
    yield f"{'memory':<10} {report.memory_bytes:,} bytes"
    yield f"{'prompt':<10} {report.tokens:,} tokens, behind the model's tables of {report.rom:,}"
    yield f"{'data':<10} {report.data:,} tokens"
    yield f"{'code':<10} {report.code:,} tokens{': ' if kinds else ''}{kinds}"
    if report.searches:
        yield f"{'searches':<10} {report.searches:,} of these, for br_table and indirect calls"
    if report.functions:
        yield ""
        yield f"{'tokens':>10} {'share':>7}  function"
        rows = (
            f"{row.tokens:>10,} {_share(row.tokens, report.tokens)}  {_owner(row.owner)}"
            for row in report.functions
        )
        yield from _cut(rows, len(report.functions))


def _profile(profile: Profile) -> Iterator[str]:
    whole = profile.tokens
    yield f"{'program':<10} {profile.program}"
    yield f"{'trace':<10} {whole:,} tokens, {profile.instructions:,} instructions"
    if profile.uncharged:
        yield f"{'start':<10} {profile.uncharged:,} of these, before and after the source's code"
    head = f"{'tokens':>12} {'in library':>12} {'share':>7}"
    if profile.functions:
        yield ""
        yield f"{head} {'calls':>9} {'instructions':>12}  function"
        rows = (
            f"{f.counts.tokens:>12,} {_some(f.counts.library):>12} {_share(f.counts.total, whole)} "
            f"{_some(f.counts.calls):>9} {f.counts.instructions:>12,}  {_owner(f.owner)}"
            for f in profile.functions
        )
        yield from _cut(rows, len(profile.functions))
    if profile.lines:
        yield ""
        yield f"{head} {'instructions':>12}  line"
        rows = (
            f"{row.counts.tokens:>12,} {_some(row.counts.library):>12} "
            f"{_share(row.counts.total, whole)} {row.counts.instructions:>12,}  "
            + (f"{row.file}:{row.line}  {_short(row.text)}" if row.line else f"{row.file}, no line")
            for row in profile.lines
        )
        yield from _cut(rows, len(profile.lines))


def _owner(owner: Owner) -> str:
    """A function, and who wrote it unless that is its file."""
    where = owner.file if owner.kind is Kind.SOURCE else str(owner.kind)
    return f"{_short(owner.function)}  {where}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."


def _some(number: int) -> str:
    return f"{number:,}" if number else "-"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:>7.1%}" if whole else ""


def _cut(rows: Iterable[str], count: int) -> Iterator[str]:
    """The first rows, and how many are left out."""
    for number, row in enumerate(rows):
        if number == _MOST_ROWS < count - 1:
            yield f"... and {count - number:,} more; --json has all"
            return
        yield row

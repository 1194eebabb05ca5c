"""``transputer run --batch``: many runs from a file of JSON lines, a JSON line for each result."""

from __future__ import annotations

import argparse
import base64
import contextlib
import json
import math
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from compiler.errors import UsageError
from executor.batch import BatchJob, BatchResult, Setup, stream_batch
from executor.call import parse_call
from executor.cli_run import c_options, read_file
from executor.process import say

_KEYS = {"file": str, "args": list, "stdin": str, "stdin_file": str, "call": str}
_NOT_FOR_BATCH = ("trace", "check", "checkpoint", "resume", "keep_source")
FAILED = 1


def batch_verb(options: argparse.Namespace) -> int:
    """Run all of a file; 0 if every program exits with 0, else 1."""
    for name in _NOT_FOR_BATCH:
        if getattr(options, name):
            raise UsageError(f"--{name.replace('_', '-')} is for a single run, not for --batch")
    if options.args or options.more:
        raise UsageError("with --batch the file's lines have the arguments, one program each")
    jobs = list(read_jobs(options))
    setup = Setup(
        options.model,
        options.engine,
        options.max_tokens,
        options.max_memory,
        keep_trace=False,
        options=c_options(options),
    )
    started, failed, tokens = time.monotonic(), 0, 0
    with contextlib.closing(stream_batch(jobs, setup, options.jobs, say)) as results:
        for job, result in zip(jobs, results, strict=True):
            print(json.dumps(_described(job, result)), flush=True)
            failed += result.exit_code != 0
            tokens += result.result.n_trace if result.result else 0
    if failed or sys.stderr.isatty():
        seconds = time.monotonic() - started
        say(f"{len(jobs)} runs, {failed} of them failed; {tokens:,} tokens in {seconds:.1f} s")
    return FAILED if failed else 0


def read_jobs(options: argparse.Namespace) -> Iterator[BatchJob]:
    """The jobs of a file of JSON lines; what a line does not say the command line does.

    Raises:
        UsageError: names the line that is wrong.
    """
    content = sys.stdin.buffer.read() if options.batch == "-" else read_file(options.batch)
    stdin = read_file(options.stdin) if options.stdin else b""
    try:
        lines = content.decode("utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise UsageError(f"{options.batch}: byte {error.start} is not UTF-8") from None
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield _job(_fields(line), options, stdin)
            except UsageError as error:
                raise UsageError(f"{options.batch}, line {number}: {error}") from None


def _fields(line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"no JSON ({error})") from None
    if isinstance(value, list):
        value = {"args": value}
    if not isinstance(value, dict):
        raise UsageError('expected an object like {"file": "gcd.c", "args": ["48", "36"]}')
    for name, given in value.items():
        if name not in _KEYS:
            raise UsageError(f"unknown key {name!r}; expected some of {', '.join(_KEYS)}")
        if not isinstance(given, _KEYS[name]):
            raise UsageError(f"{name!r} must be a {_KEYS[name].__name__}")
    if not all(isinstance(argument, str) for argument in value.get("args", ())):
        raise UsageError("arguments must be strings")
    if "stdin" in value and "stdin_file" in value:
        raise UsageError("'stdin' and 'stdin_file' are two inputs; leave out one")
    return value


def _job(fields: dict[str, Any], options: argparse.Namespace, stdin: bytes) -> BatchJob:
    program = fields.get("file", options.file)
    if program is None:
        raise UsageError("'file' is missing, and the command line names no program")
    if "stdin" in fields:
        stdin = fields["stdin"].encode("utf-8", "surrogatepass")
    elif "stdin_file" in fields:
        stdin = read_file(fields["stdin_file"])
    call = fields.get("call", options.call)
    args: Sequence[str] = fields.get("args", ())
    return BatchJob(Path(program), args, stdin, None if call is None else parse_call(call))


def _text(name: str, data: bytes) -> dict[str, object]:
    try:
        return {name: data.decode("utf-8")}
    except UnicodeDecodeError:
        return {f"{name}_base64": base64.b64encode(data).decode("ascii")}


def _described(job: BatchJob, result: BatchResult) -> dict[str, object]:
    """A result as a line of JSON; what is written and is no text as base64."""
    described: dict[str, object] = {"file": str(job.program), "args": list(job.args)}
    described["exit_code"] = result.exit_code
    described |= _text("output", result.output)
    if result.errors:
        described |= _text("errors", result.errors)
    if result.error is not None:
        described["error"] = str(result.error)
    if result.result is not None:
        described["tokens"] = result.result.n_trace
        if result.result.trap is not None:
            described["trap"] = result.result.trap
        if job.call is not None:
            value = result.result.value
            finite = not isinstance(value, float) or math.isfinite(value)
            described["value"] = value if finite else str(value)  # JSON has no infinity
    return described

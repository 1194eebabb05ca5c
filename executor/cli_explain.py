"""``transputer explain``: what went on inside the model where a token was written."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator

import numpy as np

from compiler.errors import UsageError
from executor.checkpoint import Checkpoint
from executor.cli_machine import own_machine, start_machine
from executor.cli_run import compile_job, read_input
from executor.cli_where import Span, Spans
from executor.inside.data import as_data
from executor.inside.explanation import Explanation
from executor.inside.forward import TOP
from executor.inside.record import Enough, Record, record_machine, record_run, record_trace
from executor.inside.text import Line, View, describe
from executor.loading import open_checkpoint
from executor.process import PIPED, WIDEST, patience, say, screen_width
from executor.progress import ProgressLine
from executor.replay import DIVISION_TOKENS
from executor.runner import Limits
from executor.trace_file import read_ids

LONGEST = DIVISION_TOKENS
"""Most tokens of an instruction."""
MOST = 4096
"""Positions that can be explained at once."""


def explain_verb(options: argparse.Namespace) -> int:
    """Run or read the trace, then look inside where the options say."""
    record = _record(options)
    if record.limit:
        say(record.limit)
    positions = _positions(options, record)
    if len(positions) > MOST:
        raise UsageError(f"{len(positions):,} tokens at once; {MOST:,} are the most")
    view = _view(options, record.checkpoint)
    _check_picture(options, record.checkpoint, positions)
    top = TOP if options.top is None else max(options.top, 1)
    length = max(positions) + 1
    with patience(f"computing all {length:,} positions, layer by layer"):
        explanation = record.explain(positions, top)
    if options.picture:
        return _draw(options, explanation, positions[0])
    if options.json:
        for position in positions:
            print(json.dumps(as_data(explanation, position)))
    else:
        _show(_pages(explanation, positions, view))
    return 0


def _record(options: argparse.Namespace) -> Record:
    progress = ProgressLine()
    machine = own_machine(options)
    try:
        if machine is not None:
            return _machine_record(options, machine, progress)
        return _program_record(options, progress)
    finally:
        progress.hide()


def _machine_record(
    options: argparse.Namespace, checkpoint: Checkpoint, progress: ProgressLine
) -> Record:
    run, vocabulary = start_machine(options, checkpoint), checkpoint.vocabulary
    if options.trace:
        tokens = np.concatenate((np.array(run.prompt), *read_ids(options.trace, vocabulary)))
        return Record(checkpoint, tokens.astype(np.int64), len(run.prompt))
    needed = _tokens_needed(options)
    return record_machine(run, lambda n: needed is not None and n >= needed, progress.tick)


def _program_record(options: argparse.Namespace, progress: ProgressLine) -> Record:
    job = compile_job(options)
    checkpoint = open_checkpoint(options.model, "softmax" if options.engine == "torch" else "hard")
    stdin = read_input(options.stdin, job.program)
    if options.trace:
        ids = read_ids(options.trace, checkpoint.vocabulary)
        return record_trace(job, checkpoint, options.args, stdin, ids, _enough(options))
    return record_run(
        job,
        checkpoint,
        options.args,
        stdin,
        engine=options.engine,
        limits=Limits(options.max_tokens, options.max_memory),
        enough=_enough(options),
        watch=progress.tick,
        say=say,
    )


def _enough(options: argparse.Namespace) -> Enough:
    """When a run has gone far enough; never where that cannot be said beforehand."""
    tokens, output = _tokens_needed(options), _farthest(options.output or ())
    if tokens is None or output is None:
        return lambda scanner: False
    return lambda scanner: scanner.n_tokens >= tokens and len(scanner.output) >= output


def _tokens_needed(options: argparse.Namespace) -> int | None:
    """Tokens of trace that are enough to find what is asked for, output apart; None for all."""
    asked = {
        1: (*(options.at or _default(options)), *(options.position or ())),
        LONGEST: options.instruction or (),
    }
    found = [(tokens, _farthest(spans)) for tokens, spans in asked.items()]
    if any(farthest is None for _, farthest in found):
        return None
    return max(tokens * (farthest or 0) for tokens, farthest in found)


def _default(options: argparse.Namespace) -> Spans:
    """What is explained if nothing is asked for: the last token."""
    others = options.instruction or options.output or options.position
    return () if others else (Span(-1, None, single=True),)


def _farthest(asked: Spans) -> int | None:
    """How many tokens or bytes these spans need; None for all."""
    farthest = 0
    for span in asked:
        last = span.start if span.single else span.stop
        if last is None or last < 0 or (span.start or 0) < 0:
            return None
        farthest = max(farthest, last + span.single)
    return farthest


def _positions(options: argparse.Namespace, record: Record) -> list[int]:
    """The positions at which the tokens that are asked for are written, in order."""
    found: set[int] = set()
    for span in options.at or _default(options):
        found.update(record.position(n) for n in span.of(record.n_trace, "token of the trace"))
    for span in options.position or ():
        found.update(span.of(len(record.tokens), "position"))
    context = record.context
    if context is not None:
        for span in options.instruction or ():
            for step in span.of(len(context.ends), "executed instruction"):
                found.update(position - 1 for position in context.tokens_of(step))
        written = context.outputs
        for span in options.output or ():
            found.update(written[k] - 1 for k in span.of(len(written), "byte of output"))
    return sorted(found)


def _view(options: argparse.Namespace, checkpoint: Checkpoint) -> View:
    layer, head = options.head or (options.layer, None)
    if options.head and options.layer not in (None, layer):
        raise UsageError("--layer and --head name different layers")
    _check_head(checkpoint, layer, head)
    width = min(screen_width() or PIPED, WIDEST)
    return View(width, options.all, layer, head)


def _check_picture(
    options: argparse.Namespace, checkpoint: Checkpoint, positions: list[int]
) -> None:
    """Say what is wrong before the work is done."""
    if options.hull and not options.picture:
        raise UsageError("--hull is drawn into a file: --picture FILE.svg")
    if not options.picture:
        return
    from compiler.draw import load_pyplot, picture_path

    picture_path(options.picture)
    load_pyplot()
    if len(positions) > 1:
        raise UsageError(f"a picture shows one token, these are {len(positions):,}")
    if options.hull:
        _check_head(checkpoint, *options.hull)


def _draw(options: argparse.Namespace, explanation: Explanation, position: int) -> int:
    from executor.inside.picture import draw_attention, draw_hull

    if options.hull:
        layer, head = options.hull
        draw_hull(explanation, position, layer, head, options.picture)
    else:
        draw_attention(explanation, position, options.picture)
    return 0


def _check_head(checkpoint: Checkpoint, layer: int | None, head: int | None) -> None:
    config = checkpoint.config
    if layer is not None and layer >= config.n_layers:
        raise UsageError(f"no layer {layer}: this model's are 0 to {config.n_layers - 1}")
    if head is not None and head >= config.n_heads:
        raise UsageError(f"no head {head}: each layer's are 0 to {config.n_heads - 1}")


def _pages(explanation: Explanation, positions: Iterable[int], view: View) -> Iterator[Line]:
    for number, position in enumerate(positions):
        if number:
            yield Line("")
        yield from describe(explanation, position, view)


def _show(lines: Iterable[Line]) -> None:
    """Plain where it is piped; in rich's colours, which NO_COLOR turns off, on a terminal."""
    if not sys.stdout.isatty():
        for line in lines:
            print(line.text)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for line in lines:
        console.print(Text(line.text, style=line.style))

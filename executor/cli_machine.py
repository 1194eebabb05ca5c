"""``transputer run`` and ``explain`` for a machine of somebody's own."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from compiler.errors import UsageError
from executor.checkpoint import Checkpoint
from executor.loading import open_checkpoint
from executor.machine_run import PATIENCE, MachineRun
from executor.process import Interrupts, say
from executor.progress import ProgressLine
from executor.runner import ASKED
from executor.trace_file import STDOUT, TraceFile

PROGRAMS_ONLY = (
    ("stdin", "--stdin"), ("call", "--call"), ("check", "--check"), ("checkpoint", "--checkpoint"),
    ("resume", "--resume"), ("max_memory", "--max-memory"), ("more", "--with"),
    ("instruction", "--instruction"), ("output", "--output"),
)  # fmt: skip
"""Options that mean nothing to a machine of somebody's own."""


def own_machine(options: argparse.Namespace) -> Checkpoint | None:
    """The model that ``--model`` names, if it is a machine of somebody's own; else None, and
    ``options.model`` is loaded.

    Raises:
        UsageError: if what is there to run is not for this kind of model.
    """
    if options.model is not None:
        options.model = open_checkpoint(options.model)
        if options.model.config.prompts == "tokens":
            checkpoint: Checkpoint = options.model
            return checkpoint
    if options.prompt is not None:
        raise UsageError("--prompt is for a machine of your own: --model DIR names it")
    if options.file is None:
        verb = options.verb
        raise UsageError(f"{verb} what? a program file is missing (see transputer {verb} --help)")
    return None


def start_machine(options: argparse.Namespace, checkpoint: Checkpoint) -> MachineRun:
    """A run of such a machine on the prompt that the options give, not yet begun."""
    for name, option in PROGRAMS_ONLY:
        if getattr(options, name, None):
            raise UsageError(f"{option} is for models that run programs; this one reads tokens")
    return MachineRun(
        checkpoint,
        _prompt(options),
        engine=options.engine,
        max_tokens=options.max_tokens or PATIENCE,
        limit_words=ASKED if options.max_tokens else _patience(checkpoint),
        keep_source=None if options.keep_source is None else Path(options.keep_source),
        say=say,
    )


def _patience(checkpoint: Checkpoint) -> str:
    """Why a run ends for which nobody said how long it may be."""
    none = "none of them a stop token" if checkpoint.config.stop_tokens else "it has no stop token"
    return f"{none}; --max-tokens N lets it write more"


def run_machine(options: argparse.Namespace, checkpoint: Checkpoint) -> int:
    """The verb ``run`` for such a model: prints what it writes; 0 at its stop token."""
    run = start_machine(options, checkpoint)
    config = checkpoint.config
    ends = [token in config.stop_tokens for token in range(config.vocab_size)]
    file = None if options.trace == STDOUT else options.trace
    progress = ProgressLine()
    with (
        Interrupts() as interrupts,
        TraceFile(file, checkpoint.vocabulary, ends) as trace,
    ):
        try:
            for text in _texts(run, trace, progress):
                progress.hide(text.encode())
                sys.stdout.write(text)
                sys.stdout.flush()
                interrupts.check()
        finally:
            progress.hide()
            if run.n_tokens:
                print(flush=True)
    return 0


def _texts(run: MachineRun, trace: TraceFile, progress: ProgressLine) -> Iterator[str]:
    """What to print, with a space between two tokens."""
    vocabulary, gap = run.checkpoint.vocabulary, ""
    for ids in run.chunks():
        trace.write(ids)
        if len(ids):
            yield gap + " ".join(vocabulary[token] for token in ids.tolist())
            gap = " "
        progress.tick(run.n_tokens, reading=run.n_tokens == 0)


def _prompt(options: argparse.Namespace) -> str:
    """The tokens: ``--prompt``, a file of them, or standard input for ``-``."""
    if options.args:
        raise UsageError("a machine of your own takes no arguments, only a prompt")
    if options.prompt is not None and options.file is not None:
        raise UsageError("a prompt and a file of tokens: leave out one of the two")
    if options.prompt not in (None, STDOUT):
        return str(options.prompt)
    if options.prompt == STDOUT:
        options.file = "-"
    if options.file is None:
        raise UsageError(
            f'this model reads tokens: {options.verb} --model DIR --prompt "...", or a file, or - '
            "for standard input"
        )
    from compiler.frontend import SUFFIXES

    if Path(options.file).suffix in SUFFIXES:
        raise UsageError(f"{options.file} is a program; this model reads tokens of its own")
    try:
        if options.file == "-":
            return sys.stdin.read()
        return Path(options.file).read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{options.file}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{options.file}: not a text of tokens") from None

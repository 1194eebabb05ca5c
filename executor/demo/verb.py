"""The verb ``demo``: the scene that the options ask for, on a terminal, as text, as a recording."""

from __future__ import annotations

import argparse
import math
import os
import sys

from rich.console import Console

from compiler.errors import UsageError
from executor.demo import hungarian, sudoku
from executor.demo.scene import Scene
from executor.demo.screen import Screen, compact, compose, joined
from executor.demo.stage import Pacing, Show
from executor.demo.svg import Recording
from executor.files import PendingFile

RECORDED = 80, 24
"""Columns and lines of a recording."""
SPEEDS = {"sudoku": 1_500_000.0, "hungarian": 80_000.0}
"""Tokens a second that are shown, so that the default input takes some seconds."""


def demo_verb(options: argparse.Namespace) -> int:
    """Show one demonstration, or check a whole collection; the exit code."""
    if options.all:
        from executor.demo.many import check_all

        return check_all(options)
    scene = make_scene(options)
    speed = options.speed or SPEEDS[options.demo]
    pacing = Pacing(options.fps, None if speed == math.inf else speed)
    view = _perform if is_live(options.plain) else _print
    if options.record is None:
        view(Show(scene), pacing, None)
        return 0
    recording = Recording(*RECORDED, pacing.seconds)
    pending = PendingFile(options.record)  # now, not after the show, if it cannot be written
    try:
        show = Show(scene)
        view(show, pacing, recording)
        recording.add(compose(show, *RECORDED), last=True)
        pending.file.write(recording.text().encode())
    except BaseException:
        pending.discard()
        raise
    pending.keep()
    return 0


def make_scene(options: argparse.Namespace) -> Scene:
    """The scene for the input that the options name. Raises UsageError if that makes no sense."""
    if options.demo == "sudoku":
        return sudoku.SudokuScene(
            sudoku.read_puzzle(sudoku.HARDEST if options.puzzle is None else options.puzzle)
        )
    if options.count is not None:
        raise UsageError("--count goes with --all")
    if options.random is None and options.seed is not None:
        raise UsageError("--seed goes with --random or --all")
    if options.random is not None and options.matrix is not None:
        raise UsageError("either a matrix or --random")
    if options.random is not None:
        return hungarian.HungarianScene(hungarian.random_matrix(options.random, options.seed or 0))
    text = str(hungarian.DEFAULT) if options.matrix is None else options.matrix
    return hungarian.HungarianScene(hungarian.read_matrix(text))


def is_live(plain: bool) -> bool:
    """Whether standard output is a terminal on which a picture can be redrawn."""
    terminal = os.environ.get("TERM", "") not in ("", "dumb", "unknown")
    return not plain and terminal and sys.stdout.isatty()


def _perform(show: Show, pacing: Pacing, recording: Recording | None) -> None:
    """The live view; at its end the last picture stays."""
    console = Console(highlight=False)
    seconds = 0.0 if pacing.tokens is None else pacing.seconds
    with Screen(console, pacing.seconds / 2 if seconds else pacing.seconds) as screen:
        for _ in show.frames(pacing.tokens, seconds):
            screen.draw(show)
            if recording is not None:
                recording.add(compose(show, *RECORDED))
    show.scene.answer(show.result())
    console.print(joined(compact(show, console.width), console))


def _print(show: Show, pacing: Pacing, recording: Recording | None) -> None:
    """Question, answer and counters as text, without waiting."""
    print(show.scene.question(), flush=True)
    for _ in show.frames(None if recording is None else pacing.tokens):
        if recording is not None:
            recording.add(compose(show, *RECORDED))
    answer = show.scene.answer(show.result())
    print(f"{answer}\n{show.scene.counters()}\n{show.rate()}", flush=True)

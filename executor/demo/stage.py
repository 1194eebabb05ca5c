"""Runs a scene inside the model: at the engine's speed, or in steps that a viewer can follow.

The engine decodes chunk by chunk; what is shown goes through them in pieces of so many tokens a
picture, at most a chunk behind.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from executor.decode import Ids
from executor.demo.scene import Scene
from executor.loading import open_checkpoint
from executor.process import Interrupts, say
from executor.runner import Execution, RunResult
from executor.watch import MemoryWatch

PATIENCE = 0.05
"""Longest sleep, in seconds, before Ctrl-C is seen."""


@dataclass(frozen=True)
class Pacing:
    """How fast a scene goes by.

    Attributes:
        fps: pictures a second, at most.
        speed: tokens a second; None for as fast as the model writes.
    """

    fps: float
    speed: float | None = None

    @property
    def tokens(self) -> int | None:
        """Tokens from one picture to the next; None for what comes in that time."""
        return None if self.speed is None else max(1, round(self.speed / self.fps))

    @property
    def seconds(self) -> float:
        """From one picture to the next: longer than 1 / fps where tokens are slower."""
        tokens = self.tokens
        return 1 / self.fps if tokens is None or self.speed is None else tokens / self.speed


def pieces(chunks: Iterable[Ids], length: int) -> Iterator[Ids]:
    """The same ids in pieces of one length, the last one possibly shorter."""
    rest: list[Ids] = []
    held = 0
    for ids in chunks:
        rest.append(ids)
        held += len(ids)
        if held >= length:
            joined = np.concatenate(rest)
            for at in range(0, held - held % length, length):
                yield joined[at : at + length]
            rest, held = [joined[held - held % length :]], held % length
    if held:
        yield np.concatenate(rest)


class Show:
    """One scene and its run.

    Attributes:
        scene: what is drawn; up to date after each frame.
        watch: the memory at the frame.
        model_seconds: time that the model has taken to write.
    """

    def __init__(self, scene: Scene) -> None:
        """Compiles the program and loads the default machine. Raises TransputerError."""
        self.scene = scene
        program = scene.task.compiled()
        self._execution = Execution(
            program,
            open_checkpoint(None),
            program.input_tokens(scene.task.args, scene.task.stdin),
            keep_trace=False,
            say=say,
        )
        scene.begin(program)
        self.watch = MemoryWatch(program, self._execution.vocabulary)
        self.model_seconds = 0.0

    def result(self) -> RunResult:
        """After the last frame."""
        return self._execution.result()

    def rate(self) -> str:
        """Tokens so far, and how many the model writes in a second."""
        shown = f"{self.watch.n_tokens:,} tokens"
        if not self.model_seconds:
            return shown
        speed = self._execution.reader.n_tokens / self.model_seconds
        return f"{shown}   model {speed:,.0f} tokens/s"

    def frames(self, tokens: int | None = None, seconds: float = 0.0) -> Iterator[None]:
        """Run to the end; yields whenever the scene has something new to draw, and once before.

        Args:
            tokens: from one frame to the next; None for as many as the engine writes at once.
            seconds: least time from one frame to the next.

        Raises:
            KeyboardInterrupt: between two frames.
        """
        with Interrupts() as interrupts:
            yield
            chunks = self._chunks(interrupts)
            due = time.monotonic()
            for ids in chunks if tokens is None else pieces(chunks, tokens):
                self.watch.push(ids)
                self.scene.look(self.watch)
                yield
                due += seconds
                _sleep_until(due, interrupts)

    def _chunks(self, interrupts: Interrupts) -> Iterator[Ids]:
        began = time.perf_counter()
        for chunk in self._execution.chunks():
            interrupts.check()
            if len(chunk.ids):
                self.model_seconds += time.perf_counter() - began
                yield chunk.ids
            began = time.perf_counter()


def _sleep_until(due: float, interrupts: Interrupts) -> None:
    while (left := due - time.monotonic()) > 0:
        time.sleep(min(left, PATIENCE))
        interrupts.check()
    interrupts.check()

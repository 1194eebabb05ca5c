"""Going to a place in a trace without following every step: chunks of ids in, a replay there out.

What comes before is read by :class:`executor.watch.MemoryWatch`, some ten nanoseconds a token, and
forgotten; the operand stack, the calls, the memory and the next instruction are known all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from compiler.errors import UsageError
from compiler.program import Program
from executor.decode import Ids
from executor.replay import Replay, Step
from executor.watch import MemoryWatch


@dataclass(frozen=True)
class Part:
    """Which part of a run to show.

    Attributes:
        token: begin with the instruction that writes this token of the trace, or
        step: with the executed instruction of this number; the beginning if neither is given.
        count: how many instructions; None for all.
    """

    token: int | None = None
    step: int | None = None
    count: int | None = None


class Excerpt:
    """The steps of a part of a trace; iterate over it once.

    Attributes:
        state: the replay, which has gone as far as the steps that were asked for.
    """

    def __init__(
        self, program: Program, vocabulary: tuple[str, ...], chunks: Iterable[Ids], part: Part
    ) -> None:
        """Reads up to where the part begins.

        Raises:
            UsageError: if the trace has no such place.
            TraceError: if it is none, or none of this program.
        """
        self._part = part
        watch = MemoryWatch(program, vocabulary)
        rest, n_steps = _skip(watch, iter(chunks), part)
        self.state = Replay(program, watch, n_steps)
        tokens = (vocabulary[token] for ids in rest for token in ids.tolist())
        self._steps = self.state.steps(tokens)

    def __iter__(self) -> Iterator[Step]:
        part, reader, empty = self._part, self.state.reader, True
        for step in islice(self._steps, part.count):
            yield step
            empty = False
        if not empty or part.count == 0:
            return
        beyond = part.token is not None and part.token >= reader.n_tokens
        if beyond or (part.step is not None and not reader.pending):
            raise UsageError(
                f"the trace has {reader.n_tokens:,} tokens, of {self.state.n_steps:,} instructions"
            )

    @property
    def unended(self) -> bool:
        """Whether all was to be shown up to the end, and the trace has none."""
        return self._part.count is None and self.state.reader.end is None


def _skip(watch: MemoryWatch, chunks: Iterator[Ids], part: Part) -> tuple[Iterator[Ids], int]:
    """Read whole instructions up to the wanted one; what follows, and how many were read."""
    held, n_steps = np.zeros(0, np.int32), 0
    if part.token is None and part.step is None:
        return chunks, 0
    for ids in chunks:
        held = np.concatenate((held, ids))
        ends = watch.steps_in(held)[0] + 1
        wanted = len(ends)
        if part.token is not None:
            wanted = int(np.searchsorted(ends, part.token - watch.n_tokens, "right"))
        if part.step is not None:
            wanted = min(wanted, part.step - n_steps)
        done = int(ends[wanted - 1]) if wanted else 0
        watch.push(held[:done])
        held, n_steps = held[done:], n_steps + wanted
        if wanted < len(ends):
            break
    return _joined(held, chunks), n_steps


def _joined(first: Ids, others: Iterator[Ids]) -> Iterator[Ids]:
    yield first
    yield from others

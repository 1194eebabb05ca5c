"""Standard input from a terminal, line by line, while the program runs.

All input stands in the prompt, before the trace. So a program that comes to the end of what has
been typed is left there, and the next line starts it again from the beginning: it does the same up
to that point, and what it wrote up to there is not shown again. The run that counts is the last
one, with all that was typed in its prompt.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import numpy as np

from compiler import isa
from compiler.program import Program
from executor.oracle_code import decode_prompt
from executor.process import PATIENCE_TERMINAL, say, write_error
from executor.progress import ProgressLine
from executor.runner import Execution
from executor.scan import CALL, Array, Scanner, Written

ARGUMENT_READERS = frozenset(
    {"__main_void", "(args_get)", "(args_sizes_get)", "(arguments)", "(pass_arguments)"}
)
"""Functions of the C libraries and of the linked WASI that read arguments, not standard input."""
_END = 0xFFFFFFFF
"""What an ``input`` at the end gives: -1."""


def reads_input(program: Program) -> bool:
    """Whether a program can read standard input; arguments are input too, but not that."""
    if "input" not in program.tokens:
        return False
    instructions = decode_prompt(program).instructions
    if len(program.origins) != len(instructions):
        return True
    return any(
        name == "input" and origin.function not in ARGUMENT_READERS
        for (name, _), origin in zip(instructions, program.origins, strict=True)
    )


class Display:
    """Shows what a program writes, each byte once although it may be run several times.

    Attributes:
        progress: the progress line that gives way to it.
        line_start: nothing has been written since the last end of a line.
    """

    def __init__(self, *, output: bool = True) -> None:
        """Args:
        output: whether standard output is shown.
        """
        self.progress = ProgressLine()
        self.line_start = True
        self._output = output
        self._shown = dict.fromkeys((isa.STANDARD_OUTPUT, isa.STANDARD_ERROR), 0)
        self._seen = dict(self._shown)

    def restart(self) -> None:
        """The program begins again."""
        self.progress.restart(PATIENCE_TERMINAL)
        self._seen = dict.fromkeys(self._seen, 0)

    def show(self, written: tuple[Written, ...]) -> None:
        """Show what of this has not been shown."""
        for stream, data in written:
            new = data[max(self._shown[stream] - self._seen[stream], 0) :]
            self._seen[stream] += len(data)
            self._shown[stream] = max(self._shown[stream], self._seen[stream])
            if new:
                self._write(stream, new)

    def _write(self, stream: int, data: bytes) -> None:
        if stream == isa.STANDARD_ERROR:
            self.progress.hide(data, errors=True)
            write_error(data)
        elif self._output:
            self.progress.hide(data)
            sys.stdout.buffer.write(data)
            sys.stdout.buffer.flush()
        self.line_start = data.endswith(b"\n")


class EndWatch(Scanner):
    """A scanner that stops following where the program finds the end of its input.

    Attributes:
        found_end: it has; what the model writes from there on is not followed.
    """

    def __init__(self, program: Program, vocabulary: tuple[str, ...]) -> None:
        super().__init__(vocabulary, program.error_outputs())
        names = [name for name, _ in decode_prompt(program).instructions]
        places = [number for number, name in enumerate(names) if name == "input"]
        self._inputs = np.array(places, np.int64) * isa.INSTRUCTION_TOKENS
        self.found_end = False

    def _apply(self, ids: Array, at: Array, ends: Array) -> bool:
        inputs = np.flatnonzero(
            np.isin(self._cursors(ids, at, ends)[:-1], self._inputs) & (ends < CALL)
        )
        found = inputs[self._values(ids, at.take(inputs)) == _END]
        if not len(found):
            return super()._apply(ids, at, ends)
        self.found_end = True
        before = int(found[0])
        return before == 0 or super()._apply(ids, at[:before], ends[:before])


def converse(
    begin: Callable[[bytes], Execution], program: Program, display: Display
) -> tuple[bytes, Execution | None]:
    """Run a program on the lines that are typed at the terminal.

    Args:
        begin: makes an execution, given all of its input.

    Returns:
        All that was typed; and the finished execution, or None if the end of the input was typed
        and the program has not been told yet.
    """
    typed, told = b"", False
    while True:
        execution = begin(typed)
        execution.reader = watch = EndWatch(program, execution.vocabulary)
        display.restart()
        for chunk in execution.chunks():
            display.show(chunk.written)
            display.progress.tick(watch.n_tokens)
            if watch.found_end:
                break
        display.progress.hide()
        if not watch.found_end:
            return typed, execution
        if display.line_start and not told:
            say("waiting for input; Ctrl-D ends it")
        told = True
        line = sys.stdin.buffer.readline()
        if not line:
            return typed, None
        typed += line

"""A process that makes the specialised engine of a model, for the cache, and ends.

In: the model, pickled, on standard input, which is a file without a name; the name of a file that
is locked until this ends. Out: code and library in the cache; one line on standard error and an
exit code if they could not be made.
"""

from __future__ import annotations

import contextlib
import pickle
import sys
from pathlib import Path

from compiler.errors import TransputerError
from executor.native.engine import NativeEngine


def main() -> None:
    """See above."""
    checkpoint, problems = pickle.load(sys.stdin.buffer), [""]
    try:
        NativeEngine(checkpoint, say=problems.append)
    except TransputerError as error:
        problems.append(str(error))
    with contextlib.suppress(OSError):
        Path(sys.argv[2]).unlink()  # somebody who still opens it locks it in vain
    if NativeEngine.kept(checkpoint) is None:
        sys.exit(problems[-1])

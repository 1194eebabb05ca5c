"""``explain``: the inside of the model where it writes some token of a program's run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from executor.call import Call
from executor.decode import AUTO
from executor.inside.explanation import Explanation
from executor.inside.forward import TOP
from executor.inside.record import record_run, record_trace
from executor.job import ProgramSource, prepare
from executor.loading import ModelSource, open_checkpoint
from executor.runner import Limits


def explain(
    program: ProgramSource,
    args: Sequence[str] = (),
    stdin: bytes = b"",
    *,
    at: int | Iterable[int] = -1,
    trace: Iterable[str] | None = None,
    call: Call | None = None,
    model: ModelSource = None,
    engine: str = AUTO,
    max_tokens: int | None = None,
    top: int = TOP,
) -> Explanation:
    """Run a program, or read its trace, and look at how some tokens came to be written.

    >>> from executor import explain
    >>> found = explain("programs/add.tok", at=10)  # 3 + 5: the byte 08
    >>> found.spelling(int(found.positions[0]) + 1)
    '08'
    >>> names = found.names.heads[2]
    >>> found.layers[2].attention.values[0, names.index("top")].tolist()[1]
    5.0

    Args:
        program, args, stdin, call, engine, max_tokens: see :func:`executor.run`.
        at: which tokens of the trace, from 0, or from its end if negative.
        trace: the tokens of a run that is over; None to run now.
        model: a loaded model, the folder of one, or None for the default machine.
        top: how many of the greatest logits to keep.

    Raises:
        UsageError: if there is no such token in the trace.
        TransputerError: as from :func:`executor.run`; a run that reaches a limit is explained.
    """
    job = prepare(program, call)
    checkpoint = open_checkpoint(model, "softmax" if engine == "torch" else "hard")
    wanted = [at] if isinstance(at, int) else list(at)
    if trace is not None:
        ids = np.array(checkpoint.encode(trace), np.int32)
        record = record_trace(job, checkpoint, args, stdin, [ids])
    else:
        needed = None if not wanted or min(wanted) < 0 else max(wanted) + 1
        record = record_run(
            job,
            checkpoint,
            args,
            stdin,
            engine=engine,
            limits=Limits(max_tokens),
            enough=lambda scanner: needed is not None and scanner.n_tokens >= needed,
        )
    return record.explain([record.position(number) for number in wanted], top)

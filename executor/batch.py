"""Many runs at once: programs in, results in the same order out, on all cores.

Every run happens in one of a few worker processes (:mod:`executor.batch_worker`). So a run that
fails, that is killed or that breaks its process ends alone; limits of memory are each run's own;
and Python's part of a run, which follows the trace, is no bottleneck, as it would be for threads.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Unpack

from compiler.errors import LimitError, TransputerError, UsageError
from compiler.options import COptions
from executor.call import Call
from executor.config import AUTO
from executor.decode import check_engine, make_engine
from executor.job import ProgramSource, prepare
from executor.loading import ModelSource, open_checkpoint
from executor.process import cores
from executor.runner import ERROR_EXIT, LIMIT_EXIT, RunResult

LENGTH_BYTES = 8
PATIENCE_SECONDS = 10.0
"""Until a worker that has closed its output is killed."""
_START = (
    "import sys; sys.path.insert(0, sys.argv[1]); from executor.batch_worker import main; main()"
)
_ONE_THREAD = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class BatchJob:
    """One run of a batch: the arguments of :func:`executor.run`."""

    program: ProgramSource
    args: Sequence[str] = ()
    stdin: bytes = b""
    call: Call | None = None


@dataclass(frozen=True)
class BatchResult:
    """What became of one job.

    Attributes:
        result: of a run that came to its end, by a trap too; else None.
        error: why it did not; else None.
        output, errors: the bytes that the program wrote to standard output and standard error, up
            to an error of ours too.
    """

    result: RunResult | None
    error: TransputerError | None
    output: bytes = b""
    errors: bytes = b""

    @property
    def exit_code(self) -> int:
        """As of ``transputer run``: the program's own, 134 after a trap, 124 at a limit, else
        125."""
        if self.result is not None:
            return self.result.exit_code
        return LIMIT_EXIT if isinstance(self.error, LimitError) else ERROR_EXIT


@dataclass(frozen=True)
class Setup:
    """What is the same for all jobs; a worker hears it first."""

    model: ModelSource
    engine: str
    max_tokens: int | None
    max_memory: int | None
    keep_trace: bool
    options: COptions = field(default_factory=COptions)


def run_batch(
    programs: Iterable[BatchJob | ProgramSource],
    *,
    jobs: int | None = None,
    model: ModelSource = None,
    engine: str = AUTO,
    max_tokens: int | None = None,
    max_memory: int | None = None,
    keep_trace: bool = False,
    **options: Unpack[COptions],
) -> list[BatchResult]:
    """Run programs side by side, each to its end; results in the order of the programs.

    A failing run is a result like others: nothing is raised for it, and the others go on.

    >>> jobs = [BatchJob("programs/gcd.c", args=[str(n), "36"]) for n in range(100)]
    >>> [r.exit_code for r in run_batch(jobs)]  # doctest: +SKIP

    Args:
        programs: what :func:`executor.run` takes, or jobs with arguments and input.
        jobs: how many run at once; None for as many as there are cores.
        model, engine: as for ``run``.
        max_tokens, max_memory: of each run; memory is that of a run's process.
        keep_trace: whether the results have their traces.
        options: for C and C++, see ``compile_program``.

    Raises:
        UsageError, TransputerError: for a model or engine that does not work.
    """
    setup = Setup(model, engine, max_tokens, max_memory, keep_trace, options)
    return list(stream_batch(programs, setup, jobs))


def stream_batch(
    programs: Iterable[BatchJob | ProgramSource],
    setup: Setup,
    jobs: int | None = None,
    say: Callable[[str], None] = warnings.warn,
) -> Generator[BatchResult, None, None]:
    """The same one by one, each as soon as it and those before are there.

    Left early, by Ctrl-C say, it stops what still runs.
    """
    todo = [job if isinstance(job, BatchJob) else BatchJob(job) for job in programs]
    if jobs is not None and jobs < 1:
        raise UsageError(f"{jobs} runs at once: expected one or more")
    if not todo:
        return
    setup, vocabulary = _ready(setup, todo[0], say)
    pool = _Pool(setup, todo, min(jobs or cores(), len(todo)))
    try:
        for result in pool.results():
            run = result.result
            yield (
                result
                if run is None
                else replace(result, result=replace(run, _vocabulary=vocabulary))
            )
    finally:
        pool.stop()


def _ready(
    setup: Setup, first: BatchJob, say: Callable[[str], None]
) -> tuple[Setup, tuple[str, ...]]:
    """Compile once what all workers need: the engine, and the library of the first program."""
    from executor.hull_engine import HullEngine

    checkpoint = open_checkpoint(setup.model, "softmax" if setup.engine == "torch" else "hard")
    check_engine(setup.engine, checkpoint)
    if setup.engine in (AUTO, "native"):
        engine = make_engine(setup.engine, checkpoint, say=say)
        setup = replace(setup, engine="hull" if isinstance(engine, HullEngine) else "native")
    with contextlib.suppress(TransputerError):  # its worker will tell
        prepare(first.program, first.call, **setup.options)
    return setup, checkpoint.vocabulary


class _Pool:
    """Worker processes, and a thread for each that hands it one job after the other."""

    def __init__(self, setup: Setup, todo: Sequence[BatchJob], size: int) -> None:
        self._setup = setup
        self._todo = iter(enumerate(todo))
        self._count = len(todo)
        self._lock = threading.Lock()
        self._done: queue.SimpleQueue[tuple[int, BatchResult]] = queue.SimpleQueue()
        self._workers: set[subprocess.Popen[bytes]] = set()
        self._stopped = False
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(size)]
        for thread in self._threads:
            thread.start()

    def results(self) -> Iterator[BatchResult]:
        """In the order of the jobs."""
        waiting: dict[int, BatchResult] = {}
        for number in range(self._count):
            while number not in waiting:
                index, result = self._done.get()
                waiting[index] = result
            yield waiting.pop(number)

    def stop(self) -> None:
        """End all workers, in the midst of what they do."""
        with self._lock:
            self._stopped = True
            for worker in self._workers:
                worker.kill()
        for thread in self._threads:
            thread.join()

    def _serve(self) -> None:
        worker: subprocess.Popen[bytes] | None = None
        while True:
            with self._lock:
                index, job = next(self._todo, (-1, None))
                if job is None or self._stopped:
                    break
            try:
                worker = worker or self._start()
                result = self._run(worker, job)
            except Exception as error:  # somebody waits for a result, whatever happens here
                reason = f"cannot be run in another process: {error}"
                result = BatchResult(None, TransputerError(reason))
            self._done.put((index, result))
            if worker is not None and self._spent(worker, result):
                self._end(worker)
                worker = None
        if worker is not None:
            self._end(worker)

    def _start(self) -> subprocess.Popen[bytes]:
        folder = str(Path(__file__).resolve().parent.parent)
        setup = pickle.dumps(self._setup)
        with self._lock:
            if self._stopped:
                raise RuntimeError("the batch is over")
            worker = subprocess.Popen(
                [sys.executable, "-c", _START, folder],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**dict.fromkeys(_ONE_THREAD, "1"), **os.environ},
                process_group=0,  # Ctrl-C is our business
            )
            self._workers.add(worker)
        assert worker.stdin is not None
        with contextlib.suppress(OSError):  # dead already; noticed when it is to answer
            send(worker.stdin, setup)
        return worker

    def _run(self, worker: subprocess.Popen[bytes], job: BatchJob) -> BatchResult:
        """One job's result. Raises whatever a job raises that cannot be pickled."""
        assert worker.stdin is not None and worker.stdout is not None
        data = pickle.dumps(job)
        try:
            send(worker.stdin, data)
            result = receive(worker.stdout)
        except (OSError, EOFError):
            try:
                code = worker.wait(timeout=PATIENCE_SECONDS)
            except subprocess.TimeoutExpired:
                worker.kill()
                code = worker.wait()
            reason = f"the process of this run has died ({_how(code)})"
            return BatchResult(None, TransputerError(reason))
        assert isinstance(result, BatchResult)
        return result

    def _spent(self, worker: subprocess.Popen[bytes], result: BatchResult) -> bool:
        """Whether a worker cannot go on, or had better not: what a run has held may stay with its
        process, and would count against the next one."""
        limited = self._setup.max_memory is not None and isinstance(result.error, LimitError)
        return limited or worker.poll() is not None

    def _end(self, worker: subprocess.Popen[bytes]) -> None:
        with self._lock:
            self._workers.discard(worker)
        worker.kill()
        worker.wait()
        for stream in (worker.stdin, worker.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()


def _how(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"exit code {code}"


def send(stream: IO[bytes], data: bytes) -> None:
    """Write a pickled message. Raises OSError."""
    stream.write(len(data).to_bytes(LENGTH_BYTES, "little") + data)
    stream.flush()


def receive(stream: IO[bytes]) -> Any:
    """Read a message. Raises EOFError at the end, also in the midst of one."""
    size = stream.read(LENGTH_BYTES)
    data = stream.read(int.from_bytes(size, "little"))
    if len(size) < LENGTH_BYTES or len(data) < int.from_bytes(size, "little"):
        raise EOFError
    return pickle.loads(data)

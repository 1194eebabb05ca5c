"""Trace files: written as the tokens come, read line by line; compressed if named ``.zst``.

``docs/trace-format.md`` specifies them. One instruction stands on a line, its tokens separated by
one space. The file appears when the run ends; until then it is called ``NAME.*.partial``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

import numpy as np

from compiler import isa
from compiler.errors import LimitError, TransputerError, UsageError
from executor.decode import Ids
from executor.files import PendingFile
from executor.managed import Managed
from executor.trace import TABLES, TraceError

if TYPE_CHECKING:
    from zstandard import ZstdCompressionObj

ZSTD = ".zst"
STDOUT = "-"
BLOCK = 1 << 20
"""Bytes of a file that are read at once."""
UNFINISHED = "# unfinished: "
"""Begins the last line of a partial trace; the reason follows."""


class TraceFile(Managed):
    """Where a trace goes: nowhere, standard output, or a file that appears when the run ends.

    A context manager. Left by an exception, Ctrl-C and limits included, it keeps what was
    written and says that it is unfinished; if the writing itself failed, nothing is left.

    Raises:
        UsageError: if the file cannot be written.
    """

    def __init__(
        self,
        target: str | None,
        vocabulary: tuple[str, ...],
        ends: Sequence[bool] | None = None,
    ) -> None:
        """Args:
        target: a file's name, ``-`` for standard output, None for nowhere.
        ends: whether a line ends behind a token; None for those that end an instruction.
        """
        self._target = target
        ends = ends or [
            not (token in TABLES.bytes or token in TABLES.digits or token == isa.BRANCH_TAKEN)
            for token in vocabulary
        ]
        self._ends_line = np.array(ends)
        self._text = np.empty(len(vocabulary), object)
        self._text[:] = [
            (token + (" ", "\n")[end]).encode("ascii", "backslashreplace")
            for token, end in zip(vocabulary, ends, strict=True)
        ]
        self._pending: PendingFile | None = None
        self._out: BinaryIO | None = None
        self._compressor: ZstdCompressionObj | None = None
        self._n_tokens = 0
        self._gap = b""  # what stands between the last token and the next

    def __enter__(self) -> Self:
        if self._target == STDOUT:
            self._out = sys.stdout.buffer
        elif self._target is not None:
            try:
                self._pending = PendingFile(self._target)
            except OSError as error:
                raise self._unwritable(error) from None
            self._out = self._pending.file
            if self._target.endswith(ZSTD):
                from zstandard import ZstdCompressor

                self._compressor = ZstdCompressor().compressobj()
        return self

    def write(self, ids: Ids) -> None:
        """Tokens that follow those before."""
        if self._out is None or not len(ids):
            return
        text = self._gap + b"".join(self._text.take(ids).tolist())
        self._gap = b"" if self._ends_line[ids[-1]] else b" "
        self._put(text[: len(text) - len(self._gap)])
        self._n_tokens += len(ids)

    def leave(self, error: BaseException | None) -> None:
        if self._out is None:
            return
        began = self._n_tokens > 0 or isinstance(error, KeyboardInterrupt | LimitError)
        if error is not None and self._pending is not None and not began:
            self._pending.discard()
            return
        if error is not None:
            line = f"{UNFINISHED}{_reason(error)} after {self._n_tokens} tokens\n"
            self._put((b"\n" if self._gap else b"") + line.encode("ascii", "backslashreplace"))
        if self._pending is None:
            return
        try:
            if self._compressor is not None:
                self._out.write(self._compressor.flush())
            self._pending.keep()
        except OSError as failure:
            self._fail(failure)

    def _put(self, text: bytes) -> None:
        """Write whole, or leave nothing."""
        assert self._out is not None
        try:
            self._out.write(self._compressor.compress(text) if self._compressor else text)
            if self._compressor is None:
                self._out.flush()
        except BaseException as failure:
            self._fail(failure)

    def _fail(self, failure: BaseException) -> None:
        pending, self._pending, self._out = self._pending, None, None
        if pending is None:  # standard output: main knows what to do
            raise failure
        pending.discard()
        raise self._unwritable(failure) if isinstance(failure, OSError) else failure

    def _unwritable(self, error: OSError) -> UsageError:
        return UsageError(f"{self._target}: cannot be written: {error.strerror or error}")


def _reason(error: BaseException) -> str:
    if isinstance(error, LimitError):
        return "stopped at a limit"
    if isinstance(error, KeyboardInterrupt):
        return "interrupted"
    return "the model wrote what is no trace" if isinstance(error, TraceError) else "failed"


def unended(file: str, n_tokens: int) -> TraceError:
    """The error for a file whose trace stops too early."""
    return TraceError(f"{file}: the trace ends after {n_tokens:,} tokens, without halt or trap")


def read_ids(file: str, vocabulary: tuple[str, ...]) -> Iterator[Ids]:
    """The tokens of a trace file as ids, ``-`` for standard input, in chunks as they are asked for.

    A tenth of a microsecond a token; memory is that of one chunk.

    Raises:
        UsageError: if it cannot be read or is no text.
        TransputerError: for a token that is not in the vocabulary.
    """
    ids = {
        token.encode("ascii", "backslashreplace"): number for number, token in enumerate(vocabulary)
    }
    # Where # is a token a line may begin with it, and only our own last line is a comment.
    comment = UNFINISHED.encode() if b"#" in ids else b"# "
    for block in read_blocks(file):
        tokens = block.split() if b"#" not in block else _without_comments(block, comment)
        try:
            yield np.fromiter(map(ids.__getitem__, tokens), np.int32, len(tokens))
        except KeyError as error:
            raise _unknown(file, error.args[0]) from None


def read_blocks(file: str) -> Iterator[bytes]:
    """The bytes of a trace file, ``-`` for standard input: whole lines, about ``BLOCK`` at once.

    Raises:
        UsageError: if it cannot be read.
    """
    from zstandard import ZstdError

    rest = b""
    try:
        with _opened(file) as data:
            while block := data.read(BLOCK):
                lines, newline, last = block.rpartition(b"\n")
                if newline:
                    yield rest + lines + newline
                    rest = b""
                rest += last
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror or error}") from None
    except ZstdError as error:
        raise UsageError(f"{file}: damaged, or not compressed by zstd ({error})") from None
    if rest:
        yield rest


def _opened(file: str) -> AbstractContextManager[BinaryIO]:
    if file == STDOUT:
        return nullcontext(sys.stdin.buffer)
    raw = Path(file).open("rb")  # noqa: SIM115 - the caller closes it
    if not file.endswith(ZSTD):
        return raw
    from zstandard import ZstdDecompressor

    return ZstdDecompressor().stream_reader(raw, read_across_frames=True, closefd=True)


def _without_comments(block: bytes, comment: bytes) -> list[bytes]:
    lines = (line for line in block.split(b"\n") if not line.startswith(comment))
    return [token for line in lines for token in line.split()]


def _unknown(file: str, token: bytes) -> TransputerError:
    if not token.isascii():
        return UsageError(f"{file}: not a trace (it is not ASCII text)")
    return TransputerError(f"{file}: this model has no token {token.decode()!r}")

"""Run checkpoints: a file from which an interrupted run goes on to the identical trace.

What a transformer knows is a function of the tokens it has read, so a run is saved as its tokens.
``docs/trace-format.md`` specifies the file: a header that names the model and the prompt, then
frames of tokens, appended one at a time. A digest runs through all of it. An unfinished last
frame, which a killed run leaves, is ignored; whatever else does not fit is refused.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import struct
import time
import zlib
from array import array
from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np
from zstandard import ZstdCompressor, ZstdDecompressor, ZstdError

from compiler.errors import TransputerError, UsageError
from executor.checkpoint import Checkpoint
from executor.decode import LONGEST_CHUNK, Engine, Follower, Ids, feed_chunks
from executor.files import write_atomically
from executor.managed import Managed

MAGIC = b"transputer run\n\x01"
"""The last byte is the version."""
HEADER = struct.Struct("<16s32s32sQ")
"""Magic, digest of the model, digest of the prompt, tokens of the prompt; their own digest
follows."""
FRAME = struct.Struct("<III")
"""Tokens, bytes of their compressed ids, CRC-32 of these two numbers; the ids and the digest of
all before follow."""
DIGEST = hashlib.sha256().digest_size
ID = np.dtype("<u4")
FRAME_TOKENS = 1 << 22
"""Most tokens of a frame; so many at most wait in memory."""
INTERVAL = 10.0
"""Seconds between frames, if nobody says otherwise."""


@dataclass(frozen=True)
class RunIdentity:
    """What must be the same for a run to go on: SHA-256 of the model and of the prompt's ids."""

    model: bytes
    prompt: bytes
    n_prompt: int

    @classmethod
    def of(cls, checkpoint: Checkpoint, prompt: Sequence[int]) -> RunIdentity:
        """The identity of a run of ``prompt`` (all of it, ROM and input included)."""
        model = hashlib.sha256()
        settings = (asdict(checkpoint.config), checkpoint.vocabulary, checkpoint.rom)
        model.update(json.dumps(settings, sort_keys=True).encode())
        for name, shape in checkpoint.config.shapes.items():
            model.update(f"{name} {shape}\n".encode())
            model.update(np.ascontiguousarray(checkpoint.weights[name], "<f8").tobytes())
        ids = hashlib.sha256(np.asarray(prompt, ID).tobytes())
        return cls(model.digest(), ids.digest(), len(prompt))

    def header(self) -> bytes:
        """The first bytes of a file, their digest included."""
        fields = HEADER.pack(MAGIC, self.model, self.prompt, self.n_prompt)
        return fields + hashlib.sha256(fields).digest()


@dataclass(frozen=True)
class SavedRun:
    """A checkpoint that was read and found whole.

    Attributes:
        path: the file.
        n_tokens: tokens of trace in it.
        size: bytes of it that count; what comes after is an unfinished frame.
        digest: the running digest there.
    """

    path: Path
    n_tokens: int
    size: int
    digest: bytes

    def chunks(self) -> Iterator[Ids]:
        """The tokens, a frame at a time.

        Raises:
            UsageError: if the file cannot be read any more, or has changed.
        """
        for n_tokens, data in _frames(self.path, self.size):
            yield _unpack(self.path, n_tokens, data)


def feed_saved(engine: Engine, token: int, saved: SavedRun) -> Generator[int, None, int]:
    """Bring an engine that has read a prompt to the end of a saved run, in pieces; after each its
    length.

    Args:
        token: the last of the prompt, which it has not read.

    Returns:
        The last token of the saved run, which it has not read either.

    Raises:
        TransputerError: if the model would have written other tokens, and the engine notices.
    """
    for ids in saved.chunks():
        for start in range(0, len(ids), LONGEST_CHUNK):
            part = ids[start : start + LONGEST_CHUNK]
            if not isinstance(engine, Follower):
                yield from feed_chunks(engine, array("i", [token, *part[:-1].tolist()]))
            elif not engine.follow(token, part):
                raise TransputerError(
                    f"{saved.path}: holds tokens that this model does not write; the run cannot "
                    "go on from it"
                )
            token = int(part[-1])
            yield len(part)
    return token


def open_run(path: str | os.PathLike[str], identity: RunIdentity) -> SavedRun:
    """Read a checkpoint through once and make sure that it belongs to this very run.

    Raises:
        UsageError: if it cannot be read or is of another model, program, arguments or input.
        TransputerError: if it is damaged.
    """
    path = Path(path)
    try:
        with path.open("rb") as file:
            header = file.read(HEADER.size + DIGEST)
            total = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    _check_header(path, header, identity)
    digest, size, n_tokens = header[HEADER.size :], len(header), 0
    for count, data in _frames(path, total):
        content, said = data[:-DIGEST], data[-DIGEST:]
        digest = hashlib.sha256(digest + content).digest()
        if digest != said:
            raise _damaged(path, size)
        size, n_tokens = size + len(data), n_tokens + count
    return SavedRun(path, n_tokens, size, digest)


def _check_header(path: Path, header: bytes, identity: RunIdentity) -> None:
    if not header.startswith(MAGIC[:-1]):
        raise UsageError(f"{path}: not a checkpoint of a run")
    if len(header) < HEADER.size + DIGEST:
        raise _damaged(path, len(header))
    if header[: len(MAGIC)] != MAGIC:
        raise UsageError(f"{path}: written by another version of transputer")
    fields, digest = header[: HEADER.size], header[HEADER.size :]
    if hashlib.sha256(fields).digest() != digest:
        raise _damaged(path, 0)
    _, model, prompt, n_prompt = HEADER.unpack(fields)
    if model != identity.model:
        raise UsageError(f"{path}: a run of another model")
    if (prompt, n_prompt) != (identity.prompt, identity.n_prompt):
        raise UsageError(
            f"{path}: a run of another program, or with other arguments, other input or other "
            "compiler options"
        )


def _frames(path: Path, size: int) -> Iterator[tuple[int, bytes]]:
    """Number of tokens and all bytes of each whole frame of the file's first ``size`` bytes."""
    try:
        with path.open("rb") as file:
            at = file.seek(HEADER.size + DIGEST)
            while len(head := file.read(FRAME.size)) == FRAME.size:
                n_tokens, n_bytes, check = FRAME.unpack(head)
                if check != zlib.crc32(head[:8]) or not 0 < n_tokens <= FRAME_TOKENS:
                    raise _damaged(path, at)
                end = at + FRAME.size + n_bytes + DIGEST
                if end > size:
                    return
                yield n_tokens, head + file.read(n_bytes + DIGEST)
                at = end
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None


def _unpack(path: Path, n_tokens: int, data: bytes) -> Ids:
    size = n_tokens * ID.itemsize
    try:
        ids = ZstdDecompressor().decompress(data[FRAME.size : -DIGEST], max_output_size=size)
    except ZstdError:
        raise _damaged(path, 0) from None
    if len(ids) != size:
        raise _damaged(path, 0)
    return np.frombuffer(ids, ID).astype(np.int32)


def _damaged(path: Path, at: int) -> TransputerError:
    return TransputerError(f"{path}: damaged (at byte {at}); the run cannot go on from it")


class RunRecorder(Managed):
    """Appends a run's tokens to a checkpoint file; a context manager.

    However it is left, by Ctrl-C or a limit too, the file ends with the last token written. If
    the disk is full it ends with an earlier one.

    Raises:
        UsageError: if the file cannot be written, is in use, or exists and is not the one that
            the run goes on from.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        identity: RunIdentity,
        saved: SavedRun | None = None,
        interval: float = INTERVAL,
    ) -> None:
        """Args:
        saved: the checkpoint that this run goes on from; if it is the same file, its tokens,
            which come first, are not written again.
        interval: seconds between frames.
        """
        self._path = Path(path)
        self._identity = identity
        self._saved = saved if saved and _same_file(saved.path, self._path) else None
        self._skip = self._saved.n_tokens if self._saved else 0
        self._interval = interval
        self._waiting: list[Ids] = []
        self._n_waiting = 0
        self._due = time.monotonic() + interval
        self._file: BinaryIO | None = None
        self._regular = True
        self._n_frames = 0
        self._size = 0
        self._digest = b""

    def __enter__(self) -> Self:
        try:
            if self._saved is None:
                self._create()
            else:
                self._size, self._digest = self._saved.size, self._saved.digest
            self._file = open(self._path, "r+b", buffering=0)
            self._regular = stat.S_ISREG(os.fstat(self._file.fileno()).st_mode)
            if self._regular:
                fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                self._file.truncate(self._size)
                self._file.seek(self._size)
        except BlockingIOError:
            raise UsageError(f"{self._path}: another run is writing to it") from None
        except OSError as error:
            raise self._unwritable(error) from None
        return self

    def write(self, ids: Ids) -> None:
        """Tokens that follow those before; they reach the file with the next frame."""
        skipped = min(self._skip, len(ids))
        self._skip -= skipped
        if skipped < len(ids):
            self._waiting.append(ids[skipped:])
            self._n_waiting += len(ids) - skipped
        if self._n_waiting >= FRAME_TOKENS or time.monotonic() >= self._due:
            self._flush()

    def leave(self, error: BaseException | None) -> None:
        if self._file is not None:
            self._flush()
            self._file.close()

    def _create(self) -> None:
        """A new file with its header; an empty one in its place is nothing to lose."""
        with contextlib.suppress(FileNotFoundError):
            if self._path.is_file() and self._path.stat().st_size:
                raise UsageError(
                    f"{self._path}: exists already; --resume goes on from it, or remove it first"
                )
        header = self._identity.header()
        write_atomically(self._path, header)
        self._size, self._digest = len(header), header[HEADER.size :]

    def _flush(self) -> None:
        """Append what waits as frames."""
        self._due = time.monotonic() + self._interval
        if self._file is None or not self._waiting:
            return
        ids = np.concatenate(self._waiting)
        self._waiting, self._n_waiting = [], 0
        try:
            for start in range(0, len(ids), FRAME_TOKENS):
                self._append(self._file, ids[start : start + FRAME_TOKENS])
        except BaseException as failure:
            self._give_up(self._file)
            if isinstance(failure, OSError):
                raise self._unwritable(failure) from None
            raise

    def _append(self, file: BinaryIO, ids: Ids) -> None:
        data = ZstdCompressor().compress(ids.astype(ID).tobytes())
        numbers = struct.pack("<II", len(ids), len(data))
        content = numbers + struct.pack("<I", zlib.crc32(numbers)) + data
        digest = hashlib.sha256(self._digest + content).digest()
        rest = memoryview(content + digest)
        size = len(rest)
        while rest:
            rest = rest[file.write(rest) :]
        if self._regular:
            os.fsync(file.fileno())
        self._size += size
        self._digest = digest
        self._n_frames += 1

    def _give_up(self, file: BinaryIO) -> None:
        """Take back what was not written whole; a file that holds nothing goes away."""
        self._file = None
        if not self._regular:
            file.close()
            return
        with contextlib.suppress(OSError):
            file.truncate(self._size)
            if self._saved is None and not self._n_frames:
                self._path.unlink()
        file.close()

    def _unwritable(self, error: OSError) -> UsageError:
        return UsageError(f"{self._path}: cannot be written: {error.strerror or error}")


def _same_file(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:
        return False

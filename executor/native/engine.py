"""The engine in C behind the protocol of :mod:`executor.decode`."""

from __future__ import annotations

import copy
import ctypes
import os
import warnings
import weakref
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from compiler.errors import LimitError, TransputerError, UsageError
from executor.checkpoint import Checkpoint
from executor.files import write_atomically
from executor.native.build import check_compiler, kept_library, load
from executor.native.errors import MOST_TOKENS
from executor.native.kept import Code, code_of, kept_code

if TYPE_CHECKING:
    from executor.native.classify import Lookups

OPTIMISATION = "-Og"
"""The C compiler's: compiles in a quarter of the time of ``-O2``, whose code is a fifth faster."""
OUT_OF_MEMORY, NOT_FINITE, TOO_LONG = 1, 2, 3

Ids = npt.NDArray[np.int32]
_ids = np.ctypeslib.ndpointer(np.int32, ndim=1, flags="C_CONTIGUOUS")
_flags = np.ctypeslib.ndpointer(np.uint8, ndim=1, flags="C_CONTIGUOUS")


class NativeEngine:
    """See :class:`executor.decode.Engine`.

    Attributes:
        source: the generated C, for reading.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        *,
        keep_source: str | os.PathLike[str] | None = None,
        say: Callable[[str], None] = warnings.warn,
        optimisation: str = OPTIMISATION,
        specialise: bool = True,
        lookups: Lookups = "classified",
    ) -> None:
        """Generate, compile or find in the cache, and load.

        Args:
            keep_source: a folder; the generated C is written there as ``engine.c``.
            say: told in one line what takes long or had to be done differently.
            specialise: whether to run specialised code where there is something to it.
            optimisation: the C compiler's; ``-O2`` takes longer to compile and runs faster.
            lookups: for comparisons, without ``specialise``: ``hull`` answers all heads by convex
                hulls; ``scan`` answers them by scans of all keys, see :meth:`scan`.

        Raises:
            UsageError: if the heads are not two-dimensional or the source cannot be written.
            NativeUnavailable: if no C compiler works here.
        """
        config = checkpoint.config
        if config.d_head != 2:
            raise UsageError(
                f"the native engine needs heads of width 2, this model's are "
                f"{config.d_head} wide; use --engine standard"
            )
        code = code_of(checkpoint, specialise, say, lookups, check_compiler)
        if keep_source is not None:
            _write_source(Path(keep_source), code.source)
        self._join(code, load(code.source, say, optimisation), config.vocab_size)

    @classmethod
    def kept(cls, checkpoint: Checkpoint) -> NativeEngine | None:
        """The specialised engine of a model, if all of it is in the cache."""
        code = kept_code(checkpoint)
        library = None if code is None else kept_library(code.source, OPTIMISATION)
        if code is None or library is None:
            return None
        engine = cls.__new__(cls)
        engine._join(code, library, checkpoint.config.vocab_size)
        return engine

    def _join(self, code: Code, library: ctypes.CDLL, vocab_size: int) -> None:
        self.source = code.source
        self._library = _declared(library)
        self._tables = code.tables  # the engine holds pointers to them
        self._vocab_size = vocab_size
        self._stop: tuple[frozenset[int], npt.NDArray[np.uint8]] | None = None
        self._begin()

    def again(self) -> NativeEngine:
        """A new engine of the same model with an empty sequence; nothing is looked up for it."""
        twin = copy.copy(self)
        twin._begin()
        return twin

    def _begin(self) -> None:
        pointers = (ctypes.c_void_p * max(len(self._tables), 1))(
            *(table.ctypes.data for table in self._tables)
        )
        self._engine = self._library.native_new(pointers, MOST_TOKENS)
        if not self._engine:
            raise LimitError("out of memory")
        weakref.finalize(self, self._library.native_free, self._engine)

    def feed(self, tokens: Sequence[int] | Ids) -> None:
        """Append tokens."""
        self._read(tokens, None)

    def predict(self, tokens: Sequence[int]) -> list[int]:
        """Append tokens; the id of the greatest logit after each."""
        produced = np.empty(len(tokens), np.int32)
        self._read(tokens, produced)
        return [int(token) for token in produced]

    def step(self, token: int) -> int:
        """Append one token; the id of the greatest logit."""
        return int(self.extend(token, (), 1)[0])

    def extend(self, token: int, stop: Collection[int], limit: int) -> Ids:
        """Append a token and what follows, until a token of ``stop`` or ``limit`` tokens.

        Raises:
            LimitError: the sequence is as long as it can be, or there is no memory. Tokens that
                were produced before are returned; the next call raises.
        """
        self._check(np.array([token]))
        try:
            produced = np.empty(limit, np.int32)
        except MemoryError:
            raise LimitError(f"out of memory after {len(self):,} tokens") from None
        count = self._library.native_extend(
            self._engine, int(token), self._stops(stop), limit, produced
        )
        if not count:
            raise self._error()
        if count > limit // 2:
            return produced[:count]
        try:
            return produced[:count].copy()  # the rest of a long array need not live on
        except MemoryError:
            return produced[:count]

    def follow(self, token: int, written: Ids) -> bool:
        """See :class:`executor.decode.Follower`."""
        done = 0
        while done < len(written):
            produced = self.extend(token, (), len(written) - done)
            if not np.array_equal(produced, written[done : done + len(produced)]):
                return False
            done += len(produced)
            token = int(produced[-1])
        return True

    def tokens(self, start: int, stop: int) -> Ids:
        """The tokens at these positions, of those appended so far."""
        ids = np.empty(max(min(stop, len(self)) - start, 0), np.int32)
        self._library.native_tokens(self._engine, start, len(ids), ids)
        return ids

    def scan(self) -> None:
        """Answer by scans from now on, with ``lookups="scan"``; until then hulls do."""
        self._library.native_scan(self._engine)

    def __len__(self) -> int:
        """Tokens appended so far."""
        return int(self._library.native_length(self._engine))

    @property
    def nbytes(self) -> int:
        """Bytes allocated for the sequence so far; the token tables are not counted."""
        return int(self._library.native_bytes(self._engine))

    def _read(self, tokens: Sequence[int] | Ids, produced: Ids | None) -> None:
        ids = np.ascontiguousarray(tokens, dtype=np.int32)
        self._check(ids)
        target = None if produced is None else produced.ctypes.data
        if self._library.native_read(self._engine, ids, len(ids), target) < len(ids):
            raise self._error()

    def _check(self, ids: npt.NDArray[np.integer]) -> None:
        if ids.size and (ids.min() < 0 or ids.max() >= self._vocab_size):
            raise UsageError(f"a token id is not in 0..{self._vocab_size - 1}")

    def _stops(self, stop: Collection[int]) -> npt.NDArray[np.uint8]:
        chosen = frozenset(stop)
        if self._stop is None or self._stop[0] != chosen:
            flags = np.zeros(self._vocab_size, np.uint8)
            flags[[token for token in chosen if 0 <= token < self._vocab_size]] = 1
            self._stop = (chosen, flags)
        return self._stop[1]

    def _error(self) -> TransputerError:
        code = self._library.native_error(self._engine)
        if code == OUT_OF_MEMORY:
            return LimitError(f"out of memory after {len(self):,} tokens")
        if code == TOO_LONG:
            return LimitError(
                f"stopped after {len(self):,} tokens, prompt included: the native engine holds no "
                "more"
            )
        return TransputerError(f"a number that is not finite after {len(self):,} tokens")


def _declared(library: ctypes.CDLL) -> ctypes.CDLL:
    """The library with the types of its functions."""
    engine, count = ctypes.c_void_p, ctypes.c_int64
    library.native_new.argtypes = [ctypes.POINTER(ctypes.c_void_p), count]
    library.native_new.restype = engine
    library.native_free.argtypes = [engine]
    library.native_free.restype = None
    library.native_scan.argtypes = [engine]
    library.native_scan.restype = None
    library.native_read.argtypes = [engine, _ids, count, ctypes.c_void_p]
    library.native_read.restype = count
    library.native_extend.argtypes = [engine, ctypes.c_int32, _flags, count, _ids]
    library.native_extend.restype = count
    library.native_tokens.argtypes = [engine, count, count, _ids]
    library.native_tokens.restype = None
    library.native_error.argtypes = [engine]
    library.native_error.restype = ctypes.c_int
    for name in ("native_length", "native_bytes"):
        getattr(library, name).argtypes = [engine]
        getattr(library, name).restype = count
    return library


def _write_source(folder: Path, source: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "engine.c", source.encode())
    except OSError as error:
        raise UsageError(f"{folder}: cannot write the source: {error.strerror or error}") from None

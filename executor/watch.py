"""Watching a program's memory while a model writes its trace: ids in, memory out.

Nothing here is computed but which address a store goes to: the value, and the number on the stack
that the address is made of, are read off the trace. :class:`executor.replay.Replay` does the same
token by token and explains each step; this takes a few NumPy passes over a chunk.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from compiler import isa
from compiler.errors import UsageError
from compiler.program import Program
from compiler.wasm import decode
from executor.oracle_code import decode_prompt
from executor.scan import BY_CLASS, HALT, Scanner

Array = npt.NDArray[Any]
Addresses = npt.NDArray[np.int64]

NO_ADDRESSES = np.zeros(0, np.int64)
_WORD = 4


def addresses(program: Program, names: Iterable[str]) -> dict[str, int]:
    """Where the named variables are, which the linker was asked to export.

    Raises:
        UsageError: if the program's module does not export one of them.
    """
    module = decode(program.wasm, program.name)
    found = {}
    for name in names:
        export = module.exports.get(name)
        value = module.global_values[export.index] if export and export.kind == "global" else None
        if value is None:
            raise UsageError(f"{program.name}: exports no variable {name}")
        found[name] = value.value & 0xFFFFFFFF
    return found


class MemoryWatch(Scanner):
    """A scanner that also keeps the linear memory as the trace's stores leave it.

    Attributes:
        memory: its bytes (uint8); one that grows stands at its greatest size.
        written: where each store of the last ``push`` began, in order.

    ``push`` costs some ten nanoseconds a token.
    """

    def __init__(self, program: Program, vocabulary: tuple[str, ...]) -> None:
        super().__init__(vocabulary)
        code = decode_prompt(program)
        self.memory = np.zeros(code.memory_size, np.uint8)
        self.memory[list(code.data)] = list(code.data.values())
        self.written: Addresses = NO_ADDRESSES
        self._width = np.array([isa.STORES.get(name, 0) for name, _ in code.instructions], np.uint8)
        self._immediate = np.array([immediate for _, immediate in code.instructions], np.int64)

    def push(self, ids: npt.NDArray[np.int32]) -> bytes:
        """Read tokens, as :meth:`Scanner.push` does, and what they store."""
        self.written = NO_ADDRESSES
        return super().push(ids)

    def words(self, address: int, count: int) -> npt.NDArray[np.int32]:
        """The ``int`` array of this length at an address, as it is now."""
        return self.memory[address : address + _WORD * count].view("<i4").astype(np.int32)

    def _apply(self, ids: Array, at: Array, ends: Array) -> bool:
        below, cursors = np.array(self.stack, np.int64), self._cursors(ids, at, ends)[:-1]
        if not super()._apply(ids, at, ends):
            return False
        width = self._width.take(cursors // isa.INSTRUCTION_TOKENS)
        stores = np.flatnonzero((width > 0) & (ends < HALT))  # one that traps writes nothing
        if len(stores):
            indices = cursors.take(stores) // isa.INSTRUCTION_TOKENS
            depth = len(below) + np.cumsum(BY_CLASS.delta.take(ends))
            base = self._under_top(ids, at, ends, below, depth, stores)
            self.written = base + self._immediate.take(indices)
            self._store(self.written, self._values(ids, at.take(stores)), width.take(stores))
        return True

    def _under_top(
        self, ids: Array, at: Array, ends: Array, below: Array, depth: Array, stores: Array
    ) -> Addresses:
        """The value under the top of the stack before each of ``stores``: what was pushed last to
        its level, or lay there (in ``below``) before the chunk."""
        pushes = np.flatnonzero(BY_CLASS.stores.take(ends))
        levels = depth.take(pushes)
        wanted = depth.take(stores) + 1  # a store takes two values, the address and one above it
        # By level, then in order; the last push to a level before a store is left of its place.
        n = len(at)
        keys = levels * n + pushes
        order = np.argsort(keys, kind="stable")
        place = np.searchsorted(keys, wanted * n + stores, sorter=order) - 1
        found = order.take(np.maximum(place, 0)) if len(order) else place
        pushed = (place >= 0) & (levels.take(found) == wanted) if len(order) else place >= 0
        base = np.zeros(len(stores), np.int64)
        base[pushed] = self._values(ids, at.take(pushes.take(found[pushed])))
        base[~pushed] = below.take(wanted[~pushed] - 1)
        return base

    def _store(self, address: Addresses, value: Array, width: Array) -> None:
        """Write in order: of several stores to one byte the last one counts."""
        offsets = np.arange(_WORD)
        kept = offsets < width[:, None]
        data = value.astype("<u4").view(np.uint8).reshape(-1, _WORD)
        self.memory[(address[:, None] + offsets)[kept]] = data[kept]

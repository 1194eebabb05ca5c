"""Native code for instructions that the machine has no opcode for, appended where it is used.

A routine follows the calling convention of compiled functions: its operands are on the stack, and
its result takes their place. Its key is the WebAssembly instruction, such as ``i32.clz``. (Those of
``routines_memory.py`` take one operand more.)

Routines are written in a small notation, one instruction or label after the other, separated by
commas or line ends: ``tee n`` is ``local.tee`` of the local called n, ``const 5``, ``add`` and so
on are i32 instructions, ``here:`` is a label, and ``br_if here`` goes there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from compiler import isa
from compiler.lower_code import MASK, Label, Native, NativeFunction
from compiler.program import Origin
from compiler.routines_memory import COPY, FILL

_ITEM = re.compile(r"\w+:|[^\s,:][^,\n:]*[^\s,:]")
_LOCALS = {"get": "local.get", "set": "local.set", "tee": "local.tee"}


ROUTINES = {
    "memory.fill": FILL, "memory.copy": COPY,
}  # fmt: skip
"""Key and text of every routine."""


def routines_for(functions: Iterable[NativeFunction]) -> list[NativeFunction]:
    """The routines that ``functions`` call, each once, in a fixed order."""
    called = {c.callee for f in functions for c in f.code if isinstance(c, Native)}
    return [_parse(key, text) for key, text in ROUTINES.items() if key in called]


def _parse(key: str, text: str) -> NativeFunction:
    """Translate the notation described above."""
    origin = Origin(f"({key})", f"({key})", -1)
    locals_: dict[str, int] = {}
    labels: dict[str, int] = {}
    code: list[Native | Label] = []
    for item in _ITEM.findall(text):
        op, _, operand = item.partition(" ")
        if op.endswith(":"):
            code.append(Label(labels.setdefault(op[:-1], len(labels))))
        elif op in _LOCALS:
            code.append(Native(_LOCALS[op], locals_.setdefault(operand, len(locals_)), origin))
        elif op in ("br", "br_if"):
            code.append(Native(op, 0, origin, target=labels.setdefault(operand, len(labels))))
        else:
            name = f"i32.{op}" if f"i32.{op}" in isa.OPCODES else op
            code.append(Native(name, int(operand or "0") & MASK, origin))
    return NativeFunction(key, f"({key})", tuple(code))

"""Tokens that i64, f32 and f64 instructions take, measured with the token oracle.

One line per instruction: tokens of the trace, beyond those of passing the operands, for several
pairs of operands. An i32 instruction takes 5, a division 9.
"""

from __future__ import annotations

import struct
import sys

import wasmtime

from compiler import wasm
from compiler.legalise import legalise
from compiler.legalise_words import to_words
from compiler.pipeline import compile_calls
from compiler.wasm_opcodes import SIGNATURES, TYPE_NAMES
from executor.oracle import execute

_INTEGERS = (
    (5, 3), (123456789, 10), (10**15, 10), (10**18, 10**9 + 7), ((1 << 63) + 12345, (1 << 40) + 7),
)  # fmt: skip
_FLOATS = ((2.0, 3.0), (1.5, -0.25), (0.1, 0.3), (3.14159, 2.71828), (1e10, -1.7e-3))
_BITS = {"l": 64, "d": 64, "i": 32, "f": 32}
LIMIT = 100_000


def bits(value: float, type_: str) -> int:
    """Bits of an operand of this type."""
    if type_ in "fd":
        return int.from_bytes(struct.pack("<f" if type_ == "f" else "<d", value), "little")
    return int(value) % (1 << _BITS[type_])


def tokens(op: str) -> list[int]:
    """Tokens of ``op`` on each row."""
    signature = SIGNATURES[op]
    pops, pushes = signature.pops or "", signature.pushes or ""
    params = " ".join(TYPE_NAMES[type_] for type_ in pops)
    gets = "".join(f"(local.get {k})" for k in range(len(pops)))
    text = f"""(module
      (func (export "it") (param {params}) (result {TYPE_NAMES[pushes]}) ({op} {gets}))
      (func (export "nothing") (param {params})))"""
    module = legalise(wasm.decode(bytes(wasmtime.wat2wasm(text)), op))
    rows = _INTEGERS if op.startswith("i") and set(pops) <= set("il") else _FLOATS
    if ".convert" in op or "extend" in op:
        rows = _INTEGERS
    result = []
    for row in rows:
        operands = [bits(value, type_) for value, type_ in zip(row, pops, strict=False)]
        words = to_words(pops, operands)
        counts = [
            execute(compile_calls(module, [(name, words)]), limit=LIMIT).n_tokens
            for name in ("it", "nothing")
        ]
        result.append(counts[0] - counts[1])
    return result


def main() -> None:
    """Print the table; arguments select instructions by a part of their name."""
    for op, signature in SIGNATURES.items():
        types = (signature.pops or "") + (signature.pushes or "")
        plain = not any(part in op for part in ("load", "store", "const"))
        if plain and set("lfd") & set(types) and any(part in op for part in sys.argv[1:] or [""]):
            print(f"{op:24}", *(f"{count:6}" for count in tokens(op)))


if __name__ == "__main__":
    main()

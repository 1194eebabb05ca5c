"""Values of WebAssembly's number types: Python numbers to bits and back.

A type is a letter, as in ``wasm_opcodes.VALUE_TYPES``: ``i`` and ``l`` are integers of 32 and 64
bits, ``f`` and ``d`` floating-point numbers.
"""

from __future__ import annotations

import struct

from compiler.errors import UsageError
from compiler.wasm_opcodes import TYPE_NAMES

Number = int | float
_BITS = {"i": 32, "l": 64, "f": 32, "d": 64}
_FORMATS = {"f": ("<f", "<I"), "d": ("<d", "<Q")}


def bits_of(type_: str, value: Number) -> int:
    """The bits of a value, as an unsigned number. An integer may be given signed or unsigned; what
    a float cannot hold exactly is rounded as in C.

    Raises:
        UsageError: the type has no such value.

    >>> hex(bits_of("f", 1)), hex(bits_of("i", -1))
    ('0x3f800000', '0xffffffff')
    """
    if type_ in _FORMATS:
        written, read = _FORMATS[type_]
        try:
            # Bits beyond the range of an f32 round to infinity, where struct refuses them.
            number = float(value)
            data = struct.pack(written, number)
        except OverflowError:
            if isinstance(value, int):
                raise UsageError(f"{value} is beyond the range of {TYPE_NAMES[type_]}") from None
            data = struct.pack(written, float("inf") if value > 0 else float("-inf"))
        (bits,) = struct.unpack(read, data)
        return int(bits)
    bits = _BITS[type_]
    if not isinstance(value, int):
        raise UsageError(f"{value} is no integer, as {TYPE_NAMES[type_]} is")
    if not -(1 << bits - 1) <= value < 1 << bits:
        raise UsageError(f"{value} is not a {bits}-bit integer")
    return value & (1 << bits) - 1


def value_of(type_: str, bits: int) -> Number:
    """The value of these bits; integers signed.

    >>> value_of("l", 2**64 - 1), value_of("d", 0x3FF0000000000000)
    (-1, 1.0)
    """
    if type_ in _FORMATS:
        written, read = _FORMATS[type_]
        (value,) = struct.unpack(written, struct.pack(read, bits))
        return float(value)
    return bits - (bits >> _BITS[type_] - 1 << _BITS[type_])

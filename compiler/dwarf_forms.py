"""Values of DWARF attributes by their forms (DWARF 5, section 7.5.6): bytes in, numbers and strings
out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from compiler.dwarf_reader import Cursor

_FIXED = {
    0x0B: 1, 0x0C: 1, 0x11: 1, 0x25: 1, 0x29: 1,  # data1, flag, ref1, strx1, addrx1
    0x05: 2, 0x12: 2, 0x26: 2, 0x2A: 2,  # data2, ref2, strx2, addrx2
    0x27: 3, 0x2B: 3,  # strx3, addrx3
    0x06: 4, 0x13: 4, 0x28: 4, 0x2C: 4, 0x1C: 4,  # data4, ref4, strx4, addrx4, ref_sup4
    0x07: 8, 0x14: 8, 0x20: 8, 0x24: 8, 0x1E: 16,  # data8, ref8, ref_sig8, ref_sup8, data16
}  # fmt: skip
"""Forms of a fixed number of bytes."""
_BLOCKS = {0x0A: 1, 0x03: 2, 0x04: 4}
"""Forms of bytes whose number stands before them in so many bytes."""
_COUNTED_BLOCKS = frozenset({0x09, 0x18})  # block, exprloc
_UNSIGNED = frozenset({0x0F, 0x15, 0x1A, 0x1B, 0x22, 0x23, 0x1F01, 0x1F02})
"""udata, ref_udata, strx, addrx, loclistx, rnglistx, and two of GNU."""
_STRP, _LINE_STRP, _REF_ADDR, _SEC_OFFSET = 0x0E, 0x1F, 0x10, 0x17
_OFFSETS = frozenset({_STRP, _LINE_STRP, _SEC_OFFSET, 0x1D, 0x1F20, 0x1F21})
_ADDR, _STRING, _SDATA, _INDIRECT, _PRESENT = 0x01, 0x08, 0x0D, 0x16, 0x19
_STRX = frozenset({0x1A, 0x25, 0x26, 0x27, 0x28})
_ADDRX = frozenset({0x1B, 0x29, 0x2A, 0x2B, 0x2C})
ADDRX = 0x1B
_LOCAL_REFERENCES = frozenset({0x11, 0x12, 0x13, 0x14, 0x15})
RNGLISTX, IMPLICIT_CONST = 0x23, 0x21


@dataclass(frozen=True, slots=True)
class Value:
    """What an attribute holds, as it is written: a number, or bytes."""

    form: int
    raw: int | bytes

    @property
    def number(self) -> int:
        """The number, 0 for bytes."""
        return self.raw if isinstance(self.raw, int) else 0

    @property
    def is_address(self) -> bool:
        """Whether it is an address, or the number of one."""
        return self.form == _ADDR or self.form in _ADDRX


def read_value(cursor: Cursor, form: int, address_bytes: int, version: int) -> Value:
    """The value that stands at the cursor.

    Raises:
        DwarfError: it ends too early, or the form is not known.
    """
    size = _FIXED.get(form)
    if size is not None:
        return Value(form, cursor.fixed(size))
    if form in _UNSIGNED:
        return Value(form, cursor.unsigned(64))
    if form in _OFFSETS or (form == _REF_ADDR and version > 2):
        return Value(form, cursor.offset())
    if form in (_ADDR, _REF_ADDR):
        return Value(form, cursor.fixed(address_bytes))
    if form == _STRING:
        return Value(form, cursor.string())
    if form in _COUNTED_BLOCKS:
        return Value(form, cursor.take(cursor.unsigned()))
    if form in _BLOCKS:
        return Value(form, cursor.take(cursor.fixed(_BLOCKS[form])))
    if form == _PRESENT:
        return Value(form, 1)
    if form == _SDATA:
        return Value(form, cursor.signed(64))
    if form == _INDIRECT and (real := cursor.unsigned()) not in (_INDIRECT, IMPLICIT_CONST):
        return read_value(cursor, real, address_bytes, version)
    raise cursor.error(f"a value of form {form:#x}")


@dataclass
class Tables:
    """The sections that values refer to, and where a unit's part of them begins."""

    sections: Mapping[str, bytes]
    address_bytes: int = 4
    offset_bytes: int = 4
    strings_base: int = 0
    addresses_base: int = 0

    def cursor(self, section: str, offset: int) -> Cursor:
        """A cursor over the rest of a section."""
        cursor = Cursor(self.sections.get(section, b""), section)
        if offset < 0:
            raise cursor.error(f"offset {offset}")
        cursor.take(offset)
        cursor.wide = self.offset_bytes == 8
        return cursor

    def text(self, value: Value) -> bytes:
        """A string, empty for what is none."""
        if isinstance(value.raw, bytes):
            return value.raw if value.form == _STRING else b""
        if value.form == _STRP:
            return self.cursor(".debug_str", value.raw).string()
        if value.form == _LINE_STRP:
            return self.cursor(".debug_line_str", value.raw).string()
        if value.form in _STRX:
            at = self.strings_base + value.raw * self.offset_bytes
            offset = self.cursor(".debug_str_offsets", at).offset()
            return self.cursor(".debug_str", offset).string()
        return b""

    def address(self, value: Value) -> int:
        """An address, which may stand in a table."""
        if value.form in _ADDRX:
            at = self.addresses_base + value.number * self.address_bytes
            return self.cursor(".debug_addr", at).fixed(self.address_bytes)
        return value.number


def reference(value: Value, unit_start: int) -> int:
    """The place in ``.debug_info`` that a reference names; -1 if it is in another file."""
    if value.form in _LOCAL_REFERENCES:
        return unit_start + value.number
    return value.number if value.form == _REF_ADDR else -1

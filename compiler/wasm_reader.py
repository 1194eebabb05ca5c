"""Reads the primitive encodings of the WebAssembly binary format, and checks every one of them.

Nothing here trusts a length or a count: a vector's count is compared with the bytes that are left
before anything is allocated, so that ten megabytes of noise cost no more than reading them.
"""

from __future__ import annotations

from compiler.errors import CompileError, Place, UnsupportedError


class Reader:
    """A cursor over ``data[position:end]`` of the file ``name``."""

    def __init__(self, data: bytes, name: str, position: int = 0, end: int | None = None) -> None:
        self.data = data
        self.name = name
        self.position = position
        self.end = len(data) if end is None else end

    def error(self, reason: str, at: int | None = None) -> CompileError:
        """The error for malformed input at byte ``at`` (default: the current one)."""
        where = self.position if at is None else at
        return CompileError(f"not a valid WebAssembly module: {reason}", self._place(where))

    def unsupported(self, what: str, remedy: str, at: int | None = None) -> UnsupportedError:
        """The error for well-formed input that uses an extension of WebAssembly."""
        where = self.position if at is None else at
        return UnsupportedError(f"{what} is not supported", self._place(where), remedy)

    def _place(self, offset: int) -> Place:
        return Place(self.name, instruction=f"byte {offset}")

    @property
    def left(self) -> int:
        """Bytes that have not been read."""
        return self.end - self.position

    def byte(self) -> int:
        """One byte."""
        if self.position >= self.end:
            raise self.error("unexpected end")
        value = self.data[self.position]
        self.position += 1
        return value

    def take(self, count: int) -> bytes:
        """``count`` bytes."""
        if count > self.left:
            raise self.error(f"{count} bytes announced, {self.left} left")
        self.position += count
        return self.data[self.position - count : self.position]

    def _groups(self, bits: int) -> tuple[int, int]:
        """The groups of seven bits of a LEB128 number, joined, and how many bits they are."""
        start, value, shift = self.position, 0, 0
        while True:
            byte = self.byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value, shift
            if shift >= bits:
                raise self.error("integer representation too long", start)

    def unsigned(self, bits: int = 32) -> int:
        """An unsigned LEB128 number of at most ``bits`` bits."""
        start = self.position
        value, _ = self._groups(bits)
        if value >> bits:
            raise self.error("integer too large", start)
        return value

    def signed(self, bits: int) -> int:
        """A signed LEB128 number of at most ``bits`` bits, in [-2^(bits-1), 2^(bits-1))."""
        start = self.position
        value, shift = self._groups(bits)
        if value >> (shift - 1):
            value -= 1 << shift
        if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            raise self.error("integer too large", start)
        return value

    def count(self, what: str) -> int:
        """The length of a vector whose items take at least one byte each."""
        start = self.position
        count = self.unsigned()
        if count > self.left:
            raise self.error(f"{count} {what} announced in {self.left} bytes", start)
        return count

    def text(self) -> str:
        """A name in UTF-8."""
        start = self.position
        try:
            return self.take(self.unsigned()).decode("utf-8")
        except UnicodeDecodeError:
            raise self.error("malformed UTF-8 in a name", start) from None

    def section(self, size: int) -> Reader:
        """A reader of the next ``size`` bytes alone, which this reader skips."""
        start = self.position
        self.take(size)
        return Reader(self.data, self.name, start, self.position)

    def finish(self, what: str) -> None:
        """Check that everything has been read."""
        if self.left:
            raise self.error(f"{self.left} unexpected bytes at the end of {what}")

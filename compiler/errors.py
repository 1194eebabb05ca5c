"""The errors a user can cause or must hear about: whatever we raise on purpose is one of them."""

from __future__ import annotations

from dataclasses import dataclass


class TransputerError(Exception):
    """Base of all errors that are shown as one message and never as a traceback."""


class UsageError(TransputerError):
    """An argument, option or path that makes no sense."""


@dataclass(frozen=True)
class Place:
    """Where in the user's source something is; whatever is not known is empty.

    Attributes:
        file, line: the file as its compiler was given it, and the line, 0 if that is not known.
        function: of the source; the one that was written there, where it was inlined elsewhere.
        instruction: the WebAssembly instruction, in parentheses for code that the compiler adds.
        number: of that instruction in its WebAssembly function, -1 if it has none.
        offset: of that instruction in the module's file, -1 if it is not there.
        text: the line itself.
        inlined: where that function was inlined, and so on outwards: places of calls.
    """

    file: str = ""
    function: str = ""
    instruction: str = ""
    line: int = 0
    number: int = -1
    text: str = ""
    inlined: tuple[Place, ...] = ()
    offset: int = -1

    @property
    def source(self) -> str:
        """``gcd.c:12``, empty if the line is not known."""
        return f"{self.file}:{self.line}" if self.line else ""

    @property
    def caller(self) -> str:
        """``gcd.c:12 (gcd)``, or the function alone."""
        return f"{self.source} ({self.function})" if self.line else self.function

    @property
    def where(self) -> str:
        """``gcd.c:12 (gcd, i32.rem_u)``; ``gcd+5: i32.rem_u`` if the line is not known."""
        if self.line:
            return f"{self.source} ({', '.join(filter(None, (self.function, self.instruction)))})"
        return self.code

    @property
    def code(self) -> str:
        """``gcd+5: i32.rem_u``: the instruction by its number in its function."""
        function = self.inlined[-1].function if self.inlined else self.function
        number = f"+{self.number}" if self.number >= 0 else ""
        return ": ".join(filter(None, (f"{function}{number}", self.instruction)))

    def __str__(self) -> str:
        parts = [self.source or self.file]
        if self.function:
            parts.append(f"in function {self.function}")
        if self.instruction:
            parts.append(f"at {self.instruction}")
        return ", ".join(part for part in parts if part)


class CompileError(TransputerError):
    """The source cannot be compiled: ``place: reason`` and, on a second line, the way out."""

    def __init__(self, reason: str, place: Place | None = None, remedy: str = "") -> None:
        self.reason = reason
        self.place = place or Place()
        self.remedy = remedy
        where = str(self.place)
        text = f"{where}: {reason}" if where else reason
        super().__init__(f"{text}\n  {remedy}" if remedy else text)


class UnsupportedError(CompileError):
    """Valid input that the machine cannot run exactly, and therefore refuses."""


def printable(text: str) -> str:
    """Text of a file as it may stand in a message: what is not printable is escaped."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class LimitError(TransputerError):
    """A run that reached its token or length limit (exit code 124)."""


class GraphError(TransputerError, ValueError):
    """A machine in the graph language that makes no sense.

    ``place``: the line of the machine's file where what is wrong was defined, if it is not the
    line that is being executed.
    """

    def __init__(self, reason: str, remedy: str = "", place: Place | None = None) -> None:
        self.reason, self.remedy, self.place = reason, remedy, place
        super().__init__(f"{reason}\n  {remedy}" if remedy else reason)

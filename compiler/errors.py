"""The errors a user can cause or must hear about: whatever we raise on purpose is one of them."""

from __future__ import annotations

from dataclasses import dataclass


class TransputerError(Exception):
    """Base of all errors that are shown as one message and never as a traceback."""


class UsageError(TransputerError):
    """An argument, option or path that makes no sense."""


@dataclass(frozen=True)
class Place:
    """Where in the user's source something is: file, function, instruction (any may be empty)."""

    file: str = ""
    function: str = ""
    instruction: str = ""

    def __str__(self) -> str:
        parts = [self.file]
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


class LimitError(TransputerError):
    """A run that reached its token or length limit (exit code 124)."""

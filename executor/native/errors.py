"""How far the native engine goes, and why there is none."""

from __future__ import annotations

from compiler.errors import TransputerError

MOST_TOKENS = 2**26
"""The longest sequence: sums of a few squares of positions are exact."""


class NativeUnavailable(TransputerError):
    """No C compiler works here, or what it makes cannot be stored or loaded."""

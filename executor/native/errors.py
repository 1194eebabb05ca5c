"""Why there is no native engine."""

from __future__ import annotations

from compiler.errors import TransputerError


class NativeUnavailable(TransputerError):
    """No C compiler works here, or what it makes cannot be stored or loaded."""

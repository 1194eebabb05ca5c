"""What a C program may print: a source in, the types and conversions that its printf needs out.

Long parts of the C library's printf and scanf are linked only where they are needed.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Collection, Sequence
from pathlib import Path

from compiler.errors import Place
from compiler.library import CODE_FLAGS
from compiler.toolchain_find import Toolchain
from compiler.toolchain_run import as_argument, run

NONE, DOUBLE, LONG_DOUBLE = "none", "double", "long double"
"""Builds of printf and scanf by the floating-point types that they know."""
ERRORS = "%m"
"""The conversion that prints the text of an error; all the texts are as long as a small program."""


def printf_kind(types: Collection[str], cxx: bool) -> str:
    """The least build of printf that a program with values of these types can need."""
    if cxx or "fp128" in types:
        return LONG_DOUBLE
    return DOUBLE if set(types) - {ERRORS} else NONE


def printed_types(
    toolchain: Toolchain, flags: Sequence[str], source: Path, timeout: float
) -> set[str]:
    """The floating-point types (``float``, ``double``, ``fp128``) in a source, as LLVM calls them,
    and ``ERRORS`` if one of its strings may be a format with that conversion.

    They are read from the code that clang's front end makes: what a function is given, variadic or
    not, has its type there.
    """
    with tempfile.TemporaryDirectory(prefix="transputer-") as folder:
        output = Path(folder) / "types.ll"
        command = (
            *toolchain.clang, *CODE_FLAGS, *flags, "-w", "-g0", "-S", "-emit-llvm",
            "-Xclang", "-disable-llvm-passes", as_argument(source), "-o", str(output),
        )  # fmt: skip
        run(command, timeout=timeout, place=Place(file=str(source)))
        text = output.read_text("utf-8", "replace")
    types = set(_FLOAT_TYPE.findall(_QUOTED.sub("", text)))
    formats = "\n".join(_STRING.findall(text))
    return types | {ERRORS} if set(_PERCENT.findall(formats)) - {"%%"} else types


_STRING = re.compile(r'\bc"([^"]*)"')
"""A string, in which LLVM writes quotes as hexadecimal escapes."""
_PERCENT = re.compile(r"%%|%[-+ #'0-9*.$hljztL]*m")
_QUOTED = re.compile(r'"[^"]*"')
_FLOAT_TYPE = re.compile(r"(?<![\w@%.!$#-])(float|double|fp128|half|bfloat)(?![\w.])")

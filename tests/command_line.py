"""The command ``transputer`` for tests: in this process or as one of its own; small programs."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any

from compiler import isa
from executor import cli

ROOT = Path(__file__).parent.parent
ADD = ROOT / "programs/add.tok"
ARTICLE = """\
03 00 00 00 commit(+1,sts=1,bt=0)
05 00 00 00 commit(+1,sts=1,bt=0)
08 00 00 00 commit(-1,sts=1,bt=0)
out(08)
halt
"""
"""The trace of ``ADD``, the article's example."""
ENGINE = ("--engine", "hull")

HELLO = (("i32.const", ord("h")), "output", ("i32.const", 10), "output")
FOREVER = (*HELLO, ("br", 0))


def write_tok(path: Path, *code: tuple[str, int] | str, tail: str = "") -> Path:
    """Writes a token program of (opcode, immediate) pairs; an opcode alone has immediate 0."""
    lines = []
    for item in code:
        name, immediate = item if isinstance(item, tuple) else (item, 0)
        data = (immediate & 0xFFFFFFFF).to_bytes(4, "little")
        lines.append(" ".join([name, *map(isa.byte_token, data)]))
    path.write_text("\n".join(["{", *lines, "}", tail]))
    return path


def countdown(path: Path, number: int) -> Path:
    """A token program that outputs the low bytes of ``number`` - 1 down to 0: 37 tokens each."""
    return write_tok(
        path,
        ("i32.const", number),
        "global.set",
        "global.get",
        ("i32.const", 1),
        "i32.sub",
        "global.set",
        "global.get",
        "output",
        "global.get",
        ("br_if", -7 * isa.INSTRUCTION_TOKENS),
        "halt",
    )


def transputer(*arguments: object) -> tuple[int, str, str]:
    """Runs ``main`` in this process: (exit code, standard output, standard error as ``heard``)."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "latin-1", newline="") for _ in range(2))
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.main([str(argument) for argument in arguments])
        out.flush()
        err.flush()
    texts = [stream.buffer.getvalue().decode("latin-1") for stream in (out, err)]  # type: ignore[attr-defined]
    return code, texts[0], heard(texts[1])


def heard(err: str) -> str:
    """Standard error without what is said when something is made for the first time."""
    first = ("transputer: compiling ", "transputer: specialising ")
    return "".join(line for line in err.splitlines(keepends=True) if not line.startswith(first))


def start(*arguments: object, **options: Any) -> subprocess.Popen[bytes]:
    """Starts a process."""
    command = [sys.executable, "-m", "executor", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, **options)


def small_disk(most: int) -> dict[str, Any]:
    """Options of ``start``: no file can grow beyond ``most`` bytes. (Python's own caches of
    compiled modules must not be written then: it would believe in half of one.)"""
    return {
        "preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)),
        "env": {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    }


def left_in(folder: Path) -> list[str]:
    """Names of all files in a folder."""
    return sorted(path.name for path in folder.iterdir())

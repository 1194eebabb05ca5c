"""Programs that were compiled before, from the cache: a second start compiles nothing.

The key of a program is a hash of all that its tokens depend on: this compiler, the C compiler and
its libraries, the options, and the text of the source after the preprocessor, headers and all.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Unpack

from compiler import PathLike, compile_program
from compiler.errors import TransputerError
from compiler.options import COptions
from compiler.program import Origin, Program
from compiler.store import Entry, digest, keep, kept, sources_digest

_KIND = "program"
_SEPARATOR = " "
"""Between tokens, which hold none."""


def compile_kept(
    source: PathLike | Sequence[PathLike] | bytes,
    *,
    call: Sequence[str | int | float] | None = None,
    **options: Unpack[COptions],
) -> Program:
    """What :func:`compiler.compile_program` gives, compiled only if the cache has no such program.

    Raises:
        UsageError, CompileError: as there.
    """
    key = _key(source, call, options)
    entry = kept(_KIND, key) if key is not None else None
    if entry is not None:
        return _from_entry(entry)
    program = compile_program(source, call=call, **options)
    # A source may have changed meanwhile.
    if key is not None and key == _key(source, call, options):
        value, blobs = _to_entry(program)
        keep(_KIND, key, value, blobs)
    return program


def _key(
    source: PathLike | Sequence[PathLike] | bytes,
    call: Sequence[str | int | float] | None,
    options: COptions,
) -> str | None:
    """Names the program; None for a token program, which is read at once, and for what is wrong."""
    common = (sources_digest("compiler"), repr(None if call is None else tuple(call)))
    if isinstance(source, bytes):
        return digest(*common, "module", source)
    paths = [source] if isinstance(source, str | os.PathLike) else list(source)
    if any(Path(path).suffix == ".tok" for path in paths):
        return None
    from compiler.frontend import fingerprint

    try:
        called = [str(call[0])] if call else []
        return digest(*common, *fingerprint(paths, exports=called, **options))
    except TransputerError:
        return None  # the compiler will say what is wrong


def _to_entry(program: Program) -> tuple[object, tuple[bytes, bytes]]:
    """A program as what JSON can hold, and its tokens and module."""
    values = {field.name: getattr(program, field.name) for field in fields(program)}
    values["origins"] = [list(vars(origin).values()) for origin in program.origins]
    tokens, wasm = values.pop("tokens"), values.pop("wasm")
    return values, (_SEPARATOR.join(tokens).encode(), wasm)


def _from_entry(entry: Entry) -> Program:
    tokens, wasm = entry.blobs
    origins = tuple(Origin(*origin) for origin in entry.value.pop("origins"))
    spellings = tuple(tokens.decode().split(_SEPARATOR))
    return Program(tokens=spellings, wasm=wasm, origins=origins, **entry.value)

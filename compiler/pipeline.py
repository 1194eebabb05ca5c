"""The compiler from WebAssembly to a token program: decode, lower, assemble."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from compiler import isa, wasm
from compiler.assemble import Code, assemble
from compiler.errors import CompileError, Place, UsageError
from compiler.lower import (
    Entry,
    Lowered,
    find_call,
    find_calls,
    find_entry,
    find_initialiser,
    lower,
)
from compiler.lower_code import Native
from compiler.lower_context import constant_address
from compiler.program import Program
from compiler.source_map import SourceMap
from compiler.wasi_link import link_wasi, needs_wasi
from compiler.wasm_types import PAGE_BYTES, Module

WANTS_ARGUMENTS = "transputer_wants_args"
"""An export of this name tells that the program reads its arguments from its input."""


def compile_wasm(
    content: bytes,
    name: str,
    *,
    call: Sequence[str | int | float] | None = None,
    entry: str | None = None,
) -> Program:
    """Compile a WebAssembly module.

    Args:
        content: the module in the binary format.
        name: what to call it in messages.
        call: ``(export, *arguments)`` to run that function with these numbers instead of the
            program's entry; WASI's ``_initialize`` is called before it where the module has one.
        entry: the export to run instead of the usual ones (``lower.ENTRY_NAMES``).

    Raises:
        CompileError: the module is malformed or invalid, or has no entry.
        UnsupportedError: the machine cannot run it exactly.
        UsageError: ``call`` does not fit the module.
    """
    decoded = wasm.decode(content, name)
    module = link_wasi(decoded)
    chosen = _chosen_entry(module, call, entry)
    first = find_initialiser(module) if call is not None else []
    try:
        program = _assembled(module, lower(module, *first, chosen))
    except CompileError as error:
        raise _located(error, content) from None
    return replace(
        program,
        wasm=content,
        wants_args=_wants_arguments(decoded, call is not None),
        entry=chosen.export,
        parameters=chosen.function.type.params,
        results=chosen.function.type.results,
    )


def _wants_arguments(module: Module, called: bool) -> bool:
    """Whether arguments stand at the head of the input. Linked calls of WASI pass over them, even
    when a single function is called."""
    return needs_wasi(module) or (not called and WANTS_ARGUMENTS in module.exports)


def _located(error: CompileError, content: bytes) -> CompileError:
    """The error with the line of the source that it is about, if the module says that."""
    known = SourceMap(content).place(error.place.offset, error.place.function)
    if not known.line:
        return error
    place = replace(known, instruction=error.place.instruction)
    return type(error)(error.reason, place, error.remedy)


def compile_calls(module: Module, calls: Sequence[tuple[str, Sequence[int]]]) -> Program:
    """A program that calls exports one after the other on one instance of ``module``.

    All results stay on the stack, in order, as 32-bit words, two of them, low half first, for a
    value of 64 bits. Memory and globals keep their values from call to call.

    Args:
        calls: name of each export, and its arguments as such words.

    Raises:
        CompileError, UnsupportedError, UsageError: as :func:`compile_wasm`.
    """
    return _assembled(module, lower(module, *find_calls(module, calls)))


def _assembled(module: Module, lowered: Lowered) -> Program:
    _check_elements(module)
    segments = _segments(module) if lowered.memory_bytes is not None else []
    code = assemble(lowered.functions, lowered.memory_bytes, segments, module.file)
    return Program(
        name=module.file,
        tokens=code.tokens,
        origins=code.origins,
        memory_bytes=lowered.memory_bytes or 0,
        grows=lowered.grows,
        has_result=lowered.has_result,
        report=_report(lowered, code),
    )


def _chosen_entry(
    module: Module, call: Sequence[str | int | float] | None, entry: str | None
) -> Entry:
    if call is None:
        return find_entry(module, entry)
    export, *arguments = call
    wrong = [argument for argument in arguments if isinstance(argument, str)]
    if wrong:
        raise UsageError(f"{export}: {wrong[0]!r} is no number")
    return find_call(module, str(export), [a for a in arguments if not isinstance(a, str)])


def _segments(module: Module) -> list[tuple[int, bytes]]:
    """Active data segments of memory 0 as (address, bytes); all must fit their memory as it is at
    first."""
    segments: list[tuple[int, bytes]] = []
    for number, data in enumerate(module.data):
        if data.offset is None or module.memories[data.memory].imported is not None:
            continue
        size = module.memories[data.memory].pages * PAGE_BYTES
        address = constant_address(module, data.offset)
        if address + len(data.content) > size:
            raise CompileError(
                f"data segment {number} (address {address}, {len(data.content)} bytes) "
                f"does not fit the memory of {size} bytes",
                Place(module.file),
            )
        if data.memory == 0:
            segments.append((address, data.content))
    return segments


def _check_elements(module: Module) -> None:
    """Active element segments must fit their table, or the module cannot be instantiated."""
    for number, element in enumerate(module.elements):
        if element.offset is None or module.tables[element.table].imported is not None:
            continue
        address, size = constant_address(module, element.offset), module.tables[element.table].size
        if address + len(element.entries) > size:
            raise CompileError(
                f"element segment {number} (index {address}, {len(element.entries)} entries) "
                f"does not fit the table of {size}",
                Place(module.file),
            )


def _report(lowered: Lowered, code: Code) -> dict[str, object]:
    """Sizes in tokens, for ``transputer compile --report``."""
    sizes: Counter[str] = Counter()
    for function in lowered.functions:
        instructions = [item for item in function.code if isinstance(item, Native)]
        sizes[function.name] += isa.INSTRUCTION_TOKENS * len(instructions)
    return {
        "prompt_tokens": len(code.tokens),
        "data_tokens": code.tokens.index(isa.OPEN),
        "instructions": len(code.origins),
        "functions": dict(sizes),
    }

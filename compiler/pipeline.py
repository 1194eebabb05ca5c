"""The compiler from WebAssembly to a token program: decode, lower, assemble."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from compiler import isa, wasm
from compiler.assemble import Code, assemble
from compiler.errors import CompileError, Place, UnsupportedError
from compiler.lower import Entry, Lowered, find_call, find_entry, lower
from compiler.lower_code import Native
from compiler.program import Program
from compiler.wasm_types import PAGE_BYTES, Constant, Module

WANTS_ARGUMENTS = "transputer_wants_args"
"""An export of this name tells that the program reads its arguments from its input."""


def compile_wasm(
    content: bytes,
    name: str,
    *,
    call: Sequence[str | int] | None = None,
    entry: str | None = None,
) -> Program:
    """Compile a WebAssembly module.

    Args:
        content: the module in the binary format.
        name: what to call it in messages.
        call: ``(export, *arguments)`` to run that function with i32 arguments instead of the
            program's entry.
        entry: the export to run instead of the usual ones (``lower.ENTRY_NAMES``).

    Raises:
        CompileError: the module is malformed or invalid, or has no entry.
        UnsupportedError: the machine cannot run it exactly.
        UsageError: ``call`` does not fit the module.
    """
    module = wasm.decode(content, name)
    chosen = _chosen_entry(module, call, entry)
    lowered = lower(module, chosen)
    _check_elements(module)
    memory_bytes = _memory_bytes(module)
    segments = _segments(module) if memory_bytes is not None else []
    code = assemble(lowered.functions, memory_bytes, segments, name)
    return Program(
        name=name,
        tokens=code.tokens,
        wasm=content,
        origins=code.origins,
        wants_args=call is None and WANTS_ARGUMENTS in module.exports,
        memory_bytes=memory_bytes or 0,
        has_result=lowered.has_result,
        entry=chosen.export,
        report=_report(lowered, code),
    )


def _chosen_entry(module: Module, call: Sequence[str | int] | None, entry: str | None) -> Entry:
    if call is None:
        return find_entry(module, entry)
    export, *arguments = call
    return find_call(module, str(export), [int(argument) for argument in arguments])


def _memory_bytes(module: Module) -> int | None:
    """Size of the module's memory, ``None`` if it has none of its own."""
    own = [memory for memory in module.memories if memory.imported is None]
    if not own:
        return None
    if own[0].pages > isa.MAX_MEMORY_PAGES:
        raise UnsupportedError(
            f"a memory of {own[0].pages} pages is not supported",
            Place(module.file),
            f"declare at most {isa.MAX_MEMORY_PAGES} pages of {PAGE_BYTES} bytes",
        )
    return own[0].pages * PAGE_BYTES


def _segments(module: Module) -> list[tuple[int, bytes]]:
    """Active data segments as (address, bytes)."""
    return [
        (_address(module, data.offset), data.content)
        for data in module.data
        if data.offset is not None and data.memory == 0
    ]


def _check_elements(module: Module) -> None:
    """Active element segments must fit their table, or the module cannot be instantiated."""
    for number, element in enumerate(module.elements):
        if element.offset is None or module.tables[element.table].imported is not None:
            continue
        address, size = _address(module, element.offset), module.tables[element.table].size
        if address + len(element.entries) > size:
            raise CompileError(
                f"element segment {number} (index {address}, {len(element.entries)} entries) "
                f"does not fit the table of {size}",
                Place(module.file),
            )


def _address(module: Module, offset: Constant) -> int:
    value: Constant | None = offset
    while value is not None and value.op == "global.get":
        value = module.globals[value.value].init
    if value is None or value.op != "i32.const":
        raise UnsupportedError(
            "the address of a segment is not a constant",
            Place(module.file),
            "link the program at a fixed address, without imported globals",
        )
    return value.value & 0xFFFFFFFF


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

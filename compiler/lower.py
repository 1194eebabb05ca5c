"""WebAssembly to native code: which functions, in which order, started how.

``lower`` takes a decoded module and an entry (or several, to be called one after the other) and
returns all native functions that these can reach, the start stub first and the routines last.
Everything else in the module is left out, so a module may hold what the machine cannot run as long
as the entry does not reach it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from compiler import isa
from compiler.errors import CompileError, Place, UnsupportedError, UsageError
from compiler.legalise import legalise
from compiler.legalise_words import to_words
from compiler.lower_analysis import analyse
from compiler.lower_code import MASK, CodeBuilder, Native, NativeFunction
from compiler.lower_context import Context, function_key, width
from compiler.lower_function import lower_function
from compiler.lower_layout import lay_out, optimise
from compiler.lower_tables import emit_dispatch, indirect_runs
from compiler.program import START, Origin
from compiler.routines import routines_for
from compiler.values import Number, bits_of
from compiler.wasm_types import PAGE_BYTES, Function, FuncType, Module

ENTRY_NAMES = ("transputer_main", "main", "_start")
"""Exports that may be the entry of a program, the preferred one first."""
_ENTRY_TYPES = (("", ""), ("", "i"))


@dataclass(frozen=True)
class Entry:
    """A function that a program calls, and its arguments: 32-bit words, two of them, low half
    first, for a value of 64 bits."""

    export: str
    function: Function
    arguments: tuple[int, ...] = ()


@dataclass(frozen=True)
class Lowered:
    """Native functions in program order.

    ``has_result``: an i32 is on top of the stack at halt. ``grows``: the memory may grow, up to
    ``memory_bytes``; None without a memory.
    """

    functions: tuple[NativeFunction, ...]
    has_result: bool
    memory_bytes: int | None
    grows: bool


def find_entry(module: Module, export: str | None = None) -> Entry:
    """The entry of a program: the export of that name, or the first of ``ENTRY_NAMES``.

    Raises:
        CompileError: there is none, or it takes arguments.
        UnsupportedError: its result is not an i32.
    """
    names = ENTRY_NAMES if export is None else (export,)
    for name in names:
        found = module.exports.get(name)
        if found is not None and found.kind == "func":
            break
    else:
        known = sorted(e.name for e in module.exports.values() if e.kind == "func")
        raise CompileError(
            f"no function is exported as {' or '.join(names)}",
            Place(module.file),
            f"exported functions: {', '.join(known[:20]) or 'none'}; name one with --call",
        )
    function = module.functions[found.index]
    if (function.type.params, function.type.results) not in _ENTRY_TYPES:
        raise UnsupportedError(
            f"the entry {name} has type {function.type}",
            module.place(function),
            "an entry takes nothing and returns nothing or one i32; call others with --call",
        )
    return Entry(name, function)


def find_call(module: Module, export: str, arguments: Sequence[Number]) -> Entry:
    """The export ``export``, to be called with these numbers.

    Raises:
        UsageError: there is no such function, or the arguments do not fit it.
        UnsupportedError: it takes or returns something else than numbers, or several results.
    """
    found = module.exports.get(export)
    if found is None or found.kind != "func":
        raise UsageError(f"{module.file} exports no function {export}")
    function = module.functions[found.index]
    types = function.type
    if set(types.params + types.results) - set("ilfd") or len(types.results) > 1:
        raise UnsupportedError(
            f"{export} has type {types}, only numbers can be passed and one returned",
            module.place(function),
            "call a function that takes numbers and returns one or nothing",
        )
    if len(arguments) != len(types.params):
        raise UsageError(f"{export} takes {len(types.params)} arguments, {len(arguments)} given")
    bits = []
    for number, (type_, value) in enumerate(zip(types.params, arguments, strict=True), start=1):
        try:
            bits.append(bits_of(type_, value))
        except UsageError as error:
            raise UsageError(f"{export}: argument {number}: {error}") from None
    return Entry(export, function, to_words(types.params, bits))


def find_initialiser(module: Module) -> list[Entry]:
    """What has to be called before any export of a module that is a library: WASI's
    ``_initialize``, if it is there."""
    found = module.exports.get("_initialize")
    if found is None or found.kind != "func":
        return []
    function = module.functions[found.index]
    return [Entry(found.name, function)] if function.type == FuncType("", "") else []


def find_calls(module: Module, calls: Iterable[tuple[str, Sequence[int]]]) -> list[Entry]:
    """Entries that call exports by name, with arguments as :class:`Entry` has them.

    Raises:
        UsageError: there is no such function, or the arguments do not fit it.
    """
    entries = []
    for name, arguments in calls:
        found = module.exports.get(name)
        if found is None or found.kind != "func":
            raise UsageError(f"{module.file} exports no function {name}")
        function = module.functions[found.index]
        if len(arguments) != width(function.type.params):
            raise UsageError(f"{name} has type {function.type}, {len(arguments)} words given")
        entries.append(Entry(name, function, tuple(arguments)))
    return entries


def lower(module: Module, *entries: Entry) -> Lowered:
    """Lower everything that ``entries`` reach; the program calls them in this order.

    Raises:
        CompileError: a function that is reached is invalid.
        UnsupportedError: it does what the machine cannot do; the message names the function and
            the instruction.
    """
    roots = [entry.function.index for entry in entries]
    if module.start is not None:
        roots.insert(0, module.start)
    source, module = module, legalise(module, roots)
    entries = tuple(replace(e, function=module.functions[e.function.index]) for e in entries)
    context = analyse(module, roots)
    functions: list[NativeFunction] = []
    for index in sorted(context.bodies):
        function = module.functions[index]
        code = source.functions[index].code if index < len(source.functions) else ()
        blocks = optimise(lower_function(context, function, code))
        functions.append(lay_out(function_key(index), function.name, blocks, function.offset))
    functions += [_dispatcher(context, key) for key in sorted(context.dispatchers)]
    has_result = bool(entries and entries[-1].function.type.results) or context.exits
    stub = _stub(context, entries, has_result)
    return Lowered(
        functions=(stub, *functions, *routines_for(functions)),
        has_result=has_result,
        memory_bytes=_memory_bytes(context),
        grows=0 in context.grows,
    )


def _memory_bytes(context: Context) -> int | None:
    """Size of the module's memory, ``None`` if it has none of its own."""
    memories = context.module.memories
    if not memories or memories[0].imported is not None:
        return None
    if memories[0].pages > isa.MAX_MEMORY_PAGES:
        raise UnsupportedError(
            f"a memory of {memories[0].pages} pages is not supported",
            Place(context.module.file),
            f"declare at most {isa.MAX_MEMORY_PAGES} pages of {PAGE_BYTES} bytes",
        )
    return context.most_bytes()


def _dispatcher(context: Context, key: str) -> NativeFunction:
    """The function that makes all indirect calls of one type through one table.

    The index is on top of the stack and the arguments below it, where the callee takes them.
    """
    code = CodeBuilder(0, Origin(key, "(call_indirect)", -1))
    runs = indirect_runs(context, *context.dispatchers[key])
    emit_dispatch(context, code, runs, lambda: code.emit("return"))
    return lay_out(key, key, optimise(code.blocks))


def _stub(context: Context, entries: Sequence[Entry], has_result: bool) -> NativeFunction:
    """Set the globals, run the start function, make the calls, and halt."""
    origin = Origin(START, START, -1)
    code: list[Native] = []

    def assign(slot: int, value: int) -> None:
        code.append(Native("i32.const", value, origin))
        code.append(Native("global.set", slot, origin))

    for memory in context.grows:
        assign(context.size_global(memory), context.initial_bytes(memory))
    for index, slot in context.slots.items():
        value = context.initial_value(index) or 0
        for half in range(width(context.module.globals[index].type)):
            assign(slot + half, value >> (32 * half) & MASK)
    if context.module.start is not None:
        code.append(Native("call", 0, origin, callee=function_key(context.module.start)))
    for entry in entries:
        code += [Native("i32.const", value, origin) for value in entry.arguments]
        code.append(Native("call", 0, origin, callee=function_key(entry.function.index)))
    if has_result and not (entries and entries[-1].function.type.results):
        code.append(Native("i32.const", 0, origin))  # the exit code of a normal end
    code.append(Native("halt", 0, origin))
    return NativeFunction(START, START, tuple(code))

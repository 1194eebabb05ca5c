"""WebAssembly to native code: which functions, in which order, started how.

``lower`` takes a decoded module and an entry and returns all native functions that the entry can
reach, the start stub first and the routines last. Everything else in the module is left out, so a
module may hold what the machine cannot run as long as the entry does not reach it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compiler.errors import CompileError, Place, UnsupportedError, UsageError
from compiler.lower_code import MASK, Native, NativeFunction
from compiler.lower_context import Context, function_key, width
from compiler.lower_function import lower_function
from compiler.lower_layout import lay_out, optimise
from compiler.program import Origin
from compiler.routines import routines_for
from compiler.wasm_check import Step, check_function
from compiler.wasm_types import Function, Module

ENTRY_NAMES = ("transputer_main", "main", "_start")
"""Exports that may be the entry of a program, the preferred one first."""
_ENTRY_TYPES = (("", ""), ("", "i"))


@dataclass(frozen=True)
class Entry:
    """The function a program runs, and the i32 arguments it gets."""

    export: str
    function: Function
    arguments: tuple[int, ...] = ()


@dataclass(frozen=True)
class Lowered:
    """Native functions in program order; ``has_result``: an i32 is on top of the stack at halt."""

    functions: tuple[NativeFunction, ...]
    has_result: bool


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


def find_call(module: Module, export: str, arguments: Sequence[int]) -> Entry:
    """The export ``export``, to be called with i32 ``arguments`` (signed or unsigned).

    Raises:
        UsageError: there is no such function, or the arguments do not fit it.
        UnsupportedError: it takes or returns something else than i32.
    """
    found = module.exports.get(export)
    if found is None or found.kind != "func":
        raise UsageError(f"{module.file} exports no function {export}")
    function = module.functions[found.index]
    types = function.type
    if set(types.params + types.results) - {"i"} or len(types.results) > 1:
        raise UnsupportedError(
            f"{export} has type {types}, only i32 values can be passed and one returned",
            module.place(function),
            "call a function with i32 parameters and at most one i32 result",
        )
    if len(arguments) != len(types.params):
        raise UsageError(f"{export} takes {len(types.params)} arguments, {len(arguments)} given")
    for value in arguments:
        if not -(1 << 31) <= value <= MASK:
            raise UsageError(f"{value}: not a 32-bit integer")
    return Entry(export, function, tuple(value & MASK for value in arguments))


def lower(module: Module, entry: Entry) -> Lowered:
    """Lower everything that ``entry`` reaches.

    Raises:
        CompileError: a function that is reached is invalid.
        UnsupportedError: it does what the machine cannot do; the message names the function and
            the instruction.
    """
    roots = [entry.function.index]
    if module.start is not None:
        roots.insert(0, module.start)
    context = _analyse(module, roots)
    functions: list[NativeFunction] = []
    for index in sorted(context.bodies):
        function = module.functions[index]
        blocks = optimise(lower_function(context, function))
        functions.append(lay_out(function_key(index), function.name, blocks))
    has_result = bool(entry.function.type.results) or _calls_exit(context)
    stub = _stub(context, entry, has_result)
    return Lowered((stub, *functions, *routines_for(functions)), has_result)


def _analyse(module: Module, roots: Iterable[int]) -> Context:
    """Type every function that is reached, and note which globals are written."""
    bodies: dict[int, list[Step]] = {}
    written: set[int] = set()
    queue = list(roots)
    while queue:
        function = module.functions[queue.pop()]
        if function.index in bodies:
            continue
        if function.imported is not None:
            if function.index in roots:
                raise UnsupportedError(
                    "an imported function cannot be the entry", module.place(function)
                )
            continue
        bodies[function.index] = check_function(module, function)
        for step in bodies[function.index]:
            if step.live and step.instruction.op == "call":
                queue.append(step.instruction.args[0])
            elif step.live and step.instruction.op == "global.set":
                written.add(step.instruction.args[0])
    return Context(module, bodies, frozenset(written))


def _calls_exit(context: Context) -> bool:
    return any(
        step.instruction.op == "call"
        and step.live
        and context.provided(context.module.functions[step.instruction.args[0]]) == "exit"
        for body in context.bodies.values()
        for step in body
    )


def _stub(context: Context, entry: Entry, has_result: bool) -> NativeFunction:
    """Set the globals, run the start function, call the entry with its arguments, and halt."""
    name = "(start)"
    origin = Origin(name, "(start)", -1)
    code: list[Native] = []
    for index, slot in context.slots.items():
        value = context.initial_value(index) or 0
        for half in range(width(context.module.globals[index].type)):
            constant = value >> (32 * half) & MASK
            code += [
                Native("i32.const", constant, origin),
                Native("global.set", slot + half, origin),
            ]
    if context.module.start is not None:
        code.append(Native("call", 0, origin, callee=function_key(context.module.start)))
    code += [Native("i32.const", value, origin) for value in entry.arguments]
    code.append(Native("call", 0, origin, callee=function_key(entry.function.index)))
    if has_result and not entry.function.type.results:
        code.append(Native("i32.const", 0, origin))  # the exit code of a normal end
    code.append(Native("halt", 0, origin))
    return NativeFunction("(start)", name, tuple(code))

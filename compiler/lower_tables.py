"""Tables of functions: what they hold, and what an indirect call does for each index.

Nothing that the compiler accepts writes a table, so its content is known here. An indirect call
becomes a search among runs of indices: a matching function is called by name; what has another
type, is null or lies outside the table traps with that reason.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from compiler.errors import Place, UnsupportedError
from compiler.lower_code import CodeBuilder
from compiler.lower_context import IMPORTS, Context, Target, constant_address, function_key
from compiler.program import MISMATCH, TRAP_REASONS, UNDEFINED, UNINITIALISED
from compiler.wasm_check import Step
from compiler.wasm_types import Constant, Function, FuncType, Module

INLINE_RUNS = 8
"""A call with more runs than this goes to a function that all calls of its type share: two
instructions more at run time, but the code grows with the table only once."""

MOST_INITIAL = 1 << 16
"""Entries of a table that begins with a value other than null."""

T = TypeVar("T")


def table_entries(module: Module, number: int) -> dict[int, int]:
    """Index of the function at each table index that is not null, in order of table indices.

    Raises:
        UnsupportedError: the table is imported, or holds what is not a constant.
        CompileError: an element segment does not fit.
    """
    table = module.tables[number]
    if table.imported is not None:
        raise _unknown(module, "an imported table is not supported")
    entries: dict[int, int] = {}

    def fill(indices: range, content: Constant) -> None:
        value = content.evaluate(module.global_values)
        if value is None or value.op not in ("ref.func", "ref.null"):
            raise _unknown(module, "an element that is not a constant is not supported")
        for index in indices:
            if value.op == "ref.func":
                entries[index] = value.value
            else:
                entries.pop(index, None)

    if table.init is not None and table.init.op != "ref.null":
        if table.size > MOST_INITIAL:
            raise _unknown(module, f"a table of {table.size} initial values is not supported")
        fill(range(table.size), table.init)
    for element in module.elements:
        if element.table == number and element.offset is not None:
            address = constant_address(module, element.offset)
            for index, entry in enumerate(element.entries, start=address):
                fill(range(index, index + 1), entry)
    return dict(sorted(entries.items()))


def _unknown(module: Module, reason: str) -> UnsupportedError:
    remedy = "define the table and its elements in the module itself"
    return UnsupportedError(reason, Place(module.file), remedy)


def indirect_runs(context: Context, number: int, type_: FuncType) -> list[tuple[int, Target]]:
    """First table index and target of each run of indices that do the same, from index 0 on.

    They are computed once for each table and type; errors as for :func:`table_entries`.
    """
    key = number, type_
    if key not in context.runs:
        context.runs[key] = _runs(context.module, number, type_)
    return context.runs[key]


def _runs(module: Module, number: int, type_: FuncType) -> list[tuple[int, Target]]:
    runs: list[tuple[int, Target]] = []

    def append(start: int, target: Target) -> None:
        if not runs or runs[-1][1] != target:
            runs.append((start, target))

    following = 0
    for index, callee in table_entries(module, number).items():
        if index > following:
            append(following, TRAP_REASONS[UNINITIALISED])
        function = module.functions[callee]
        append(index, function if function.type == type_ else TRAP_REASONS[MISMATCH])
        following = index + 1
    if following < module.tables[number].size:
        append(following, TRAP_REASONS[UNINITIALISED])
    append(module.tables[number].size, TRAP_REASONS[UNDEFINED])
    return runs


def search(
    code: CodeBuilder, index: int, starts: list[tuple[int, T]], reach: Callable[[T], None]
) -> None:
    """Emit a binary search: ``reach(target)`` for the last start at or below local ``index``.

    ``starts`` begins with 0; ``reach`` emits what ends in a jump or a stop.
    """
    if len(starts) == 1:
        reach(starts[0][1])
        return
    middle = len(starts) // 2
    below, above = code.label(), code.label()
    code.emit("local.get", index)
    if starts[middle][0] == 1:
        code.branch(above, below)
    else:
        code.emit_all([("i32.const", starts[middle][0]), ("i32.lt_u", 0)])
        code.branch(below, above)
    for label, part in ((below, starts[:middle]), (above, starts[middle:])):
        code.place(label)
        search(code, index, part, reach)


def emit_call(context: Context, code: CodeBuilder, callee: Function) -> None:
    """Call a function, or do what the import of that name does."""
    provided = context.provided(callee)
    if not provided:
        code.emit("call", callee=function_key(callee.index))
    else:
        *_, native, immediate = IMPORTS[provided]
        code.emit(native, immediate)


def emit_indirect(context: Context, code: CodeBuilder, step: Step) -> None:
    """An indirect call; the index is on top of the stack, the arguments below it."""
    type_index, number = step.instruction.args
    type_ = context.module.types[type_index]
    runs = indirect_runs(context, number, type_)
    if len(runs) > INLINE_RUNS:
        code.emit("call", callee=context.dispatcher(number, type_))
        return
    after = code.label()
    emit_dispatch(context, code, runs, lambda: code.jump(after))
    code.place_if_reached(after)


def emit_dispatch(
    context: Context,
    code: CodeBuilder,
    runs: list[tuple[int, Target]],
    then: Callable[[], None],
) -> None:
    """Take the index from the stack and call what it leads to, and ``then`` go on; or trap."""

    def reach(target: Target) -> None:
        if isinstance(target, str):
            code.emit("unreachable", TRAP_REASONS.index(target))
        else:
            emit_call(context, code, target)
            then()

    index = code.scratch()
    code.emit("local.set", index)
    search(code, index, runs, reach)

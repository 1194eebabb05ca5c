"""What a program reaches: every function that its calls lead to, typed, and what those do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compiler.errors import UnsupportedError
from compiler.lower_context import Context
from compiler.lower_tables import indirect_runs
from compiler.wasm_check import Step, check_function
from compiler.wasm_types import Function, Module


def analyse(module: Module, roots: Iterable[int]) -> Context:
    """Type every function that the functions ``roots`` reach, and note what these do.

    Raises:
        CompileError: a function that is reached is invalid.
        UnsupportedError: it uses what is not known here, or calls an import that nothing provides.
    """
    context = Context(module, {}, frozenset())
    written: set[int] = set()
    grown: set[int] = set()
    queue = list(roots)
    for index in queue:
        if module.functions[index].imported is not None:
            place = module.place(module.functions[index])
            raise UnsupportedError("an imported function cannot be the entry", place)
    while queue:
        function = module.functions[queue.pop()]
        if function.index in context.bodies:
            continue
        context.bodies[function.index] = check_function(module, function)
        for step in context.bodies[function.index]:
            if not step.live:
                continue
            if step.instruction.op == "global.set":
                written.add(step.instruction.args[0])
            elif step.instruction.op == "memory.grow":
                grown.add(step.instruction.args[0])
            for callee in _callees(context, function, step):
                _check_import(context, function, step, callee)
                context.exits |= context.provided(callee) == "exit"
                if callee.imported is None:
                    queue.append(callee.index)
    return Context(
        module,
        context.bodies,
        frozenset(written),
        grows=tuple(sorted(grown)),
        exits=context.exits,
        runs=context.runs,
    )


def _callees(context: Context, caller: Function, step: Step) -> Iterator[Function]:
    """The functions that an instruction may call; those of an indirect call only for the first
    one of its type."""
    module = context.module
    if step.instruction.op == "call":
        yield module.functions[step.instruction.args[0]]
    elif step.instruction.op == "call_indirect":
        type_index, table = step.instruction.args
        type_ = module.types[type_index]
        if (table, type_) in context.runs:
            return
        try:
            runs = indirect_runs(context, table, type_)
        except UnsupportedError as error:
            raise context.refuse(caller, step.instruction, error.reason, error.remedy) from None
        yield from (target for _, target in runs if isinstance(target, Function))


def _check_import(context: Context, caller: Function, step: Step, callee: Function) -> None:
    if callee.imported is not None and not context.provided(callee):
        names, type_ = callee.imported, callee.type
        reason = f"nothing provides the import {names.module}.{names.name} {type_}"
        remedy = "define that function in the program, or remove the call"
        raise context.refuse(caller, step.instruction, reason, remedy)

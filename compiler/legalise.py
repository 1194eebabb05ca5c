"""Legalises a module: 64-bit integers and floats become 32-bit integers.

Input: a decoded module and the functions that matter. Output: a module with the same functions at
the same indices, whose values are i32 alone, so that the rest of the compiler knows one type. What
is too long to be written out calls functions of the runtime (``runtime/*.c``), which follow the
module's own functions and are legalised like them.

Conventions of the result:

- An i64 is two words, the low half first (below, on the stack); an f32 is the word of its bits, an
  f64 the two words of its bits. That holds for parameters, results (functions and blocks have
  several), locals and globals: a 64-bit global becomes two, and its export is the low half.
- Types stay at their indices. Where two different types of the source become equal, indirect calls
  of each have a table of their own: what has another type is a function there whose type nothing
  else has, so that calling it traps as it should.
- Arithmetic that returns a NaN returns the positive quiet one without payload.
- ``unreachable`` has an immediate where it stands for another trap: see ``invalid_conversion``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache

from compiler import wasm
from compiler.errors import UnsupportedError
from compiler.legalise_bulk import without_segments
from compiler.legalise_function import Linkage, legalise_function, word_type
from compiler.legalise_runtime import runtime_binary
from compiler.legalise_tables import Tables
from compiler.legalise_words import MASK, widths
from compiler.lower_context import IMPORT_MODULE
from compiler.program import TRAP_REASONS, UNREACHABLE
from compiler.wasm_check import check_function
from compiler.wasm_types import (
    Constant,
    Export,
    Function,
    FuncType,
    Global,
    Instruction,
    Module,
)

_INVALID_CONVERSION = "invalid conversion to integer"
"""Reason of a trap. The runtime imports a function for each reason of its traps."""
_OVERFLOW = (
    Instruction("i32.const", (1 << 31,), 0),
    Instruction("i32.const", (MASK,), 0),
    Instruction("i32.div_s", (), 0),
    Instruction("drop", (), 0),
)
"""Traps because of an integer overflow."""
_ABSENT = "it is not reached"
_UNKNOWN = Constant("")


def legalise(module: Module, roots: Iterable[int] | None = None) -> Module:
    """The module on i32 alone.

    Args:
        roots: indices of the functions that will be called from outside; all exports if None.
            Functions that neither these nor the start function reach lose their bodies.

    Raises:
        CompileError: a function that is reached is invalid.
        UnsupportedError: it uses references, vectors or another extension; the message names the
            function and the instruction.

    Complexity: linear in the length of the functions reached.
    """
    module = without_segments(module)
    if roots is None:
        roots = [e.index for e in module.exports.values() if e.kind == "func"]
    return _Legaliser(module).run(roots)


def invalid_conversion() -> int:
    """Immediate of an ``unreachable`` that stands for the trap of a float to integer conversion."""
    known = _INVALID_CONVERSION in TRAP_REASONS
    return TRAP_REASONS.index(_INVALID_CONVERSION) if known else UNREACHABLE


@cache
def runtime_module() -> Module:
    """The runtime as compiled from C, decoded; its code has no place in the program's module."""
    module = wasm.decode(runtime_binary(), "the compiler's runtime")
    functions = [
        replace(f, code=tuple(replace(c, offset=-1) for c in f.code), offset=-1)
        for f in module.functions
    ]
    return replace(module, functions=tuple(functions))


class _Legaliser:
    """Follows calls from the roots, through the module and the runtime."""

    def __init__(self, module: Module) -> None:
        self.module = module
        self.functions: dict[int, Function] = {}
        self.queue: list[int] = []
        self.runtime_indices: dict[int, int] = {}
        self.runtime_queue: list[int] = []
        starts = [0]
        for variable in module.globals:
            starts.append(starts[-1] + widths(variable.type))
        self.globals = tuple(starts)
        self.tables = Tables(module)

    def run(self, roots: Iterable[int]) -> Module:
        """Legalise what the roots reach."""
        module = self.module
        self._reach(roots)
        if module.start is not None:
            self._reach([module.start])
        own = Linkage(
            module, lambda call: (call,), self._runtime, self.globals, self.tables.numbers
        )
        while self.queue:
            function = module.functions[self.queue.pop()]
            body = check_function(module, function)
            for step in body:
                if step.live and step.instruction.op == "call":
                    self._reach([step.instruction.args[0]])
                elif step.live and step.instruction.op == "call_indirect":
                    self._reach(self.tables.callees(*step.instruction.args))
            self.functions[function.index] = legalise_function(own, function, body)
        return self._module([*self._own_functions(), *self._runtime_functions()])

    def _reach(self, indices: Iterable[int]) -> None:
        for index in indices:
            if index in self.functions:
                continue
            function = self.module.functions[index]
            self.functions[index] = _bare(function)
            if function.imported is None:
                self.queue.append(index)
            elif function.imported.module == IMPORT_MODULE:
                self._check_provided(function)

    def _check_provided(self, function: Function) -> None:
        """On words the type of an import may be what it should be, although it is not."""
        if function.imported is not None and word_type(function.type) != function.type:
            names = function.imported
            reason = f"nothing provides the import {names.module}.{names.name} {function.type}"
            remedy = "declare it with the type that it has"
            raise UnsupportedError(reason, self.module.place(function), remedy)

    def _own_functions(self) -> list[Function]:
        return [self.functions.get(f.index) or _bare(f) for f in self.module.functions]

    # --- calls -------------------------------------------------------------------------------

    def _runtime(self, name: str) -> tuple[int, FuncType]:
        runtime = runtime_module()
        index = runtime.exports[name].index
        return self._runtime_index(index), runtime.functions[index].type

    def _runtime_index(self, index: int) -> int:
        if index not in self.runtime_indices:
            place = len(self.module.functions) + len(self.tables.markers)
            self.runtime_indices[index] = place + len(self.runtime_indices)
            self.runtime_queue.append(index)
        return self.runtime_indices[index]

    def _runtime_functions(self) -> list[Function]:
        """The markers of tables, and the runtime functions that are called, in order."""
        runtime = runtime_module()
        linkage = Linkage(runtime, self._runtime_call, self._runtime, (0,), {})
        functions = list(self.tables.markers)
        for index in self.runtime_queue:  # grows while functions are found
            function = runtime.functions[index]
            done = legalise_function(linkage, function, check_function(runtime, function))
            place = self.runtime_indices[index]
            named = any(e.index == index for e in runtime.exports.values() if e.kind == "func")
            name = function.name if named else f"runtime {index}"
            functions.append(replace(done, index=place, name=f"({name})"))
        return functions

    def _runtime_call(self, instruction: Instruction) -> tuple[Instruction, ...]:
        callee = runtime_module().functions[instruction.args[0]]
        if callee.imported is None:
            return (replace(instruction, args=(self._runtime_index(callee.index),)),)
        if callee.imported.name == _INVALID_CONVERSION:
            return (Instruction("unreachable", (invalid_conversion(),), instruction.offset),)
        return tuple(replace(part, offset=instruction.offset) for part in _OVERFLOW)

    # --- the rest of the module --------------------------------------------------------------

    def _module(self, functions: Sequence[Function]) -> Module:
        module = self.module
        return Module(
            file=module.file,
            types=tuple(map(word_type, module.types)),
            functions=tuple(functions),
            tables=self.tables.tables,
            memories=module.memories,
            globals=tuple(part for g in range(len(module.globals)) for part in self._global(g)),
            exports={name: self._export(export) for name, export in module.exports.items()},
            start=module.start,
            elements=tuple(
                replace(element, offset=self._address(element.offset))
                for element in self.tables.elements
            ),
            data=tuple(replace(data, offset=self._address(data.offset)) for data in module.data),
        )

    def _export(self, export: Export) -> Export:
        if export.kind != "global":
            return export
        return replace(export, index=self.globals[export.index])

    def _address(self, offset: Constant | None) -> Constant | None:
        """A constant expression of type i32, with new numbers of globals."""
        if offset is None:
            return None
        if offset.code:
            parts = tuple(part for code in offset.code if (part := self._address(code)))
            return replace(offset, code=parts)
        if offset.op == "global.get":
            return replace(offset, value=self.globals[offset.value])
        return offset

    def _global(self, number: int) -> list[Global]:
        """The words of a global."""
        variable = self.module.globals[number]
        if variable.type not in "ilfd":
            return [variable]
        count = widths(variable.type)
        if variable.imported is not None:
            return [replace(variable, type="i")] * count
        value = self.module.global_values[number]
        init = variable.init
        if value is not None and value.op.endswith(".const"):
            parts = [self._constant(value.value, half) for half in range(count)]
        elif init is not None and init.op == "global.get":
            first = self.globals[init.value]
            parts = [replace(init, value=first + half) for half in range(count)]
        else:  # not known: whoever uses it will be refused
            parts = [self._address(init) or _UNKNOWN] if count == 1 else [_UNKNOWN] * count
        return [replace(variable, type="i", init=part) for part in parts]

    @staticmethod
    def _constant(value: int, half: int) -> Constant:
        return Constant("i32.const", value >> 32 * half & MASK)


def _bare(function: Function) -> Function:
    """The function with its new type and without its body."""
    if set(function.type.params + function.type.results) - set("ilfd"):
        return replace(function, code=(), locals="", unknown=function.unknown or _ABSENT)
    bare = replace(function, type=word_type(function.type), code=(), locals="")
    return bare if function.imported is not None else replace(bare, unknown=_ABSENT)

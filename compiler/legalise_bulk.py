"""Data segments at run time: ``memory.init`` and ``data.drop`` become calls of functions made here.

The machine keeps the linear memory alone. So the bytes of a passive segment become the constants of
a function that returns one word of them, and whether the segment has been dropped becomes a global:
its size.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from compiler.wasm_types import Constant, Function, FuncType, Global, Instruction, Module

_INSTRUCTIONS = ("memory.init", "data.drop")
_EMPTY = FuncType("", "")
_BEYOND = 0xFFFFFFFF
"""An address at which every load traps."""
_Code = Iterable[tuple[str, *tuple[int, ...]] | str]
"""Instructions: names, with their immediates if they have any."""


def without_segments(module: Module) -> Module:
    """The module without instructions on passive data segments.

    What the instructions do to active segments, which are dropped from the beginning, needs no
    bytes and is left to the lowering.
    """
    used = {
        code.args[0]
        for function in module.functions
        for code in function.code
        if code.op in _INSTRUCTIONS
    }
    passive = [n for n, data in enumerate(module.data) if data.offset is None and n in used]
    if not passive or not module.memories:
        return module
    return _Segments(module, passive).module()


class _Segments:
    """Adds three functions and a global for each passive segment of ``used``."""

    def __init__(self, module: Module, used: list[int]) -> None:
        self.source = module
        self.used = used
        self.first_function = len(module.functions)
        self.first_global = len(module.globals)

    def module(self) -> Module:
        """The new module."""
        source = self.source
        functions = [self._replaced(function) for function in source.functions]
        variables = list(source.globals)
        for place, segment in enumerate(self.used):
            content = source.data[segment].content
            size = self.first_global + place
            variables.append(Global("i", True, Constant("i32.const", len(content))))
            index = self.first_function + 3 * place
            functions += [
                _function(index, FuncType("iii", ""), "memory.init", _initialise(size, index + 2)),
                _function(index + 1, _EMPTY, "data.drop", (("i32.const", 0), ("global.set", size))),
                _function(index + 2, FuncType("i", "i"), "data", _words(content)),
            ]
        return replace(source, functions=tuple(functions), globals=tuple(variables))

    def _replaced(self, function: Function) -> Function:
        return replace(function, code=tuple(map(self._call, function.code)))

    def _call(self, instruction: Instruction) -> Instruction:
        if instruction.op not in _INSTRUCTIONS or instruction.args[0] not in self.used:
            return instruction
        index = self.first_function + 3 * self.used.index(instruction.args[0])
        return Instruction("call", (index + (instruction.op == "data.drop"),), instruction.offset)


def _function(index: int, type_: FuncType, name: str, code: _Code) -> Function:
    body = tuple(
        Instruction(op, tuple(args), -1, _EMPTY if op in ("block", "loop", "if") else None)
        for op, *args in ((part,) if isinstance(part, str) else part for part in (*code, "end"))
    )
    return Function(index, type_, f"({name})", type_.params, body)


def _initialise(size: int, words: int) -> _Code:
    """Copy ``count`` bytes of the segment, from ``source`` on, to ``target``, if all are there."""
    target, source, count = 0, 1, 2
    return (
        ("local.get", source), ("global.get", size), "i32.gt_u",
        ("local.get", count), ("global.get", size), ("local.get", source), "i32.sub", "i32.gt_u",
        "i32.or",
        ("local.get", target), *_memory_bytes(), "i32.gt_u", "i32.or",
        ("local.get", count), *_memory_bytes(), ("local.get", target), "i32.sub", "i32.gt_u",
        "i32.or",
        "if", ("i32.const", _BEYOND), ("i32.load", 2, 0), "drop", "end",
        "block", "loop",
        ("local.get", count), "i32.eqz", ("br_if", 1),
        ("local.get", target),
        ("local.get", source), ("i32.const", 2), "i32.shr_u", ("call", words),
        ("local.get", source), ("i32.const", 3), "i32.shl", "i32.shr_u",
        ("i32.store8", 0, 0),
        *_step(target, 1), *_step(source, 1), *_step(count, -1),
        ("br", 0), "end", "end",
    )  # fmt: skip


def _memory_bytes() -> _Code:
    return (("memory.size", 0), ("i32.const", 16), "i32.shl")


def _step(local: int, by: int) -> _Code:
    return (
        ("local.get", local), ("i32.const", by & 0xFFFFFFFF), "i32.add", ("local.set", local),
    )  # fmt: skip


def _words(content: bytes) -> _Code:
    """The word of the bytes from four times the parameter on."""
    words = [
        int.from_bytes(content[at : at + 4], "little") for at in range(0, len(content), 4)
    ] or [0]
    returns = [part for word in words[:-1] for part in (("i32.const", word), "return", "end")]
    return (
        *("block",) * len(words), ("local.get", 0), ("br_table", *range(len(words))), "end",
        *returns, ("i32.const", words[-1]),
    )  # fmt: skip

"""What state of its instance a call may touch, told from the code alone."""

from __future__ import annotations

from dataclasses import dataclass

from compiler.wasm_opcodes import access_bytes
from compiler.wasm_types import Instruction, Module

MEMORY, TABLE, EVERYTHING = "memory", "table", "everything"


@dataclass(frozen=True)
class Effects:
    """Names of what a call may write, and of what its results may depend on."""

    writes: frozenset[str]
    uses: frozenset[str]


def effects(module: Module, root: int) -> Effects:
    """What function ``root`` and all that it may call do."""
    writes: set[str] = set()
    uses: set[str] = set()
    seen: set[int] = set()
    queue = [root]
    while queue:
        index = queue.pop()
        if index in seen:
            continue
        seen.add(index)
        function = module.functions[index]
        if function.unknown or function.imported is not None:
            writes.add(EVERYTHING)
        for code in function.code:
            if code.op == "call":
                queue.append(code.args[0])
            elif code.op == "call_indirect":
                queue += [
                    entry.value
                    for element in module.elements
                    for entry in element.entries
                    if entry.op == "ref.func"
                    and module.functions[entry.value].type == module.types[code.args[0]]
                ]
            written, used = _instruction(code)
            writes |= written
            uses |= used
    return Effects(frozenset(writes), frozenset(uses | writes))


def _instruction(code: Instruction) -> tuple[set[str], set[str]]:
    op = code.op
    if op == "global.set":
        return {f"global {code.args[0]}"}, set()
    if op == "global.get":
        return set(), {f"global {code.args[0]}"}
    if op == "call_indirect":
        return set(), {TABLE}
    if op.startswith(("table.", "elem.")):
        return (set(), {TABLE}) if op in ("table.get", "table.size") else ({TABLE}, set())
    if access_bytes(op) or op.startswith(("memory.", "data.")):
        reads = ".load" in op or op == "memory.size"
        return (set(), {MEMORY}) if reads else ({MEMORY}, set())
    return set(), set()

"""Types a function body: what is on the operand stack at every instruction, and where branches go.

This is the validation algorithm of the WebAssembly specification (appendix "Validation
Algorithm"), which keeps the types it computes. Lowering reads the result, so it never has to
guess what a block leaves on the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from compiler.errors import CompileError, UnsupportedError
from compiler.wasm_opcodes import SIGNATURES, TYPE_NAMES, access_bytes
from compiler.wasm_types import Function, FuncType, Instruction, Module

_UNKNOWN = "?"
"""Type of an operand that unreachable code takes from nowhere."""
LATER = "compile for WebAssembly 1.0 (clang -mcpu=mvp)"


@dataclass(frozen=True, slots=True)
class Edge:
    """A branch: to the label of block ``block``, with the types it carries and those it discards.

    ``block`` is the index of the instruction that opens the block, -1 for the function itself.
    The discarded operands lie below the carried ones.
    """

    block: int
    keep: str
    discard: str


@dataclass(frozen=True, slots=True)
class Step:
    """An instruction and what is known where it stands.

    ``live``: it can be reached, as far as validation can tell. ``block``: for ``end`` and
    ``else``, the index of the instruction that opened the block (-1: the function). ``operand``:
    type that ``drop``, ``select`` or ``local.tee`` works on.
    """

    index: int
    instruction: Instruction
    live: bool
    edges: tuple[Edge, ...] = ()
    block: int = -1
    operand: str = ""


@dataclass
class _Frame:
    opener: str
    block: int
    type: FuncType
    height: int
    unreachable: bool = False

    @property
    def label(self) -> str:
        """Types that a branch to this block carries."""
        return self.type.params if self.opener == "loop" else self.type.results


def check_function(module: Module, function: Function) -> list[Step]:
    """Type the body of ``function``.

    Raises:
        CompileError: the module is invalid.
        UnsupportedError: an instruction later than WebAssembly 1.0 with sign extension.

    Complexity: linear in the length of the body.
    """
    if function.unknown:
        raise UnsupportedError(function.unknown, module.place(function), LATER)
    checker = _Checker(module, function)
    return [checker.step(index, code) for index, code in enumerate(function.code)]


class _Checker:
    """The state of the validation algorithm: operand types and open blocks."""

    def __init__(self, module: Module, function: Function) -> None:
        self.module = module
        self.function = function
        self.stack: list[str] = []
        self.frames = [_Frame("function", -1, FuncType("", function.type.results), 0)]
        self.now: Instruction
        self.index = 0
        self.rules: dict[str, Callable[[], Step]] = {
            "block": self._open, "loop": self._open, "if": self._if, "else": self._else,
            "end": self._end, "br": self._branch, "br_if": self._branch_if,
            "br_table": self._branch_table, "return": self._return, "call": self._call,
            "call_indirect": self._call_indirect, "unreachable": self._unreachable,
            "nop": self._done, "drop": self._drop, "select": self._select,
            "local.get": self._local_get, "local.set": self._local_set,
            "local.tee": self._local_tee, "global.get": self._global_get,
            "global.set": self._global_set,
        }  # fmt: skip

    def step(self, index: int, instruction: Instruction) -> Step:
        """Type the next instruction."""
        self.now, self.index = instruction, index
        self.live = not self.frames[-1].unreachable
        rule = self.rules.get(instruction.op)
        if rule is not None:
            return rule()
        signature = SIGNATURES.get(instruction.op)
        if signature is None or signature.pops is None or signature.pushes is None:
            place = self.module.place(self.function, instruction)
            raise UnsupportedError("this instruction is not supported", place, LATER)
        if "mem" in instruction.op or access_bytes(instruction.op):
            self._check_memory()
        self._check_indices()
        self._pop_all(signature.pops)
        self.stack.extend(signature.pushes)
        return self._done()

    # --- the operand stack -------------------------------------------------------------------

    def _invalid(self, reason: str) -> CompileError:
        return self.module.invalid(self.function, self.now, reason)

    def _done(self, operand: str = "", edges: tuple[Edge, ...] = (), block: int = -1) -> Step:
        return Step(self.index, self.now, self.live, edges, block, operand)

    def _pop(self, expected: str = _UNKNOWN) -> str:
        frame = self.frames[-1]
        if len(self.stack) == frame.height:
            if frame.unreachable:
                return expected
            raise self._invalid("an operand is missing")
        found = self.stack.pop()
        if _UNKNOWN not in (found, expected) and found != expected:
            raise self._invalid(f"{TYPE_NAMES[found]} where {TYPE_NAMES[expected]} is expected")
        return expected if found == _UNKNOWN else found

    def _pop_all(self, types: str) -> None:
        for expected in reversed(types):
            self._pop(expected)

    def _dead(self) -> None:
        frame = self.frames[-1]
        del self.stack[frame.height :]
        frame.unreachable = True

    def _check_memory(self) -> None:
        if not self.module.memories:
            raise self._invalid("unknown memory 0")
        size = access_bytes(self.now.op)
        if size and 1 << self.now.args[0] > size:
            raise self._invalid("alignment must not be larger than natural")

    def _check_indices(self) -> None:
        """Indices of memories, tables and segments."""
        memories, data = self.module.memories, self.module.data
        tables, elements = self.module.tables, self.module.elements
        spaces: dict[str, tuple[Sequence[object], ...]] = {
            "memory.size": (memories,), "memory.grow": (memories,), "memory.fill": (memories,),
            "memory.copy": (memories, memories), "memory.init": (data, memories),
            "data.drop": (data,), "table.init": (elements, tables), "elem.drop": (elements,),
            "table.size": (tables,),
        }  # fmt: skip
        for index, space in zip(self.now.args, spaces.get(self.now.op, ()), strict=False):
            if index >= len(space):
                raise self._invalid(f"unknown index {index}")

    # --- blocks ------------------------------------------------------------------------------

    def _open(self) -> Step:
        type_ = self.now.block or FuncType("", "")
        self._pop_all(type_.params)
        self.frames.append(_Frame(self.now.op, self.index, type_, len(self.stack)))
        self.stack.extend(type_.params)
        return self._done()

    def _if(self) -> Step:
        self._pop("i")
        return self._open()

    def _close(self) -> _Frame:
        frame = self.frames[-1]
        self._pop_all(frame.type.results)
        if len(self.stack) != frame.height:
            raise self._invalid("operands are left over at the end of a block")
        return self.frames.pop()

    def _else(self) -> Step:
        if self.frames[-1].opener != "if":
            raise self._invalid("else without if")
        frame = self._close()
        self.frames.append(_Frame("else", frame.block, frame.type, frame.height))
        self.stack.extend(frame.type.params)
        return self._done(block=frame.block)

    def _end(self) -> Step:
        frame = self._close()
        if frame.opener == "if" and frame.type.params != frame.type.results:
            raise self._invalid("an if without else must return its parameters")
        self.stack.extend(frame.type.results)
        return self._done(block=frame.block)

    # --- branches ----------------------------------------------------------------------------

    def _frame(self, label: int) -> _Frame:
        if label >= len(self.frames):
            raise self._invalid(f"unknown label {label}")
        return self.frames[-1 - label]

    def _edge(self, label: int) -> Edge:
        """The branch to ``label``; its operands have been checked and are still on the stack."""
        frame = self._frame(label)
        keep = frame.label
        discard = "".join(self.stack[frame.height : max(len(self.stack) - len(keep), frame.height)])
        return Edge(frame.block, keep, discard)

    def _check_label(self, types: str) -> None:
        self._pop_all(types)
        self.stack.extend(types)

    def _branch(self) -> Step:
        self._check_label(self._frame(self.now.args[0]).label)
        edge = self._edge(self.now.args[0])
        self._dead()
        return self._done(edges=(edge,))

    def _branch_if(self) -> Step:
        self._pop("i")
        self._check_label(self._frame(self.now.args[0]).label)
        return self._done(edges=(self._edge(self.now.args[0]),))

    def _branch_table(self) -> Step:
        self._pop("i")
        arity = len(self._frame(self.now.args[-1]).label)
        edges: dict[int, Edge] = {}
        for label in dict.fromkeys(self.now.args):
            types = self._frame(label).label
            if len(types) != arity:
                raise self._invalid("the targets of a br_table differ in their types")
            before = list(self.stack)
            self._pop_all(types)
            self.stack = before
            edges[label] = self._edge(label)
        self._dead()
        return self._done(edges=tuple(edges[label] for label in self.now.args))

    def _return(self) -> Step:
        label = len(self.frames) - 1
        self._check_label(self.function.type.results)
        edge = self._edge(label)
        self._dead()
        return self._done(edges=(edge,))

    def _unreachable(self) -> Step:
        self._dead()
        return self._done()

    # --- calls and variables -----------------------------------------------------------------

    def _call(self) -> Step:
        index = self.now.args[0]
        if index >= len(self.module.functions):
            raise self._invalid(f"unknown function {index}")
        self._apply(self.module.functions[index].type)
        return self._done()

    def _call_indirect(self) -> Step:
        type_index, table = self.now.args
        if type_index >= len(self.module.types):
            raise self._invalid(f"unknown type {type_index}")
        if table >= len(self.module.tables):
            raise self._invalid(f"unknown table {table}")
        self._pop("i")
        self._apply(self.module.types[type_index])
        return self._done()

    def _apply(self, type_: FuncType) -> None:
        self._pop_all(type_.params)
        self.stack.extend(type_.results)

    def _drop(self) -> Step:
        return self._done(operand=self._pop())

    def _select(self) -> Step:
        self._pop("i")
        wanted = chr(self.now.args[0]) if len(self.now.args) == 1 else _UNKNOWN
        type_ = self._pop(self._pop(wanted))
        self.stack.append(type_)
        return self._done(operand=type_)

    def _local(self) -> str:
        index = self.now.args[0]
        if index >= len(self.function.locals):
            raise self._invalid(f"unknown local {index}")
        return self.function.locals[index]

    def _local_get(self) -> Step:
        type_ = self._local()
        self.stack.append(type_)
        return self._done(operand=type_)

    def _local_set(self) -> Step:
        return self._done(operand=self._pop(self._local()))

    def _local_tee(self) -> Step:
        self._pop(self._local())
        return self._local_get()

    def _global(self, write: bool = False) -> str:
        index = self.now.args[0]
        if index >= len(self.module.globals):
            raise self._invalid(f"unknown global {index}")
        variable = self.module.globals[index]
        if write and not variable.mutable:
            raise self._invalid(f"global {index} is immutable")
        return variable.type

    def _global_get(self) -> Step:
        type_ = self._global()
        self.stack.append(type_)
        return self._done(operand=type_)

    def _global_set(self) -> Step:
        return self._done(operand=self._pop(self._global(write=True)))

"""Tables of a legalised module: indirect calls that differ in the source must go on to differ."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from compiler.legalise_function import word_type
from compiler.wasm_types import Constant, Element, Function, FuncType, Instruction, Module, Table

_NO_ENTRY = FuncType("", "iiiiiiiiiiiiiiiiiiiiiiiiiiiiiiii")
"""A type for functions that no indirect call calls."""


class Tables:
    """The tables of the result, and which one serves which call.

    ``numbers``: the new table by (old table, type index). ``markers``: functions that stand in a
    table for those of another type; they follow the module's own functions.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self._copies: dict[tuple[int, FuncType], int] = {}
        self.tables: tuple[Table, ...] = module.tables
        self.elements: tuple[Element, ...] = module.elements
        self.numbers: dict[tuple[int, int], int] = {}
        self.markers: tuple[Function, ...] = ()
        ambiguous = self._ambiguous()
        for table in range(len(module.tables)):
            for index, type_ in enumerate(module.types):
                number = self._copy(table, type_) if type_ in ambiguous else table
                self.numbers[table, index] = number

    def callees(self, type_index: int, table: int) -> Iterator[int]:
        """Functions that an indirect call of that type may call."""
        wanted = self.module.types[type_index]
        for entry in self._entries():
            if self.module.functions[entry].type == wanted:
                yield entry

    def _entries(self) -> Iterator[int]:
        """Functions that stand in a table, or in a segment for one."""
        constants = [entry for element in self.module.elements for entry in element.entries]
        constants += [table.init for table in self.module.tables if table.init is not None]
        for constant in constants:
            value = constant.evaluate(self.module.global_values)
            if value is not None and value.op == "ref.func":
                yield value.value

    def _ambiguous(self) -> set[FuncType]:
        """Types of functions in tables, and of calls, that become the same as another of them."""
        types = {self.module.functions[entry].type for entry in self._entries()}
        called = {
            self.module.types[code.args[0]]
            for function in self.module.functions
            for code in function.code
            if code.op == "call_indirect"
        }
        groups: defaultdict[FuncType, set[FuncType]] = defaultdict(set)
        for type_ in types | called:
            groups[word_type(type_)].add(type_)
        return {t for group in groups.values() if len(group) > 1 for t in group if t in called}

    def _copy(self, table: int, type_: FuncType) -> int:
        """A table like ``table`` in which functions of other types are replaced by the marker."""
        if (table, type_) in self._copies or self.module.tables[table].imported is not None:
            return self._copies.get((table, type_), table)
        number = self._copies[table, type_] = len(self.tables)
        original = self.module.tables[table]
        init = original.init and self._entry(original.init, type_)
        self.tables += (replace(original, init=init),)
        for element in self.module.elements:
            if element.table == table and element.offset is not None:
                entries = tuple(self._entry(entry, type_) for entry in element.entries)
                self.elements += (replace(element, table=number, entries=entries),)
        return number

    def _entry(self, entry: Constant, type_: FuncType) -> Constant:
        value = entry.evaluate(self.module.global_values)
        if value is None or value.op != "ref.func":
            return entry
        if self.module.functions[value.value].type == type_:
            return entry
        marker = len(self.module.functions)
        if not self.markers:
            code = (Instruction("unreachable", (), 0), Instruction("end", (), 0))
            self.markers = (Function(marker, _NO_ENTRY, "(another type)", code=code),)
        return Constant("ref.func", marker)

"""Random WebAssembly text: expressions, and structured programs that always end."""

from __future__ import annotations

import random

from wat_programs import EDGES

_BINARY = [
    "add",
    "sub",
    "mul",
    "and",
    "or",
    "xor",
    "shl",
    "shr_u",
    "shr_s",
    "rotl",
    "rotr",
    "eq",
    "ne",
    "lt_s",
    "lt_u",
    "gt_s",
    "gt_u",
    "le_s",
    "le_u",
    "ge_s",
    "ge_u",
]
_UNARY = ["eqz", "clz", "ctz", "popcnt", "extend8_s", "extend16_s"]
_DIVISIONS = ["div_u", "div_s", "rem_u", "rem_s"]
_LOADS = ["load", "load8_s", "load8_u", "load16_s", "load16_u"]
_STORES = ["store", "store8", "store16"]
_LOCALS, _PARAMETERS, _GLOBALS = 5, 2, 2
_FUEL = 40
"""Loop rounds that one call may take in all."""


class Generator:
    """Writes one random module whose export ``main`` returns an i32.

    Loops take their rounds from the local ``$fuel``, and functions call only later ones, so every
    program ends. Division by zero and accesses beyond the memory may happen: they trap.
    """

    def __init__(self, generator: random.Random, size: int = 12) -> None:
        self.random = generator
        self.size = size
        self.functions = 3
        self.labels: list[tuple[str, bool]] = []
        self.function = 0
        self.number = 0

    def module(self) -> str:
        """The text of the module."""
        functions = "\n".join(self._function(index) for index in range(self.functions))
        variables = "\n".join(
            f"(global $g{k} (mut i32) (i32.const {self._constant()}))" for k in range(_GLOBALS)
        )
        arguments = " ".join(f"(i32.const {self._constant()})" for _ in range(_PARAMETERS))
        return f"""(module
          (import "transputer" "output" (func $out (param i32)))
          (memory (export "memory") 1)
          {variables} {functions}
          (func (export "main") (result i32) (call $f0 {arguments})))"""

    def expression(self, depth: int) -> str:
        """An expression that leaves one i32."""
        choice = self.random.randrange(20) if depth > 0 else self.random.randrange(4)
        if choice < 1:
            return f"(i32.const {self._constant()})"
        if choice < 4:
            return f"(local.get {self._local()})"
        a = self.expression(depth - 1)
        if choice < 6:
            return f"(i32.{self.random.choice(_UNARY)} {a})"
        if choice < 7:
            return f"(local.tee {self._local()} {a})"
        if choice < 8:
            return f"(i32.{self.random.choice(_LOADS)} {self._address(a)})"
        if choice < 9:
            return f"(global.get $g{self.random.randrange(_GLOBALS)})"
        b = self.expression(depth - 1)
        if choice < 15:
            return f"(i32.{self.random.choice(_BINARY)} {a} {b})"
        if choice < 16:
            return self._division(a, b)
        if choice < 17:
            return f"(select {a} {b} {self.expression(depth - 1)})"
        if choice < 18 and self.function + 1 < self.functions:
            return f"(call $f{self.random.randrange(self.function + 1, self.functions)} {a} {b})"
        if choice < 19:
            return f"(if (result i32) {a} (then {b}) (else {self.expression(depth - 1)}))"
        return self._value_block(a, b)

    # --- parts -------------------------------------------------------------------------------

    def _constant(self) -> int:
        if self.random.random() < 0.5:
            return self.random.choice(EDGES)
        return self.random.randrange(-40, 40)

    def _local(self) -> int:
        return self.random.randrange(_PARAMETERS + _LOCALS)

    def _address(self, expression: str) -> str:
        offset = self.random.choice([0, 0, 1, 4, 300])
        if self.random.random() < 0.95:
            expression = f"(i32.and {expression} (i32.const 0xfff))"
        return f"offset={offset} {expression}"

    def _division(self, a: str, b: str) -> str:
        op = self.random.choice(_DIVISIONS)
        if self.random.random() < 0.5:
            b = f"(i32.const {self.random.choice([1, 2, 3, 7, 10, 64, 1000, -1, -5, 65537])})"
        elif self.random.random() < 0.9:
            b = f"(i32.or {b} (i32.const 1))"
        return f"(i32.{op} {a} {b})"

    def _value_block(self, a: str, b: str) -> str:
        """A block that is left with operands below the kept one."""
        label = self._new_label()
        return f"""(block {label} (result i32) {b} {self.expression(1)} {a}
            (br_if {label} {self.expression(1)}) (drop) (i32.xor))"""

    def _new_label(self) -> str:
        self.number += 1
        return f"$l{self.number}"

    def _function(self, index: int) -> str:
        self.function, self.labels = index, []
        body = self._statements(3)
        return f"""(func $f{index} (param i32 i32) (result i32)
            (local i32 i32 i32 i32 i32) (local $fuel i32)
            (local.set $fuel (i32.const {_FUEL if index == 0 else 3}))
            {body} {self.expression(2)})"""

    def _statements(self, depth: int) -> str:
        number = self.random.randint(1, max(1, self.size // (4 - depth)))
        return "\n".join(self._statement(depth) for _ in range(number))

    def _statement(self, depth: int) -> str:
        choice = self.random.randrange(16) if depth > 0 else self.random.randrange(8)
        if choice < 4:
            return f"(local.set {self._local()} {self.expression(3)})"
        if choice < 5:
            return f"(global.set $g{self.random.randrange(_GLOBALS)} {self.expression(2)})"
        if choice < 6:
            op = self.random.choice(_STORES)
            return f"(i32.{op} {self._address(self.expression(1))} {self.expression(2)})"
        if choice < 7:
            return f"(drop {self.expression(2)}) (call $out {self.expression(1)})"
        if choice < 8:
            return self._jump()
        inner = self._new_label()
        if choice < 10:
            return self._within(inner, False, f"(block {inner} %s)", depth)
        if choice < 12:
            return f"(if {self.expression(2)} (then {self._statements(depth - 1)}))"
        if choice < 13:
            then, otherwise = self._statements(depth - 1), self._statements(depth - 1)
            return f"(if {self.expression(2)} (then {then}) (else {otherwise}))"
        if choice < 14:
            return self._table(depth)
        return self._within(inner, True, f"(block (loop {inner} {self._spend()} %s))", depth)

    @staticmethod
    def _spend() -> str:
        """Take one round from the fuel, or leave the block around the loop."""
        return """(br_if 1 (i32.eqz (local.get $fuel)))
            (local.set $fuel (i32.sub (local.get $fuel) (i32.const 1)))"""

    def _within(self, label: str, loop: bool, frame: str, depth: int) -> str:
        self.labels.append((label, loop))
        body = self._statements(depth - 1)
        if loop and self.random.random() < 0.7:
            body += f"(br_if {label} {self.expression(2)})"
        self.labels.pop()
        return frame % body

    def _jump(self) -> str:
        if not self.labels or self.random.random() < 0.1:
            return f"(if {self.expression(1)} (then (return {self.expression(1)})))"
        label = self.random.choice(self.labels)[0]
        if self.random.random() < 0.2:
            return f"(if {self.expression(1)} (then (br {label})))"
        return f"(br_if {label} {self.expression(2)})"

    def _table(self, depth: int) -> str:
        inner, outer = self._new_label(), self._new_label()
        targets = [inner, outer, *(label for label, _ in self.labels)]
        number = self.random.randint(1, 6)
        chosen = " ".join(self.random.choice(targets) for _ in range(number))
        return f"""(block {outer} (block {inner}
            (br_table {chosen} {self.expression(2)})) {self._statements(depth - 1)})"""

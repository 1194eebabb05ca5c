"""Random WebAssembly text with all four number types; every program ends."""

from __future__ import annotations

import random

from compiler.wasm_opcodes import SIGNATURES, WasmOpcode
from legal_tools import EDGES, NAMES

_TYPES = "ilfd"
_SIGNATURES = (
    ("", "i"),
    ("l", ""),
    ("ll", "l"),
    ("id", "d"),
    ("fi", "f"),
    ("ild", "l"),
    ("i", "l"),
)
"""Parameters and results of the functions; several become the same on words."""
_FUNCTIONS = 7
_FUEL = 6


def _numeric() -> dict[str, list[WasmOpcode]]:
    """Instructions without immediates by their result; divisions and trapping conversions last."""
    groups: dict[str, list[WasmOpcode]] = {type_: [] for type_ in _TYPES}
    for op in SIGNATURES.values():
        if not op.immediates and op.pushes and not op.name.startswith("ref"):
            groups[op.pushes].append(op)
    return groups


_OPS = _numeric()
_LOADS = {
    type_: [op.name for op in SIGNATURES.values() if ".load" in op.name and op.pushes == type_]
    for type_ in _TYPES
}
_STORES = [op for op in SIGNATURES.values() if ".store" in op.name]
_EXACT = ("abs", "neg", "copysign", "reinterpret")


class Generator:
    """Writes one module whose export ``main`` takes two i64 and returns an i64.

    Functions call later ones only, loops take rounds from a local. A NaN that arithmetic makes is
    replaced by a constant one, since its bits are not determined.
    """

    def __init__(self, generator: random.Random, size: int = 6) -> None:
        self.random = generator
        self.size = size
        self.function = 0
        self.labels: list[tuple[str, str]] = []
        self.number = 0

    def module(self) -> str:
        """The text of the module."""
        bodies = [self._function(index) for index in range(_FUNCTIONS)]
        order = [self.random.randrange(_FUNCTIONS) for _ in range(6)]
        variables = "".join(
            f"(global $g{t} (mut {NAMES[t]}) {self._constant(t)})"
            f"(global $c{t} {NAMES[t]} {self._constant(t)})" for t in _TYPES
        )  # fmt: skip
        types = "".join(
            f"(type $t{k} (func {_declared('param', p)} {_declared('result', r)}))"
            for k, (p, r) in enumerate(_SIGNATURES)
        )
        return f"""(module {types} {variables}
          (memory (export "memory") 1) (table 8 funcref)
          (elem (i32.const 1) func {" ".join(f"$f{index}" for index in order)})
          {"".join(bodies)}
          (func (export "main") (param i64 i64) (result i64)
            (i64.xor (call $f2 (local.get 0) (local.get 1)) (i64.extend_i32_u (call $f0)))))"""

    # --- expressions -------------------------------------------------------------------------

    def expression(self, type_: str, depth: int) -> str:
        """An expression of this type."""
        choice = self.random.randrange(24) if depth > 0 else self.random.randrange(5)
        if choice < 2:
            return self._constant(type_)
        if choice < 4:
            return f"(local.get ${type_}{self.random.randrange(3)})"
        if choice < 5:
            return f"(global.get ${self.random.choice('gc')}{type_})"
        if choice < 14:
            return self._operation(type_, depth)
        if choice < 15:
            inner = self.expression(type_, depth - 1)
            return f"(local.tee ${type_}{self.random.randrange(3)} {inner})"
        if choice < 17:
            name = self.random.choice(_LOADS[type_])
            return f"({name} {self._address(depth - 1)})"
        if choice < 18:
            a, b = (self.expression(type_, depth - 1) for _ in range(2))
            return f"(select {a} {b} {self.expression('i', depth - 1)})"
        if choice < 20:
            return self._call(type_, depth)
        if choice < 21:
            a, b = (self.expression(type_, depth - 1) for _ in range(2))
            condition = self.expression("i", depth - 1)
            return f"(if (result {NAMES[type_]}) {condition} (then {a}) (else {b}))"
        return self._block(type_, depth)

    def _constant(self, type_: str) -> str:
        value = self.random.choice(EDGES[type_])
        if type_ in "il":
            return f"({NAMES[type_]}.const {value})"
        fraction = 23 if type_ == "f" else 52
        sign = "-" if value >> (8 + fraction if type_ == "f" else 11 + fraction) else ""
        exponent = value >> fraction & (255 if type_ == "f" else 2047)
        rest = value & (1 << fraction) - 1
        if exponent == (255 if type_ == "f" else 2047):
            return f"({NAMES[type_]}.const {sign}{f'nan:{rest:#x}' if rest else 'inf'})"
        bias = 127 if type_ == "f" else 1023
        digits = f"{rest << (1 if type_ == 'f' else 0):0{6 if type_ == 'f' else 13}x}"
        power = exponent - bias if exponent else 1 - bias
        return f"({NAMES[type_]}.const {sign}0x{int(exponent > 0)}.{digits}p{power})"

    def _operation(self, type_: str, depth: int) -> str:
        op = self.random.choice(_OPS[type_])
        if ("div" in op.name or "rem" in op.name or ".trunc_f" in op.name) and (
            self.random.random() < 0.6
        ):
            return self._operation(type_, depth)
        operands = " ".join(self.expression(t, depth - 1) for t in op.pops or "")
        text = f"({op.name} {operands})"
        if type_ in "il" or op.name.split(".")[1].startswith(_EXACT):
            return text
        name = NAMES[type_]
        return f"""(select (local.tee $n{type_} {text}) ({name}.const nan)
            ({name}.eq (local.get $n{type_}) (local.get $n{type_})))"""

    def _address(self, depth: int) -> str:
        """An address, seldom beyond the memory; the offset comes before it."""
        if self.random.random() < 0.02:
            return f"offset={self.random.randrange(65520, 65545)} {self.expression('i', 0)}"
        mask = self.random.choice((0xFF, 0xFFF, 0xFFF8))
        offset = f"offset={self.random.randrange(9)} " if self.random.random() < 0.5 else ""
        return f"{offset}(i32.and {self.expression('i', depth)} (i32.const {mask}))"

    def _call(self, type_: str, depth: int) -> str:
        kinds = [k for k, (_, r) in enumerate(_SIGNATURES) if r == type_ and k > self.function]
        if not kinds:
            return self.expression(type_, depth - 1)
        kind = self.random.choice(kinds)
        operands = " ".join(self.expression(t, depth - 1) for t in _SIGNATURES[kind][0])
        if self.function == 0 and self.random.random() < 0.3:
            index = f"(i32.const {self.random.randrange(9)})"
            return f"(call_indirect (type $t{kind}) {operands} {index})"
        return f"(call $f{kind} {operands})"

    def _block(self, type_: str, depth: int) -> str:
        """A block that is left with a value and perhaps operands below it."""
        label, name = self._label(), NAMES[type_]
        a, below = self.expression(type_, depth - 1), self.random.choice(_TYPES)
        self.labels.append((label, type_))
        b = self.expression(below, depth - 1)
        c = f"(br_if {label} {self.expression(type_, depth - 1)} {self.expression('i', depth - 1)})"
        if self.random.random() < 0.3:
            c = f"""(br_table {label} {label} {self.expression(type_, depth - 1)}
                {self.expression("i", depth - 1)})"""
        self.labels.pop()
        if self.random.random() < 0.5:
            other = NAMES[below]
            return f"""{a} {b} (block (param {name} {other}) (result {name})
                (local.set ${below}0) (local.set ${type_}1) (local.get ${type_}1))"""
        return f"""(block {label} (result {name}) {b} {c}
            (local.set ${type_}2) drop (local.get ${type_}2))"""

    def _label(self) -> str:
        self.number += 1
        return f"$l{self.number}"

    # --- statements --------------------------------------------------------------------------

    def _function(self, index: int) -> str:
        self.function = index
        params, results = _SIGNATURES[index]
        locals_ = " ".join(f"(local ${t}{k} {NAMES[t]})" for t in _TYPES for k in range(3))
        spare = "(local $nf f32) (local $nd f64) (local $fuel i32)"
        taken = " ".join(
            f"(local.set ${t}{min(k, 2)} (local.get {k}))" for k, t in enumerate(params)
        )
        body = self._statements(2)
        result = self.expression(results, 3) if results else ""
        declared = f"{_declared('param', params)} {_declared('result', results)}"
        return f"""(func $f{index} {declared} {locals_} {spare}
            (local.set $fuel (i32.const {_FUEL if index < 1 else 1})) {taken} {body} {result})"""

    def _statements(self, depth: int) -> str:
        return "\n".join(self._statement(depth) for _ in range(self.random.randint(1, self.size)))

    def _statement(self, depth: int) -> str:
        type_ = self.random.choice(_TYPES)
        choice = self.random.randrange(12) if depth > 0 else self.random.randrange(7)
        if choice < 3:
            return f"(local.set ${type_}{self.random.randrange(3)} {self.expression(type_, 3)})"
        if choice < 4:
            return f"(global.set $g{type_} {self.expression(type_, 2)})"
        if choice < 6:
            op = self.random.choice(_STORES)
            value = self.expression((op.pops or "")[1], 2)
            return f"({op.name} {self._address(1)} {value})"
        if choice < 7:
            return f"(drop {self.expression(type_, 3)})"
        if choice < 9:
            return f"""(if {self.expression("i", 2)} (then {self._statements(depth - 1)})
                (else {self._statements(depth - 1)}))"""
        label = self._label()
        return f"""(block (loop {label}
            (br_if 1 (i32.eqz (local.get $fuel)))
            (local.set $fuel (i32.sub (local.get $fuel) (i32.const 1)))
            {self._statements(depth - 1)} (br_if {label} {self.expression("i", 2)})))"""


def _declared(what: str, types: str) -> str:
    return f"({what} {' '.join(NAMES[t] for t in types)})" if types else ""

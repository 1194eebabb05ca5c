"""Random C programs of our own, all arithmetic: every integer and floating-point type, conversions,
bit-fields, arrays, structs, switches, loops, calls by name, by pointer and with ``...``.

Csmith's programs compute little for their size; here nearly every line is executed and ends in a
checksum. Overflows are defined by flags; the rare division that C does not define traps, or makes
clang drop the code around it, for wasmtime and the model alike. Every loop counts to a small
constant and functions call earlier ones only, so every program ends.
"""

from __future__ import annotations

import random
from pathlib import Path

from suite_fuzz.kind import LEVELS, Written

INTEGERS = ("i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64")
FLOATS = ("float", "double")
TYPES = INTEGERS + FLOATS
_FIELDS = {
    "a": "i8", "b": "u32", "c": "i32", "d": "u64", "e": "float", "f": "double", "g": "i64",
    "h": "u16",
}  # fmt: skip
_FLAGS = ("-fwrapv", "-fno-strict-float-cast-overflow")
_HEAD = """#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
typedef signed char i8; typedef unsigned char u8; typedef short i16; typedef unsigned short u16;
typedef int i32; typedef unsigned u32; typedef long long i64; typedef unsigned long long u64;
struct s { i8 a; u32 b : 5; i32 c : 11; u64 d; float e; double f; i64 g : 37; u16 h; };
static u64 hash = 1;
static void mix(u64 x) { hash = (hash ^ x) * 0x100000001b3; hash ^= hash >> 29; }
static void mix_double(double x) { u64 bits; memcpy(&bits, &x, 8); mix(bits); }
static double va(int n, ...) {
  va_list list; double sum = 0;
  va_start(list, n);
  for (int i = 0; i < n; i++)
    sum += i % 3 == 0 ? va_arg(list, i32) : i % 3 == 1 ? va_arg(list, i64) : va_arg(list, double);
  va_end(list);
  return sum;
}
"""
_EDGES = (
    "0", "1", "2", "-1", "3", "7", "10", "31", "33", "127", "-128", "255", "32767", "65535",
    "65536", "2147483647", "(-2147483647 - 1)", "4294967295u", "4294967296ll", "-4294967296ll",
    "9223372036854775807ll", "(-9223372036854775807ll - 1)", "0x8000000080000000ull",
    "1000000007", "1000000000000000003ll",
)  # fmt: skip
_FLOAT_EDGES = (
    "0.0", "-0.0", "1.0", "-1.5", "0.1", "1e10", "3e9f", "-1e300", "1e-310", "4294967296.5",
    "2147483647.5", "16777217.0f", "9.2e18", "1.8e19", "INFINITY", "NAN", "1e-45f", "123456.789f",
)  # fmt: skip
_ROUNDINGS = ("sqrt", "floor", "ceil", "trunc", "rint", "fabs", "-")
_DEPTH, _FUNCTIONS, _TABLE, _ELEMENTS = 3, 4, 4, 4


class Arithmetic:
    """Writes these programs."""

    name = "arithmetic"

    def write(self, seed: int, target: Path) -> Written:
        """Writes the program of a seed."""
        rng = random.Random(f"arithmetic {seed}")
        target.write_text(_Generator(rng).program())
        return Written(rng.choice(LEVELS), flags=_FLAGS)


class _Generator:
    """Writes one program; ``scope`` are the variables of the function being written, by type."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.scope: dict[str, list[str]] = {}
        self.functions: list[tuple[str, str, list[str]]] = []
        self.loops = 0
        self.names = 0

    def program(self) -> str:
        """The whole text."""
        arrays = [
            f"static {t} g_{t}[{_ELEMENTS}] = {{{', '.join(self.constant(t) for _ in range(4))}}};"
            for t in TYPES
        ]
        functions = [self.function() for _ in range(_FUNCTIONS)]
        table = [self.function("u64", ["i32", "double"]) for _ in range(_TABLE)]
        names = ", ".join(name for name, _, _ in self.functions[-_TABLE:])
        pointers = f"static u64 (*const table[{_TABLE}])(i32, double) = {{{names}}};"
        self.scope = {}
        calls = "\n".join(f"  {self.mixed(t)}" for t in TYPES * 2)
        indirect = "\n".join(
            f"  mix(table[{self.expression('u32', 2)} & 3]({self.expression('i32', 2)}, "
            f"{self.expression('double', 2)}));"
            for _ in range(4)
        )
        sums = "\n".join(
            f"  for (int i = 0; i < {_ELEMENTS}; i++) "
            + (f"mix_double(g_{t}[i]);" if t in FLOATS else f"mix(g_{t}[i]);")
            for t in TYPES
        )
        fields = " ".join(
            f"mix_double(g_s[1].{f});" if t in FLOATS else f"mix(g_s[1].{f});"
            for f, t in _FIELDS.items()
        )
        return "\n".join(
            (_HEAD, *arrays, "static struct s g_s[2];", *functions, *table, pointers,
             "int main(void) {", calls, indirect, sums, f"  {fields}",
             '  printf("%016llx %d\\n", hash, (int)(hash & 127));', "  return hash & 127;", "}", "")
        )  # fmt: skip

    def function(self, result: str | None = None, params: list[str] | None = None) -> str:
        """A function that the next ones may call."""
        result = result or self.rng.choice(TYPES)
        if params is None:
            params = [self.rng.choice(TYPES) for _ in range(self.rng.randrange(6))]
        self.scope, self.loops = {}, 0
        named = [f"{t} {self.variable(t)}" for t in params]
        local = []
        for t in self.rng.sample(TYPES, 5):
            value = self.expression(t, 1)
            local.append(f"  {t} {self.variable(t)} = {value};")
        body = [self.statement(2) for _ in range(self.rng.randint(3, 8))]
        value = self.expression(result, _DEPTH)
        name = f"f{len(self.functions)}"
        text = f"static {result} {name}({', '.join(named) or 'void'}) {{"
        lines = (text, *local, *(f"  {line}" for line in body), f"  return {value};", "}")
        self.functions.append((name, result, params))
        return "\n".join(lines)

    def variable(self, type_: str) -> str:
        """A new variable."""
        self.names += 1
        self.scope.setdefault(type_, []).append(f"v{self.names}")
        return f"v{self.names}"

    # --- statements --------------------------------------------------------------------------

    def statement(self, depth: int) -> str:
        """A statement, of nested ones down to a depth."""
        simple = (self.assignment, self.assignment, self.update, self.mixing, self.copy)
        nested = (self.branch, self.loop, self.switch)
        return self.rng.choice(simple + nested)(depth) if depth else self.rng.choice(simple)(0)

    def assignment(self, depth: int) -> str:
        type_, place = self.place()
        return f"{place} = {self.expression(type_, _DEPTH)};"

    def update(self, depth: int) -> str:
        type_, place = self.place()
        operators = ("+=", "-=", "*=") + (() if type_ in FLOATS else ("^=", "|=", "&="))
        return f"{place} {self.rng.choice(operators)} {self.expression(type_, 2)};"

    def mixing(self, depth: int) -> str:
        return self.mixed(self.rng.choice(TYPES))

    def mixed(self, type_: str) -> str:
        """A statement that adds a value of this type to the checksum."""
        value = self.expression(type_, _DEPTH)
        return f"mix_double({value});" if type_ in FLOATS else f"mix({value});"

    def copy(self, depth: int) -> str:
        one, other = self.rng.choice(TYPES), self.rng.choice(TYPES)
        move = f"memmove(g_{one}, g_{other}, {self.rng.choice(('4', 'sizeof g_i8'))});"
        return self.rng.choice((move, "g_s[0] = g_s[1];", "g_s[1] = g_s[0];"))

    def branch(self, depth: int) -> str:
        yes, no = self.statement(depth - 1), self.statement(depth - 1)
        return f"if ({self.expression('i32', 2)}) {{ {yes} }} else {{ {no} }}"

    def loop(self, depth: int) -> str:
        self.names += 1
        name, count = f"k{self.names}", self.rng.randint(1, 4)
        self.loops += 1
        self.scope.setdefault("const", []).append(name)
        body = self.statement(depth - 1)
        self.scope["const"].remove(name)
        self.loops -= 1
        left = self.rng.choice(("", f"if ({self.expression('i8', 1)}) break; ", ""))
        return f"for (i32 {name} = 0; {name} < {count}; {name}++) {{ {body} {left}}}"

    def switch(self, depth: int) -> str:
        numbers = self.rng.sample(range(8), 4)
        cases = " ".join(
            f"case {n}: {self.statement(depth - 1)} {self.rng.choice(('break;', ''))}"
            for n in numbers
        )
        other = self.statement(depth - 1)
        return f"switch ({self.expression('u32', 2)} & 7) {{ {cases} default: {other} }}"

    def place(self) -> tuple[str, str]:
        """Something that can be assigned to, and its type."""
        kind = self.rng.randrange(4)
        if kind == 0:
            field = self.rng.choice(list(_FIELDS))
            return _FIELDS[field], f"g_s[{self.index(1)}].{field}"
        types = [t for t in self.scope if t != "const" and self.scope[t]]
        if kind == 1 or not types:
            type_ = self.rng.choice(TYPES)
            return type_, f"g_{type_}[{self.index(3)}]"
        type_ = self.rng.choice(types)
        return type_, self.rng.choice(self.scope[type_])

    # --- expressions -------------------------------------------------------------------------

    def expression(self, type_: str, depth: int) -> str:
        """A value of a type, in parentheses where it needs them."""
        if depth == 0 or self.rng.random() < 0.15:
            return self.leaf(type_)
        kinds = [self.operation, self.operation, self.operation, self.choice, self.conversion]
        kinds += [self.real if type_ in FLOATS else self.bits]
        if self.functions and not self.loops and self.rng.random() < 0.04:
            kinds = [self.call]
        return f"({type_})({self.rng.choice(kinds)(type_, depth - 1)})"

    def leaf(self, type_: str) -> str:
        fields = [f"g_s[{self.index(1)}].{f}" for f, t in _FIELDS.items() if t == type_]
        counters = self.scope.get("const", []) if type_ == "i32" else []
        known = [*self.scope.get(type_, ()), f"g_{type_}[{self.index(3)}]", *fields, *counters]
        return self.rng.choice([*known, *known, self.constant(type_)])

    def constant(self, type_: str) -> str:
        """A number that can be written for a type."""
        edges = _FLOAT_EDGES if type_ in FLOATS else _EDGES
        return f"({type_}){self.rng.choice((*edges, str(self.rng.randrange(1000))))}"

    def index(self, mask: int) -> str:
        """An index into an array of ``mask + 1`` elements."""
        counters = self.scope.get("const", [])
        if counters and self.rng.random() < 0.5:
            return f"{self.rng.choice(counters)} & {mask}"
        return str(self.rng.randint(0, mask))

    def operation(self, type_: str, depth: int) -> str:
        other = self.rng.choice((type_, type_, self.rng.choice(TYPES)))
        a, b = self.expression(type_, depth), self.expression(other, depth)
        if type_ in FLOATS or other in FLOATS:
            return f"{a} {self.rng.choice('+-*/')} {b}"
        operator = self.rng.choice(("+", "-", "*", "&", "|", "^", "+", "-", "<<", ">>", "/", "%"))
        if operator in ("<<", ">>"):
            return f"{a} {operator} ({b} & {63 if type_ in ('i64', 'u64') else 31})"
        if operator in ("/", "%") and self.rng.random() < 0.998:  # else it may trap
            return f"{a} {operator} (({b} & 0xffff) | 1)"
        return f"{a} {operator} {b}"

    def choice(self, type_: str, depth: int) -> str:
        side = self.rng.choice(TYPES)
        a, b = self.expression(side, depth), self.expression(side, depth)
        test = f"{a} {self.rng.choice(('<', '>', '<=', '>=', '==', '!='))} {b}"
        if type_ in INTEGERS and self.rng.random() < 0.3:
            return f"{test} {self.rng.choice(('&&', '||'))} {self.expression(side, depth)}"
        return f"{test} ? {self.expression(type_, depth)} : {self.expression(type_, depth)}"

    def conversion(self, type_: str, depth: int) -> str:
        return self.expression(self.rng.choice(TYPES), depth)

    def bits(self, type_: str, depth: int) -> str:
        a = self.expression(self.rng.choice(("u32", "u64")), depth)
        return self.rng.choice(
            (f"~{a}", f"-{a}", f"!{a}", f"__builtin_popcountll({a})", f"__builtin_clzll({a} | 1)",
             f"__builtin_ctz({a} | 1)", f"__builtin_bswap32({a})", f"__builtin_bswap64({a})",
             f"__builtin_rotateleft32({a}, 7)", f"__builtin_rotateright64({a}, 41)")
        )  # fmt: skip

    def real(self, type_: str, depth: int) -> str:
        a, b = self.expression(type_, depth), self.expression(type_, depth)
        if self.rng.random() < 0.3:
            return f"{self.rng.choice(('copysign', 'fmin', 'fmax'))}({a}, {b})"
        if self.rng.random() < 0.3:
            return f"va(3, {self.expression('i32', 0)}, {self.expression('i64', 0)}, {a})"
        return f"{self.rng.choice(_ROUNDINGS)}({a})"

    def call(self, type_: str, depth: int) -> str:
        name, _, params = self.rng.choice(self.functions[:_FUNCTIONS])
        return f"{name}({', '.join(self.expression(t, min(depth, 1)) for t in params)})"

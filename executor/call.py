"""Calling one function: ``gcd(48, 36)`` as text, and what a C prototype says about it.

A C function's prototype is found in the preprocessed text and read with pycparser, so that
arguments are checked and the result is printed as what it is (``unsigned``, ``float``, nothing).
Exports of a WebAssembly module take and return its number types; integers are signed.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from compiler.errors import CompileError, UsageError
from compiler.options import COptions, preprocessing
from compiler.values import Number, bits_of, value_of

if TYPE_CHECKING:
    from pycparser import c_ast

Call = tuple[str | Number, ...]
"""A function's name and its arguments: ``("gcd", 48, 36)``."""


@dataclass(frozen=True)
class IntType:
    """An integer type of at most 64 bits, by its C name."""

    name: str
    bits: int
    signed: bool

    @property
    def letter(self) -> str:
        """The WebAssembly type that a value of this type is passed as."""
        return "l" if self.bits > 32 else "i"

    @property
    def range(self) -> tuple[int, int]:
        """Least and greatest value."""
        low = -(1 << self.bits - 1) if self.signed else 0
        return low, low + (1 << self.bits) - 1

    def refusal(self, value: Number) -> str:
        """Why a value is none of this type, empty if it is."""
        low, high = self.range
        fits = isinstance(value, int) and low <= value <= high
        return "" if fits else f"{value}, which is not {self.name} ({low} to {high})"

    def from_bits(self, bits: int) -> int:
        """A returned pattern as a number of this type."""
        bits &= (1 << self.bits) - 1
        return bits - (1 << self.bits) if self.signed and bits >> self.bits - 1 else bits

    def text(self, value: Number) -> str:
        """A value as it is printed."""
        return str(value)


@dataclass(frozen=True)
class FloatType:
    """A floating-point type of 32 or 64 bits, by its C name."""

    name: str
    bits: int

    @property
    def letter(self) -> str:
        """The WebAssembly type that a value of this type is passed as."""
        return "d" if self.bits > 32 else "f"

    def refusal(self, value: Number) -> str:
        """Why a value is none of this type, empty if it is."""
        try:
            bits_of(self.letter, value)
        except UsageError:
            return f"{value}, which is beyond the range of {self.name}"
        return ""

    def from_bits(self, bits: int) -> Number:
        """A returned pattern as a number of this type."""
        return value_of(self.letter, bits)

    def text(self, value: Number) -> str:
        """A value in the fewest digits that name it among the values of this type."""
        if self.bits > 32:
            return repr(value)
        digits = (f"{value:.{n}g}" for n in range(1, 10))
        bits = bits_of("f", value)
        short = next((d for d in digits if bits_of("f", float(d)) == bits), repr(value))
        return repr(float(short))


Type = IntType | FloatType
I32 = IntType("i32", 32, True)
_WASM_TYPES: dict[str, Type] = {
    "i": I32, "l": IntType("i64", 64, True), "f": FloatType("f32", 32), "d": FloatType("f64", 64)
}  # fmt: skip


@dataclass(frozen=True)
class Prototype:
    """Types of the parameters, and the result's, None for void."""

    name: str
    parameters: tuple[Type, ...]
    result: Type | None

    def check(self, arguments: Sequence[Number]) -> None:
        """Raises UsageError if the number or the size of the arguments is wrong."""
        types = self.parameters
        if len(types) != len(arguments):
            raise UsageError(f"{self.name} takes {len(types)} arguments, not {len(arguments)}")
        for number, (kind, argument) in enumerate(zip(types, arguments, strict=True), start=1):
            reason = kind.refusal(argument)
            if reason:
                raise UsageError(f"{self.name}: argument {number} is {reason}")


def wasm_prototype(name: str, parameters: str, results: str) -> Prototype:
    """The prototype of an export, given its types as letters; at most one result."""
    types = tuple(_WASM_TYPES[letter] for letter in parameters)
    return Prototype(name, types, _WASM_TYPES[results] if results else None)


def parse_call(text: str) -> Call:
    """``"gcd(48, 0x24)"`` as ``("gcd", 48, 36)``.

    Raises:
        UsageError: if it is not a name and numbers in parentheses.
    """
    match = re.fullmatch(r"\s*([^\s()]+)\s*\(([^()]*)\)\s*", text)
    if match is None:
        raise UsageError(f"--call {text!r}: expected a function and its arguments, gcd(48, 36)")
    name, inside = match.groups()
    arguments = inside.split(",") if inside.strip() else []
    try:
        return (name, *(_number(argument.strip()) for argument in arguments))
    except (ValueError, OverflowError):
        raise UsageError(f"--call {text!r}: the arguments must be numbers") from None


def _number(text: str) -> Number:
    """``48``, ``0x24``, ``-1.5e3``, ``0x1.8p3``, ``inf``, ``nan``; or an error."""
    try:
        return int(text, 0)
    except ValueError:
        hexadecimal = text.lstrip("+-")[:2].lower() == "0x"
        value = float.fromhex(text) if hexadecimal else float(text)
    if math.isinf(value) and "inf" not in text.lower():
        raise OverflowError
    return value


def split_call(call: Call) -> tuple[str, tuple[Number, ...]]:
    """Name and arguments of a call.

    Raises:
        UsageError: if it is not a name and numbers.
    """
    name, *arguments = call
    numbers = tuple(argument for argument in arguments if isinstance(argument, int | float))
    if not isinstance(name, str) or len(numbers) != len(arguments):
        raise UsageError(f'not a call: {call!r}; expected ("gcd", 48, 36)')
    return name, numbers


def prototype(
    sources: Sequence[str | os.PathLike[str]], name: str, **options: Unpack[COptions]
) -> Prototype | None:
    """The prototype of a function of a program, given its source files; None if they are not C.

    Args:
        options: for C, as for ``compile_program``. Where the preprocessor refuses a file or leaves
            no such function, the text of the file itself is read; the compiler says afterwards what
            is wrong.

    Raises:
        UsageError: if the files declare no such function, or not one of numbers.
    """
    from compiler.frontend import SOURCE_SUFFIXES, default_libc, read_source

    paths = [Path(source) for source in sources]
    if not all(path.suffix in SOURCE_SUFFIXES for path in paths):
        return None
    from compiler.toolchain import find_toolchain, preprocess

    plain = [read_source(path).decode("utf-8", "replace") for path in paths]
    toolchain = find_toolchain(options.get("clang"), options.get("sysroot"))
    libc = options.get("libc") or default_libc(paths)
    texts = []
    for path in paths:
        try:
            text = preprocess(toolchain, path, libc=libc, **preprocessing(options))
        except CompileError:
            continue
        texts.append((path, text))
    for path, text in (*texts, *zip(paths, plain, strict=True)):
        found = c_prototype(text, name, str(path))
        if found is not None:
            return found
    files = ", ".join(map(str, paths))
    raise UsageError(f"{files}: no function {name} is defined here")


def c_prototype(text: str, name: str, file: str = "") -> Prototype | None:
    """The prototype of ``name`` in C source text, None if it is not defined there.

    Raises:
        UsageError: if it is static, cannot be parsed, or has types that are no numbers.
    """
    from pycparser import CParser, c_ast
    from pycparser.c_parser import ParseError

    plain = _without_comments(text)
    declaration = _declaration(plain, name)
    if declaration is None:
        return None
    where = f"{file}: {name}" if file else name
    typedefs = [*_STANDARD_TYPEDEFS, *re.findall(r"typedef\b[^;{}()]*;", plain)]
    try:
        unit = CParser().parse("\n".join([*typedefs, declaration + ";"]))
    except ParseError as error:
        reason = re.sub(r"^\S*:\d+(:\d+)?: ", "", str(error))  # a position in our own text
        raise UsageError(f"{where}: its prototype cannot be read ({reason})") from None
    *types, found = unit.ext
    if "static" in found.storage:
        raise UsageError(f"{where}: is static; only functions that are not static can be called")
    names = {node.name: node.type for node in types if isinstance(node, c_ast.Typedef)}
    function = found.type
    parameters = [
        _type(parameter.type, names, f"{where}: parameter {number}")
        for number, parameter in enumerate(function.args.params if function.args else (), start=1)
        if not _is_void(parameter.type)
    ]
    result = function.type
    return Prototype(
        name,
        tuple(parameters),
        None if _is_void(result) else _type(result, names, f"{where}: the result"),
    )


_STANDARD_TYPEDEFS = (
    "typedef void *__builtin_va_list;",
    "typedef signed char int8_t; typedef unsigned char uint8_t;",
    "typedef short int16_t; typedef unsigned short uint16_t;",
    "typedef int int32_t; typedef unsigned int uint32_t;",
    "typedef long long int64_t; typedef unsigned long long uint64_t;",
    "typedef unsigned long size_t; typedef long ptrdiff_t; typedef _Bool bool;",
    "typedef long intptr_t; typedef unsigned long uintptr_t;",
)

_SIZES = {"_Bool": 1, "char": 8, "short": 16, "int": 32, "long": 32}
_FLOATS = {"float": 32, "double": 64}


_ATTRIBUTE = re.compile(
    r"\b__attribute(?:__)?\s*\((?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))*\)"
    r"|\b__extension__\b|\[\[[^\[\]]*\]\]"
)
"""What stands in declarations and says nothing about types; parentheses up to four deep."""


def _without_comments(text: str) -> str:
    """C text with comments, preprocessor lines, attributes and the insides of literals taken
    out."""
    text = re.sub(r"\\\r?\n", " ", text)
    pattern = r"/\*.*?\*/|//[^\n]*|(\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*')"
    text = re.sub(pattern, lambda found: '""' if found[1] else " ", text, flags=re.DOTALL)
    text = re.sub(r"^[ \t]*#[^\n]*$", "", text, flags=re.MULTILINE)
    return _ATTRIBUTE.sub(" ", text)


def _declaration(plain: str, name: str) -> str | None:
    """The text of the function's declarator, specifiers first, from its definition."""
    depth, start = 0, 0
    pattern = rf"[{{}};]|\b{re.escape(name)}\s*\(([^(){{}};]*)\)\s*(?={{)"
    for found in re.finditer(pattern, plain):
        if found[0] == "{":
            depth += 1
        elif found[0] in "};":
            depth -= found[0] == "}"
            start = found.end() if depth == 0 else start
        elif depth == 0:
            return plain[start : found.end()].strip()
    return None


def _is_void(node: c_ast.Node) -> bool:
    from pycparser import c_ast

    return (
        isinstance(node, c_ast.TypeDecl)
        and isinstance(node.type, c_ast.IdentifierType)
        and node.type.names == ["void"]
    )


def _type(node: c_ast.Node, names: Mapping[str, c_ast.Node], what: str) -> Type:
    from pycparser import c_ast

    if isinstance(node, c_ast.TypeDecl) and isinstance(node.type, c_ast.Enum):
        return IntType("int", 32, True)
    if not isinstance(node, c_ast.TypeDecl) or not isinstance(node.type, c_ast.IdentifierType):
        raise UsageError(f"{what} is not a number; only numbers can be passed")
    words: list[str] = node.type.names
    if len(words) == 1 and words[0] in names:
        return _type(names[words[0]], names, what)
    if len(words) == 1 and words[0] in _FLOATS:
        return FloatType(words[0], _FLOATS[words[0]])
    bases = [word for word in words if word not in ("signed", "unsigned")] or ["int"]
    base = bases[0] if len(bases) == 1 else next((b for b in bases if b != "int"), "int")
    if base not in _SIZES or "double" in bases:
        raise UsageError(
            f"{what} is {' '.join(words)}; only numbers of at most 64 bits can be passed"
        )
    signed = "unsigned" not in words and base != "_Bool"
    bits = 64 if bases.count("long") > 1 else _SIZES[base]
    return IntType(" ".join(words), bits, signed)

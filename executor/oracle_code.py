"""Reads a token program for the oracle: instructions, initial memory and input bytes."""

from __future__ import annotations

from dataclasses import dataclass

from compiler import isa
from compiler.errors import TransputerError
from compiler.program import Program

_SIGN = 1 << 31


class UndefinedError(TransputerError):
    """A token program that is malformed, or does what has no meaning."""


@dataclass(frozen=True)
class Decoded:
    """A token program as the oracle executes it.

    Attributes:
        instructions: opcode and immediate, unsigned.
        memory_size: in bytes, 0 without a memory.
        data: initial memory, address to byte.
        inputs: input token to byte.
    """

    instructions: tuple[tuple[str, int], ...]
    memory_size: int
    data: dict[int, int]
    inputs: dict[str, int]


def decode_prompt(program: Program) -> Decoded:
    """Read the tokens of ``program``.

    Raises:
        UndefinedError: they are no token program, or the cursor is not at the opening brace when
            the code begins.
    """
    tokens = program.tokens
    if isa.OPEN not in tokens or tokens[-1] != isa.CLOSE:
        raise UndefinedError(f"{program.name}: a token program has code between braces")
    brace = tokens.index(isa.OPEN)
    size, data = _initial_memory(program.name, tokens[:brace])
    return Decoded(
        instructions=tuple(_instructions(program.name, tokens[brace + 1 : -1])),
        memory_size=size,
        data=data,
        inputs={isa.in_token(value): value for value in range(256)},
    )


def _instructions(name: str, tokens: tuple[str, ...]) -> list[tuple[str, int]]:
    code = []
    for start in range(0, len(tokens), isa.INSTRUCTION_TOKENS):
        opcode = tokens[start]
        if opcode not in isa.OPCODES:
            raise UndefinedError(f"{name}: {opcode!r} is no opcode")
        code.append((opcode, _word(name, tokens[start + 1 : start + isa.INSTRUCTION_TOKENS])))
    return code


def _word(name: str, tokens: tuple[str, ...]) -> int:
    try:
        value = bytes(int(token, 16) for token in tokens)
    except ValueError:
        value = b""
    if len(value) != 4:
        raise UndefinedError(f"{name}: {' '.join(tokens)!r} are not four bytes")
    return int.from_bytes(value, "little")


def _initial_memory(name: str, tokens: tuple[str, ...]) -> tuple[int, dict[int, int]]:
    spelled = {isa.data_token(value): value for value in range(256)}
    data: dict[int, int] = {}
    size = cursor = 0
    for position, token in enumerate(tokens):
        if token in spelled:
            if not 0 <= cursor < size:
                raise UndefinedError(f"{name}: initial data at {cursor}, outside the memory")
            data[cursor] = spelled[token]
            cursor += 1
        elif token in (isa.MEMORY, isa.SEGMENT):
            word = _word(name, tokens[max(position - 4, 0) : position])
            if token == isa.MEMORY:
                size = word
            else:
                cursor += word - 2 * (word & _SIGN)
    if cursor != len(tokens):
        raise UndefinedError(f"{name}: the code begins with the cursor at {cursor}")
    return size, data

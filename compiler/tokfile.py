"""Token programs as text: ``.tok`` files in, :class:`Program` out, and back.

A file holds the tokens of a prompt, separated by white space: an optional memory size and data
section, the code between braces, and optionally the input after it. From ``#`` or ``;;`` to the end
of a line is a comment. Nothing is assembled: what stands in the file is what the model reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from compiler import isa
from compiler.assemble import word_tokens
from compiler.errors import CompileError, Place
from compiler.program import Origin, Program

_FIELDS = isa.INSTRUCTION_TOKENS
_USES_MEMORY = {*isa.LOADS, *isa.STORES}


@dataclass(frozen=True)
class TokFile:
    """A token program and the input that stands behind it, ``None`` if there is none."""

    program: Program
    stdin: bytes | None


@dataclass(frozen=True)
class _Word:
    """A token and the line it stands on."""

    text: str
    line: int


def compile_tok(text: str, name: str) -> Program:
    """The program of a ``.tok`` file; its input, if any, is ``report["stdin"]``.

    Raises:
        CompileError: naming the file, the line, and the token that is wrong.
    """
    return parse_tok(text, name).program


def parse_tok(text: str, name: str) -> TokFile:
    """Read a ``.tok`` file; errors as for :func:`compile_tok`."""
    return _Parser(name, list(_words(text))).parse()


def format_tok(program: Program, stdin: bytes | None = None) -> str:
    """The text of a program: one instruction or directive a line, 16 data bytes a line."""
    brace = program.tokens.index(isa.OPEN)
    lines = _head_lines(program.tokens[:brace])
    code = program.tokens[brace + 1 : -1]
    lines.append(isa.OPEN)
    lines += [" ".join(code[i : i + _FIELDS]) for i in range(0, len(code), _FIELDS)]
    lines.append(isa.CLOSE)
    if stdin is not None:
        tokens = [*map(isa.in_token, stdin), isa.END_OF_INPUT]
        lines += [" ".join(tokens[i : i + 16]) for i in range(0, len(tokens), 16)]
    return "\n".join(lines) + "\n"


def _head_lines(tokens: Sequence[str]) -> list[str]:
    lines: list[list[str]] = [[]]
    for token in tokens:
        data = token.startswith("data(")
        if lines[-1] and (
            lines[-1][-1] in (isa.MEMORY, isa.SEGMENT)
            or lines[-1][-1].startswith("data(") != data
            or len(lines[-1]) == 16
        ):
            lines.append([])
        lines[-1].append(token)
    return [" ".join(line) for line in lines if line]


def _words(text: str) -> Iterator[_Word]:
    for number, line in enumerate(text.splitlines(), start=1):
        for word in line.split():
            comment = min((at for at in (word.find("#"), word.find(";;")) if at == 0), default=-1)
            if comment == 0:
                break
            yield _Word(word, number)


class _Parser:
    """Takes the words of a file one by one."""

    def __init__(self, name: str, words: list[_Word]) -> None:
        self.name = name
        self.words = words
        self.next = 0
        self.bytes = {isa.byte_token(value): value for value in range(256)}
        self.data = {isa.data_token(value) for value in range(256)}
        self.inputs = {isa.in_token(value): value for value in range(256)}
        self.memory_bytes: int | None = None

    def parse(self) -> TokFile:
        """Read the whole file."""
        self._head()
        code = self._code()
        n_tokens = self.next
        stdin = self._input()
        self._check(code, n_tokens)
        program = Program(
            name=self.name,
            tokens=tuple(word.text for word in self.words[:n_tokens]),
            origins=tuple(
                Origin("", f"{opcode.text} {value:#x}", index)
                for index, (opcode, value) in enumerate(code)
            ),
            memory_bytes=self.memory_bytes or 0,
            report={"instructions": len(code)} | ({} if stdin is None else {"stdin": stdin}),
        )
        return TokFile(program, stdin)

    def _error(self, reason: str, word: _Word | None = None, remedy: str = "") -> CompileError:
        line = word.line if word else (self.words[-1].line if self.words else 1)
        return CompileError(reason, Place(f"{self.name}:{line}"), remedy)

    def _take(self, expected: str) -> _Word:
        if self.next >= len(self.words):
            raise self._error(f"the file ends where {expected} is expected")
        self.next += 1
        return self.words[self.next - 1]

    def _word(self, first: _Word | None = None) -> int:
        """Four byte tokens, as an unsigned number."""
        words = [first] if first else []
        while len(words) < 4:
            words.append(self._take("a byte"))
        for word in words:
            if word.text not in self.bytes:
                raise self._error(f"{word.text!r} is not a byte (two hex digits)", word)
        return int.from_bytes(bytes(self.bytes[word.text] for word in words), "little")

    def _head(self) -> None:
        """The memory size, segments and data before the opening brace."""
        cursor = 0
        while (word := self._take(f"'{isa.OPEN}'")).text != isa.OPEN:
            if word.text in self.data:
                if not 0 <= cursor < (self.memory_bytes or 0):
                    raise self._error(f"data at {cursor} is outside the memory", word)
                cursor += 1
                continue
            if word.text not in self.bytes:
                raise self._error(f"unknown token {word.text!r}", word)
            value = self._word(word)
            directive = self._take(f"'{isa.MEMORY}' or '{isa.SEGMENT}'")
            if directive.text == isa.SEGMENT:
                cursor += value - ((value >> 31) << 32)
            elif directive.text == isa.MEMORY and self.next == _FIELDS:
                self.memory_bytes = value
            else:
                expected = isa.MEMORY if directive.text == isa.MEMORY else isa.SEGMENT
                where = " first" if directive.text == isa.MEMORY else ""
                raise self._error(
                    f"{directive.text!r} where '{expected}' must stand{where}", directive
                )
        self._check_cursor(cursor, word)

    def _check_cursor(self, cursor: int, brace: _Word) -> None:
        """The machine fetches instructions at its cursor, which data and segments move."""
        start = self.next - 1
        if cursor == start:
            return
        last = self.words[start - 1]
        missing = 0 if last.text == isa.SEGMENT else _FIELDS
        seek = start + missing - cursor
        if last.text == isa.SEGMENT:
            value = [self.bytes[word.text] for word in self.words[start - 5 : start - 1]]
            seek += int.from_bytes(bytes(value), "little", signed=True)
        tokens = " ".join([*word_tokens(seek), isa.SEGMENT])
        raise self._error(
            f"the cursor is at {cursor} where the code begins at {start}",
            brace,
            f"the last directive before '{isa.OPEN}' must be: {tokens}",
        )

    def _code(self) -> list[tuple[_Word, int]]:
        code: list[tuple[_Word, int]] = []
        while (word := self._take(f"an instruction or '{isa.CLOSE}'")).text != isa.CLOSE:
            if word.text not in isa.OPCODES:
                raise self._error(f"unknown instruction {word.text!r}", word)
            code.append((word, self._word()))
        if not code:
            raise self._error("there is no instruction between the braces", word)
        return code

    def _input(self) -> bytes | None:
        """The input tokens after the closing brace."""
        rest = self.words[self.next :]
        if not rest:
            return None
        if rest[-1].text == isa.END_OF_INPUT:
            rest = rest[:-1]
        for word in rest:
            if word.text not in self.inputs:
                raise self._error(f"{word.text!r} is not an input byte", word)
        return bytes(self.inputs[word.text] for word in rest)

    def _check(self, code: list[tuple[_Word, int]], n_tokens: int) -> None:
        """What would make the model read something that does not exist."""
        for index, (word, value) in enumerate(code):
            if word.text in _USES_MEMORY and self.memory_bytes is None:
                remedy = f"begin the file with the memory size: 00 00 01 00 {isa.MEMORY}"
                raise self._error(f"{word.text} in a program without memory", word, remedy)
            if word.text in isa.INDEXED and value >= isa.MAX_LOCALS:
                raise self._error(f"the index must be below {isa.MAX_LOCALS}", word)
            if word.text == "input" and value != n_tokens:
                raise self._error(
                    f"the input begins at token {n_tokens}",
                    word,
                    f"write: input {' '.join(word_tokens(n_tokens))}",
                )
            if word.text in ("br", "br_if", "call"):
                target, inside = divmod(value - ((value >> 31) << 32), _FIELDS)
                if inside or not 0 <= index + target < len(code):
                    raise self._error(f"{word.text} does not lead to an instruction", word)

"""Native code to a token program: addresses, branch offsets, initial memory, immediates.

Token layout of a program, all of it in the prompt: the memory size if there is a memory, the data
section, one seek that moves the cursor to the opening brace, and the code between braces. Positions
are counted in tokens from the first of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from compiler import isa
from compiler.errors import CompileError, Place, UnsupportedError
from compiler.lower_code import Label, Native, NativeFunction
from compiler.program import Origin

_SEEK_TOKENS = isa.INSTRUCTION_TOKENS
_PAGE = 1 << 12
_FARTHEST = 1 << 31


@dataclass(frozen=True)
class Code:
    """An encoded program: its tokens and where each instruction comes from."""

    tokens: tuple[str, ...]
    origins: tuple[Origin, ...]


def word_tokens(value: int) -> list[str]:
    """The four byte tokens of a 32-bit integer (signed or unsigned), little end first."""
    return [isa.byte_token(value >> shift & 255) for shift in (0, 8, 16, 24)]


def assemble(
    functions: Sequence[NativeFunction],
    memory_bytes: int | None,
    segments: Iterable[tuple[int, bytes]],
    name: str,
) -> Code:
    """Encode a whole program.

    Args:
        functions: native functions; execution begins at the first one's first instruction.
        memory_bytes: size of the memory, ``None`` if the module has none.
        segments: initial memory as (address, bytes); later segments overwrite earlier ones.
        name: for messages.

    Raises:
        CompileError: a segment does not fit the memory, or the program is too large.
    """
    head = data_section(memory_bytes, segments, name)
    placed = _Placed(functions)
    n_tokens = len(head) + 2 + isa.INSTRUCTION_TOKENS * placed.size
    if n_tokens >= isa.EXACT_ADDRESSES:
        raise CompileError("the program is too large", Place(name))
    tokens = [*head, isa.OPEN]
    origins: list[Origin] = []
    for index, instruction in enumerate(placed.instructions()):
        immediate = placed.immediate(index, instruction, n_tokens)
        if instruction.op in isa.INDEXED and immediate >= isa.MAX_LOCALS:
            raise _too_many(instruction, name)
        tokens.append(instruction.op)
        tokens += word_tokens(immediate)
        origins.append(instruction.origin)
    tokens.append(isa.CLOSE)
    return Code(tuple(tokens), tuple(origins))


def _too_many(instruction: Native, name: str) -> UnsupportedError:
    kind, origin = instruction.op.partition(".")[0], instruction.origin
    return UnsupportedError(
        f"more than {isa.MAX_LOCALS} {kind}s",
        Place(name, origin.function, origin.instruction, offset=origin.offset),
        f"split the function, or keep its {kind}s in memory",
    )


class _Placed:
    """Indices, among all instructions, of functions and labels."""

    def __init__(self, functions: Sequence[NativeFunction]) -> None:
        self.functions = functions
        self.entries: dict[str, int] = {}
        self.labels: list[dict[int, int]] = []
        self.starts: list[int] = []
        self.size = 0
        for function in functions:
            self.entries[function.key] = self.size
            labels: dict[int, int] = {}
            for item in function.code:
                if isinstance(item, Label):
                    labels[item.number] = self.size
                else:
                    self.labels.append(labels)
                    self.starts.append(self.entries[function.key])
                    self.size += 1

    def instructions(self) -> Iterable[Native]:
        """All instructions in order."""
        return (c for f in self.functions for c in f.code if isinstance(c, Native))

    def immediate(self, index: int, code: Native, n_tokens: int) -> int:
        """The immediate of the instruction number ``index``, with offsets in tokens."""
        if code.op == "call":
            return isa.INSTRUCTION_TOKENS * (self.entries[code.callee] - index)
        if code.op in ("br", "br_if"):
            return isa.INSTRUCTION_TOKENS * (self.labels[index][code.target] - index)
        if code.op == "return":
            return isa.INSTRUCTION_TOKENS * (index - self.starts[index] - 1)
        return n_tokens if code.op == "input" else code.imm


# --- initial memory ----------------------------------------------------------------------------


def data_section(
    memory_bytes: int | None, segments: Iterable[tuple[int, bytes]], name: str
) -> list[str]:
    """The tokens before the opening brace.

    Bytes are written once, zeros only where skipping them would take more tokens: memory that
    nothing has written reads zero.
    """
    if memory_bytes is None:
        return []
    tokens = [*word_tokens(memory_bytes), isa.MEMORY]
    cursor = 0
    for address, content in _runs(_image(memory_bytes, segments, name)):
        if address != cursor:
            tokens += _seek(address - cursor)
        tokens += map(isa.data_token, content)
        cursor = address + len(content)
    directives = 1
    while True:  # the seek ends behind itself, so its length is part of its distance
        seek = _seek(len(tokens) + directives * _SEEK_TOKENS - cursor, directives)
        if len(seek) == directives * _SEEK_TOKENS:
            return tokens + seek
        directives += 1


def _seek(distance: int, least: int = 1) -> list[str]:
    """Directives that move the cursor, at least so many; more if 32 bits are not enough."""
    hops: list[int] = []
    while not -_FARTHEST <= distance < _FARTHEST:
        hops.append(_FARTHEST - 1 if distance > 0 else -_FARTHEST)
        distance -= hops[-1]
    hops += [distance, *[0] * (least - len(hops) - 1)]
    return [token for hop in hops for token in (*word_tokens(hop), isa.SEGMENT)]


def _image(
    memory_bytes: int, segments: Iterable[tuple[int, bytes]], name: str
) -> dict[int, bytearray]:
    """Initial memory as pages that something is written to; memory use follows the content."""
    pages: dict[int, bytearray] = {}
    for number, (address, content) in enumerate(segments):
        if address + len(content) > memory_bytes:
            raise CompileError(
                f"data segment {number} (address {address}, {len(content)} bytes) "
                f"does not fit the memory of {memory_bytes} bytes",
                Place(name),
            )
        done = 0
        while done < len(content):
            page, start = divmod(address + done, _PAGE)
            part = content[done : done + _PAGE - start]
            pages.setdefault(page, bytearray(_PAGE))[start : start + len(part)] = part
            done += len(part)
    return pages


def _runs(pages: dict[int, bytearray]) -> list[tuple[int, bytes]]:
    """Runs of bytes to write, by address; the gaps of zeros between them are worth a seek."""
    runs: list[tuple[int, bytearray]] = []
    for page in sorted(pages):
        for start, value in enumerate(pages[page], start=page * _PAGE):
            if not value:
                continue
            gap = start - (runs[-1][0] + len(runs[-1][1])) if runs else -1
            if 0 <= gap <= _SEEK_TOKENS:
                runs[-1][1].extend(bytes(gap) + bytes([value]))
            else:
                runs.append((start, bytearray([value])))
    return [(address, bytes(content)) for address, content in runs]

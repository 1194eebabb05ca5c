"""The value that the compiler hands on: a token program and what is known about it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

from compiler import isa
from compiler.errors import Place, UsageError

if TYPE_CHECKING:
    from compiler.source_map import SourceMap


@dataclass(frozen=True)
class Origin:
    """Where one token-program instruction comes from.

    ``function``: name of the wasm function; ``instruction``: the wasm instruction's text
    (``i64.div_u``), one of ours in parentheses (``(entry)``) where the compiler adds code;
    ``index``: number of that instruction in its function, -1 for added code; ``offset``: of that
    instruction in the module's file, -1 if it is not there.
    """

    function: str
    instruction: str
    index: int
    offset: int = -1


START = "(start)"
"""Name of the function, added by the compiler, in which execution begins and a normal end lies."""
TRAP_REASONS = (
    "unreachable",
    "undefined element",
    "uninitialized element",
    "indirect call type mismatch",
    "out of bounds table access",
    "invalid conversion to integer",
)
"""Why an ``unreachable`` instruction traps, by its immediate, in the suite's words: 0 is the
instruction of the source, the others are checks that the compiler adds."""
UNREACHABLE, UNDEFINED, UNINITIALISED, MISMATCH, OUTSIDE_TABLE, INVALID_CONVERSION = range(
    len(TRAP_REASONS)
)


@dataclass(frozen=True)
class Program:
    """A compiled program: everything of the prompt but the machine's own tables and the input.

    Attributes:
        name: file name or other label, for messages.
        tokens: token spellings: ``memory`` and ``segment``/``data`` tokens, ``{`` ... ``}``.
        wasm: the module that wasmtime runs as the reference; empty for a token program.
        origins: one entry per instruction between the braces, in order.
        wants_args: the program reads its arguments from the head of its input
            (see :func:`input_bytes`).
        memory_bytes: size of the memory, 0 for none; the most it can have if it ``grows``.
        grows: the program may call ``memory.grow``; code that the compiler adds then checks every
            address against the size of the moment, which a native global holds.
        has_result: the entry returns a value, at ``halt`` on top of the stack: an i32, which is the
            exit code, or of a call what ``results`` says.
        entry, parameters, results: the export that is run, and the letters of its types.
        entry: the export that runs.
        compiled: from C or C++, with line tables, so that what has none is the library's.
        report: sizes in tokens, and what the C compiler warned of (``warnings``).
    """

    name: str
    tokens: tuple[str, ...]
    wasm: bytes = b""
    origins: tuple[Origin, ...] = ()
    wants_args: bool = False
    memory_bytes: int = 0
    grows: bool = False
    has_result: bool = False
    entry: str = ""
    parameters: str = ""
    results: str = ""
    compiled: bool = False
    report: dict[str, object] = field(default_factory=dict)

    @cached_property
    def source_map(self) -> SourceMap:
        """Files and lines of the module's code, read from its debug information."""
        from compiler.source_map import SourceMap

        return SourceMap(self.wasm)

    def place(self, instruction: int) -> Place:
        """Where instruction number ``instruction`` comes from: function, wasm instruction and, as
        far as the module says it, file, line and the line's text.

        Of a token program, and of a number that no instruction has, nothing is known.
        """
        if not 0 <= instruction < len(self.origins):
            return Place(instruction=f"instruction {instruction}")
        origin = self.origins[instruction]
        place = self.source_map.place(origin.offset, origin.function)
        text, number = origin.instruction, origin.index
        return replace(place, instruction=text, number=number, offset=origin.offset)

    @property
    def n_locals(self) -> int:
        """One more than the greatest index of a local or global that the program names."""
        body = self.tokens[self.tokens.index(isa.OPEN) + 1 :]
        most = 0
        for at in range(0, len(body) - isa.INSTRUCTION_TOKENS, isa.INSTRUCTION_TOKENS):
            if body[at] in isa.INDEXED:
                digits = body[at + 1 : at + isa.INSTRUCTION_TOKENS]
                most = max(most, 1 + int("".join(reversed(digits)), 16))
        return most

    def trap_reason(self, instruction: int) -> str | None:
        """Why instruction number ``instruction`` traps if it is ``unreachable``, else None.

        Other instructions trap for the reason that the machine's token says.
        """
        at = self.tokens.index(isa.OPEN) + 1 + isa.INSTRUCTION_TOKENS * instruction
        if self.tokens[at] != "unreachable":
            return None
        reason = int(self.tokens[at + 1], 16)
        return TRAP_REASONS[reason if reason < len(TRAP_REASONS) else UNREACHABLE]

    def error_outputs(self) -> frozenset[int]:
        """Numbers of the instructions that write to standard error."""
        start = self.tokens.index(isa.OPEN) + 1
        immediate = (isa.byte_token(isa.STANDARD_ERROR), "00", "00", "00")
        step = isa.INSTRUCTION_TOKENS
        return frozenset(
            number
            for number, name in enumerate(self.tokens[start::step])
            if name == "output"
            and self.tokens[start + step * number + 1 : start + step * (number + 1)] == immediate
        )

    def input_bytes(self, args: Sequence[str] = (), stdin: bytes = b"") -> bytes:
        """All bytes that ``input`` can read: the arguments, if the program wants them, then stdin.

        Each argument, the program's name first, is a byte 1, the argument and a NUL; a byte 0
        ends the list.
        """
        if not self.wants_args:
            return stdin
        block = b"".join(
            b"\x01" + arg.encode("utf-8", "surrogateescape") + b"\x00" for arg in (self.name, *args)
        )
        return block + b"\x00" + stdin

    def input_tokens(self, args: Sequence[str] = (), stdin: bytes = b"") -> list[str]:
        """The prompt's tail: one token per input byte and the end mark.

        Raises:
            UsageError: for arguments of a token program, which takes none.
        """
        if args and not self.wasm and not self.wants_args:
            raise UsageError(
                f"{self.name}: a token program takes no arguments, only input; "
                f"after it there is {' '.join(args)}"
            )
        return [*map(isa.in_token, self.input_bytes(args, stdin)), isa.END_OF_INPUT]

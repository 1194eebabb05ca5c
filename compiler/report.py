"""What the tokens of a prompt are for: a program in, tokens by function of its source out."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import asdict, dataclass
from enum import StrEnum

from compiler import isa
from compiler.errors import Place
from compiler.program import Program
from compiler.rom import ROM_TOKENS
from compiler.source_map import LIBRARY_FOLDER


class Kind(StrEnum):
    """Who wrote a function."""

    SOURCE = "source"
    LIBRARY = "library"
    COMPILER = "compiler"
    """Added by this compiler: the start, 64-bit arithmetic, and so on."""


@dataclass(frozen=True)
class Owner:
    """A function of the source. ``file``: where it is, empty if that is not known."""

    function: str
    file: str
    kind: Kind


@dataclass(frozen=True)
class Site:
    """What is known of one instruction.

    Attributes:
        owner: the function that it was written in.
        within: the one that it is in now, if that is not where ``owner`` was inlined.
        asked: the innermost one of the source's own among these and those between, if ``within``
            is one.
        place: the line of ``asked``.
    """

    owner: Owner
    within: Owner
    asked: Owner | None
    place: Place


def sites(program: Program) -> list[Site]:
    """One entry for each instruction between the braces; empty for a token program."""
    if not program.wasm:
        return []
    names = [origin.function for origin in program.origins]
    places = [program.place(index) for index in range(len(names))]
    files: dict[tuple[str, str], str] = {}
    for name, place in zip(names, places, strict=True):
        for frame in (place, *place.inlined):
            if frame.file:
                files.setdefault((name, frame.function), frame.file)
    owners: dict[tuple[str, str], Owner] = {}

    def owner(name: str, function: str) -> Owner:
        key = name, function
        if key not in owners:
            file = files.get(key, "")
            owners[key] = Owner(function, file, _kind(program, name, file, bool(files)))
        return owners[key]

    found = []
    for name, place in zip(names, places, strict=True):
        within = owner(name, name)
        frames = [(owner(name, frame.function), frame) for frame in (place, *place.inlined)]
        asking = [item for item in frames if within.kind is item[0].kind is Kind.SOURCE]
        asked, line = asking[0] if asking else (None, place)
        found.append(Site(frames[0][0], within, asked, line))
    return found


def _kind(program: Program, wasm_function: str, file: str, mapped: bool) -> Kind:
    """What has no lines in a program that we compiled with lines comes from an archive."""
    if wasm_function.startswith("("):
        return Kind.COMPILER
    if file.startswith(LIBRARY_FOLDER) or (program.compiled and mapped and not file):
        return Kind.LIBRARY
    return Kind.SOURCE


@dataclass(frozen=True)
class FunctionTokens:
    """Instructions of a function, and tokens of the prompt that they take."""

    owner: Owner
    instructions: int
    tokens: int


@dataclass(frozen=True)
class PromptReport:
    """What the tokens of a prompt are for; the input is not counted.

    Attributes:
        program, entry, memory_bytes: its name, the export that runs, the size of its memory.
        rom: tokens of the model's own tables, which stand before every program.
        data: tokens of initial memory. code: of instructions and the braces around them.
        searches: of the code, what finds the targets of ``br_table`` and indirect calls.
        functions: by tokens, the most first.
    """

    program: str
    entry: str
    memory_bytes: int
    rom: int
    data: int
    code: int
    searches: int
    functions: tuple[FunctionTokens, ...]

    @property
    def tokens(self) -> int:
        """Tokens of the program: data and code."""
        return self.data + self.code

    @property
    def by_kind(self) -> dict[Kind, int]:
        """Tokens of the code by who wrote it."""
        kinds = Counter[Kind]()
        for row in self.functions:
            kinds[row.owner.kind] += row.tokens
        return dict(kinds)

    def as_json(self) -> dict[str, object]:
        """The same as values that JSON can hold."""
        rows = [
            {**asdict(row.owner), "instructions": row.instructions, "tokens": row.tokens}
            for row in self.functions
        ]
        names = ("program", "entry", "memory_bytes", "rom", "data", "code", "searches", "tokens")
        return {**{name: getattr(self, name) for name in names}, "functions": rows}


def prompt_report(program: Program) -> PromptReport:
    """Count a program's tokens; what was inlined counts where it was written."""
    counts: dict[Owner, int] = defaultdict(int)
    for site in sites(program):
        counts[site.owner] += 1
    rows = [
        FunctionTokens(owner, count, isa.INSTRUCTION_TOKENS * count)
        for owner, count in counts.items()
    ]
    data = program.tokens.index(isa.OPEN)
    searching = sum(
        origin.instruction.strip("(").startswith(("br_table", "call_indirect"))
        for origin in program.origins
    )
    return PromptReport(
        program=program.name,
        entry=program.entry,
        memory_bytes=program.memory_bytes,
        rom=ROM_TOKENS,
        data=data,
        code=len(program.tokens) - data,
        searches=isa.INSTRUCTION_TOKENS * searching,
        functions=tuple(sorted(rows, key=lambda row: (-row.tokens, row.owner.function))),
    )

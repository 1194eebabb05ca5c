"""Pictures of traces: a step's lookups, memory that is written again, the carry in the token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stream import Inside
from style import BLUE, GREEN, GRID, INK, ORANGE, PALE, RED, arrow, blank, box, figure, note

BYTE, WORD, COMMIT = 0.62, 1.75, 2.25
"""Widths of boxes: a byte, an opcode, a commit."""


def lookups(inside: Inside) -> Any:
    """What the token before the sum's first byte looks back at, in ``3 + 5``."""
    tokens, brace = inside.tokens, inside.tokens.index("{")
    start = tokens.index("}") + 1
    if tokens[start] == "eof":
        start += 1
    add = [p for p, token in enumerate(tokens[start:], start) if token.startswith("commit")][1]
    fig, (axes,) = figure(7.8, 2.9)
    blank(axes, (-0.1, 21.4), (-0.95, 5.4))
    places: dict[int, tuple[float, float]] = {}
    asked = {int(inside.head(name).winners[add]): color for name, color in
             (("opcode", BLUE), ("top", ORANGE), ("second", GREEN))}  # fmt: skip
    for row, (first, end) in enumerate(((brace + 1, start - 1), (start, len(tokens)))):
        x = 0.1
        for position in range(first, end):
            if tokens[position] in ("}", "eof"):
                break
            width, text = _box(tokens[position])
            places[position] = (x + width / 2, 4.2 - 3.2 * row)
            color = RED if position == add + 1 else asked.get(position, PALE)
            box(axes, *places[position], text, color, width=width, height=0.86, size=6.6)
            x += width + 0.07
    note(axes, 0.1, 5.15, "the program, in the prompt", align="left")
    note(axes, 0.1, 1.95, "the trace", align="left")
    x, y = places[add]
    for name, color, edge, bend in (("opcode", BLUE, 0.45, 0.1), ("second", GREEN, -0.45, -0.3)):
        to = places[int(inside.head(name).winners[add])]
        arrow(axes, (x, y + edge), (to[0], to[1] - 0.45), color, bend=bend)
    program = places[int(inside.head("opcode").winners[add])]
    note(axes, (x + program[0]) / 2 + 0.5, 2.6, "which instruction?", BLUE, align="left")
    second = places[int(inside.head("second").winners[add])]
    note(axes, (x + second[0]) / 2, -0.62, "the second value: 3", GREEN)
    note(axes, x + 0.35, -0.05, "the top of the stack: 5, pushed by itself", ORANGE, align="left")
    after = places[add + 1]
    arrow(axes, (after[0] + 3.5, 2.15), (after[0] + 0.2, y + 0.5), RED, bend=0.15)
    note(axes, after[0] + 3.6, 2.15, "so 08 comes next", RED, align="left")
    fig.tight_layout(pad=0.3)
    return fig


def _box(token: str) -> tuple[float, str]:
    """Width and text of a token's box."""
    if token.startswith("commit"):
        return COMMIT, token.replace("(", "\n(")
    short = len(token) <= 3
    return (BYTE if short else max(1.1, 0.165 * len(token) + 0.25)), token


@dataclass(frozen=True)
class Access:
    """A byte that is stored or loaded: at which token of the trace, where, and what it is.

    ``source``: the token that answered a load, None for a store, and where nothing was stored.
    """

    time: int
    address: int
    value: int
    source: int | None = None


def accesses(inside: Inside, start: int) -> tuple[list[Access], list[Access]]:
    """Stores and byte loads of a trace, whose first token stands at position ``start``.

    A store is where the machine's write address is set; a load is decided at the token before the
    byte that it writes, where a head finds the memory byte.
    """
    write, read = inside.quantity("write_address"), inside.quantity("read_address")
    found, last_other = inside.quantity("found"), inside.quantity("last_other")
    memory, opcode = inside.head("memory"), inside.head("opcode")

    def byte(position: int) -> int:
        return int(inside.tokens[position].rstrip("'"), 16)

    stores, loads = [], []
    for position in range(start, len(inside.tokens)):
        if write[position] > 0:
            stores.append(Access(position - start, int(write[position]) - 1, byte(position)))
        instruction = inside.tokens[opcode.winners[position]]
        if instruction == "i32.load8_u" and last_other[position] == position:
            source = int(memory.winners[position]) - start if found[position] > 0 else None
            address = int(read[position]) - 1
            loads.append(Access(position - start, address, byte(position + 1), source))
    return stores, loads


def rewritten_memory(inside: Inside, start: int) -> Any:
    """Stores and loads over time; an arrow goes from a load to the store that answered."""
    stores, loads = accesses(inside, start)
    fig, (axes,) = figure(7.8, 2.9)
    rows = sorted({store.address for store in stores})
    for row in rows:
        axes.axhline(row, color=GRID, linewidth=5, zorder=0, solid_capstyle="round")
    circle = {"s": 150, "color": ORANGE, "label": "a store, with its byte"}
    square = {"s": 90, "marker": "s", "color": "white", "edgecolor": BLUE,
              "label": "a load, and what it found"}  # fmt: skip
    for kind, style, ink in ((stores, circle, "white"), (loads, square, BLUE)):
        axes.scatter([a.time for a in kind], [a.address for a in kind], zorder=4, **style)
        for one in kind:
            note(axes, one.time, one.address - 0.02, str(one.value), ink, size=8)
    for load in loads:
        if load.source is not None:
            bend = min(0.25, 18 / (load.time - load.source))
            y = load.address
            arrow(axes, (load.time, y + 0.14), (load.source, y + 0.16), BLUE, bend=bend)
    axes.set_yticks(rows, [f"address {row}" for row in rows], fontsize=8.5)
    axes.set_ylim(rows[0] - 0.45, rows[-1] + 0.75)
    axes.set_xlabel("token of the trace", fontsize=8.5)
    axes.legend(fontsize=8, frameon=False, ncols=2, loc="upper right", bbox_to_anchor=(1, 1.18))
    fig.tight_layout()
    return fig


def carry(inside: Inside) -> Any:
    """An addition, byte by byte: what each token of the sum adds up."""
    tokens = inside.tokens
    commits = [p for p, token in enumerate(tokens) if token.startswith("commit")]
    first = commits[1] + 1
    top, second = inside.quantity("top_byte"), inside.quantity("second_byte")
    fig, (axes,) = figure(7.8, 3.2)
    blank(axes, (-2.2, 11.0), (-0.7, 3.75))
    for number in range(4):
        x, asks = 2.2 * number + 0.6, first + number - 1
        a, b = int(second[asks]), int(top[asks])
        before = int(tokens[asks].endswith("'"))
        box(axes, x, 3.3, f"{a:02x}", GREEN, width=1.0)
        box(axes, x, 2.35, f"{b:02x}", ORANGE, width=1.0)
        total = a + b + before
        plus = f" + {before}" if before else ""
        note(axes, x, 1.5, f"{a:02x} + {b:02x}{plus}\n= {total:x}", INK, size=8)
        token = tokens[first + number]
        box(axes, x, 0.45, token, RED if token.endswith("'") else BLUE, width=1.0)
        if token.endswith("'"):
            arrow(axes, (x + 0.55, 0.45), (x + 1.62, 0.45), RED)
            note(axes, x + 1.08, 0.68, "carry", RED, size=8)
    box(
        axes, 9.75, 0.45, tokens[first + 4].replace("(", "\n("), PALE, width=1.9, height=0.8, size=7
    )
    for y, text, color in ((3.3, "first operand", GREEN), (2.35, "second operand", ORANGE),
                           (0.45, "the trace", INK)):  # fmt: skip
        note(axes, -0.35, y, text, color, align="right")
    words = "the mark ' belongs to the token: the next one finds it one token back"
    note(axes, 3.9, -0.45, words)
    fig.tight_layout(pad=0.3)
    return fig

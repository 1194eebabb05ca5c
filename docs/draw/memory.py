"""Pictures of traces: a step's lookups, memory that is written again, the carry in the token."""

from __future__ import annotations

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


def rewritten_memory(inside: Inside, start: int) -> Any:
    """Stores and loads of bytes over time; an arrow goes from a load to the store that answered.

    ``start``: the position of the trace's first token.
    """
    address = inside.quantity("write_address")
    head, opcode = inside.head("memory"), inside.head("opcode")
    found = inside.quantity("memory_byte")
    here = inside.quantity("last_other")
    names = [inside.tokens[position] for position in opcode.winners]
    fig, (axes,) = figure(7.8, 2.9)
    rows = sorted({int(a) - 1 for a in address[start:] if a > 0})
    for row in rows:
        axes.axhline(row, color=GRID, linewidth=5, zorder=0, solid_capstyle="round")
    stores = {}
    for position in range(start, len(inside.tokens)):
        if address[position] > 0:
            stores[position] = (position - start, int(address[position]) - 1)
    loads = [p for p in range(start, len(inside.tokens))
             if names[p] == "i32.load8_u" and here[p] == p]  # fmt: skip
    values = {p: int(inside.tokens[p].rstrip("'"), 16) for p in stores}
    for position, (x, y) in stores.items():
        axes.scatter([x], [y], s=150, color=ORANGE, zorder=4)
        axes.text(x, y - 0.02, values[position], ha="center", va="center", color="white",
                  fontsize=8, fontweight="bold", zorder=5)  # fmt: skip
    for position in loads:
        x, y = position - start, _address(inside, position)
        winner = int(head.winners[position])
        axes.scatter([x], [y], s=90, marker="s", color="white", edgecolor=BLUE, zorder=4)
        axes.text(x, y - 0.02, int(found[position]) if winner in stores and stores[winner][1] == y
                  else 0, ha="center", va="center", color=BLUE, fontsize=8, zorder=5)  # fmt: skip
        if winner in stores and stores[winner][1] == y:
            end = stores[winner][0]
            bend = min(0.25, 18 / (x - end))
            arrow(axes, (x, y + 0.14), (end, y + 0.16), BLUE, bend=bend)
    axes.set_yticks(rows, [f"address {row}" for row in rows], fontsize=8.5)
    axes.set_ylim(rows[0] - 0.45, rows[-1] + 0.75)
    axes.set_xlabel("token of the trace", fontsize=8.5)
    axes.scatter([], [], s=90, color=ORANGE, label="a store, with its byte")
    axes.scatter(
        [], [], s=70, marker="s", color="white", edgecolor=BLUE, label="a load, and what it found"
    )
    axes.legend(fontsize=8, frameon=False, ncols=2, loc="upper right", bbox_to_anchor=(1, 1.18))
    fig.tight_layout()
    return fig


def _address(inside: Inside, position: int) -> int:
    """The address that a load asks for."""
    return int(inside.quantity("read_address")[position]) - 1


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
    note(
        axes,
        3.9,
        -0.45,
        "the mark ' belongs to the token: the next one finds it one token back",
        INK,
    )
    fig.tight_layout(pad=0.3)
    return fig

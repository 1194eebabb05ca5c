"""Pictures of single heads: parabolic keys and their hull, division."""

from __future__ import annotations

from typing import Any

import numpy as np
from stream import Inside
from style import BLUE, GREEN, GRID, INK, LIGHT, PALE, RED, arrow, figure, note


def parabola(inside: Inside, name: str, at: int) -> Any:
    """The keys of a lookup by position, their hull, and the query of the token at ``at``."""
    head = inside.head(name)
    keys, query, winner = head.keys[: at + 1], head.queries[at], int(head.winners[at])
    index = f"{query[0]:.0f}"
    fig, (left, right) = figure(7.8, 3.5, (1.3, 1))
    _hull(left, keys, query, winner)
    left.set_title("keys (2p, -p²) of all tokens so far, and their hull", fontsize=9, color=INK)
    scores = keys @ query
    colors = [RED if p == winner else BLUE for p in range(at + 1)]
    right.bar(range(at + 1), scores, color=colors, width=0.72, zorder=2)
    right.axhline(0, color=PALE, linewidth=0.8)
    note(right, winner, scores[winner] + 3, f"{scores[winner]:.0f}", RED, level="bottom")
    right.set_xlabel("position p of the key", fontsize=8.5)
    right.set_title(f"scores q·k = {index}² - ({index} - p)²", fontsize=9, color=INK)
    right.margins(y=0.12)
    right.set_xticks(range(0, at + 1, 5))
    right.grid(axis="y", color=GRID, linewidth=0.6)
    fig.tight_layout(w_pad=2)
    return fig


def _hull(axes: Any, keys: Any, query: Any, winner: int) -> None:
    x, y = keys[:, 0], keys[:, 1]
    axes.fill(x, y, color="#f0f4f9", zorder=0)
    axes.plot([*x, x[0]], [*y, y[0]], color=PALE, linewidth=0.9, zorder=1)
    axes.scatter(x, y, s=20, color=BLUE, zorder=3)
    axes.scatter(*keys[winner], s=60, color=RED, zorder=4)
    axes.set_xlim(-4, x.max() + 6)
    axes.set_ylim(y.min() * 1.12, -y.min() * 0.35)
    slope = -query[0] / query[1]
    reach = np.array([-9.0, 9.0])
    axes.plot(x[winner] + reach, y[winner] + slope * reach, color=RED, linewidth=1.2, zorder=2)
    # At a right angle to the line as it is drawn: the units of the two axes differ in length.
    ratio = (y.max() - y.min()) * 1.47 / (x.max() + 10) * 4.0 / 2.6
    away = np.array([-slope, ratio**2])
    tip = keys[winner] + away / np.hypot(away[0], away[1] / ratio) * 5.5
    arrow(axes, tuple(keys[winner]), tuple(tip), RED)
    note(axes, tip[0] + 0.6, tip[1], f"query ({query[0]:.0f}, {query[1]:.0f})", RED, align="left")
    note(axes, x[winner], y[winner] - 24, f"p = {winner}", RED)
    note(axes, -0.4, -15, "p = 0", align="right")
    note(axes, x[-1] + 0.7, y[-1], f"p = {len(keys) - 1}", align="left")
    axes.set_xlabel("first part of the key, 2p", fontsize=8.5)
    axes.set_ylabel("second part, -p²", fontsize=8.5)
    axes.grid(color=GRID, linewidth=0.6)


def division(inside: Inside, dividend: int, divisor: int) -> Any:
    """The scores of all positions for the query that finds the quotient's last digit."""
    at = inside.tokens.index(f"q0({dividend // divisor:02x})") - 1
    head = inside.head("division")
    query, winner = head.queries[at], int(head.winners[at])
    fig, (left, right) = figure(7.8, 3.1, (1, 1.25))
    p = np.arange(at + 1)
    scores = head.keys[: at + 1] @ query
    left.plot(p[:320], scores[:320], color=BLUE, linewidth=1.6)
    left.scatter([winner], [scores[winner]], color=RED, s=40, zorder=3)
    left.set_title(
        f"query ({query[0]:.0f}, {query[1]:.0f}) at keys (2p, -p²)", fontsize=9, color=INK
    )
    left.set_xlabel("position p", fontsize=8.5)
    left.set_ylabel("score", fontsize=8.5)
    left.ticklabel_format(axis="y", style="plain")

    near = np.arange(winner - 3, winner + 5)
    fine = np.linspace(near[0] - 0.4, near[-1] + 0.4, 200)
    best = scores[winner]
    right.plot(fine, 2 * query[0] * fine - query[1] * fine**2 - best, color=LIGHT[BLUE], lw=2)
    right.scatter(near, scores[near] - best, color=BLUE, s=26, zorder=3)
    right.scatter([winner], [0], color=RED, s=52, zorder=4)
    low = (scores[near] - best).min()
    for place, color, text, align in (
        (query[0] / query[1], RED, f"{query[0]:.0f}/{query[1]:.0f}", "right"),
        (dividend / divisor, GREEN, f"{dividend}/{divisor}", "left"),
    ):
        right.axvline(place, color=color, linewidth=1, linestyle=(0, (3, 2)), zorder=1)
        beside = place + (0.1 if align == "left" else -0.1)
        note(right, beside, low * 0.85, f"{text} = {place:.2f}", color, align=align)
    note(right, winner - 0.15, -low * 0.09, f"p = {winner}", RED, align="right", level="bottom")
    right.set_ylim(low * 1.12, -low * 0.3)
    right.set_title("the greatest scores, less the greatest of all", fontsize=9, color=INK)
    right.set_xlabel("position p", fontsize=8.5)
    for axes in (left, right):
        axes.grid(color=GRID, linewidth=0.6)
    fig.tight_layout(w_pad=2)
    return fig

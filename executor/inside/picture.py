"""Pictures of an explanation: who is asked where a token is written, and how one head decides.

In: an explanation. Out: a file (matplotlib, the ``plots`` extra).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from compiler.draw import load_pyplot, picture_path, save_figure
from compiler.names import erased_by
from executor.inside.explanation import Explanation, Floats
from executor.inside.forward import keys_of_head
from executor.inside.text import number

FONT = 7.5
AROUND = 2
"""Tokens that are shown before and behind one that is read."""
LETTER = 0.065
"""Width of a letter in inches."""
LONGEST = 22
"""Letters of a token that are shown."""
MOST_POINTS = 5000
"""Keys that are drawn as shapes; more become an image in the drawing."""
HULL, KEYS, WINNER, QUERY = "#4878a8", "#9aa0ac", "#c0392b", "#d08a2e"


@dataclass(frozen=True)
class Arc:
    """What one head does at the position that is drawn."""

    layer: int
    head: int
    label: str
    winner: int


def arcs_of(explanation: Explanation, position: int) -> list[Arc]:
    """The heads that count in the answer and read one token, by layer."""
    row, names = explanation.row(position), explanation.names
    arcs = []
    for layer, inside in enumerate(explanation.layers):
        attention = inside.attention
        for head, mode in enumerate(attention.modes):
            name = names.heads[layer][head] if names else ""
            if not attention.used[row, head] or erased_by(name) or mode == "mean":
                continue
            label = f"{layer}.{head}"
            if names is not None and name:
                label += f"  {names.words(name)}"
            arcs.append(Arc(layer, head, label, int(attention.winners[row, head])))
    return arcs


def draw_attention(explanation: Explanation, position: int, file: str | os.PathLike[str]) -> None:
    """Arcs from the position that writes a token to those that its heads read.

    Raises:
        UsageError: without matplotlib, for a file that cannot be written, or another format.
    """
    path = picture_path(file)
    save_figure(attention_figure(explanation, position), path)


def attention_figure(explanation: Explanation, position: int) -> Any:
    """The picture as a matplotlib figure. Raises UsageError without matplotlib."""
    pyplot = load_pyplot()
    from matplotlib.lines import Line2D
    from matplotlib.patches import Arc as Curve

    arcs = arcs_of(explanation, position)
    places = _places(explanation, position, arcs)
    labels = [f"{a.label}: {'itself' if a.winner == position else f'{a.winner:,}'}" for a in arcs]
    texts = {each: _token_text(explanation, each, position, places) for each in places}
    figure, axes = _sheet(len(places), labels, list(texts.values()))
    colors = pyplot.get_cmap("turbo")(np.linspace(0.05, 0.95, max(len(arcs), 2)))
    here, met = places[position], Counter[int]()
    for arc, color in zip(arcs, colors, strict=False):
        there = places[arc.winner]
        height = 2 * (here - there) * (1 - 0.07 * met[arc.winner])  # side by side, not one on one
        met[arc.winner] += 1
        if here > there:
            middle = ((here + there) / 2, 0)
            axes.add_patch(Curve(middle, here - there, height, theta1=0, theta2=180, color=color))
    for each, x in places.items():
        weight = "bold" if each == position else "normal"
        axes.text(x, 0, f"{texts[each]} ", rotation=90, va="top", ha="center", fontsize=FONT,
                  family="monospace", weight=weight)  # fmt: skip
    axes.set_xlim(-1, here + 1)
    axes.set_ylim(0, 1.04 * max(here, 1.0))
    axes.axis("off")
    handles = [Line2D([], [], color=color) for color in colors[: len(arcs)]]
    axes.legend(handles, labels, fontsize=FONT, frameon=False, loc="center left",
                bbox_to_anchor=(1.0, 0.5), title="head: position that answers",
                title_fontsize=FONT, alignment="left")  # fmt: skip
    best = explanation.answer.tokens[explanation.row(position), 0]
    read, written = explanation.spelling(position), explanation.checkpoint.vocabulary[int(best)]
    axes.set_title(f"position {position:,} reads {read}, writes {written}", fontsize=FONT + 2)
    return figure


def _sheet(n_places: int, labels: list[str], texts: list[str]) -> tuple[Any, Any]:
    """Axes with room for the legend on the right and the tokens below."""
    pyplot = load_pyplot()
    wide = max(5.0, 0.21 * n_places)
    high = max(2.8, 0.5 * wide, 0.19 * len(labels))
    right = 0.6 + LETTER * max(map(len, [*labels, ""]))
    below = 0.2 + LETTER * max(map(len, texts))
    size = (0.2 + wide + right, 0.5 + high + below)
    figure = pyplot.figure(figsize=size)
    axes = figure.add_axes((0.2 / size[0], below / size[1], wide / size[0], high / size[1]))
    return figure, axes


def _token_text(
    explanation: Explanation, each: int, position: int, places: Mapping[int, float]
) -> str:
    """A token, with its position where a run of neighbours begins."""
    token = explanation.spelling(each)
    short = token if len(token) <= LONGEST else token[: LONGEST - 1] + "…"
    numbered = each - 1 not in places or each == position
    return f"{each:,} {short}" if numbered else short


def _places(explanation: Explanation, position: int, arcs: list[Arc]) -> dict[int, float]:
    """Where each token that is shown stands: those that are read, and their neighbours."""
    shown: set[int] = set()
    for centre in (position, *(arc.winner for arc in arcs)):
        shown.update(range(max(centre - AROUND, 0), min(centre + AROUND, position) + 1))
    places, x, last = {}, 0.0, None
    for each in sorted(shown):
        x += 0.0 if last is None else 1.0 if each == last + 1 else 2.0
        places[each], last = x, each
    return places


# --- one head -----------------------------------------------------------------------------------


def draw_hull(
    explanation: Explanation, position: int, layer: int, head: int, file: str | os.PathLike[str]
) -> None:
    """The keys of a head, their convex hull, the query's direction and the key that wins.

    Raises:
        UsageError: without matplotlib, for a file that cannot be written, or another format.
    """
    path = picture_path(file)
    save_figure(hull_figure(explanation, position, layer, head), path)


def hull_figure(explanation: Explanation, position: int, layer: int, head: int) -> Any:
    """The picture as a matplotlib figure. Raises UsageError without matplotlib.

    Both axes are scaled to the same length, and the query with them, inversely: q·k stays what it
    is, so the line through the winner is at right angles to the query.
    """
    pyplot = load_pyplot()
    tokens = explanation.tokens[: position + 1]
    keys = np.unique(keys_of_head(explanation.checkpoint, tokens, layer, head), axis=0)
    row, attention = explanation.row(position), explanation.layers[layer].attention
    query, winner = attention.queries[row, head], attention.keys[row, head]
    low, span = keys.min(axis=0), np.ptp(keys, axis=0)
    span[span == 0] = 1.0
    figure, axes = pyplot.subplots(figsize=(6.4, 6.0))
    points = (keys - low) / span
    axes.scatter(*points.T, s=9, color=KEYS, zorder=2, label=f"{len(keys):,} different keys",
                 rasterized=len(keys) > MOST_POINTS)  # fmt: skip
    edge = hull(points)
    axes.fill(*edge.T, facecolor="#e8eef5", edgecolor=HULL, lw=0.8, zorder=1,
              label=f"convex hull, {len(edge):,} corners")  # fmt: skip
    at = (winner - low) / span
    _draw_query(axes, query * span, at)
    axes.scatter(
        *at, s=46, color=WINNER, zorder=4, label=_winner_label(explanation, row, layer, head)
    )
    axes.set_aspect("equal")
    axes.set_xlim(-0.25, 1.25)
    axes.set_ylim(-0.25, 1.25)
    ticks = (0.0, 0.5, 1.0)
    axes.set_xticks(ticks, [number(float(low[0] + t * span[0])) for t in ticks], fontsize=FONT)
    axes.set_yticks(ticks, [number(float(low[1] + t * span[1])) for t in ticks], fontsize=FONT)
    axes.legend(fontsize=FONT, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.06))
    axes.set_title(_hull_title(explanation, position, layer, head), fontsize=FONT + 1.5)
    figure.tight_layout()
    return figure


def _draw_query(axes: Any, direction: Floats, at: Floats) -> None:
    """An arrow from the winner, and the line of all points that would score as the winner does."""
    length = float(np.hypot(*direction))
    if not length:
        return
    unit = direction / length
    axes.annotate("", at + 0.2 * unit, at, zorder=3,
                  arrowprops={"arrowstyle": "-|>", "color": QUERY, "lw": 1.6})  # fmt: skip
    line = at + np.outer((-2.0, 2.0), (-unit[1], unit[0]))
    axes.plot(*line.T, color=QUERY, lw=0.9, ls="--", zorder=1, label="scores as the winner does")


def _winner_label(explanation: Explanation, row: int, layer: int, head: int) -> str:
    attention = explanation.layers[layer].attention
    winner = int(attention.winners[row, head])
    kx, ky = (number(float(k)) for k in attention.keys[row, head])
    return f"winner ({kx}, {ky}): position {winner:,}, {explanation.spelling(winner)}"


def _hull_title(explanation: Explanation, position: int, layer: int, head: int) -> str:
    attention, row = explanation.layers[layer].attention, explanation.row(position)
    names = explanation.names
    name = names.heads[layer][head] if names else ""
    words = f" ({names.words(name)})" if names and name else ""
    qx, qy = (number(float(q)) for q in attention.queries[row, head])
    return f"layer {layer}, head {head}{words}\nposition {position:,}, query ({qx}, {qy})"


def hull(points: Floats) -> Floats:
    """The corners of the convex hull of points (n, 2), sorted by x and then y, all different;
    counter-clockwise. Andrew's monotone chain, O(n)."""
    if len(points) < 3:
        return points
    chains = []
    for ordered in (points, points[::-1]):
        chain: list[Floats] = []
        for point in ordered:
            while len(chain) > 1 and _turn(chain[-2], chain[-1], point) <= 0:
                chain.pop()
            chain.append(point)
        chains += chain[:-1]
    return np.array(chains)


def _turn(a: Floats, b: Floats, c: Floats) -> float:
    return float((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]))

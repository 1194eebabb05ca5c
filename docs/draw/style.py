"""Colours, boxes for tokens, and arcs, in one style for all pictures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib import pyplot
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

INK, PALE, GRID = "#2b2f38", "#9aa1ad", "#e6e9ef"
BLUE, ORANGE, GREEN, RED = "#3b76af", "#e08a2e", "#4f9d5d", "#c8433c"
LIGHT = {BLUE: "#dce8f4", ORANGE: "#fbe6cd", GREEN: "#ddeedd", RED: "#f6dcda", PALE: "#eef0f4"}


def figure(width: float, height: float, columns: Sequence[float] = (1,)) -> tuple[Any, list[Any]]:
    """A figure (inches) with plots side by side, without frames."""
    fig, axes = pyplot.subplots(
        1, len(columns), figsize=(width, height), width_ratios=columns, squeeze=False
    )
    for one in axes[0]:
        one.tick_params(length=0, labelsize=8, labelcolor=INK)
        for side in one.spines.values():
            side.set_visible(False)
    return fig, list(axes[0])


def blank(axes: Any, x: tuple[float, float], y: tuple[float, float]) -> None:
    """A plot without axes, for boxes and arrows."""
    axes.set_xlim(*x)
    axes.set_ylim(*y)
    axes.set_axis_off()


def box(axes: Any, x: float, y: float, text: str, color: str = PALE, *, width: float = 0.9,
        height: float = 0.56, size: float = 8) -> None:  # fmt: skip
    """A token: a rounded box around (x, y)."""
    axes.add_patch(
        FancyBboxPatch(
            (x - width / 2 + 0.06, y - height / 2 + 0.06), width - 0.12, height - 0.12,
            boxstyle="round,pad=0.06,rounding_size=0.12", facecolor=LIGHT[color], edgecolor=color,
            linewidth=0.9, zorder=3,
        )
    )  # fmt: skip
    axes.text(x, y - 0.01, text, ha="center", va="center", fontsize=size, color=INK, zorder=4)


def arrow(axes: Any, start: tuple[float, float], end: tuple[float, float], color: str,
          *, bend: float = 0.0, width: float = 1.3) -> None:  # fmt: skip
    """An arrow from one point to another, bent to its side."""
    axes.add_patch(
        FancyArrowPatch(
            start, end, connectionstyle=f"arc3,rad={bend}", arrowstyle="-|>", mutation_scale=9,
            linewidth=width, color=color, zorder=2, shrinkA=1, shrinkB=2,
        )
    )  # fmt: skip


def note(axes: Any, x: float, y: float, text: str, color: str = INK, *, size: float = 8.5,
         align: str = "center", level: str = "center") -> None:  # fmt: skip
    """Words beside a drawing."""
    axes.text(x, y, text, ha=align, va=level, fontsize=size, color=color, zorder=5,
              linespacing=1.35)  # fmt: skip

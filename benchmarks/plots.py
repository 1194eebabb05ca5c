"""The plots of the benchmark page: from JSON to SVG files, the same bytes each time."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

Found = Mapping[str, Any]

STYLE = {
    "svg.hashsalt": "transputer",
    "svg.fonttype": "path",
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e4e4e4",
    "legend.frameon": False,
}
COLOURS = {
    "Python, hull": ("#d1603d", "-"),
    "Python, scan": ("#d1603d", "--"),
    "C, hull": ("#1f6f8b", "-"),
    "C, scan": ("#1f6f8b", "--"),
    "C, classified": ("#6a994e", "-"),
    "C, specialised": ("#2b2d42", "-"),
}


def figure(columns: int, width: float = 7.0, height: float = 3.6) -> tuple[Figure, list[Axes]]:
    """An empty figure with axes side by side."""
    drawn = Figure(figsize=(width, height), layout="constrained")
    return drawn, [drawn.add_subplot(1, columns, k + 1) for k in range(columns)]


def save(drawn: Figure, path: Path) -> None:
    """Write an SVG without date."""
    drawn.savefig(path, metadata={"Date": None, "Creator": "Transputer"})


def hull_vs_standard(found: Found, path: Path) -> None:
    """Time per step against the length of the sequence."""
    with mpl.rc_context(STYLE):
        drawn, (axes,) = figure(1)
        for name, row in found["candidates"].items():
            colour, line = COLOURS[name]
            label = f"{name} (exponent {row['exponent']:.2f})"
            times = row["microseconds_per_step"]
            axes.loglog(row["lengths"], times, line, color=colour, marker=".", label=label)
        axes.set_xlabel("tokens in the sequence")
        axes.set_ylabel("µs per step")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        save(drawn, path)


def scaling(found: Found, path: Path) -> None:
    """Nanoseconds a token against four sizes."""
    with mpl.rc_context(STYLE):
        drawn, axes = figure(4, width=9.0, height=2.6)
        names = (
            ("trace", "up_to", "tokens of the trace"),
            ("memory", "bytes", "bytes of memory"),
            ("call_depth", "depth", "depth of calls"),
            ("program", "instructions", "instructions"),
        )
        for one, (key, size, label) in zip(axes, names, strict=True):
            rows = found[key]
            times = [row["nanoseconds_per_token"] for row in rows]
            one.semilogx([row[size] for row in rows], times, ".-", color="#1f6f8b")
            one.set_ylim(0, 1.3 * max(times))
            one.set_xlabel(label)
        axes[0].set_ylabel("ns a token")
        save(drawn, path)


def native(found: Found, path: Path) -> None:
    """Seconds of each way, one group of bars for each task."""
    tasks = found["tasks"]
    ways = list(next(iter(tasks.values()))["seconds"])
    colours = ("#2b2d42", "#6c757d", "#1f6f8b", "#6a994e", "#d1603d", "#8ab6c8", "#e9a68d")
    with mpl.rc_context(STYLE):
        drawn, (axes,) = figure(1, width=8.0)
        for k, (way, colour) in enumerate(zip(ways, colours, strict=True)):
            heights = [task["seconds"][way]["median"] for task in tasks.values()]
            places = [i + 0.12 * k for i in range(len(tasks))]
            axes.bar(places, heights, 0.11, color=colour, label=way, log=True)
        axes.set_xticks([i + 0.36 for i in range(len(tasks))], list(tasks), fontsize=7)
        axes.set_ylabel("seconds")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
        save(drawn, path)

"""A picture of a placed graph: which quantity stands in which slot, from which half-layer to which.

In: a graph and its plan. Out: a file (matplotlib, the ``plots`` extra).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from compiler.errors import UsageError
from compiler.graph import ONE, POSITION, POSITION_SQUARED, Graph
from compiler.schedule import Plan, lives, parity

COLORS = {
    "input": "#c9ccd4",
    "head": "#8fb8de",
    "neuron": "#f2c48d",
    "several": "#b9d8a8",
}
"""By what a quantity comes from."""
FONT = 7.5
"""Size of the letters in points."""
FORMATS = (".svg", ".png", ".pdf")
METADATA = {"svg": {"Date": None, "Creator": None}, "pdf": {"CreationDate": None}}


@dataclass(frozen=True)
class Bar:
    """One quantity in its slot, from half-layer ``start`` (-1: the embedding) to ``end``."""

    name: str
    slot: int
    start: int
    end: int
    kind: str


def bars(graph: Graph, plan: Plan) -> list[Bar]:
    """Where every quantity stands. What is erased ends there; what is not, with its last reader."""
    writers, found = graph.writers(), []
    for name, life in lives(graph, plan.times, plan.shape.end).items():
        sources = {("head", "neuron")[parity(graph.nodes[writer])] for writer in writers[name]}
        sources |= {"input"} if name in graph.inputs else set()
        kind = sources.pop() if len(sources) == 1 else "several"
        end = plan.erased.get(name, max(life.last_read, life.complete))
        if name in (ONE, POSITION, POSITION_SQUARED):
            end = plan.erased.get(name, plan.shape.end)
        found.append(Bar(name, plan.slots[name], life.birth, max(end, life.birth), kind))
    return found


def draw_plan(graph: Graph, plan: Plan, file: str | os.PathLike[str]) -> Path:
    """Draw a plan into a file.

    Raises:
        UsageError: without matplotlib, for a file that cannot be written, or another format.
    """
    path = picture_path(file)
    figure = plan_figure(graph, plan)
    save_figure(figure, path)
    return path


def picture_path(file: str | os.PathLike[str]) -> Path:
    """Where a picture goes.

    Raises:
        UsageError: for a name that ends in none of ``FORMATS``, or in a folder that is not there.
    """
    path = Path(file)
    if path.suffix not in FORMATS:
        raise UsageError(f"{path}: a picture ends in one of {', '.join(FORMATS)}")
    if not path.parent.is_dir():
        raise UsageError(f"{path}: there is no folder {path.parent}")
    return path


def plan_figure(graph: Graph, plan: Plan, *, slot_height: float = 0.26) -> Any:
    """The picture as a matplotlib figure. Raises UsageError without matplotlib."""
    pyplot = load_pyplot()
    from matplotlib.patches import FancyBboxPatch, Patch

    shape = plan.shape
    column = 1.15 if shape.n_layers < 4 else 0.8
    size = (1.5 + column * (shape.end + 1.5), 1.3 + slot_height * shape.d_model)
    figure, axes = pyplot.subplots(figsize=size)
    for layer in range(shape.n_layers):
        axes.axvspan(2 * layer, 2 * layer + 1, color="#f4f6fa", zorder=0)
    for bar in bars(graph, plan):
        left, right = bar.start + 0.52, max(bar.end + 0.48, bar.start + 0.72)
        axes.add_patch(
            FancyBboxPatch(
                (left + 0.03, bar.slot - 0.34), right - left - 0.06, 0.68,
                boxstyle="round,pad=0.02,rounding_size=0.12", linewidth=0,
                facecolor=COLORS[bar.kind], zorder=2, mutation_aspect=0.6,
            )
        )  # fmt: skip
        text = _fitted(bar.name, (right - left - 0.09) * column)
        axes.text(left + 0.06, bar.slot, text, fontsize=FONT, va="center", zorder=3)
    axes.set_xlim(-1, shape.end + 0.5)
    axes.set_ylim(shape.d_model - 0.4, -0.6)
    halves = ("attention", "neurons")
    names = [f"layer {time // 2}\n{halves[time % 2]}" for time in range(shape.end)]
    places = [time + 0.5 for time in range(-1, shape.end)]
    axes.set_xticks(places, ["embedding", *names], fontsize=FONT)
    axes.xaxis.tick_top()
    slots = range(shape.d_model)
    axes.set_yticks(slots, list(map(str, slots)), fontsize=FONT)
    axes.set_ylabel("slot of the residual stream", fontsize=FONT + 1)
    axes.tick_params(length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    words = {"input": "from the embedding", "head": "from heads", "neuron": "from neurons",
             "several": "from several of them"}  # fmt: skip
    handles = [Patch(color=COLORS[kind], label=words[kind]) for kind in COLORS]
    axes.legend(handles=handles, ncols=4, fontsize=FONT, frameon=False, loc="upper center",
                bbox_to_anchor=(0.5, -0.01))  # fmt: skip
    figure.tight_layout()
    return figure


def _fitted(text: str, room: float) -> str:
    """A text that is no wider than so many inches, shortened if it must be."""
    from matplotlib.textpath import TextPath

    short = text
    while len(text) > 1 and TextPath((0, 0), short, size=FONT).get_extents().width > 72 * room:
        text = text[:-1]
        short = text + "…"
    return short


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure so that the same figure gives the same bytes, and close it."""
    pyplot = load_pyplot()
    kind = path.suffix.removeprefix(".")
    partial = path.with_name(f".{path.name}.partial")
    try:
        with pyplot.rc_context({"svg.hashsalt": "transputer"}):
            figure.savefig(partial, format=kind, metadata=METADATA.get(kind), dpi=150)
        partial.replace(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        partial.unlink(missing_ok=True)
        pyplot.close(figure)


def load_pyplot() -> Any:
    """Matplotlib without a window. Raises UsageError where it is not installed."""
    try:
        import matplotlib
    except ImportError:
        raise UsageError(
            "drawing needs matplotlib (the extra `plots`): pip install matplotlib"
        ) from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot

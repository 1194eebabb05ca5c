"""What the parts of a model are called: slots, heads and neurons, from the graph it was built of.

In: a graph, its plan and what each head and neuron was built from. Out: a value, and its JSON,
which ``transputer build`` writes as ``names.json`` beside the weights. A model runs without it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compiler.errors import TransputerError

if TYPE_CHECKING:
    from compiler.graph import Graph
    from compiler.schedule import Plan
    from compiler.weights import Placed

FORMAT, VERSION = "transputer-names", 1

Table = tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Names:
    """Names of everything in a model; the empty string where there is nothing to name.

    Attributes:
        slots: ``slots[t][s]`` is the quantity in slot s of the residual stream after t half-layers,
            0 for the embedding: 2·n_layers + 1 rows of d_model.
        heads: ``heads[l][h]``, n_layers rows of n_heads. What clears slots is called
            ``erase NAME, NAME``.
        neurons: ``neurons[l][n]``, n_layers rows of d_ffn.
        about: what a head fetches or a quantity is, in words, for the names that have any.
    """

    slots: Table
    heads: Table
    neurons: Table
    about: Mapping[str, str] = field(default_factory=dict)

    def fits(self, d_model: int, n_heads: int, n_layers: int, d_ffn: int) -> bool:
        """Whether these are names for a model of that shape."""
        tables = (
            (self.slots, 2 * n_layers + 1, d_model),
            (self.heads, n_layers, n_heads),
            (self.neurons, n_layers, d_ffn),
        )
        return all(
            len(rows) == length and all(len(row) == width for row in rows)
            for rows, length, width in tables
        )

    def words(self, name: str) -> str:
        """What the name means in words, the name itself if nobody has said."""
        return self.about.get(name, name)

    def to_json(self) -> str:
        """The names as text, one half-layer or layer a line."""
        parts = [f' "format": {json.dumps(FORMAT)},\n "version": {VERSION}']
        for key in ("slots", "heads", "neurons"):
            rows = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in getattr(self, key))
            parts.append(f' "{key}": [\n  {rows}\n ]')
        about = json.dumps(dict(self.about), ensure_ascii=False, indent=1).replace("\n", "\n ")
        return "{\n" + ",\n".join([*parts, f' "about": {about}']) + "\n}\n"

    @staticmethod
    def from_json(text: str | bytes) -> Names:
        """Inverse of :meth:`to_json`.

        Raises:
            TransputerError: if the text is anything else.
        """
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise TransputerError(f"damaged, not JSON ({error})") from error
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise TransputerError("not the names of a transputer model")
        if data.get("version") != VERSION:
            raise TransputerError(
                f"format version {data.get('version')!r}, this transputer reads version {VERSION}"
            )
        about = data.get("about", {})
        if not isinstance(about, dict) or not all(isinstance(a, str) for a in about.values()):
            raise TransputerError("about is not a table of texts")
        return Names(_table(data, "slots"), _table(data, "heads"), _table(data, "neurons"), about)


def names_of(graph: Graph, plan: Plan, placed: Placed) -> Names:
    """The names in the model that ``graph`` becomes under ``plan``."""
    from compiler.schedule import lives

    shape = plan.shape
    slots = [[""] * shape.d_model for _ in range(shape.end + 1)]
    for name, life in lives(graph, plan.times, shape.end).items():
        for time in range(life.birth, plan.erased.get(name, shape.end)):
            slots[time + 1][plan.slots[name]] = name
    return Names(
        slots=tuple(map(tuple, slots)),
        heads=_padded(placed.names[0::2], shape.n_heads),
        neurons=_padded(placed.names[1::2], shape.d_ffn),
        about=dict(graph.about),
    )


def erased_by(name: str) -> tuple[str, ...]:
    """The quantities that a head or neuron of this name clears; none for any other."""
    from compiler.weights import ERASURE

    return tuple(name.removeprefix(ERASURE).split(", ")) if name.startswith(ERASURE) else ()


def _padded(rows: Sequence[Sequence[str]], width: int) -> Table:
    return tuple((*row, *[""] * (width - len(row))) for row in rows)


def _table(data: Mapping[str, Any], key: str) -> Table:
    rows = data.get(key)
    if not isinstance(rows, list) or not all(isinstance(row, list) for row in rows):
        raise TransputerError(f"{key} is not a list of lists")
    if not all(isinstance(name, str) for row in rows for name in row):
        raise TransputerError(f"a name in {key} is not a text")
    return tuple(map(tuple, rows))

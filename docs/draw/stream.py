"""What happens inside a machine on a sequence of tokens: every quantity, and who answered whom.

Read off the weights, half-layer by half-layer, with dense NumPy: for some hundreds of tokens.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from compiler.build import Machine
from compiler.schedule import lives

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Head:
    """One head on a sequence: its two-dimensional queries and keys (T, 2), and for every token the
    position that answered."""

    queries: Array
    keys: Array
    winners: NDArray[np.intp]


@dataclass(frozen=True)
class Inside:
    """A machine's insides on one sequence.

    Attributes:
        tokens: spellings, prompt and trace.
        streams: (2·layers + 1, T, d_model), the residual stream before and after each half-layer.
    """

    machine: Machine
    tokens: tuple[str, ...]
    streams: Array

    def head(self, name: str) -> Head:
        """A lookup of the graph by its name."""
        plan = self.machine.plan
        time = plan.times[name]
        number, width = self.machine.placed.names[time].index(name), plan.shape.d_model
        projection = self.machine.arrays[f"attn.{time // 2}.in_proj_weight"]
        rows = slice(2 * number, 2 * number + 2)
        x = self.streams[time]
        queries, keys = x @ projection[:width][rows].T, x @ projection[width : 2 * width][rows].T
        return Head(queries, keys, _winners(queries, keys))

    def quantity(self, name: str) -> Array:
        """A quantity at every token (T), when it is complete."""
        plan = self.machine.plan
        complete = lives(self.machine.graph, plan.times, plan.shape.end)[name].complete
        values: Array = self.streams[complete + 1][:, plan.slots[name]]
        return values


def look_inside(machine: Machine, tokens: tuple[str, ...]) -> Inside:
    """Run a hard-attention machine over known tokens."""
    shape, arrays = machine.plan.shape, machine.arrays
    x = arrays["tok.weight"][[machine.ids[token] for token in tokens]].copy()
    place, square = machine.config["position_slots"]
    positions = np.arange(len(tokens), dtype=np.float64)
    x[:, place], x[:, square] = positions, positions**2
    streams = [x]
    for layer in range(shape.n_layers):
        width = shape.d_model
        projection = arrays[f"attn.{layer}.in_proj_weight"]
        query, key, value = (x @ part.T for part in np.split(projection, 3))
        mixed = np.zeros((len(tokens), width))
        for head, mode in enumerate(machine.config["head_modes"][layer]):
            part = slice(2 * head, 2 * head + 2)
            if not arrays[f"attn.{layer}.out_proj.weight"][:, part].any():
                continue  # nobody reads it
            if mode == "mean":
                counts = np.arange(1, len(tokens) + 1)[:, None]
                mixed[:, part] = np.cumsum(value[:, part], axis=0) / counts
            else:
                mixed[:, part] = value[_winners(query[:, part], key[:, part]), part]
        x = x + mixed @ arrays[f"attn.{layer}.out_proj.weight"].T
        streams.append(x)
        gate, factor = (x @ arrays[f"{kind}.{layer}.weight"].T for kind in ("gate", "value"))
        x = x + (np.maximum(gate, 0) * factor) @ arrays[f"down.{layer}.weight"].T
        streams.append(x)
    return Inside(machine, tokens, np.stack(streams))


def _winners(queries: Array, keys: Array) -> NDArray[np.intp]:
    """The latest of the greatest scores among the keys up to each token."""
    scores = queries @ keys.T
    scores[np.triu_indices(len(scores), 1)] = -np.inf
    return len(scores) - 1 - np.argmax(scores[:, ::-1], axis=1)

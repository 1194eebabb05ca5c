"""Which tokens at a place make the same neurons possible, and what else can split the code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from executor.checkpoint import Array
from executor.native.columns import Mask, classes
from executor.native.forms import HERE, Linear, Place, grain
from executor.native.nodes import Accumulate, AddTo, Extreme, Neuron, Program, Sum
from executor.native.ranges import Range, total
from executor.native.shared import Shared


def gates(program: Program) -> Iterator[Neuron]:
    """All neurons that are not always open."""
    for node in program.nodes.values():
        if isinstance(node, Accumulate):
            yield from node.neurons


def gate_places(program: Program) -> dict[Place, int]:
    """Places whose token is read by gates, with the number of gates."""
    found: dict[Place, int] = {}
    for neuron in gates(program):
        for place in neuron.gate.form.columns:
            found[place] = found.get(place, 0) + 1
    return found


def token_classes(
    shared: Shared,
    place: Place,
    others: Collection[Place] = (),
    ranges: Callable[[Linear], Range] | None = None,
) -> list[Mask]:
    """Tokens at a place that open the same gates, as far as the gate depends on them.

    At the current place, also those that add to sums and count as keys alike. Gates that depend
    on the token at one of ``others`` as well do not count.
    """
    keys: list[npt.NDArray[np.generic]] = []
    for neuron in gates(shared.program):
        column = neuron.gate.form.columns.get(place)
        if column is not None and not any(o in neuron.gate.form.columns for o in others):
            rest = (ranges or shared.range_of)(shared.without(neuron.gate, place))
            keys += [column + rest.high > 0.0, column + rest.low > 0.0]
    if place == HERE:
        for effect in shared.program.effects.values():
            if isinstance(effect, AddTo) and HERE in effect.value.form.columns:
                keys.append(effect.value.form.columns[HERE] + effect.value.form.const != 0.0)
    if not keys:
        return []
    return classes([tuple(row) for row in np.stack(keys, axis=1).tolist()])


def closed_gates(shared: Shared, place: Place, masks: Sequence[Mask]) -> list[frozenset[int]]:
    """For each set of tokens at a place the neurons (their ``id``) that are closed for all of them.

    Only where all neurons are whose gates differ by what depends on that token: together they may
    be stairs.
    """
    found: list[set[int]] = [set() for _ in masks]
    for node in shared.program.nodes.values():
        if not isinstance(node, Accumulate):
            continue
        groups: dict[object, list[Neuron]] = {}
        for neuron in node.neurons:
            if place in neuron.gate.form.columns:
                groups.setdefault(shared.without(neuron.gate, place).key()[3:], []).append(neuron)
        for members in groups.values():
            for mask, closed in zip(masks, found, strict=True):
                if all(_is_closed(shared, neuron.gate, place, mask) for neuron in members):
                    closed.update(map(id, members))
    return [frozenset(closed) for closed in found]


def _is_closed(shared: Shared, gate: Linear, place: Place, mask: Mask) -> bool:
    column = gate.form.columns[place][mask]
    values = Range(float(column.min()), float(column.max()), grain(column))
    gates = total([values, shared.range_of(shared.without(gate, place))])
    return (gates if gates.is_exact else gates.widened()).high <= 0.0


def key_column(program: Program, effect: Extreme) -> Array | None:
    """The key of an extreme by token, if it depends on the token alone."""
    value = effect.score
    if len(value.variables) == 1 and value.form.is_zero and value.variables[0][0] == 1.0:
        node = program.nodes[value.variables[0][1]]
        if isinstance(node, Sum) and len(node.terms) == 1 and node.terms[0][0] == 1.0:
            value = node.terms[0][1]
    return value.form.table(HERE) if value.place == HERE else None

"""Which tokens at a place make the same neurons possible, and what else can split the code."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

import numpy as np
import numpy.typing as npt

from executor.checkpoint import Array
from executor.native.columns import Mask, classes
from executor.native.forms import HERE, Form, Linear, Place
from executor.native.nodes import Accumulate, AddTo, Extreme, Neuron, Program, Sum
from executor.native.ranges import Range
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
            rest = (ranges or shared.range_of)(_without(neuron.gate, place))
            keys += [column + rest.high > 0.0, column + rest.low > 0.0]
    if place == HERE:
        for effect in shared.program.effects.values():
            if isinstance(effect, AddTo) and HERE in effect.value.form.columns:
                keys.append(effect.value.form.columns[HERE] + effect.value.form.const != 0.0)
    if not keys:
        return []
    return classes([tuple(row) for row in np.stack(keys, axis=1).tolist()])


def key_column(program: Program, effect: Extreme) -> Array | None:
    """The key of an extreme by token, if it depends on the token alone."""
    value = effect.score
    if len(value.variables) == 1 and value.form.is_zero and value.variables[0][0] == 1.0:
        node = program.nodes[value.variables[0][1]]
        if isinstance(node, Sum) and len(node.terms) == 1 and node.terms[0][0] == 1.0:
            value = node.terms[0][1]
    return value.form.table(HERE) if value.place == HERE else None


def _without(value: Linear, place: Place) -> Linear:
    form = value.form
    rest = {other: column for other, column in form.columns.items() if other != place}
    return Linear(Form(form.const, form.p, form.square, rest), value.variables)

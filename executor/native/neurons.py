"""C for the feed-forward of a layer.

A gate that depends on one token is open for a known set of tokens: one bit of a table, and where
the value depends on the same token the whole neuron is a column. Other gates are computed, once for
all neurons that share them, and values only where the gate is open.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from executor.checkpoint import Array
from executor.native.forms import Form, Linear, Place, exact_product, exact_sum
from executor.native.grouping import Group, grouped
from executor.native.nodes import Neuron, Product
from executor.native.writer import Writer, number

Sum = Callable[[Array], Linear]
"""The dot product of a row with the stream, as a value."""


@dataclass(frozen=True)
class Open:
    """What an open neuron does: C, and the same as data, by slot."""

    lines: tuple[str, ...]
    adds: tuple[tuple[int, Neuron], ...]


@dataclass
class Neurons:
    """The neurons of one layer, sorted by what becomes of them.

    ``always[slot]``: values added in any case. ``masked``: per word of bits, (bit, neurons).
    ``tested``: gate and neurons. ``dead``, ``open``, ``known``: how many, for people.
    """

    always: dict[int, list[tuple[float, Linear]]] = field(default_factory=dict)
    masked: dict[str, dict[int, list[Open]]] = field(default_factory=dict)
    tested: list[tuple[Linear, list[Open]]] = field(default_factory=list)
    sometimes: set[int] = field(default_factory=set)
    rounded: set[int] = field(default_factory=set)
    dead: list[int] = field(default_factory=list)
    always_open: list[int] = field(default_factory=list)
    by_token: list[int] = field(default_factory=list)
    computed: list[int] = field(default_factory=list)


def sort_neurons(
    writer: Writer,
    row_sum: Sum,
    neurons: Sequence[int],
    gates: Array,
    values: Array,
    down: Array,
    targets: dict[int, str],
) -> Neurons:
    """Decide for each neuron how it is computed.

    Args:
        targets: the C variable that sums up each slot that neurons add to.
    """
    found = Neurons()
    groups: dict[bytes, list[int]] = {}
    for neuron in neurons:
        groups.setdefault((gates[neuron] + 0.0).tobytes(), []).append(neuron)
    for members in groups.values():
        gate = row_sum(gates[members[0]])
        read = [(neuron, row_sum(values[neuron])) for neuron in members]
        _sort_group(writer, found, gate, read, down, targets)
    return found


def _sort_group(
    writer: Writer,
    found: Neurons,
    gate: Linear,
    members: Sequence[tuple[int, Linear]],
    down: Array,
    targets: dict[int, str],
) -> None:
    """Neurons with the same gate."""
    form, place = gate.form, gate.place
    if gate.constant is not None:
        if gate.constant <= 0.0:
            found.dead += [neuron for neuron, _ in members]
            return
        for neuron, value in members:
            found.always_open.append(neuron)
            _add(found, down[:, neuron], targets, _scaled(writer, gate, value))
        return
    if not gate.variables and not form.columns and form.const > 0 <= form.p and form.square >= 0:
        for neuron, value in members:
            found.always_open.append(neuron)
            _add(found, down[:, neuron], targets, _scaled(writer, gate, value))
        return
    if place is None:
        opened = []
        for neuron, value in members:
            found.computed.append(neuron)
            opened.append(_opened(writer, found, down[:, neuron], targets, "g", value, gate))
        found.tested.append((gate, opened))
        return
    open_gate = np.maximum(form.table(place), 0.0)
    if not open_gate.any():
        found.dead += [neuron for neuron, _ in members]
        return
    for neuron, value in members:
        found.by_token.append(neuron)
        column = _known(place, open_gate, value)
        if column is not None:
            _add(found, down[:, neuron], targets, Linear(column))
            continue
        word, bit = writer.bit(place, open_gate > 0.0)
        unit = bool((open_gate[open_gate > 0.0] == 1.0).all())
        factor = Linear(_column_form(place, open_gate))
        text = "1.0" if unit else writer.text(factor)
        one = _opened(writer, found, down[:, neuron], targets, text, value, factor)
        found.masked.setdefault(word, {}).setdefault(bit, []).append(one)


def _known(place: Place, open_gate: Array, value: Linear) -> Form | None:
    """The neuron's result, if its value depends on the same token as its gate."""
    if value.variables or value.place != place and value.constant is None:
        return None
    column = (
        np.full_like(open_gate, value.form.const)
        if value.constant is not None
        else value.form.table(place)
    )
    return _column_form(place, open_gate * column) if exact_product(open_gate, column) else None


def _column_form(place: Place, column: Array) -> Form:
    varies = bool((column != column[0]).any())
    return Form(columns={place: column}) if varies else Form(float(column[0]))


def _scaled(writer: Writer, gate: Linear, value: Linear) -> Linear:
    """The product with a gate that is always open."""
    if gate.constant == 1.0:
        return value
    if gate.constant is not None and not value.variables:
        form = exact_sum([(gate.constant, value.form)])
        if form is not None:
            return Linear(form)
    if value.constant == 1.0:
        return gate
    return writer.variable(
        "product",
        f"({writer.text(gate)}) * ({writer.text(value)})",
        Product(gate, value),
        writer.is_rounded(value),
    )


def _add(found: Neurons, down: Array, targets: dict[int, str], value: Linear) -> None:
    for slot in targets:
        if down[slot]:
            found.always.setdefault(slot, []).append((float(down[slot]), value))


def _opened(
    writer: Writer,
    found: Neurons,
    down: Array,
    targets: dict[int, str],
    gate: str,
    value: Linear,
    factor: Linear,
) -> Open:
    """What an open neuron does: add gate times value to the slots."""
    text = writer.text(value)
    if gate == "1.0":
        product = text
    elif value.constant == 1.0:
        product = gate
    elif text.isidentifier() or value.constant is not None:
        product = f"{gate} * {text}"
    else:
        product = f"{gate} * ({text})"
    lines = []
    slots = [slot for slot in targets if down[slot]]
    if len(slots) > 1:
        lines.append(f"const double n = {product};")
        product = "n"
    for slot in slots:
        found.sometimes.add(slot)
        if writer.is_rounded(value) or writer.is_rounded(factor):
            found.rounded.add(slot)
        size, sign = abs(float(down[slot])), "-=" if down[slot] < 0 else "+="
        scaled = product if size == 1.0 else f"{number(size)} * ({product})"
        lines.append(f"{targets[slot]} {sign} {scaled};")
    adds = tuple((slot, Neuron(factor, value, float(down[slot]))) for slot in slots)
    return Open(("{ " + " ".join(lines) + " }",) if len(slots) > 1 else tuple(lines), adds)


def write_neurons(writer: Writer, found: Neurons) -> dict[int, list[Neuron]]:
    """The statements for neurons that are open only sometimes; by slot, in this order."""
    written: dict[int, list[Neuron]] = {}
    for word, bits in found.masked.items():
        everything = sum(1 << bit for bit in bits)
        outer = len(bits) > 1
        if outer:
            writer.say(f"if ({word} & {everything:#x}u) {{")
        for bit, members in bits.items():
            writer.say(("    " if outer else "") + f"if ({word} & {1 << bit:#x}u) {{")
            for line in _lines(members, written):
                writer.say(("        " if outer else "    ") + line)
            writer.say(("    " if outer else "") + "}")
        if outer:
            writer.say("}")
    for group in grouped([gate for gate, _ in found.tested]):
        _write_tested(writer, found, group, written)
    return written


def _lines(opened: Sequence[Open], written: dict[int, list[Neuron]]) -> list[str]:
    """The statements of neurons, which are noted as written."""
    for one in opened:
        for slot, neuron in one.adds:
            written.setdefault(slot, []).append(neuron)
    return [line for one in opened for line in one.lines]


def _write_tested(
    writer: Writer, found: Neurons, group: Group, written: dict[int, list[Neuron]]
) -> None:
    """Gates that are computed; of several with the same rest, first whether any can be open."""
    single = len(group.members) == 1 or group.rest.constant is not None
    if not single:
        greatest = group.form(np.max(group.columns, axis=0))
        writer.say("{")
        writer.say(f"    const double s = {writer.text(group.rest)};")
        writer.say(f"    if ({writer.text(Linear(greatest, ((1.0, 's'),)))} > 0.0) {{")
    margin = "" if single else "        "
    for index, column in zip(group.members, group.columns, strict=True):
        gate, opened = found.tested[index]
        if not single:
            gate = Linear(group.form(column), ((1.0, "s"),))
        writer.say(margin + "{")
        writer.say(margin + f"    const double g = {writer.text(gate)};")
        writer.say(margin + "    if (g > 0.0) {")
        for line in _lines(opened, written):
            writer.say(margin + "        " + line)
        writer.say(margin + "    }")
        writer.say(margin + "}")
    if not single:
        writer.say("    }")
        writer.say("}")

"""An explanation as lines of text, 80 columns wide or as many as there are.

In: an :class:`Explanation` and one of its positions. Out: lines, each with a style, for a terminal
or a file. By default the heads and neurons that count in the answer and add something there, a
sentence each; the others by name.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from compiler.graph import SNAP
from compiler.names import erased_by
from executor.inside.explanation import Attention, Explanation, Floats

SMALL = 2.0**40
"""What stands beside ``SNAP`` in a slot is smaller than this."""


FOR_LATER, FOR_NOTHING = "for later tokens alone", "not needed by this token"
ADDS_NOTHING = "adds nothing here"
CLEARS, NO_WEIGHTS = "cleared", "without weights"
REASONS = (ADDS_NOTHING, FOR_LATER, FOR_NOTHING, CLEARS)
"""Why live heads are named and no more."""


@dataclass(frozen=True)
class View:
    """What to show.

    Attributes:
        width: columns.
        everything: every head and neuron, and all slots.
        layer, head: only this layer, this head of it, and then all about it; None for all.
    """

    width: int = 80
    everything: bool = False
    layer: int | None = None
    head: int | None = None

    @property
    def full(self) -> bool:
        """Whether details are asked for."""
        return self.everything or self.layer is not None


@dataclass(frozen=True)
class Line:
    """One line and how it looks on a terminal, in rich's words."""

    text: str
    style: str = ""


def describe(explanation: Explanation, position: int, view: View) -> Iterator[Line]:
    """The lines about one position."""
    yield from _Page(explanation, position, view).lines()


class _Page:
    def __init__(self, explanation: Explanation, position: int, view: View) -> None:
        self._all, self._position, self._view = explanation, position, view
        self._row = explanation.row(position)
        self._names = explanation.names

    def lines(self) -> Iterator[Line]:
        yield from self._heading()
        for layer in range(len(self._all.layers)):
            if self._view.layer in (None, layer):
                yield Line("")
                yield Line(f"layer {layer}", "bold")
                yield from self._heads(layer)
                if self._view.head is None:
                    yield from self._neurons(layer)
                    if self._view.full:
                        yield from self._slots(layer)
        yield Line("")
        yield from self._answer()

    def _heading(self) -> Iterator[Line]:
        every, position = self._all, self._position
        token = every.spelling(position)
        written = every.checkpoint.vocabulary[int(every.answer.tokens[self._row, 0])]
        number = position + 1 - every.n_prompt
        head = f"position {position:,}: the model reads {token} and "
        if number >= 0:
            head += f"writes {written}, token {number:,} of the trace"
        else:
            head += f"would write {written}; the prompt goes on with {every.spelling(position + 1)}"
        yield from self._wrapped(head, "", "bold")
        if every.context is not None:
            source = every.context.source(position)
            yield from self._wrapped(f"{token}: {source.text}", "  ")
            if number >= 0:
                after = every.context.source(position + 1)
                yield from self._wrapped(f"{written}: {after.text}", "  ")
                yield from self._wrapped(every.context.line(after.instruction), "  ", "italic")
        if number >= 0 and position + 1 < len(every.tokens):
            there = every.spelling(position + 1)
            if there != written:
                text = f"the trace has {there} there: it is not what this model writes"
                yield from self._wrapped(text, "  ", "bold red")

    # --- heads -------------------------------------------------------------------------------

    def _heads(self, layer: int) -> Iterator[Line]:
        attention = self._all.layers[layer].attention
        groups: dict[str, list[int]] = {}
        for head in range(attention.winners.shape[1]):
            if self._view.head in (None, head):
                groups.setdefault(self._group(layer, head), []).append(head)
        for head in groups.get("told", []):
            yield from self._wrapped(self._sentence(layer, head), f"  h{head:<3}", "", 4)
            if self._view.full and not self._clears(layer, head):
                yield from self._details(attention, head)
        for reason in (*REASONS, *([NO_WEIGHTS] if self._view.full else [])):
            heads = groups.get(reason, [])
            if not heads:
                continue
            names = ", ".join(self._head_name(layer, head) for head in heads)
            yield from self._wrapped(f"{reason}: {names}", "  ", "dim", 4)

    def _group(self, layer: int, head: int) -> str:
        """``told`` for a head that gets a sentence, else why it gets none."""
        attention, row = self._all.layers[layer].attention, self._row
        if not attention.output[head].any():
            return NO_WEIGHTS
        if self._view.full:
            return "told"
        if not attention.live[head]:
            return "not live"
        if self._clears(layer, head):
            return CLEARS
        if attention.used[row, head]:
            adds = any(amount for _, _, amount in self._added(layer, head))
            return "told" if adds else ADDS_NOTHING
        return FOR_LATER if attention.kept[row, head] else FOR_NOTHING

    def _clears(self, layer: int, head: int) -> bool:
        return self._names is not None and bool(erased_by(self._names.heads[layer][head]))

    def _head_name(self, layer: int, head: int) -> str:
        name = self._names.heads[layer][head] if self._names is not None else ""
        erased = ", ".join(erased_by(name))
        return erased or name or f"head {head}"

    def _sentence(self, layer: int, head: int) -> str:
        attention, row = self._all.layers[layer].attention, self._row
        name = self._head_name(layer, head)
        added = self._added(layer, head)
        if self._clears(layer, head):
            return f"clears {name}"
        words = self._names.words(name) if self._names is not None else ""
        label = words if words and words != name else name
        return f"{label}: {self._found(attention, head)}: {self._sums(layer, added, row)}"

    def _found(self, attention: Attention, head: int) -> str:
        """What was asked and who answered."""
        row, position = self._row, self._position
        winner, ties = int(attention.winners[row, head]), int(attention.ties[row, head])
        if attention.modes[head] == "mean":
            return f"the mean of {ties:,} tokens" if ties > 1 else self._place(winner)
        asked = self._asked(attention, head)
        if ties == position + 1 and ties > 1 and not attention.queries[row, head].any():
            return f"asks for nothing, and finds the last of all, {self._place(winner)}"
        return f"{asked} -> {self._place(winner)}" if asked else self._place(winner)

    def _asked(self, attention: Attention, head: int) -> str:
        """The query in words; empty where it is plain from the position that answers."""
        row = self._row
        (qx, qy), (kx, ky) = attention.queries[row, head], attention.keys[row, head]
        winner = int(attention.winners[row, head])
        # In weights for softmax a small multiple of the position breaks ties.
        tie_break = 0.5 if self._all.checkpoint.config.attention == "softmax" else 0.0
        if qy > 0 and abs(ky + (kx / 2) ** 2) <= tie_break:
            wanted, found = qx / qy, kx / 2
            if found == winner and wanted == found:
                return ""
            what = "position" if found == winner else "key"
            if wanted == found:
                return f"{what} {number(wanted)}"
            near = f", nearest {number(found)}" if what == "key" else ""
            return f"{what} {number(wanted)}{near}"
        if qy == 0 and qx:
            return f"the {'greatest' if qx > 0 else 'least'} key, {number(kx)}"
        return f"query ({number(qx)}, {number(qy)}), key ({number(kx)}, {number(ky)})"

    def _place(self, winner: int) -> str:
        every = self._all
        back = self._position - winner
        if back == 0:
            return f"the token itself, {every.spelling(winner)}"
        text = f"position {winner:,}, {every.spelling(winner)}"
        if every.context is not None:
            text += f", {every.context.source(winner).text}"
        return text

    def _added(self, layer: int, head: int) -> list[tuple[int, str, float]]:
        """Slot, its name and what the head adds there, for all that it writes."""
        attention = self._all.layers[layer].attention
        amounts = attention.values[self._row, head] @ attention.output[head]
        slots = np.flatnonzero(attention.output[head].any(axis=0))
        return [(int(s), self._slot(2 * layer + 1, int(s)), float(amounts[s])) for s in slots]

    def _slot(self, time: int, slot: int) -> str:
        """What a slot holds after so many half-layers, or is losing there."""
        if self._names is None:
            return f"slot {slot}"
        return self._names.slots[time][slot] or f"slot {slot}"

    def _sums(self, layer: int, added: Sequence[tuple[int, str, float]], row: int) -> str:
        """``word += 7, top = 3``: = where nothing else makes the number, in this half-layer."""
        output = self._all.layers[layer].attention.output
        parts = []
        for slot, name, amount in added:
            writers = np.flatnonzero((output[:, :, slot] != 0).any(axis=1)).tolist()
            if self._names is None:
                new = float(self._all.stream[row, 2 * layer, slot]) == 0
            else:
                heads = self._names.heads[layer]
                writers = [w for w in writers if not erased_by(heads[w])]
                new = self._names.slots[2 * layer][slot] != name
            sign = "=" if len(writers) == 1 and new else "+="
            parts.append(f"{name} {sign} {number(amount)}")
        return ", ".join(parts)

    def _details(self, attention: Attention, head: int) -> Iterator[Line]:
        """Query, key, score, runner-up, value."""
        row = self._row
        ties = int(attention.ties[row, head])
        query, key = pair(attention.queries[row, head]), pair(attention.keys[row, head])
        text = f"query {query}, key {key}, score {number(attention.scores[row, head])}"
        if ties > 1:
            text += f", the same at {ties - 1:,} more"
        other = int(attention.runners_up[row, head])
        if other >= 0:
            lead = number(attention.leads[row, head])
            text += f"; ahead by {lead} of position {other:,}, {self._all.spelling(other)}"
        text += f"; value {pair(attention.values[row, head])}"
        use = [w for w, f in (("the answer", attention.used), ("later tokens", attention.kept))
               if f[row, head]]  # fmt: skip
        text += f"; counts for {' and '.join(use)}" if use else "; counts for nothing here"
        yield from self._wrapped(text, " " * 6, "dim")

    # --- neurons, slots, logits --------------------------------------------------------------

    def _neurons(self, layer: int) -> Iterator[Line]:
        forward, row = self._all.layers[layer].feed_forward, self._row
        idle: list[str] = []
        for neuron in range(forward.gates.shape[1]):
            name = self._names.neurons[layer][neuron] if self._names is not None else ""
            shown = forward.output[neuron].any() if self._view.full else forward.used[row, neuron]
            if not shown or (erased_by(name) and not self._view.full):
                continue
            gate, value = (float(a[row, neuron]) for a in (forward.gates, forward.values))
            if gate <= 0 and not self._view.everything and self._view.layer is None:
                continue
            label = name or f"neuron {neuron}"
            if not self._view.full and not forward.outputs[row, neuron]:
                idle.append(label)
                continue
            text = f"{label}: gate {number(gate)}"
            if gate > 0:
                text += f" * {number(value)}: " + ", ".join(
                    f"{self._slot(2 * layer + 2, int(s))} += "
                    f"{number(float(forward.outputs[row, neuron] * forward.output[neuron, s]))}"
                    for s in np.flatnonzero(forward.output[neuron])
                )
                if erased_by(name):
                    text = f"clears {', '.join(erased_by(name))}"
            else:
                text += ", closed"
            yield from self._wrapped(text, f"  n{neuron:<3}", "" if gate > 0 else "dim", 4)
        if idle:
            yield from self._wrapped(f"{ADDS_NOTHING}: {', '.join(idle)}", "  ", "dim", 4)

    def _slots(self, layer: int) -> Iterator[Line]:
        """A table of all slots before the layer, after its heads and after its neurons."""
        times = [2 * layer, 2 * layer + 1, 2 * layer + 2]
        rows = [["slot", "before", "after heads", "after neurons"]]
        for slot in range(self._all.stream.shape[2]):
            cells, last = [str(slot)], ""
            for time in times:
                value = number(float(self._all.stream[self._row, time, slot]))
                name = self._names.slots[time][slot] if self._names is not None else ""
                text = f"{name} {value}".strip() if name or value != "0" else ""
                cells.append('"' if text and text == last else text)
                last = text
            rows.append(cells)
        room = (self._view.width - 8) // 3
        for cells in rows:
            line = f"  {cells[0]:>4}  " + "".join(_fitted(c, room) for c in cells[1:])
            yield Line(line.rstrip(), "bold" if cells is rows[0] else "")

    def _answer(self) -> Iterator[Line]:
        answer, vocabulary = self._all.answer, self._all.checkpoint.vocabulary
        pairs = zip(answer.tokens[self._row], answer.logits[self._row], strict=True)
        logits = ", ".join(f"{vocabulary[int(t)]} {number(float(v))}" for t, v in pairs)
        yield from self._wrapped(f"logits: {logits}", "", "bold", 2)
        yield Line(f"margin: {number(float(answer.margins[self._row]))}")

    def _wrapped(self, text: str, lead: str, style: str = "", indent: int = 0) -> Iterator[Line]:
        """A paragraph behind ``lead``, its further lines as far in and ``indent`` more."""
        further = " " * (len(lead) + (indent if lead.strip() == "" else 0))
        lines = textwrap.wrap(
            text,
            self._view.width,
            initial_indent=lead,
            subsequent_indent=further,
            break_on_hyphens=False,
        )
        yield from (Line(line, style) for line in lines)


def number(value: float) -> str:
    """A double in few characters, exact for integers; a snapped sum as what was summed."""
    if abs(value - SNAP) < SMALL:
        return "1.5*2^48" if value == SNAP else f"1.5*2^48 + {number(value - SNAP)}"
    if value == int(value) and abs(value) < 2.0**63:
        return f"{int(value):,}"
    return f"{value:.10g}"


def pair(values: Floats) -> str:
    """Two numbers in parentheses."""
    return f"({', '.join(number(float(v)) for v in values)})"


def _fitted(text: str, room: int) -> str:
    """A cell of a table: cut where it is too long, with a gap behind it."""
    if len(text) > room - 1:
        text = text[: room - 2] + "~"
    return f"{text:<{room}}"

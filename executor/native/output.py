"""C for the output head: the token of the greatest logit, the lowest id of a tie.

A family costs one rounding: its members' scores are lines in one quantity y. Single rows are scored
one by one. Then the winners are compared.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from executor.checkpoint import Array
from executor.native.families import Family, Single
from executor.native.forms import Form, Linear
from executor.native.grouping import Group, grouped
from executor.native.nodes import Candidate, Scored
from executor.native.state import State
from executor.native.writer import Writer, number

MOST_INLINE_ROWS = 200
"""More single rows than this are scored in a loop over an array."""


def write_output(
    writer: Writer,
    state: State,
    stream: Sequence[Linear],
    families: Sequence[Family],
    singles: Sequence[Single],
) -> None:
    """Declare ``int32_t best``. ``stream`` holds the slots that the rows are about."""

    def row_sum(row: Array) -> Linear:
        return writer.combine([(float(w), v) for w, v in zip(row, stream, strict=True)])

    writer.say("int32_t best = INT32_MAX;")
    writer.say("double greatest = -INFINITY;")
    for index, family in enumerate(families):
        y = writer.settled(row_sum(family.direction), "y")
        common = row_sum(family.common)
        writer.program.families.append(Scored(index, y, common))
        corners = _corners(writer, state, family, y)
        _family(writer, state, index, family, y, common, corners)
    if len(singles) > MOST_INLINE_ROWS:
        writer.program.complete = False
        _rows(writer, state, stream, singles)
    else:
        scores = [row_sum(single.row) for single in singles]
        for group in grouped(scores):
            _group(writer, group, [singles[index].token for index in group.members])
    writer.say("if (!(fabs(greatest) < INFINITY))")
    writer.say("    fail(&e->core.status, NOT_FINITE);")


def _group(writer: Writer, group: Group, tokens: Sequence[int]) -> None:
    """Single rows that differ by what depends on one token: that token tells the best of them."""
    columns = np.array(group.columns)
    which = np.argmax(columns, axis=0)  # the first of equals: the lowest id
    score = writer.combine([(1.0, group.rest), (1.0, Linear(group.form(columns.max(axis=0))))])
    best = Linear(group.form(np.array(tokens, dtype=np.float64)[which]))
    writer.program.candidates.append(Candidate(score, best))
    text = writer.text(best)
    if best.constant is not None:
        text = str(int(best.constant))
    writer.say("{")
    writer.say(f"    const double score = {writer.text(score)};")
    writer.say(f"    const int32_t token = {text};")
    writer.say("    if (score > greatest || (score == greatest && token < best))")
    writer.say("        greatest = score, best = token;")
    writer.say("}")


def _corners(writer: Writer, state: State, family: Family, y: Linear) -> tuple[str, str]:
    """Find between which corners y is; the C names of that number and of the array of corners.

    Families with the same corners of the same y share both.
    """
    last = len(family.corners)
    corners = ", ".join(map(number, family.corners)) or "0.0"
    array = state.shared.get(corners)
    if array is None:
        array = state.shared[corners] = f"corners_{len(state.constants)}"
        state.constants.append(f"static const double {array}[] = {{{corners}}};")
    known = f"{array} {writer.text(y)}"
    if known in state.shared:
        return state.shared[known], array
    i, say = writer.name("at"), writer.say
    state.shared[known] = i
    if family.spacing is None or last == 0:
        say(f"int32_t {i} = 0;")
        say(f"for (int32_t above = {last}; {i} < above;) {{")
        say(f"    const int32_t middle = ({i} + above) / 2;")
        say(f"    if ({writer.text(y)} > {array}[middle])")
        say(f"        {i} = middle + 1;")
        say("    else")
        say("        above = middle;")
        say("}")
        return i, array
    shifted = writer.combine(
        [(1.0 / family.spacing, y), (1.0, _constant(-family.corners[0] / family.spacing))]
    )
    guess = writer.settled(shifted, "z")
    z = writer.text(guess)
    say(f"int32_t {i} = {z} > 0.0 ? {z} < {number(last)} ? (int32_t){z} + 1 : {last} : 0;")
    say(f"{i} = {i} > {last} ? {last} : {i};")
    say(f"while ({i} > 0 && {writer.text(y)} <= {array}[{i} - 1])")
    say(f"    {i}--;")
    say(f"while ({i} < {last} && {writer.text(y)} > {array}[{i}])")
    say(f"    {i}++;")
    return i, array


def _constant(value: float) -> Linear:
    return Linear(Form(value))


def _family(
    writer: Writer,
    state: State,
    index: int,
    family: Family,
    y: Linear,
    common: Linear,
    corners: tuple[str, str],
) -> None:
    """Score the winner of a family; corners are the index of the winner and the array."""
    (i, array), last, say = corners, len(family.corners), writer.say
    lines = ", ".join(
        f"{{{number(w.slope)}, {number(w.intercept)}, {w.token}}}" for w in family.winners
    )
    state.constants.append(
        f"static const struct {{ double slope, intercept; int32_t token; }} family_{index}[] = "
        f"{{{lines}}};"
    )
    say(f"{{ /* {family.size} tokens */")
    say(f"    int32_t token = family_{index}[{i}].token;")
    if any(t != family.winners[k].token for k, t in enumerate(family.at_corner)):
        text = ", ".join(map(str, family.at_corner))
        state.constants.append(f"static const int32_t ties_{index}[] = {{{text}}};")
        say(f"    if ({i} < {last} && {writer.text(y)} == {array}[{i}])")
        say(f"        token = ties_{index}[{i}];")
    line = f"(family_{index}[{i}].slope * {_factor(writer, y)} + family_{index}[{i}].intercept)"
    text = line if common.constant == 0.0 else f"{writer.text(common)} + {line}"
    say(f"    const double score = {text};")
    say("    if (score > greatest || (score == greatest && token < best))")
    say("        greatest = score, best = token;")
    say("}")


def _factor(writer: Writer, value: Linear) -> str:
    text = writer.text(value)
    return text if text.isidentifier() else f"({text})"


def _rows(
    writer: Writer, state: State, stream: Sequence[Linear], singles: Sequence[Single]
) -> None:
    """Many single rows: a loop over a constant array."""
    rows = np.stack([single.row for single in singles])
    numbers = ", ".join(number(w) for w in rows.reshape(-1))
    state.constants.append(f"static const double rows[] = {{{numbers}}};")
    tokens = ", ".join(str(single.token) for single in singles)
    state.constants.append(f"static const int32_t row_tokens[] = {{{tokens}}};")
    width = rows.shape[1]
    values = ", ".join(writer.text(value) for value in stream)
    writer.say(f"const double out[] = {{{values}}};")
    writer.say(f"for (int i = 0; i < {len(singles)}; i++) {{")
    writer.say("    double score = 0.0;")
    writer.say(f"    for (int k = 0; k < {width}; k++)")
    writer.say(f"        score += rows[{width} * i + k] * out[k];")
    writer.say("    if (score > greatest || (score == greatest && row_tokens[i] < best))")
    writer.say("        greatest = score, best = row_tokens[i];")
    writer.say("}")

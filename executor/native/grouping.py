"""Groups of values that differ only in what depends on one token: ``rest + column_i[token]``.

The greatest of a group is ``rest`` plus the greatest column, which is a column itself. So one test
tells whether any gate of a group is open, and one comparison settles all logits of a group.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from executor.checkpoint import Array
from executor.native.forms import HERE, Form, Linear, Place, exact_sum


@dataclass(frozen=True)
class Group:
    """Members by their index; ``columns`` has a number per token id, or one number if ``place`` is
    None: then the members differ by constants.
    """

    rest: Linear
    place: Place | None
    members: tuple[int, ...]
    columns: tuple[Array, ...]

    def form(self, column: Array) -> Form:
        """A column as a form."""
        if self.place is None or not (column != column[0]).any():
            return Form(float(column[0]))
        return Form(columns={self.place: column})


def grouped(values: Sequence[Linear]) -> list[Group]:
    """Each value in one group, in the order of first members; large groups come about first."""
    options = [
        [split for place in _places(value) if (split := _split(value, place))] for value in values
    ]
    count = Counter((place, rest.key()) for splits in options for place, rest, _ in splits)
    chosen: dict[tuple[object, ...], list[tuple[int, Linear, Array]]] = {}
    for index, splits in enumerate(options):
        place, rest, column = max(splits, key=lambda split: count[split[0], split[1].key()])
        chosen.setdefault((place, rest.key()), []).append((index, rest, column))
    return [
        Group(
            rest=members[0][1],
            place=key[0],  # type: ignore[arg-type]
            members=tuple(index for index, _, _ in members),
            columns=tuple(column for _, _, column in members),
        )
        for key, members in chosen.items()
    ]


def _places(value: Linear) -> list[Place | None]:
    """Where a value can be split; the last way always works."""
    return [*sorted(value.form.columns, key=lambda place: (place == HERE, place)), None]


def _split(value: Linear, place: Place | None) -> tuple[Place | None, Linear, Array] | None:
    form = value.form
    others = {other: column for other, column in form.columns.items() if other != place}
    rest = Linear(Form(0.0, form.p, form.square, others), value.variables)
    if place is None:
        return None, rest, np.array([form.const])
    whole = exact_sum([(1.0, Form(form.const)), (1.0, Form(columns={place: form.columns[place]}))])
    if whole is None:
        return None
    return place, rest, form.columns[place] + form.const

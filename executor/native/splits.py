"""Specialised code for a model: which splits, and the branches they make.

In: a :class:`~executor.native.nodes.Program`. Out: :class:`Special`, the C of a faster step that
falls back on the plain one. A path splits

- on the class of the current token,
- on the class of a fetched token, at the position whose token most gates depend on,
- on how far back the latest key of an extreme is, as long as the same gates are not possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from executor.checkpoint import Array
from executor.native.again import FARTHEST, columns_again
from executor.native.columns import Columns, Mask
from executor.native.demand import seldom_read
from executor.native.families import Family
from executor.native.forms import HERE, Linear
from executor.native.lookups import FIRST, Spot
from executor.native.nodes import AddTo, Extreme, Program, Weight
from executor.native.outputs import write_rivals
from executor.native.places import gate_places, gates, key_column, token_classes
from executor.native.ranges import Range
from executor.native.shared import Shared
from executor.native.tails import Tail

MOST_CLASSES = 128
MOST_LINES = 24_000
"""No more paths are written after so many lines: they take 5 s to compile."""
FEWEST_GATES = 4
"""A place splits the code if at least so many gates depend on its token."""
MOST_EARLY = 80
"""Longer effects wait until more is known."""
MOST_LAST = 6

State = tuple[int, int, int, int]
"""Group of the current token, classes of the fetched and the latest one; how far back that is."""


class Splitter:
    """Writes the branches of one model."""

    def __init__(
        self,
        program: Program,
        n_tokens: int,
        families: Sequence[Family],
        prefix: Sequence[int] = (),
    ) -> None:
        self.program, self.families = program, families
        self.shared = Shared(program, Columns(n_tokens), self._range, tuple(prefix))
        self._general = Tail(self.shared, 0)
        self.base = Tail(self.shared, FIRST)
        self.tables: dict[bytes, str] = {}
        self.n_leaves = 0
        for name in program.nodes:
            self._general.force(name)
        self._choose_extremes()
        self._choose_place()
        self.last = [self._last_classes(mask) for mask in self.fetched]
        self.column_code = (
            columns_again(self.shared, self.extremes, self.greatest) if self.key is not None else []
        )
        self.shared.dropped = bool(self.column_code)
        paths = [self._fetching(mask) for mask in self.fetched]
        for tail in paths:
            tail.beyond = dict.fromkeys(self.extremes, 0)
        self.shared.late = seldom_read(self.shared, paths)
        others = [self.place] if self.place is not None else []
        self.own = self._own_classes(others)

    def _range(self, value: Linear) -> Range:
        return self._general.linear(value).range

    # What to split on

    def _choose_extremes(self) -> None:
        """Extremes whose greatest key depends on the token alone, all with the same key."""
        read = {node.owner for node in self.program.nodes.values() if isinstance(node, Weight)}
        self.extremes: list[str] = []
        self.key: Array | None = None
        for name, effect in self.program.effects.items():
            if not isinstance(effect, Extreme) or effect.mean or name not in read:
                continue
            column = key_column(self.program, effect)
            if column is None or (self.key is not None and (column != self.key).any()):
                continue
            self.key = column
            self.extremes.append(name)
        if self.key is not None:
            self.greatest = self.key == self.key.max()
            for name in self.extremes:
                self.base.seen[name] = float(self.key.max())

    def _choose_place(self) -> None:
        """The place whose token most gates depend on."""
        self.place, self.fetched = None, [self._all()]
        counts = gate_places(self.program)
        for place in sorted(counts, key=lambda place: -counts[place]):
            node = self.program.nodes.get(place[0])
            fixed = node is None or (isinstance(node, Weight) and node.owner in self.extremes)
            if fixed or counts[place] < FEWEST_GATES:
                continue
            found = token_classes(self.shared, place)
            if 1 < len(found) <= MOST_CLASSES:
                self.place, self.fetched = place, found
                return

    def _last_classes(self, fetched: Mask) -> list[Mask]:
        """Classes of the latest token with the greatest key, for a class of the fetched one."""
        if self.key is None:
            return [self._all()]
        tail = self._fetching(fetched)
        best = [self.greatest]
        for name, node in self.program.nodes.items():
            if isinstance(node, Weight) and node.owner in self.extremes:
                found = token_classes(self.shared, (name, 0), ranges=tail.range_now)
                found = [mask & self.greatest for mask in found]
                found = [mask for mask in found if mask.any()]
                if len(best) < len(found) <= MOST_LAST:
                    best = found
        return best

    def _fetching(self, fetched: Mask) -> Tail:
        """A path on which the fetched token is one of a class."""
        tail = self.base.child()
        if self.place is not None:
            base, back = tail.spot(self.place[0])
            tail.tokens[base, back + self.place[1]] = self.shared.columns.mask(fetched)
        return tail

    def _all(self) -> Mask:
        return np.ones(self.shared.columns.n_tokens, np.bool_)

    def _own_classes(self, others: Sequence[tuple[str, int]]) -> list[Mask]:
        found = token_classes(self.shared, HERE, others)
        if not found:
            found = [np.ones(self.shared.columns.n_tokens, np.bool_)]
        if self.key is not None:
            found = [
                part for mask in found for part in (mask & self.greatest, mask & ~self.greatest)
            ]
        return [mask for mask in found if mask.any()]

    # Branches

    def write(self) -> list[str]:
        """The body of the function."""
        self._group()
        leaves = self._leaves()
        cases: list[list[str]] = []
        for own, mask in enumerate(self.own):
            tail = self.early[own]
            pending = [
                name
                for name in self.shared.refreshed
                if name not in tail.neutral and not self.shared.timeless(name)
            ]
            tail.lines[:0] = [f"table_settle(&e->{name});" for name in pending]
            if not (self.latest and self.greatest[mask].all()):
                group = next(i for i, members in enumerate(self.groups) if own in members)
                cases.append([*self.early[own].lines, *self._fetches(group, leaves)])
            else:
                cases.append([*self.early[own].lines, "break;"])
        self._switch(self.base, lambda: self._class_of("own", self.own, "token"), cases)
        if self.latest:
            self.base.lines += self._fetches(0, leaves)
        return self.base.lines

    def _group(self) -> None:
        """Put classes of the current token together, if what tells them apart can be done first.

        Group 0 are then all tokens with the greatest key of the extremes.
        """
        self.early = [self._early(mask) for mask in self.own]
        if self.shared.refreshed:  # now it is known which
            self.early = [self._early(mask) for mask in self.own]
        sums = {name for name, e in self.program.effects.items() if isinstance(e, AddTo)}
        great = [
            i
            for i, mask in enumerate(self.own)
            if self.key is not None and self.greatest[mask].all()
        ]
        self.latest = bool(great) and all(sums <= self.early[i].committed for i in great)
        if not self.latest:
            great = []
        self.groups = [great] if great else []
        self.groups += [[i] for i in range(len(self.own)) if i not in great]
        self.prefixes = [self._prefix(members) for members in self.groups]

    def _early(self, mask: Mask) -> Tail:
        """Effects that do not depend on what is known later."""
        tail = self.base.child()
        self._assume_current(tail, mask)
        if self.shared.restless:
            return tail
        later = {self.place[0]} if self.place is not None else set()
        for name, node in self.program.nodes.items():
            if isinstance(node, Weight) and node.owner not in tail.back:
                later.add(name)
        for name in self.program.effects:
            trial = tail.child()
            trial.effect(name)
            trial.commit_sum(name)
            if not later & trial.touched and len(trial.lines) <= MOST_EARLY:
                tail.effect(name)
                tail.commit_sum(name)
        return tail

    def _assume_current(self, tail: Tail, mask: Mask) -> None:
        tail.tokens[HERE] = self.shared.columns.mask(mask)
        if self.key is not None and self.greatest[mask].all():
            for name in self.extremes:
                tail.back[name] = 0

    def _prefix(self, members: Sequence[int]) -> tuple[Tail, Spot]:
        """What a group of classes has in common, and where the token is that is fetched."""
        early = [self.early[i] for i in members]
        inside = len(early) == 1 and members is not self.groups[0] or not self.latest
        tail = early[0].child() if inside else self.base.child()
        self._assume_current(tail, np.logical_or.reduce([self.own[i] for i in members]))
        tail.done = set.intersection(*(one.done for one in early))
        tail.committed = set.intersection(*(one.committed for one in early))
        if self.place is None:
            return tail, HERE
        base, back = tail.spot(self.place[0])
        spot = (base, back + self.place[1])
        tail.token(spot)
        return tail, spot

    def _leaves(self) -> dict[tuple[int, int, int], dict[int, Tail]]:
        """The ends of all paths that may be taken, by group, classes and distance."""
        states: list[State] = [(group, 0, 0, 1) for group in range(len(self.groups))]
        if self.latest:
            states += [(0, y, 0, 1) for y in range(1, len(self.fetched))]
        else:
            states += [
                (g, y, 0, 1) for g, _, _, _ in list(states) for y in range(1, len(self.fetched))
            ]
        leaves: dict[tuple[int, int, int], dict[int, Tail]] = {}
        seen, n_lines = set(states), 0
        for state in states:  # grows
            group, y, last, distance = state
            if n_lines > MOST_LINES:
                break  # the plain code does what is left
            tail, far = self._path(state)
            outputs = self._leaf(tail)
            n_lines += len(tail.lines)
            leaves.setdefault((group, y, last), {})[-distance if far else distance] = tail
            for following in self._following(state, far, outputs):
                if following not in seen and following[3] <= FARTHEST:
                    seen.add(following)
                    states.append(following)
        return leaves

    def _path(self, state: State) -> tuple[Tail, bool]:
        """The path of a state; and whether it is for all greater distances as well."""
        group, y, last, distance = state
        prefix, spot = self.prefixes[group]
        tail = prefix.child()
        tail.tokens.setdefault(spot, self.shared.columns.mask(self.fetched[y]))
        if self._is_latest(group):
            if self.key is not None:
                mask = self.shared.columns.masks[tail.tokens[HERE]] & self.last[y][last]
                tail.tokens[HERE] = self.shared.columns.mask(mask)
            return tail, True
        if self.key is None:
            return tail, True
        near = self._at(tail, self.last[y][last], distance, True)
        if y:  # what is fetched most says nothing, and may stay for long
            return near, False
        far = self._at(tail, self.last[y][last], distance, False)
        return (far, True) if self._possible(near) == self._possible(far) else (near, False)

    def _is_latest(self, group: int) -> bool:
        """Whether the current token is itself the latest of the greatest key."""
        return self.latest and group == 0

    def _following(self, state: State, far: bool, outputs: Mask) -> Iterator[State]:
        """What may come after a path."""
        group, y, last, distance = state
        for other, members in enumerate(self.groups):
            mask = np.logical_or.reduce([self.own[i] for i in members]) & outputs
            if not mask.any():
                continue
            if self._is_latest(other) or not self.latest:
                for z, classes in enumerate(self.last):
                    for i, one in enumerate(classes):
                        if (one & mask).any() or not self.latest:
                            yield other, z, i, 1
            elif self._is_latest(group):
                yield other, y, last, 1
            else:
                yield other, y, last, distance if far and other == group else distance + 1

    def _fetches(
        self, group: int, leaves: dict[tuple[int, int, int], dict[int, Tail]]
    ) -> list[str]:
        """The branches of a group, on what is fetched and what was the latest."""
        prefix, spot = self.prefixes[group]
        tail = prefix.child()
        tail.lines = list(prefix.lines)
        at = "token" if self._is_latest(group) else self._latest_token()
        cases = []
        for y in range(len(self.fetched)):
            inner = prefix.child()
            ends = [
                self._distances(leaves.get((group, y, i), {})) for i in range(len(self.last[y]))
            ]
            self._switch(inner, partial(self._class_of, f"last{y}", self.last[y], at), ends)
            cases.append(inner.lines)
        self._switch(tail, lambda: self._class_of("fetched", self.fetched, tail.token(spot)), cases)
        return tail.lines

    def _latest_token(self) -> str:
        """C of the latest token with the greatest key."""
        return f"e->core.tokens[e->{self.extremes[0]}.x.weight]" if self.extremes else "token"

    def _distances(self, leaves: dict[int, Tail]) -> list[str]:
        """The code of the paths at several distances."""
        if list(leaves) == [-1]:
            return leaves[-1].lines
        other = ["goto again;"]
        if not leaves or min(leaves) > 0:
            self.shared.again = True
        if not leaves:
            return other
        lines = [f"switch (p - e->{self.extremes[0]}.x.weight) {{"]
        far = min((-distance for distance in leaves if distance < 0), default=0)
        near = [d for d in sorted(leaves) if d > 0 and (d < far or not far)]
        for distance in near:
            tail = leaves[distance]
            lines += [f"case {distance}:", "{", *("    " + line for line in tail.lines), "}"]
        lines.append("default:")
        if not far:
            return [*lines, *("    " + line for line in other), "}"]
        if len(near) < far - 1:  # those between are not as far as this path takes for granted
            self.shared.again = True
            lines += [f"    if (p - e->{self.extremes[0]}.x.weight < {far})", "        goto again;"]
        return [*lines, "{", *("    " + line for line in leaves[-far].lines), "}", "}"]

    def _at(self, tail: Tail, last: Mask, distance: int, exactly: bool) -> Tail:
        inner = tail.child()
        assert self.key is not None
        key, other = (self.shared.columns.mask(m) for m in (last, ~self.greatest))
        for name in self.extremes:
            if exactly:
                inner.back[name] = distance
            else:
                inner.beyond[name] = distance
        for back in range(1, distance):
            inner.tokens.setdefault((HERE[0], back), other)
        if exactly:
            inner.tokens.setdefault((HERE[0], distance), key)
        else:
            for name, node in self.program.nodes.items():
                if isinstance(node, Weight) and node.owner in self.extremes:
                    inner.tokens.setdefault(inner.spot(name), key)
        return inner

    def _possible(self, tail: Tail) -> list[tuple[bool, bool]]:
        """For each gate whether it can be open, and whether it can be closed."""
        found = []
        for neuron in gates(self.program):
            values = tail.linear(neuron.gate).range
            found.append((values.high > 0.0, values.low <= 0.0))
        return found

    def _leaf(self, tail: Tail) -> Mask:
        """Write the end of a path; the tokens that may come out."""
        self.n_leaves += 1
        for name in self.program.effects:
            tail.effect(name)
        tail.commit()
        tail.say("if (!wanted)", 1)
        tail.say("    return 0;", 0)
        return write_rivals(tail, self.families)

    def _class_of(self, name: str, masks: Sequence[Mask], token: str) -> str:
        """C of the class of a token; equal tables are one."""
        table = np.zeros(self.shared.columns.n_tokens, np.uint8)
        for i, mask in enumerate(masks):
            table[mask] = i
        name = self.tables.setdefault(table.tobytes(), name)
        self.shared.constants[f"class_{name}"] = (
            f"static const uint8_t class_{name}[] = {{{', '.join(map(str, table.tolist()))}}};"
        )
        return f"class_{name}[{token}]"

    def _switch(self, tail: Tail, text: Callable[[], str], cases: Sequence[list[str]]) -> None:
        """A switch; equal cases are one, and the most frequent is the default."""
        groups: dict[tuple[str, ...], list[int]] = {}
        for i, case in enumerate(cases):
            groups.setdefault(tuple(case), []).append(i)
        if len(groups) == 1:
            tail.lines += cases[0]
            return
        default = max(groups, key=lambda lines: len(groups[lines]))
        tail.say(f"switch ({text()}) {{")
        for lines, members in groups.items():
            labels = ["default:"] if lines is default else [f"case {i}:" for i in members]
            tail.lines += [*labels, "{", *("    " + line for line in lines), "}"]
        tail.say("}", 0)

    def again(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """C before and after the paths, for those that start again with the plain code."""
        if not self.shared.again:
            return (), ()
        sums = [name for name, e in self.program.effects.items() if isinstance(e, AddTo)]
        return (
            tuple(f"const double old_{name} = e->{name};" for name in sums),
            (
                "again: /* what was done may be done twice, but for the sums */",
                *(f"e->{name} = old_{name};" for name in sums),
                "return step(e, token);",
            ),
        )

    def late_code(self) -> list[str]:
        """Functions that compute a value that is not stored, by its record."""
        lines = []
        for name, values in self.shared.late.items():
            for k, value in values.items():
                tail = self._later()
                text = tail.text(tail.linear(value))
                lines += [
                    f"static double late_{name}_{k}(engine *e, const cell *record)\n{{",
                    "    const int64_t p = record[0].i;",
                    f"    if (p < e->{name}.late_from)",
                    f"        return record[{k}].d;",
                    "    const int32_t token = e->core.tokens[p];",
                    *("    " + line for line in tail.lines),
                    f"    return {text};",
                    "}\n",
                ]
        return lines

    def _later(self) -> Tail:
        """A path that computes something again, for a token that is past."""
        tail = Tail(self.shared, 0)
        tail.done = set(self.program.effects)
        tail.committed = set(self.program.effects)
        return tail

    def refresh(self) -> list[str]:
        """Functions that compute values of a token's record again: all, or the late ones."""
        lines = []
        functions = [
            (f"refresh_{name}", dict(enumerate(self.shared.values_of(name), 1)))
            for name in self.shared.refreshed
        ]
        functions += [(f"recall_{name}", values) for name, values in self.shared.late.items()]
        for name, values in functions:
            tail = self._later()
            for k, value in values.items():
                tail.say(f"record[{k}].d = {tail.text(tail.linear(value))};")
            lines += [
                f"static void {name}(void *owner, int64_t p, cell *record)\n{{",
                "    engine *const e = owner;",
                "    const int32_t token = e->core.tokens[p];",
                "    record[0].i = p;",
                *("    " + line for line in tail.lines),
                "}\n",
            ]
        return lines

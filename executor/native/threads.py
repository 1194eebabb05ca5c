"""The paths of specialised code as one loop in C, in which every path leads on to the next.

In: :class:`~executor.native.paths.Paths`. Out: statements. A token is looked at in steps: its own
class, the class of the token that it fetches, that of the latest token with the greatest key, and
how far back that is. A token that moves no sum and is no such token itself leaves all of that as it
is, but for the distance. So where a path can only end in such tokens, it goes straight to theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from executor.native.columns import Mask
from executor.native.outputs import TOKEN
from executor.native.paths import Leaf, Paths, may_fail
from executor.native.splits import Splits
from executor.native.sums import variable
from executor.native.traces import Forked, Step, Trace, Written


class Threads:
    """Writes the loop."""

    def __init__(self, splits: Splits, paths: Paths, bounds: Sequence[str]) -> None:
        """``bounds``: what has to hold of sums before a token that changes them."""
        self.splits, self.paths, self.shared = splits, paths, splits.shared
        self.bounds = bounds
        self._tables: dict[bytes, str] = {}
        through = np.zeros(self.shared.columns.n_tokens, np.bool_)
        self._ends = through.copy()
        for trace in paths.traces.values():
            for _, written in trace.endings():
                through |= written.outputs & ~written.leaving
                self._ends |= written.leaving
        ids = np.flatnonzero(through).tolist()
        self.shared.constants["through"] = (
            f"static const int32_t through[] = {{{', '.join(map(str, [*ids, -1]))}}};"
        )

    def _leaves(self) -> Iterator[tuple[tuple[int, int, int, int], Leaf]]:
        for (group, y, last), leaves in self.paths.leaves.items():
            for distance, leaf in leaves.items():
                yield (group, y, last, distance), leaf

    def lines(self) -> list[str]:
        """The body of the loop: it begins with ``token`` as the current token."""
        own = self._switch(
            partial(self._class_of, "own", self.splits.own, "token"),
            [[f"goto own_{c};"] for c in range(len(self.splits.own))],
        )
        lines = own
        for c, mask in enumerate(self.splits.own):
            lines += [f"own_{c}: /* one of {int(mask.sum())} tokens */", *_block(self._own(c))]
        for g, group in enumerate(self.paths.groups):
            if group.latest:
                lines += [f"fetch_{g}:", *_block(self._fetch(g))]
        for trace in self.paths.traces.values():
            number, y, last, _ = trace.state
            members = "/".join(map(str, self.paths.groups[number].own))
            count = f"up to {trace.longest} tokens"
            lines.append(
                f"{_label(trace.state)}: /* own {members}, fetched {y}, latest {last}, {count} */"
            )
            lines += self._trace(trace)
        for state, leaf in self._leaves():
            number, y, last, distance = state
            group = self.paths.groups[number]
            members = "/".join(map(str, group.own))
            far = " or more" if leaf.far else ""
            back = "" if group.latest else f", {distance}{far} back"
            lines.append(f"{_label(state)}: /* own {members}, fetched {y}, latest {last}{back} */")
            lines += _block(self._leaf(state, leaf))
        return lines

    def _own(self, c: int) -> list[str]:
        """A class of the current token."""
        g = self.paths.group_of(c)
        group, tail = self.paths.groups[g], self.paths.early[c]
        lines = [line for bound in self.bounds for line in (f"if (!({bound}))", "    goto plain;")]
        if group.latest:
            lines += [f"old_{name} = {variable(self.shared, name)};" for name in self.shared.sums]
            lines += tail.lines
            if not self._comes_out(c):
                return [*lines, f"goto fetch_{g};"]
            return [*lines, *_block(self._fetch(g, self.splits.own[c]))]
        return [*lines, *self._fetch(g)]

    def _comes_out(self, c: int) -> bool:
        """Whether a trace may end in all tokens of a class: others are those of prompts."""
        return not (self.splits.own[c] & ~self._ends).any()

    def _fetch(self, g: int, own: Mask | None = None) -> list[str]:
        """The branches of a group, on what is fetched and what was the latest.

        Args:
            own: the current token is one of these.
        """
        group, splits = self.paths.groups[g], self.splits
        at = "token"
        if not group.latest and splits.extremes:
            at = f"e->core.tokens[e->{splits.extremes[0]}.x.weight]"
        cases = []
        for y, classes in enumerate(splits.last):
            ends = [self._distances(g, y, last) for last in range(len(classes))]
            known = [ends[i] for i, one in enumerate(classes) if own is None or (one & own).any()]
            if group.latest and len(known) == 1:
                cases.append(known[0])
                continue
            cases.append(self._switch(partial(self._class_of, f"last{y}", classes, at), ends))
        moving = group.fetch is not None and splits.place is not None
        chain = "place < p ? limit : 0" if moving else "limit" if group.fetch == () else "0"
        return [
            *(group.dispatch if own is None else group.surely).lines,
            f"chain = {chain};",
            *self._switch(partial(self._class_of, "fetched", splits.fetched, "fetched"), cases),
        ]

    def _distances(self, g: int, y: int, last: int) -> list[str]:
        """The paths at several distances."""
        if (g, y, last) in self.paths.traces:
            return [f"goto {_label((g, y, last, 1))};"]
        leaves = self.paths.leaves.get((g, y, last), {})
        retry = f"goto {'again' if self.paths.groups[g].latest else 'plain'};"
        if not leaves:
            return [retry]
        far = min((distance for distance, leaf in leaves.items() if leaf.far), default=0)
        if far == 1:
            return [f"goto {_label((g, y, last, 1))};"]
        lines = [f"switch (p - e->{self.splits.extremes[0]}.x.weight) {{"]
        near = [distance for distance in sorted(leaves) if not far or distance < far]
        for distance in near:
            lines += [f"case {distance}:", f"    goto {_label((g, y, last, distance))};"]
        if far:  # those between are not as far as that path takes for granted
            for distance in set(range(1, far)) - set(near):
                lines += [f"case {distance}:", f"    {retry}"]
            retry = f"goto {_label((g, y, last, far))};"
        return [*lines, "default:", f"    {retry}", "}"]

    def _leaf(self, state: tuple[int, int, int, int], leaf: Leaf) -> list[str]:
        group, lines = self.paths.groups[state[0]], list(leaf.tail.lines)
        if may_fail(lines) or group.latest:
            lines += ["if (e->core.status.odd)", "    goto check;"]
        lines += ["if (p >= chain || stop[token])", "    goto check;"]
        lines.append("e->core.tokens[p] = (token_t)token;")
        reached = [(mask & leaf.outputs).any() for mask in self.splits.own]
        known = [self._target(state, leaf, c) for c in range(len(reached))]
        some = next(known[c] for c, one in enumerate(reached) if one)
        targets = [[f"goto {known[c] if one else some};"] for c, one in enumerate(reached)]
        which = partial(self._class_of, "own", self.splits.own, TOKEN)
        return [*lines, *self._switch(which, targets)]

    def _trace(self, trace: Trace) -> list[str]:
        """All steps of a trace, and where its guards go."""
        lines = _block(self._step(trace, trace.first))
        used = {line.strip() for line in lines}
        for label, leaving in trace.leaves.items():
            if f"goto {label};" in used:
                lines += [*leaving, f"{TOKEN} = e->core.tokens[p];", "goto plain;"]
        return lines

    def _step(self, trace: Trace, step: Step) -> list[str]:
        """A step of a trace and what follows it."""
        effects, rest = step.tail.lines[: step.effects], step.tail.lines[step.effects :]
        leave, lines = f"    goto {step.tail.retry};", list(effects)
        if step is trace.first:
            lines += ["if (e->core.status.error)", "    goto failed;"]
            lines += ["if (!next) {", *("    " + line for line in step.pending)]
            lines += ["    goto passed;", "}"]
            lines += [f"if (p + {trace.longest} >= chain || e->core.status.odd)", leave]
        elif may_fail(effects):
            lines += ["if (e->core.status.error || e->core.status.odd)", leave]
        lines += rest
        if may_fail(rest):
            lines += ["if (e->core.status.error)", leave]
        match step.ending:
            case Forked(condition, yes, no):
                lines += [f"if ({condition})", *_block(self._step(trace, yes))]
                return [*lines, "else", *_block(self._step(trace, no))]
            case Written():
                return [*lines, *self._written(trace, step, step.ending)]

    def _written(self, trace: Trace, step: Step, written: Written) -> list[str]:
        """Statements behind the code that finds a token of a trace."""
        offset, count, splits = step.offset, step.offset + 1, self.splits
        name = f"t{count}"
        lines = [
            f"const int32_t {name} = {written.token};",
            f"following[p + {offset}] = {name};" if offset else f"following[p] = {name};",
            f"e->core.tokens[p + {count}] = (token_t){name};",
        ]
        onward: list[str] = []
        if written.onward is not None:
            group, following = written.onward
            onward = self._step(trace, following)
        reached = [c for c, own in enumerate(splits.own) if (own & written.leaving).any()]
        if not reached:
            return [*lines, *onward]
        goes = {c: f"goto {self._after(trace.state, count, False, c)};" for c in reached}
        targets = [[goes.get(c, goes[reached[0]])] for c in range(len(splits.own))]
        ending = [
            *step.tail.flush(),
            f"p += {count};",
            f"{TOKEN} = {name};",
            f"if (stop[{name}])",
            "    goto check;",
            *self._switch(partial(self._class_of, "own", splits.own, name), targets),
        ]
        if written.onward is None:
            return [*lines, *ending]
        inside = np.logical_or.reduce([splits.own[c] for c in self.paths.groups[group].own])
        is_in = self._class_of("onward", [~inside, inside], name)
        return [*lines, f"if (!{is_in})", *_block(ending), *onward]

    def _target(self, state: tuple[int, int, int, int], leaf: Leaf, c: int) -> str:
        """Where to go on after a path with a token of a class."""
        latest = self.paths.groups[state[0]].latest
        return self._after(state, 1 if latest else state[3] + 1, leaf.far and not latest, c)

    def _after(self, state: tuple[int, int, int, int], after: int, far_off: bool, c: int) -> str:
        """Where to go on with a token of a class at a distance, or at an unknown one."""
        g, y, last, _ = state
        other = self.paths.group_of(c)
        if not self.paths.leads_on(self.paths.groups[g], self.paths.groups[other]):
            return f"own_{c}"
        leaves = self.paths.leaves.get((other, y, last), {})
        far = min((d for d, one in leaves.items() if one.far), default=0)
        if far and after >= far:
            return _label((other, y, last, far))
        if far_off or after not in leaves:
            return f"own_{c}"
        return _label((other, y, last, after))

    def _class_of(self, name: str, masks: Sequence[Mask], token: str) -> str:
        """C of the class of a token; equal tables are one, others have names of their own."""
        table = np.zeros(self.shared.columns.n_tokens, np.uint8)
        for i, mask in enumerate(masks):
            table[mask] = i
        if name in self._tables.values() and table.tobytes() not in self._tables:
            name = f"{name}_{len(self._tables)}"
        name = self._tables.setdefault(table.tobytes(), name)
        self.shared.constants[f"class_{name}"] = (
            f"static const uint8_t class_{name}[] = {{{', '.join(map(str, table.tolist()))}}};"
        )
        return f"class_{name}[{token}]"

    def _switch(self, text: Callable[[], str], cases: Sequence[list[str]]) -> list[str]:
        """A switch; equal cases are one, and the most frequent is the default."""
        groups: dict[tuple[str, ...], list[int]] = {}
        for i, case in enumerate(cases):
            groups.setdefault(tuple(case), []).append(i)
        if len(groups) == 1:
            return list(cases[0])
        default = max(groups, key=lambda lines: len(groups[lines]))
        found = [f"switch ({text()}) {{"]
        for lines, members in groups.items():
            labels = ["default:"] if lines is default else [f"case {i}:" for i in members]
            found += [*labels, *("    " + line for line in lines)]
        return [*found, "}"]


def _label(state: tuple[int, int, int, int]) -> str:
    return "path_" + "_".join(map(str, state))


def _block(lines: Sequence[str]) -> list[str]:
    return ["{", *("    " + line for line in lines), "}"]

"""C of specialised code, and the conditions under which it runs.

In: a :class:`~executor.native.nodes.Program`. Out: :class:`Special`; a function ``advance`` that
falls back on the plain ``step`` for any token for which something is not as expected.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from executor.native.columns import Mask
from executor.native.exprs import Unsuitable
from executor.native.families import Family
from executor.native.later import exceeding, late_values, refreshing
from executor.native.nodes import AddTo, Insert, Program
from executor.native.paths import Paths
from executor.native.ranges import two
from executor.native.shared import SUM_BOUND, Shared
from executor.native.sources import runtime
from executor.native.splits import Splits
from executor.native.state import counted
from executor.native.sums import Sums, bounded
from executor.native.threads import Threads
from executor.native.writer import plus

DROPPED = "no numbers are stored: they are computed again from the tokens since the latest key"
"""A line about a model whose columns can be left out."""
DETAIL = "    trace of fetched "
"""How lines begin that are told only if everything is."""


@dataclass(frozen=True)
class Special:
    """Specialised code: C, tables it reads, conditions to run it, and what was split."""

    lines: tuple[str, ...]
    tables: tuple[npt.NDArray[np.uint8], ...]
    types: tuple[str, ...]
    macros: tuple[str, ...]
    constants: tuple[str, ...]
    once: tuple[str, ...]
    columns: tuple[str, ...]
    dropped: bool
    sums: Sums
    refresh: tuple[str, ...]
    later: Mapping[str, Sequence[str]]
    changing: tuple[str, ...]
    late: Mapping[str, Collection[int]]
    through: bool
    units: Mapping[str, Sequence[int | None]]
    with_token: Collection[str]
    described: tuple[str, ...]


def specialise(
    program: Program, n_tokens: int, families: Sequence[Family], prefix: Sequence[int]
) -> Special | None:
    """Specialised code for a program; None if it has nothing that splits it."""
    if not program.complete:
        return None
    for holding in (True, False):
        try:
            splits = Splits(program, n_tokens, families, prefix, holding)
            paths = Paths(splits)
        except Unsuitable:
            return None
        shared = splits.shared
        refresh = [*refreshing(shared), *exceeding(shared)]
        columns = (*splits.column_code, *late_values(shared))
        if not any(f"e->{name}" in line for name in shared.sums for line in (*refresh, *columns)):
            break  # else those functions need the sums in the state of the engine
    bounds = [
        bounded(shared, name)
        for name in shared.sums
        if splits.base.sum_of(name).range.size > SUM_BOUND
    ]
    threads = Threads(splits, paths, bounds)
    lines = threads.lines()
    tables, types, macros = shared.columns.tables()
    later = [*shared.refreshed.values(), *(late.values() for late in shared.late.values())]
    depends = {structure for values in later for structure in shared.depends(values)}
    first = splits.base.first
    once = [f"p >= {first}"]
    for name, key in splits.base.seen.items():
        once.append(f"e->{name}.x.key == {key!r}")
    if prefix:
        shared.constants["prefix"] = (
            f"static const token_t prefix[] = {{{', '.join(map(str, prefix))}}};"
        )
        once.append("!memcmp(e->core.tokens, prefix, sizeof prefix)")
    once += [f"e->{name}.has_zero" for name in sorted(shared.zeroed)]
    if shared.dropped:
        once.append("e->dropped")
    with_token = tuple(_with_token(shared, [*lines, *refresh, *columns]))
    return Special(
        lines=tuple(lines),
        tables=tuple(tables),
        types=tuple(types),
        macros=tuple(macros),
        constants=tuple(shared.constants.values()),
        once=tuple(once),
        columns=columns,
        dropped=shared.dropped,
        sums=Sums(shared, paths.latest),
        refresh=tuple(refresh),
        later={
            name: [
                part
                for part, names in (("refresh", shared.refreshed), ("recall", shared.late))
                if name in names
            ]
            for name in shared.settled
        },
        changing=tuple(sorted(name for name in depends if not shared.is_settled(name))),
        late={name: tuple(values) for name, values in shared.late.items()},
        through=bool(paths.traces),
        units={
            name: [shared.unit_of(name, k) for k in range(1, len(effect.values) + 1)]
            for name, effect in program.effects.items()
            if isinstance(effect, Insert)
        },
        with_token=with_token,
        described=(
            *_described(splits, paths, len(lines)),
            *(f"  {name}: with a position the token there is kept" for name in with_token),
        ),
    )


def _described(splits: Splits, paths: Paths, n_lines: int) -> Iterator[str]:
    """What was split and what is done differently, for people."""
    shared, program = splits.shared, splits.program
    n_paths = sum(map(len, paths.leaves.values()))
    size = f"{counted(n_paths, 'path')}, {counted(n_lines, 'line')} of C"
    longest = max((trace.longest for trace in paths.traces.values()), default=0)
    traces = f"{counted(len(paths.traces), 'trace')} of up to {counted(longest, 'token')}, "
    yield f"specialised code: {traces if longest else ''}{size}"
    yield f"  the current token: {_sizes(splits.own)}; they open the same gates"
    if splits.place is not None:
        base, back = splits.place
        before = f"{counted(back, 'token')} before the one" if back else "the token"
        yield (
            f"  {before} that {base} reads: {_sizes(splits.fetched)}; it decides about most gates"
        )
    for name in splits.extremes:
        yield f"  how far back the token is that {name} finds, and its class"
    if paths.joined:
        count = len(paths.joined)
        classes = f"{count:,} {'class' if count == 1 else 'classes'}"
        yield f"  not split on that for {classes} of fetched tokens: no path got shorter"
    forks = sum(trace.n_forks for trace in paths.traces.values())
    if forks:
        yield f"  {counted(forks, 'fork')} of traces where a gate decides which token comes out"
    yield from _traces(splits, paths)
    for name in shared.refreshed:
        yield f"  {name}: of a token that writes nothing the key 0 is kept, its values come later"
    for name, values in shared.late.items():
        yield (
            f"  {name}: {counted(len(values), 'value')} less to store, "
            "computed by the paths that read them"
        )
    for name in sorted(shared.unwritten):
        yield f"  {name}: keys that lose against those of the first tokens are left out"
    for name in sorted(shared.keyed):
        yield f"  {name}: a value is its key, as long as keys are those of a table"
    for name, effect in program.effects.items():
        if isinstance(effect, AddTo):
            yield f"  {name}: an exact sum, for the mean times the number of tokens"
    if shared.dropped:
        yield f"  {DROPPED}"


def _traces(splits: Splits, paths: Paths) -> Iterator[str]:
    """A line for each trace, by one of the tokens that are fetched."""
    for (_, y, last), trace in paths.traces.items():
        of = f"{DETAIL}token {int(np.flatnonzero(splits.fetched[y])[0])}"
        more = int(splits.fetched[y].sum()) - 1
        of += f" and {counted(more, 'other')}" if more else ""
        of += f", latest of class {last}" if len(splits.last[y]) > 1 else ""
        parts = [f"up to {counted(trace.longest, 'token')}", counted(trace.length, "line")]
        parts += [counted(trace.n_forks, "fork")] if trace.n_forks else []
        yield f"{of}: {', '.join(parts)}{'' if trace.complete else ', then a path'}"


def _sizes(masks: Sequence[Mask]) -> str:
    """How many classes, and of how many tokens."""
    sizes = sorted((int(mask.sum()) for mask in masks), reverse=True)
    text = ", ".join(f"{size:,}" for size in sizes[:8]) + (", ..." if len(sizes) > 8 else "")
    return f"{len(sizes)} {'class' if len(sizes) == 1 else 'classes'} of {text} tokens"


def columns(special: Special | None, n_columns: int, widths: Mapping[str, int]) -> str:
    """C to store and load what is kept for every token, or to compute it again.

    Args:
        widths: how many values a record of each table has.
    """
    kept = special.with_token if special is not None else ()
    lines = [line for name in widths for line in _place(name, name in kept)]
    dropped = bool(special and special.dropped)
    if special is not None:
        lines += [*special.macros, *special.columns]
    for i in range(n_columns):
        store, load = f"e->columns[{i}][i] = (x)", f"e->columns[{i}][i]"
        if dropped:
            store, load = f"if (!e->dropped) {store}", f"(e->dropped ? column_{i}(e, i) : {load})"
        lines += [f"#define STORE_{i}(i, x) {store}", f"#define LOAD_{i}(i) {load}"]
    for name, width in widths.items():
        for k in range(1, width + 1):
            late = special is not None and k in special.late.get(name, ())
            unit = special.units[name][k - 1] if special is not None else None
            lines += _cell(f"{name}_{k}", k, unit, late)
    return "\n".join([*lines, ""])


def _place(name: str, with_token: bool) -> list[str]:
    """C macros for the position in a table's record; in the lower half there may be the token."""
    if with_token:
        place, at = "((int64_t)(p) << 32 | (uint32_t)(token))", "((r)[0].i >> 32)"
        token = "(uint32_t)(r)[0].i"
    else:
        place, at, token = "(p)", "(r)[0].i", f"e->core.tokens[AT_{name}(r)]"
    return [
        f"#define PLACE_{name}(p, token) {place}",
        f"#define AT_{name}(r) {at}",
        f"#define TOKEN_{name}(r) {token}",
    ]


def _with_token(shared: Shared, lines: Sequence[str]) -> Iterator[str]:
    """Tables of whose records code reads tokens but no positions: tokens are kept there.

    They may have been written long ago, and then reading them anywhere else takes long.
    """
    for name, effect in shared.program.effects.items():
        if isinstance(effect, Insert) and effect.kind == "table" and name not in shared.late:
            used = [any(f"{part}_{name}(" in line for line in lines) for part in ("TOKEN", "AT")]
            if used == [True, False]:
                yield name


def _cell(name: str, index: int, unit: int | None, late: bool) -> list[str]:
    """C macros that read and write a value of a table's record."""
    member = "d" if unit is None else "i"
    read = f"late_{name}(e, r)" if late else f"(r)[{index}].{member}"
    if unit is None:
        return [f"#define VALUE_{name}(r) {read}", f"#define KEEP_{name}(cell, x) cell.d = (x)"]
    value, whole = plus("", two(unit), f"(double){read}"), plus("", two(-unit), "(x)")
    return [
        f"#define WHOLE_{name}(r) {read}",
        f"#define VALUE_{name}(r) ({value})",
        f"#define KEEP_{name}(cell, x) cell.i = (int64_t)({whole})",
    ]


def appending(special: Special | None, n_tokens: int) -> str:
    """C of the function that appends tokens, by specialised code where it can."""
    if special is None:
        return runtime("append.h")
    check = "\n        && ".join(f"({condition})" for condition in special.once)
    body = special.sums.into(runtime("threads.h"))
    loud = ["    loud = any_of(stop, through);\n"] if special.through else []
    body = body.replace("    /* LOUD */\n", "".join(loud))
    body = body.replace("    /* PATHS */\n", "".join(f"    {line}\n" for line in special.lines))
    return "\n".join(
        [
            *special.constants,
            *special.refresh,
            "/* What specialised code takes for granted, and what stays so. */",
            "static int make_ready(engine *e, int64_t p)\n{",
            f"    e->ready = {check};",
            "    if (!e->ready)",
            "        return 0;",
            *(f"    e->{name}.late_from = p;" for name in special.late),
            "    return 1;",
            "}\n",
            f"static const uint8_t never[{n_tokens}]; /* of all tokens, none */\n",
            body,
        ]
    )

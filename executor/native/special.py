"""C of specialised code, and the conditions under which it runs.

In: a :class:`~executor.native.nodes.Program`. Out: :class:`Special`; a function ``advance`` that
falls back on the plain ``step`` for any token for which something is not as expected.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from executor.checkpoint import Array
from executor.native.columns import Mask
from executor.native.exprs import Unsuitable
from executor.native.families import Family
from executor.native.lookups import FIRST
from executor.native.nodes import AddTo, Program
from executor.native.splits import Splitter
from executor.native.tails import SUM_BOUND


@dataclass(frozen=True)
class Special:
    """Specialised code: C, tables it reads, conditions to run it, and what was split."""

    lines: tuple[str, ...]
    tables: tuple[Array, ...]
    macros: tuple[str, ...]
    constants: tuple[str, ...]
    once: tuple[str, ...]
    always: tuple[str, ...]
    columns: tuple[str, ...]
    dropped: bool
    again: tuple[tuple[str, ...], tuple[str, ...]]
    refresh: tuple[str, ...]
    refreshed: tuple[str, ...]
    later: Mapping[str, Sequence[str]]
    changing: tuple[str, ...]
    late: Mapping[str, Collection[int]]
    described: tuple[str, ...]


def specialise(
    program: Program, n_tokens: int, families: Sequence[Family], prefix: Sequence[int]
) -> Special | None:
    """Specialised code for a program; None if it has nothing that splits it."""
    if not program.complete:
        return None
    try:
        splitter = Splitter(program, n_tokens, families, prefix)
        lines = splitter.write()
    except Unsuitable:
        return None
    shared = splitter.shared
    refresh = splitter.refresh()
    tables, macros = shared.columns.tables()
    depends = {
        structure for name in shared.settled for structure in shared.depends(shared.values_of(name))
    }
    first = max(FIRST, len(prefix))
    once = [f"p >= {first}"]
    for name, key in splitter.base.seen.items():
        once.append(f"e->{name}.x.weight >= 0 && e->{name}.x.key == {key!r}")
    if prefix:
        shared.constants["prefix"] = (
            f"static const token_t prefix[] = {{{', '.join(map(str, prefix))}}};"
        )
        once.append("!memcmp(e->core.tokens, prefix, sizeof prefix)")
    always = ["p < e->core.room", "!e->core.status.odd"]
    for name, effect in program.effects.items():
        if isinstance(effect, AddTo) and splitter.base.sum_of(name).range.size > SUM_BOUND:
            always.append(f"fabs(e->{name}) <= {SUM_BOUND!r}")
    if shared.dropped:
        once.append("e->dropped")
    return Special(
        lines=tuple(lines),
        tables=tuple(tables),
        macros=tuple(macros),
        constants=tuple(shared.constants.values()),
        once=tuple(once),
        always=tuple(always),
        columns=(*splitter.column_code, *splitter.late_code()),
        dropped=shared.dropped,
        again=splitter.again(),
        refresh=tuple(refresh),
        refreshed=tuple(name for name in shared.refreshed if not shared.timeless(name)),
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
        described=tuple(_described(splitter, len(lines))),
    )


def _described(splitter: Splitter, n_lines: int) -> Iterator[str]:
    """What was split and what is done differently, for people."""
    shared, program = splitter.shared, splitter.program
    yield f"specialised code: {splitter.n_leaves} paths, {n_lines} lines of C"
    yield f"  the current token: {_sizes(splitter.own)}; they open the same gates"
    if splitter.place is not None:
        base, back = splitter.place
        node = type(program.nodes[base]).__name__.lower()
        yield (
            f"  the token {back} before the {node} position {base}: {_sizes(splitter.fetched)}; "
            f"it decides about most gates"
        )
    for name in splitter.extremes:
        yield f"  how far back the latest key of {name} is, and which of its tokens that is"
    for name in shared.refreshed:
        yield f"  {name}: key 0 of tokens that write nothing is remembered, its values come later"
    for name, values in shared.late.items():
        numbers = ", ".join(map(str, values))
        yield f"  {name}: values {numbers} are not stored but computed by the paths that read them"
    for name in sorted(shared.unwritten):
        yield f"  {name}: keys that cannot win against those of the first tokens are left out"
    for name in sorted(shared.keyed):
        yield f"  {name}: a value is its key, as long as keys are those of a table"
    for name, effect in program.effects.items():
        if isinstance(effect, AddTo):
            yield f"  {name}: an exact sum, for the mean times the number of tokens"
    if shared.dropped:
        yield "  columns: not stored but computed again from the tokens since the latest key"


def _sizes(masks: Sequence[Mask]) -> str:
    """How many classes, and of how many tokens."""
    sizes = sorted((int(mask.sum()) for mask in masks), reverse=True)
    text = ", ".join(map(str, sizes[:8])) + (", ..." if len(sizes) > 8 else "")
    return f"{len(sizes)} classes of {text} tokens"


def columns(special: Special | None, n_columns: int, widths: Mapping[str, int]) -> str:
    """C to store and load what is kept for every token, or to compute it again.

    Args:
        widths: how many values a record of each table has.
    """
    lines = []
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
            text = f"late_{name}_{k}(e, r)" if late else f"(r)[{k}].d"
            lines.append(f"#define VALUE_{name}_{k}(r) {text}")
    return "\n".join([*lines, ""])


def advance(special: Special | None) -> str:
    """C of the function that appends a token, by specialised code where it can."""
    opening = "static int32_t advance(engine *e, int32_t token, int wanted)\n{"
    if special is None:
        return f"{opening}\n    (void)wanted;\n    return step(e, token);\n}}\n"
    check = "\n        && ".join(f"({condition})" for condition in special.once)
    always = "\n          && ".join(special.always)
    body = (*special.again[0], *special.lines, *special.again[1])
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
            opening,
            "    const int64_t p = e->core.length;",
            f"    if (!((e->ready || make_ready(e, p))\n          && {always}))",
            "        return step(e, token);",
            "    e->core.tokens[p] = (token_t)token;",
            *("    " + line for line in body),
            "}\n",
        ]
    )

"""A whole engine in C, generated from a model's weights and configuration.

In: config and weights. Out: :class:`Generated`: source, tables it reads, and what was found.
The tour of the layers is that of :mod:`executor.codegen`; slots of the stream are not names here
but values (:mod:`executor.native.forms`), so that what is known of them is used.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from executor.checkpoint import Array
from executor.codegen import Cache, share_caches
from executor.config import ModelConfig
from executor.liveness import Head, LiveLayer, live_layers, support
from executor.native.attention import Attention
from executor.native.classify import Lookups
from executor.native.families import Family, Single, group_rows
from executor.native.forms import HERE, Form, Linear, grain
from executor.native.neurons import Neurons, sort_neurons, write_neurons
from executor.native.nodes import Accumulate, Insert, Program
from executor.native.output import write_output
from executor.native.sources import runtime
from executor.native.special import Special, appending, columns, specialise
from executor.native.state import Description, State
from executor.native.structures import Results
from executor.native.writer import Writer

TWO_BYTES = 1 << 16


@dataclass(frozen=True)
class Generated:
    """The engine of one model.

    Attributes:
        source: one C file. ``native_new`` takes pointers to ``tables``.
        tables: arrays (vocab, columns) of float64, then of uint64.
        heads, neurons, families, singles: what was found, for people.
        columns: what is stored for every token besides the token itself, one number each.
    """

    source: str
    tables: tuple[npt.NDArray[np.generic], ...]
    heads: tuple[Description, ...]
    neurons: tuple[Neurons, ...]
    slots: tuple[tuple[str, ...], ...]
    families: tuple[Family, ...]
    singles: tuple[Single, ...]
    columns: tuple[str, ...]
    program: Program
    special: Special | None


def generate(
    config: ModelConfig,
    weights: Mapping[str, Array],
    prefix: Sequence[int] = (),
    specialised: bool = True,
    lookups: Lookups = "classified",
) -> Generated:
    """Generate the engine of a model with two-dimensional heads.

    Args:
        prefix: tokens that sequences are likely to start with.
        specialised: whether to write specialised code too, where there is something to it.
        lookups: other than ``classified`` for comparisons: all by hulls, or all by scans.
    """
    head = weights["head.weight"]
    outputs = sorted(support(head))
    tokens = np.sort(np.unique(head[:, outputs], axis=0, return_index=True)[1])
    layers = live_layers(config, weights, outputs)
    walk = _Walk(config, weights, lookups)
    for number, layer in enumerate(layers):
        walk.attention(number, layer, share_caches(number, layer.stored))
        walk.feed_forward(number, layer)
    stream = [walk.stream[slot] for slot in outputs]
    constants = np.array([np.nan if v.constant is None else v.constant for v in stream])
    families, singles = group_rows(tokens.tolist(), head[tokens][:, outputs], constants)
    walk.writer.say("/* logits */")
    write_output(walk.writer, walk.state, stream, families, singles)
    lines, tables, n_numbers = walk.writer.finish()
    program = walk.writer.program
    specialised = specialised and lookups == "classified"
    special = specialise(program, config.vocab_size, families, prefix) if specialised else None
    kinds = [("double", f"table{i}") for i in range(n_numbers)]
    kinds += [("uint64_t", f"mask{i}") for i in range(len(tables) - n_numbers)]
    if special is not None:
        kinds += [(f"row{i}", f"rows{i}") for i in range(len(special.tables))]
        tables += special.tables
    return Generated(
        source=_source(config, walk, lines, kinds, special),
        tables=tuple(tables),
        heads=tuple(walk.heads.described),
        neurons=tuple(walk.neurons),
        slots=tuple(walk.slots),
        families=tuple(families),
        singles=tuple(singles),
        columns=tuple(walk.state.columns),
        program=program,
        special=special,
    )


class _Walk:
    """The residual stream on its way through the layers: a value for every slot."""

    def __init__(self, config: ModelConfig, weights: Mapping[str, Array], lookups: Lookups) -> None:
        self.config, self.weights = config, weights
        self.writer, self.state = Writer(), State()
        self.heads = Attention(self.writer, self.state, lookups)
        self.neurons: list[Neurons] = []
        self.slots: list[tuple[str, ...]] = []
        self.writer.say("@p@")
        self.stream = [self._embedded(slot) for slot in range(config.d_model)]

    def _embedded(self, slot: int) -> Linear:
        column = np.ascontiguousarray(self.weights["tok.weight"][:, slot]) + 0.0
        first, second = self.config.position_slots
        varies = bool((column != column[0]).any())
        parts = [
            (1.0, Linear(Form(columns={HERE: column}) if varies else Form(float(column[0])))),
            (float(slot == first), Linear(Form(p=1.0))),
            (float(slot == second), Linear(Form(square=1.0))),
        ]
        return self.writer.settled(self.writer.combine(parts, f"x{slot}"), f"x{slot}")

    def row_sum(self, row: Array) -> Linear:
        """The dot product of a row (d_model) with the stream."""
        return self.writer.combine([(float(row[s]), self.stream[s]) for s in sorted(support(row))])

    def attention(self, number: int, layer: LiveLayer, caches: Sequence[Cache]) -> None:
        """Heads of one layer: all read the stream as it was, then add to it."""
        if layer.stored:
            self.writer.say(f"/* layer {number}, attention */")
        results: Results = {}
        for cache in caches:
            readers: dict[bytes, list[Head]] = {}
            for head in layer.queried:
                if any(index == head.index for index, _ in cache.columns):
                    readers.setdefault((head.query + 0.0).tobytes(), []).append(head)
            key = (self.row_sum(cache.key[0]), self.row_sum(cache.key[1]))
            values = [self.row_sum(row) for row in cache.values]
            queries = [
                (tuple(heads), (self.row_sum(heads[0].query[0]), self.row_sum(heads[0].query[1])))
                for heads in readers.values()
            ]
            self.heads.cache(number, cache, key, values, queries, results)
        for slot in sorted(set(results) & layer.after_attention):
            total = self.writer.combine([(1.0, self.stream[slot]), *results[slot]], f"x{slot}")
            self.stream[slot] = self.writer.settled(total, f"x{slot}")
        self._note_slots(layer.after_attention)

    def feed_forward(self, number: int, layer: LiveLayer) -> None:
        """Neurons of one layer: all read the stream as it was, then add to it."""
        if not layer.neurons:
            self.neurons.append(Neurons())
            self._note_slots(layer.after_ffn)
            return
        writer, weights = self.writer, self.weights
        writer.say(f"/* layer {number}, feed-forward */")
        down = weights[f"down.{number}.weight"]
        written = support(down[:, list(layer.neurons)].T) & layer.after_ffn
        targets = {slot: writer.name(f"y{slot}") for slot in sorted(written)}
        gates, values = weights[f"gate.{number}.weight"], weights[f"value.{number}.weight"]
        found = sort_neurons(writer, self.row_sum, layer.neurons, gates, values, down, targets)
        after: dict[int, Linear] = {}
        starts: dict[int, Linear] = {}
        for slot, name in targets.items():
            parts = [(1.0, self.stream[slot]), *found.always.get(slot, [])]
            total = writer.combine(parts, f"x{slot}")
            if slot not in found.sometimes:
                after[slot] = writer.settled(total, f"x{slot}")
                continue
            writer.say(f"double {name} = {writer.text(total)};")
            if slot in found.rounded or writer.is_rounded(total):
                writer.rounded.add(name)
            after[slot], starts[slot] = Linear(variables=((1.0, name),)), total
        added = write_neurons(writer, found)
        for slot, start in starts.items():
            writer.program.nodes[targets[slot]] = Accumulate(start, tuple(added[slot]))
        for slot, value in after.items():
            self.stream[slot] = value
        self.neurons.append(found)
        self._note_slots(layer.after_ffn)

    def _note_slots(self, live: frozenset[int]) -> None:
        """Describe every slot as it is now."""
        self.slots.append(
            tuple(
                "dead" if slot not in live else _describe(value)
                for slot, value in enumerate(self.stream)
            )
        )


def _describe(value: Linear) -> str:
    """What is known of a slot, for people."""
    if value.constant is not None:
        return f"constant {value.constant:,.10g}"
    if value.variables:
        return "computed"
    form = value.form
    if form.p or form.square:
        return "of the position"
    of = "of one token" if value.place is not None else f"of {len(form.columns)} tokens"
    low = form.const + sum(float(column.min()) for column in form.columns.values())
    high = form.const + sum(float(column.max()) for column in form.columns.values())
    whole = min(grain(column) for column in (np.array([form.const]), *form.columns.values())) >= 0
    return f"{of}, {'integers' if whole else 'numbers'} {low:,.10g} to {high:,.10g}"


def _source(
    config: ModelConfig,
    walk: _Walk,
    lines: Sequence[str],
    kinds: Sequence[tuple[str, str]],
    special: Special | None,
) -> str:
    """The C file: runtime, state of this model, its step, and the functions for Python."""
    state = walk.state
    n_columns = len(state.columns)
    fields = ["core core;", *(f"const {kind} *{name};" for kind, name in kinds)]
    fields += [f"double *columns[{max(n_columns, 1)}];", *state.fields]
    fields.append("int ready, dropped; /* for specialised code; columns are not stored */")
    start = [f"e->{name} = tables[{i}];" for i, (_, name) in enumerate(kinds)] + state.start
    later = special.later if special is not None else {}
    for name, functions in later.items():
        parts = [f"e->{name}.{part} = {part}_{name};" for part in functions]
        start += [f"e->{name}.owner = e;", *parts]
    inserts = {n: e for n, e in walk.writer.program.effects.items() if isinstance(e, Insert)}
    few = special.changing if special is not None else ()
    start += [f"e->{name}.changes = settle, e->{name}.owner = e;" for name in few]
    tables = {name: len(e.values) for name, e in inserts.items() if e.kind == "table"}
    clear = [f"free(e->columns[{i}]);" for i in range(n_columns)] + state.clear
    body = "\n".join(lines)
    prologue = ["const int64_t p = e->core.length;", "const double position = (double)p;"]
    if "square" in body:
        prologue.append("const double square = position * position;")
    drop = []
    if special is not None and special.dropped:
        drop = ["    if (!e->core.length)", "        e->dropped = great[token];"]
    token = "uint16_t" if config.vocab_size <= TWO_BYTES else "uint32_t"
    return "\n".join(
        [
            "/* Generated from a model's weights. */",
            runtime(),
            *([runtime("scan.h")] if walk.heads.lookups == "scan" else []),
            f"typedef {token} token_t;",
            runtime("core.h"),
            *state.constants,
            *(special.types if special is not None else ()),
            _block("typedef struct {", fields, "} engine;"),
            *(
                f"static void {part}_{name}(void *owner, int64_t p, cell *record);"
                for name, parts in later.items()
                for part in parts
            ),
            _block(
                "static void settle(void *owner, int64_t p)\n{",
                [
                    "engine *const e = owner;",
                    *(f"table_settle_all(&e->{name}, p);" for name in later),
                ],
                "}",
            )
            if few
            else "",
            _block(
                "static int engine_start(engine *e, const void *const *tables)\n{",
                [*start, "return !e->core.status.error;"],
                "}",
            ),
            _block("static void engine_clear(engine *e)\n{", [*clear, "(void)e;"], "}"),
            columns(special, n_columns, tables),
            "static int32_t step(engine *e, int32_t token)\n{",
            *drop,
            f"    const int n_stored = e->dropped ? 0 : {n_columns};",
            "    if (e->core.status.error || !make_room(&e->core, e->columns, n_stored))",
            "        return -1;",
            *("    " + line for line in prologue),
            "    e->core.tokens[p] = (token_t)token;",
            body,
            "    if (e->core.status.error)",
            "        return -1;",
            "    e->core.length = p + 1;",
            "    return best;",
            "}",
            "",
            appending(special, config.vocab_size),
            runtime("api.h"),
        ]
    )


def _block(opening: str, lines: Sequence[str], closing: str) -> str:
    return "\n".join([opening, *("    " + line for line in lines), closing, ""])

"""C that computes again what an earlier token did not store, when something reads it."""

from __future__ import annotations

from executor.native.nodes import Extreme
from executor.native.shared import Shared
from executor.native.tails import Tail

CELL_TYPES = {"d": "double", "i": "int64_t"}


def late_values(shared: Shared) -> list[str]:
    """Functions that compute a value that is not stored, by its record."""
    lines = []
    for name, values in shared.late.items():
        for k, value in values.items():
            tail = _later(shared)
            field, text = tail.kept(name, k, value)
            lines += [
                f"static {CELL_TYPES[field]} late_{name}_{k}(engine *e, const cell *record)\n{{",
                f"    const int64_t p = AT_{name}(record);",
                f"    if (p < e->{name}.late_from)",
                f"        return record[{k}].{field};",
                "    const int32_t token = e->core.tokens[p];",
                *("    " + line for line in tail.lines),
                f"    return {text};",
                "}\n",
            ]
    return lines


def refreshing(shared: Shared) -> list[str]:
    """Functions that compute values of a token's record again: the late ones, or the others."""
    lines = []
    functions = [("recall", name, values) for name, values in shared.late.items()]
    for name in shared.refreshed:
        late = shared.late.get(name, {})
        others = {k: v for k, v in enumerate(shared.values_of(name), 1) if k not in late}
        functions.append(("refresh", name, others))
    for part, name, values in functions:
        tail = _later(shared)
        for k, value in values.items():
            field, text = tail.kept(name, k, value)
            tail.say(f"record[{k}].{field} = {text};")
        lines += [
            f"static void {part}_{name}(void *owner, int64_t p, cell *record)\n{{",
            "    engine *const e = owner;",
            "    const int32_t token = e->core.tokens[p];",
            f"    record[0].i = PLACE_{name}(p, token);",
            *("    " + line for line in tail.lines),
            "}\n",
        ]
    return lines


def exceeding(shared: Shared) -> list[str]:
    """Functions that make a token the record of an extreme."""
    lines = []
    for name in sorted(shared.exceeded):
        effect = shared.program.effects[name]
        assert isinstance(effect, Extreme)
        tail = _later(shared)
        for k, value in enumerate(effect.values):
            tail.say(f"e->{name}.v{k} = {tail.text(tail.linear(value))};")
        lines += [
            "__attribute__((noinline))",
            f"static void exceed_{name}(engine *e, int64_t p, double score)\n{{",
            "    const int32_t token = e->core.tokens[p];",
            f"    e->{name}.x.key = score, e->{name}.x.weight = p;",
            *("    " + line for line in tail.lines),
            "}\n",
        ]
    return lines


def _later(shared: Shared) -> Tail:
    """A path that computes something again, for a token that is past."""
    tail = Tail(shared, 0)
    tail.done = set(shared.program.effects)
    tail.committed = set(shared.program.effects)
    return tail

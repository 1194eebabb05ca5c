"""Running sums as local variables of the loop: integers in units, put back where others read them.

In: :class:`~executor.native.shared.Shared`. Out: C for ``runtime/threads.h``. The engine's state
holds a float64 of every sum, for the plain code. A sum that is exact is read when the loop begins
to run paths, and written before the plain code runs and before the loop ends.
"""

from __future__ import annotations

from executor.native.ranges import two
from executor.native.shared import SUM_BOUND, Shared
from executor.native.writer import plus


def variable(shared: Shared, name: str) -> str:
    """C of a running sum in paths, without the current token."""
    return f"e->{name}" if shared.sum_unit(name) is None else f"held_{name}"


def bounded(shared: Shared, name: str) -> str:
    """C of whether a sum is small enough for a path to add to it."""
    unit = shared.sum_unit(name)
    if unit is None:
        return f"fabs(e->{name}) <= {SUM_BOUND!r}"
    most = int(SUM_BOUND * two(-unit))
    return f"(uint64_t)(held_{name} + {most}) <= {2 * most}"


class Sums:
    """The C around the paths.

    Attributes:
        declared, hold, leave, restored: statements; see ``runtime/threads.h``.
    """

    def __init__(self, shared: Shared, restored: bool) -> None:
        """``restored``: whether paths may have to put back what they added."""
        units = {name: shared.sum_unit(name) for name in shared.sums}
        held = {name: unit for name, unit in units.items() if unit is not None}
        self.declared = [f"int64_t held_{name} = 0;" for name in held]
        self.hold, self.leave, self.restored = list[str](), list[str](), list[str]()
        if held:
            self.declared.append("int holding = 0; /* whether sums are in these */")
            small = " && ".join(f"fabs(e->{name}) <= {SUM_BOUND!r}" for name in held)
            self.hold += ["if (!holding) {", f"    if (!({small}))", "        goto plain;"]
            self.leave.append("if (holding) {")
        for name, known in held.items():
            whole, number = plus("", two(-known), f"e->{name}"), f"(double)held_{name}"
            self.hold.append(f"    held_{name} = (int64_t)({whole});")
            self.leave.append(f"    e->{name} = {plus('', two(known), number)};")
        if held:
            self.hold += ["    holding = 1;", "}"]
            self.leave += ["    holding = 0;", "}"]
        if restored:
            for name, unit in units.items():
                self.declared.append(f"{'double' if unit is None else 'int64_t'} old_{name} = 0;")
                self.restored.append(f"{variable(shared, name)} = old_{name};")

    def into(self, body: str) -> str:
        """The loop with these statements."""
        for mark, lines in (
            ("SUMS", self.declared),
            ("HOLD", self.hold),
            ("LEAVE", self.leave),
            ("RESTORE", self.restored),
        ):
            body = body.replace(f"    /* {mark} */\n", "".join(f"    {line}\n" for line in lines))
        return body

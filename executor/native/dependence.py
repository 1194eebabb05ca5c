"""What of a step depends on what: the part of a path that has to be evaluated anew.

In: a :class:`~executor.native.nodes.Program`. Out: the values, by ``id``, and variables that follow
from some of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from executor.native.forms import Linear
from executor.native.nodes import AsDouble, Cell, Load, Node, Program, Weight, inner


class Dependence:
    """Readers of all values and variables."""

    def __init__(self, program: Program) -> None:
        self._readers: dict[str, list[str]] = {}
        self._users: dict[int, list[str]] = {}
        self._values: dict[str, list[int]] = {}
        for name, node in program.nodes.items():
            for value in inner(node):
                self._users.setdefault(id(value), []).append(name)
                for read in _names(value):
                    self._readers.setdefault(read, []).append(name)
            for read in _parts(node):
                self._readers.setdefault(read, []).append(name)
        for value in program.values():
            for read in _names(value):
                self._values.setdefault(read, []).append(id(value))

    def following(
        self, values: Collection[int], names: Collection[str]
    ) -> tuple[set[int], set[str]]:
        """All values and variables that some depend on, and these themselves."""
        left = [*names, *(name for value in values for name in self._users.get(value, ()))]
        found = set(left)
        while left:
            for reader in self._readers.get(left.pop(), ()):
                if reader not in found:
                    found.add(reader)
                    left.append(reader)
        return set(values) | {
            value for name in found for value in self._values.get(name, ())
        }, found


def _names(value: Linear) -> Iterator[str]:
    for _, name in value.variables:
        yield name
    for base, _ in value.form.columns:
        yield base


def _parts(node: Node) -> Iterator[str]:
    """What a node reads but for values."""
    match node:
        case Load(_, base) | AsDouble(base):
            yield base
        case Cell() | Weight():
            yield node.owner

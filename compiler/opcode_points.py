"""Which point of the circle each opcode gets, and the classifiers of the commit classes.

Opcodes that end in the same commit stand next to each other; free points are left between the
classes, so that later instructions find room in their class.
"""

from __future__ import annotations

from compiler import circle, isa

CLASS_ROOM = {
    (-1, True): 26,
    (0, True): 13,
    (1, True): 4,
    (-2, False): 4,
    (-1, False): 3,
}
"""Commit classes with several opcodes, (delta, sts): points reserved for each."""


def commit_class(op: isa.Opcode) -> tuple[int, bool]:
    """(delta, sts) of the commit that closes the instruction."""
    return op.delta, op.stores


def _arrange() -> dict[str, circle.Point]:
    free = iter(circle.points())
    table: dict[str, circle.Point] = {}
    values = [op for op in isa.OPCODES.values() if op.shape is isa.Shape.VALUE]
    for kind, room in CLASS_ROOM.items():
        reserved = [next(free) for _ in range(room)]
        members = [op.name for op in values if commit_class(op) == kind]
        table.update(zip(members, reserved, strict=False))
    rest = [name for name in isa.OPCODES if name not in table]
    table.update(zip(rest, free, strict=False))
    if len(table) < len(isa.OPCODES):
        raise ValueError("more opcodes than points on the circle")
    return table


POINTS: dict[str, circle.Point] = _arrange()


def test_for(names: tuple[str, ...]) -> circle.Classifier:
    """1 on one opcode, or on two that are neighbours; at most 0 on all others.

    Raises ValueError for more of them, or where another opcode stands between them.
    """
    if len(names) == 1:
        return circle.is_point(POINTS[names[0]])
    first, second = (POINTS[name] for name in names)
    test = circle.is_one_of(first, second)
    if any(test(point) > 0 for name, point in POINTS.items() if name not in names):
        raise ValueError(f"{' and '.join(names)} are not neighbours")
    return test


def class_classifier(kind: tuple[int, bool]) -> circle.Classifier:
    """At least 1 on the value opcodes that end in commit ``kind``, at most -1 elsewhere."""
    members = {
        name
        for name, op in isa.OPCODES.items()
        if op.shape is isa.Shape.VALUE and commit_class(op) == kind
    }
    others = [point for name, point in POINTS.items() if name not in members]
    return circle.is_arc([POINTS[name] for name in members], others)

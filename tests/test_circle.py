"""Opcode recognition: whatever token is fetched as an opcode, at most one test is positive."""

from __future__ import annotations

import pytest

from compiler import circle, isa, opcode_points
from compiler.machine import build_graph


def test_every_token_passes_its_own_test_only() -> None:
    embedding = build_graph().embedding
    for spelling, values in embedding.items():
        shown = (int(values.get("byte", 0)), int(values.get("nibble", 0)))
        tests = {name: circle.is_point(point) for name, point in opcode_points.POINTS.items()}
        passed = [name for name, test in tests.items() if test(shown) > 0]
        assert passed == ([spelling] if spelling in isa.OPCODES else []), spelling


def test_a_passed_test_is_exactly_one() -> None:
    for point in circle.points():
        assert circle.is_point(point)(point) == 1


@pytest.mark.parametrize("kind", opcode_points.CLASS_ROOM)
def test_commit_classes_are_told_apart(kind: tuple[int, bool]) -> None:
    test = opcode_points.class_classifier(kind)
    for name, point in opcode_points.POINTS.items():
        op = isa.OPCODES[name]
        inside = op.shape is isa.Shape.VALUE and opcode_points.commit_class(op) == kind
        assert test(point) >= 1 if inside else test(point) <= -1
    assert test((0, 0)) <= -1


def test_points_that_are_no_arc_are_refused() -> None:
    points = circle.points()
    with pytest.raises(ValueError, match="arc"):
        circle.is_arc(points[::2], points[1::2])

"""Machines with some opcodes left out, and the table of their sizes."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from base_programs import agree, all_pairs, assembled, const, memory_accesses
from compiler import isa, opcode_points
from compiler.build import make_machine
from compiler.errors import TransputerError
from compiler.graph import Graph
from compiler.machine import build_graph
from compiler.machine_tokens import ROM_START
from compiler.prune import prune
from compiler.schedule import Shape, check_plan
from executor.loading import checkpoint_of

sets = pytest.importorskip("compiler.instruction_sets", reason="needs the scheduler extra")
solve = pytest.importorskip("compiler.solve", reason="needs the scheduler extra")

ROOMY = Shape(d_model=64, n_heads=32, n_layers=7, d_ffn=80)
SAMPLES = (
    ("i32.add", "i32.sub", "i32.lt_s"),
    ("i32.and", "i32.xor"),
    ("i32.mul",),
    ("i32.shl", "i32.shr_s", "i32.rotr"),
    ("i32.rem_u",),
    ("i32.div_s",),
)
"""For every row of the table opcodes that are new in it."""


CIRCLE = {"first": (3, 4), "second": (5, 0)}


def circle_graph() -> Graph:
    """Two opcodes at points (3, 4) and (5, 0) of a circle, each with a neuron of its own."""
    graph = Graph()
    x, y, left = graph.input("x"), graph.input("y"), graph.input("left")
    graph.token("first", x=3, y=4)
    graph.token("second", x=5, left=1)
    graph.token("other")
    a, b, never, out = (graph.linear(name) for name in ("a", "b", "never", "out"))
    graph.gate("a: first", 3 * x + 4 * y - 24, 1, a)
    graph.gate("b: second", 5 * x - 24, 1, b)
    graph.gate("b twice", b, 2, out)
    graph.gate("a once", a, 1, out)
    graph.gate("of left", left, 1, never)
    graph.fetch_position("left", 8 * b, [(graph.position, out)])
    for token in graph.embedding:
        graph.score(token, out if token == "first" else 0)
    return graph


def test_what_only_an_absent_opcode_needs_is_left_out() -> None:
    small = prune(circle_graph(), CIRCLE, ["first"], first="first")
    assert set(small.nodes) == {"a: first", "a once"}
    assert set(small.embedding) == set(small.scores) == {"first", "other"}
    assert "left" not in small.inputs and "b" not in small.quantities
    whole = circle_graph()
    kept = prune(whole, CIRCLE, CIRCLE, first="first")
    assert set(kept.nodes) == set(whole.nodes) - {"of left"}  # which no score can tell


def test_a_lookup_stays_where_the_first_token_is_not_known() -> None:
    small = prune(circle_graph(), CIRCLE, ["first"])
    assert "left" in small.nodes


def test_unknown_nodes_are_refused() -> None:
    with pytest.raises(KeyError, match="nowhere"):
        prune(circle_graph(), CIRCLE, CIRCLE, nodes=["nowhere"])


def test_nothing_is_left_out_of_the_whole_machine() -> None:
    graph = build_graph()
    kept = prune(graph, opcode_points.POINTS, isa.OPCODES, first=ROM_START)
    assert {n: str(node) for n, node in kept.nodes.items()} == {
        n: str(node) for n, node in graph.nodes.items()
    }
    assert str(kept.scores) == str(graph.scores)
    assert kept.quantities.keys() == graph.quantities.keys()


def test_rows_grow_to_the_whole_instruction_set() -> None:
    rows = sets.instruction_sets()
    for less, more in zip(rows, rows[1:], strict=False):
        assert less.opcodes < more.opcodes
        assert set(less.graph.nodes) <= set(more.graph.nodes)
        assert set(less.graph.embedding) < set(more.graph.embedding)
    assert rows[-1].opcodes == set(isa.OPCODES) == set(opcode_points.POINTS)


def test_no_neuron_of_an_absent_opcode_is_left() -> None:
    for row in sets.instruction_sets():
        for name in row.graph.nodes:
            named = set(re.findall(r"[\w.]+", name)) & set(isa.OPCODES)
            assert not named or named & row.opcodes, name


@pytest.mark.parametrize("number", range(len(SAMPLES)))
def test_reduced_machines_run_their_opcodes(number: int) -> None:
    row = sets.instruction_sets()[number]
    assert set(SAMPLES[number]) <= row.opcodes
    plan = solve.solve(row.graph, ROOMY, seconds=60)
    assert check_plan(row.graph, plan) == []
    model = checkpoint_of(make_machine(row.graph, plan))
    for op in SAMPLES[number]:
        agree(model, all_pairs(op, 4), limit=300)
    agree(model, memory_accesses(number), limit=200)
    found = agree(model, assembled(const(7), ("local.tee", 0), ("br_if", 5), const(-1)))
    assert found[-1] == isa.HALT
    with pytest.raises(TransputerError, match="no token"):
        model.encode(["i32.div_s" if number < 5 else "i32.nothing"])


def test_smallest_shape_is_even_and_fits() -> None:
    size = sets.smallest(circle_graph(), 10, replace(ROOMY, d_ffn=20))
    assert size.shape.d_model == 2 * size.shape.n_heads >= size.slots
    assert check_plan(circle_graph(), replace(size.plan, shape=size.shape)) == []
    assert size.proved == "proved"
    with pytest.raises(TransputerError):
        solve.solve(circle_graph(), replace(size.shape, d_ffn=size.shape.d_ffn - 1), 10)


def test_table_replaces_the_one_before() -> None:
    page = f"head\n{sets.BEGIN}\nold\n{sets.END}\ntail\n"
    assert sets.rewritten(page, ["new"]) == f"head\n{sets.BEGIN}\n\nnew\n\n{sets.END}\ntail\n"
    assert sets.rewritten(sets.rewritten(page, ["new"]), ["new"]) == sets.rewritten(page, ["new"])
    with pytest.raises(TransputerError, match="no lines"):
        sets.rewritten("nothing", ["new"])


def test_page_has_the_table_of_these_rows() -> None:
    page = sets.PAGE.read_text(encoding="utf-8")
    _, _, rest = page.partition(sets.BEGIN)
    table = rest.partition(sets.END)[0]
    for row in sets.instruction_sets():
        assert f"| {row.name} | {len(row.opcodes)} |" in table


def test_solver_names_its_machines(tmp_path: object, capsys: pytest.CaptureFixture[str]) -> None:
    solve.main(["base", "--folder", str(tmp_path), "--seconds", "60"])
    said = capsys.readouterr().out
    assert said.strip().endswith("base.json: 16 slots, proved") and said.count("\n") == 1
    with pytest.raises(SystemExit):
        solve.main(["nothing"])

"""Plans: the stored one is valid and minimal, and every rule is enforced."""

from __future__ import annotations

from dataclasses import replace

import pytest

from compiler.graph import Graph, Lookup
from compiler.machine import build_graph
from compiler.schedule import Plan, Shape, check_plan, lives, load_plan, usage


@pytest.fixture(scope="module")
def graph() -> Graph:
    return build_graph()


@pytest.fixture(scope="module")
def plan() -> Plan:
    return load_plan()


def moved(plan: Plan, **times: int) -> Plan:
    return replace(plan, times={**plan.times, **times})


def test_stored_plan_obeys_every_rule(graph: Graph, plan: Plan) -> None:
    assert check_plan(graph, plan) == []


def test_stored_plan_fits_the_fixed_shape(graph: Graph, plan: Plan) -> None:
    assert plan.shape == Shape(d_model=36, n_heads=18, n_layers=7, d_ffn=36)
    used = usage(graph, plan)
    assert max(used[time] for time in range(0, 14, 2)) <= 18
    assert max(used[time] for time in range(1, 14, 2)) <= 36


def test_every_node_moved_out_of_order_is_noticed(graph: Graph, plan: Plan) -> None:
    """Each node that waits for another one, put beside it or before it, breaks a rule."""
    checked = 0
    dependencies = graph.dependencies()
    for node in graph.nodes.values():
        waits = [plan.times[name] for name in dependencies[node.name]]
        if waits:
            parity = 0 if isinstance(node, Lookup) else 1
            time = max(waits) - (max(waits) % 2 != parity)
            if time >= 0:
                assert check_plan(graph, moved(plan, **{node.name: time})), node.name
                checked += 1
    assert checked > 100


def test_every_quantity_moved_into_a_living_one_is_noticed(graph: Graph, plan: Plan) -> None:
    life = lives(graph, plan.times, plan.shape.end)
    names = list(graph.quantities)
    checked = 0
    for name in names:
        for other in names:
            together = life[name].birth <= life[other].birth < life[name].last_read
            if name != other and together:
                slots = {**plan.slots, other: plan.slots[name]}
                assert check_plan(graph, replace(plan, slots=slots)), (name, other)
                checked += 1
    assert checked > 500


def test_dropping_any_erasure_is_noticed(graph: Graph, plan: Plan) -> None:
    for name in plan.erased:
        erased = {n: t for n, t in plan.erased.items() if n != name}
        assert check_plan(graph, replace(plan, erased=erased)), name


def test_erasing_what_is_still_read_is_noticed(graph: Graph, plan: Plan) -> None:
    life = lives(graph, plan.times, plan.shape.end)
    for name, time in plan.erased.items():
        early = max(life[name].last_read, life[name].complete + 1) - 1
        if 0 <= early < time:
            assert check_plan(graph, replace(plan, erased={**plan.erased, name: early})), name


def test_capacity_is_enforced(graph: Graph, plan: Plan) -> None:
    for shape in (replace(plan.shape, d_ffn=10), replace(plan.shape, n_heads=4)):
        assert any(
            "heads or neurons" in fault for fault in check_plan(graph, replace(plan, shape=shape))
        )
    narrow = replace(plan, shape=replace(plan.shape, d_model=30))
    assert any("slot" in fault for fault in check_plan(graph, narrow))


def test_a_fraction_never_shares_the_half_layer_of_an_erasure(graph: Graph, plan: Plan) -> None:
    """A slot that held anything is empty one half-layer before a non-integer is born in it."""
    life = lives(graph, plan.times, plan.shape.end)
    for old, time in plan.erased.items():
        for new, slot in plan.slots.items():
            integral = graph.quantities[new].integral and graph.quantities[old].integral
            follows = slot == plan.slots[old] and new != old and life[new].birth >= time
            if follows and not integral:
                assert life[new].birth > time


def test_plan_survives_json(plan: Plan) -> None:
    assert Plan.from_json(plan.to_json()) == plan


def test_plan_for_another_graph_is_refused(plan: Plan) -> None:
    assert check_plan(Graph(), plan) == ["the plan is for another graph"]


def test_solver_finds_the_stored_width_again_and_proves_it(graph: Graph, plan: Plan) -> None:
    solve = pytest.importorskip("compiler.solve", reason="the scheduler extra is not installed")
    again = solve.solve(graph, plan.shape, seconds=60)
    assert max(again.slots.values()) == max(plan.slots.values())
    with pytest.raises(Exception, match="INFEASIBLE"):
        solve.solve(graph, replace(plan.shape, d_model=max(plan.slots.values())), seconds=60)

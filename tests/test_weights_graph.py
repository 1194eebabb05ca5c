"""Graphs read off weights compute what the weights do, and build the same weights again."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from compiler.build import build_machine
from compiler.evaluate import Evaluator
from compiler.exactness import Analysis
from compiler.facts import Facts
from compiler.ranges import DOUBLE_BITS
from compiler.schedule import check_plan
from compiler.weights import WeightBuilder
from compiler.weights_graph import graph_of_weights
from example_models import graph_of, lookup_model, lookups, random_model
from executor.decode import make_engine
from executor.loading import checkpoint_of


def test_the_machine_comes_back_and_builds_the_same_weights() -> None:
    machine = build_machine()
    graph, plan = graph_of(checkpoint_of(machine))
    assert not check_plan(graph, plan)
    assert len(graph.nodes) == len(machine.graph.nodes)
    assert len(graph.quantities) == len(machine.graph.quantities)
    for name, array in WeightBuilder(graph, plan).arrays.items():
        assert np.array_equal(array, machine.arrays[name]), name


def test_one_changed_weight_is_noticed() -> None:
    machine = build_machine()
    graph, plan = graph_of(checkpoint_of(machine))
    node = next(iter(graph.nodes.values()))
    target = plan.slots[node.terms[0].target]
    changed = {name: array.copy() for name, array in machine.arrays.items()}
    changed["attn.0.out_proj.weight"][target] *= 3
    graph, plan = graph_of(replace(checkpoint_of(machine), weights=changed))
    assert not np.array_equal(
        WeightBuilder(graph, plan).arrays["attn.0.out_proj.weight"],
        machine.arrays["attn.0.out_proj.weight"],
    )


@pytest.mark.parametrize("seed", range(6))
def test_a_random_model_s_graph_gives_the_model_s_tokens(seed: int) -> None:
    """But for its rounded means, which are not exact: nobody reads them here."""
    checkpoint = random_model(seed)
    checkpoint.weights["head.weight"][:, 10:] = 0
    graph, plan = graph_of(checkpoint)
    evaluator, engine = Evaluator(graph, plan.times), make_engine("standard", checkpoint)
    tokens = np.random.default_rng(seed).integers(0, 30, 40).tolist()
    for token in tokens:
        evaluator.feed(checkpoint.vocabulary[token])
        predicted = engine.step(token)
        assert checkpoint.vocabulary[predicted] == evaluator.best()


def test_a_table_of_lookups_is_certified_from_its_weights_alone() -> None:
    graph, plan = graph_of(lookup_model())
    analysis = Analysis(graph, plan, Facts(tokens=2**20))
    assert analysis.worst()[0].bits <= DOUBLE_BITS
    too_long = Analysis(graph, plan, Facts(tokens=2**28))
    assert too_long.worst()[0].bits > DOUBLE_BITS


def test_ranges_read_off_weights_hold_every_value() -> None:
    checkpoint = lookup_model()
    graph, plan = graph_of(checkpoint)
    ranges = Analysis(graph, plan, Facts(tokens=300)).ranges()["any token"]
    evaluator = Evaluator(graph, plan.times)
    for token in lookups(0, 200)[0]:
        evaluator.feed(checkpoint.vocabulary[token])
        for name, value in evaluator.values.items():
            assert ranges[name].low <= value <= ranges[name].high, name


def test_heads_that_are_not_two_dimensional_are_refused() -> None:
    with pytest.raises(ValueError, match="width 2"):
        graph_of_weights({"tok.weight": np.zeros((3, 8))}, "abc", 2, 1, (0, 1), [["latest"] * 2])

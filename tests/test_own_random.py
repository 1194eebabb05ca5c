"""Random small graphs as machines of one's own: placed, solved, and with softmax weights."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from compiler.build import make_machine
from compiler.errors import UsageError
from compiler.evaluate import Evaluator
from compiler.own_machine import build_own_machine
from compiler.placement import Sizes, place_graph
from compiler.prune import useful
from compiler.schedule import check_plan
from executor.decode import make_engine
from executor.loading import checkpoint_of
from small_graphs import Small, small_graphs


@given(small_graphs(exponent=3, means=False))
@settings(max_examples=12, deadline=None)
def test_simple_placement_is_valid_and_computes_the_graph(small: Small) -> None:
    plan = place_graph(small.graph, Sizes(), seconds=0).plan
    assert check_plan(small.graph, plan) == []
    checkpoint = checkpoint_of(make_machine(small.graph, plan))
    engine, oracle = make_engine("standard", checkpoint), Evaluator(small.graph, plan.times)
    for token in small.tokens:
        oracle.feed(token)
        found = engine.step(checkpoint.ids[token])
        best = max(oracle.graph.logits().values(), key=lambda e: _value(e.terms, oracle))
        chosen = oracle.graph.logits()[checkpoint.vocabulary[found]]
        assert _value(chosen.terms, oracle) == pytest.approx(float(_value(best.terms, oracle)))


def _value(terms: dict[str, float], oracle: Evaluator) -> float:
    return float(sum(c * oracle.values[name] for name, c in terms.items()))


@given(small_graphs(exponent=3, means=True))
@settings(max_examples=8, deadline=None, database=None)
def test_the_solver_places_any_graph(small: Small) -> None:
    """Whatever of it is read or not, and whatever begins where inputs end."""
    pytest.importorskip("ortools")
    for graph in (small.graph, useful(small.graph)):
        assert check_plan(graph, place_graph(graph, Sizes(), seconds=2).plan) == []


@pytest.mark.parametrize(
    "examples", [pytest.param(400, marks=pytest.mark.long, id="many"), pytest.param(8, id="few")]
)
def test_softmax_writes_what_hard_attention_does_wherever_it_is_proved(examples: int) -> None:
    """On small random graphs; about half of them are proved, the others refused."""
    import torch

    from executor.torch_engine import make_model

    proved = 0

    @given(small_graphs(exponent=3, means=False))
    @settings(max_examples=examples, deadline=None, database=None)
    def agree(small: Small) -> None:
        nonlocal proved
        try:
            machine = build_own_machine(small.graph, seconds=0, softmax_tokens=2**8).machine
        except UsageError:
            return
        proved += 1
        checkpoint = checkpoint_of(machine)
        tokens = [*small.tokens, *small.graph.embedding, *reversed(small.tokens)]
        rows = make_model(checkpoint)(torch.tensor([checkpoint.encode(tokens)]))[0]
        oracle, logits = Evaluator(machine.graph, machine.plan.times), machine.graph.logits()
        for token, found in zip(tokens, rows.argmax(dim=-1).tolist(), strict=True):
            oracle.feed(token)
            chosen, best = (logits[t] for t in (checkpoint.vocabulary[found], oracle.best()))
            assert _value(chosen.terms, oracle) == _value(best.terms, oracle)

    agree()
    assert proved > examples // 6

"""The certificate is what the analysis says, and where it ends things really begin to fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from compiler.build import build_machine
from compiler.certificate import MEMORY, Certificate, load_certificate
from compiler.certify import certify, first_lost_position, inexact
from compiler.exactness import Analysis
from compiler.facts import Facts
from compiler.invariants import analyse, machine_facts
from compiler.ranges import DOUBLE_BITS
from example_models import graph_of, lookup_model


def test_the_certificate_promises_what_the_project_promises() -> None:
    certificate = load_certificate()
    assert certificate.tokens.value >= 64_000_000 and MEMORY == 64 * 1024
    assert certificate.memory.value >= MEMORY
    assert certificate.bits <= DOUBLE_BITS


def test_positions_inside_are_found_and_the_true_limit_is_near() -> None:
    """Claimed <= true <= 16 times claimed: the walk's first claim to fail is the real one."""
    claimed = load_certificate().tokens.value
    assert first_lost_position(claimed - (1 << 18), claimed) is None
    true = first_lost_position(claimed, claimed + (1 << 22))
    assert true is not None and claimed <= true <= 16 * claimed


def test_addresses_inside_are_found_and_the_true_limit_is_near() -> None:
    """Memory is found by the squares of addresses, as positions are."""
    claimed = load_certificate().memory.value
    assert first_lost_position(claimed - (1 << 18), claimed) is None
    assert first_lost_position(int(1.4 * claimed), 2 * claimed) is not None


def test_everything_inside_needs_at_most_53_bits_and_something_outside_more() -> None:
    machine, certificate = build_machine(), load_certificate()
    assert not inexact(analyse(machine, certificate.tokens.value, MEMORY))
    outside = inexact(analyse(machine, certificate.tokens.value + 1, MEMORY))
    assert certificate.tokens.beyond in {need.what for need in outside}


@pytest.mark.long
def test_the_largest_memory_is_certified_at_full_length() -> None:
    certificate = load_certificate()
    longest, memory = certificate.tokens.value, certificate.memory.value
    assert not inexact(analyse(build_machine(), longest, memory))


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "weaker"),
    [
        ("cursor", {"cursor": (-(2**50), 2**50)}),
        ("depth", {"depth": (0, 2**30)}),
        ("write_address", {"write_address": (-(2**30), 2**30)}),
        ("rest", {"rest": (0, 2**60)}),
    ],
)
def test_an_invariant_less_is_noticed(name: str, weaker: Mapping[str, tuple[int, int]]) -> None:
    machine = build_machine()
    facts = machine_facts(machine, 2**26, MEMORY)
    low, high = weaker[name]
    known = dict(facts.invariants)
    known[name] = replace(known[name], low=low, high=high)
    cases = tuple(
        replace(case, known={n: k for n, k in case.known.items() if n != name})
        for case in facts.cases
    )
    weak = replace(facts, invariants=known, cases=cases)
    assert inexact(Analysis(machine.graph, machine.plan, weak))


def test_a_table_s_certificate_follows_from_its_weights() -> None:
    """Certified length of a model that is not ours: that of exact squares of positions."""
    graph, plan = graph_of(lookup_model())
    certificate = certify(lambda tokens, memory: Analysis(graph, plan, Facts(tokens)))
    assert 2**26 < certificate.tokens.value < 2**27
    assert Certificate.from_json(certificate.to_json()) == certificate

"""Random programs: the oracle on the compiled code agrees with wasmtime on the module."""

from __future__ import annotations

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from wat_programs import agreed
from wat_random import Generator


@given(st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_expressions(generator: random.Random) -> None:
    expression = Generator(generator).expression(5).replace("$f", "$unused")
    if "call" in expression:
        return
    text = f"""(module (memory (export "memory") 1)
      (global $g0 (mut i32) (i32.const 7)) (global $g1 (mut i32) (i32.const -7))
      (func (export "f") (param i32 i32) (result i32) (local i32 i32 i32 i32 i32) {expression}))"""
    agreed(text, ("f", generator.choice([0, 1, -1, 1 << 31]), generator.getrandbits(32)))


@given(st.randoms(use_true_random=False))
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck))
def test_random_programs(generator: random.Random) -> None:
    agreed(Generator(generator, size=3).module())


@pytest.mark.parametrize("seed", range(40))
def test_seeded_random_programs(seed: int) -> None:
    agreed(Generator(random.Random(seed)).module())


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1400))
def test_many_seeded_random_programs(seed: int) -> None:
    agreed(Generator(random.Random(seed), size=8).module())

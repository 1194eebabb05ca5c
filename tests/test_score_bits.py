"""Scores that are called exact find the right key in doubles, and some that are not do not."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from compiler.ranges import DOUBLE_BITS, Range
from compiler.score_bits import parabola_needs, position_needs, product_needs

queries = st.builds(
    lambda n, e: Fraction(n) * Fraction(2) ** e, st.integers(-(2**53), 2**53), st.integers(-50, 0)
)


def winner(x: Fraction, d: Fraction, keys: list[Fraction]) -> int:
    """Index of the key (2k, -k²) with the greatest exact score, the last of equals."""
    scores = [2 * k * x - d * k * k for k in keys]
    return max(range(len(keys)), key=lambda i: (scores[i], i))


def computed(x: Fraction, d: Fraction, keys: list[Fraction]) -> int:
    """The same in doubles."""
    kx = np.array([float(2 * k) for k in keys])
    ky = np.array([float(-k * k) for k in keys])
    scores = float(x) * kx + float(d) * ky
    return len(keys) - 1 - int(np.argmax(scores[::-1]))


def enough(needs: object) -> bool:
    return all(count <= DOUBLE_BITS for _, count in needs)  # type: ignore[attr-defined]


@given(queries, st.integers(1, 4000))
def test_positions_are_found_where_53_bits_are_enough(x: Fraction, tokens: int) -> None:
    one = Range.of(1)
    assume(enough(position_needs(Range.of(x), one, tokens, None)))
    keys = [Fraction(p) for p in range(tokens)]
    assert computed(x, Fraction(1), keys) == winner(x, Fraction(1), keys)


@given(st.integers(0, 3000), st.integers(1, 50), st.booleans(), st.integers(1, 4000))
def test_positions_are_found_close_to_half_way(p: int, e: int, below: bool, tokens: int) -> None:
    """The hardest queries: half-way between two positions but for one last bit."""
    x = p + Fraction(1, 2) + (Fraction(-1) if below else Fraction(1)) / 2**e
    assume(enough(position_needs(Range.of(x), Range.of(1), tokens, None)))
    keys = [Fraction(q) for q in range(tokens)]
    assert computed(x, Fraction(1), keys) == winner(x, Fraction(1), keys)


@given(st.integers(0, 2**32), st.integers(1, 2**33), st.integers(500, 1500))
def test_quotients_are_found_for_every_divisor(rest: int, divisor: int, tokens: int) -> None:
    assume(rest < 256 * divisor)
    x = rest - Fraction(divisor, 2) + Fraction(1, 2)
    d = Fraction(divisor)
    assert enough(position_needs(Range.of(x), Range.of(d), tokens, Fraction(255)))
    keys = [Fraction(p) for p in range(tokens)]
    assert computed(x, d, keys) == winner(x, d, keys) == rest // divisor


@given(
    st.lists(st.integers(-(2**27), 2**27), min_size=1, max_size=30), st.integers(-(2**34), 2**34)
)
def test_keys_in_any_places_are_found_where_53_bits_are_enough(keys: list[int], x: int) -> None:
    exact = [Fraction(0), *map(Fraction, keys)]
    assume(enough(parabola_needs(Range.of(x), Range.of(*exact), Fraction(0))))
    assert computed(Fraction(x), Fraction(1), exact) == winner(Fraction(x), Fraction(1), exact)


@given(
    st.tuples(st.integers(-(2**30), 2**30), st.integers(-(2**30), 2**30)),
    st.lists(
        st.tuples(st.integers(-(2**26), 2**26), st.integers(-(2**26), 2**26)),
        min_size=1,
        max_size=20,
    ),
)
def test_any_keys_are_found_where_53_bits_are_enough(
    query: tuple[int, int], keys: list[tuple[int, int]]
) -> None:
    products = (
        Range.of(*(query[0] * k for k, _ in keys)),
        Range.of(*(query[1] * k for _, k in keys)),
    )
    assume(enough(product_needs(products, None)))
    scores = np.array([float(query[0]) * k + float(query[1]) * m for k, m in keys])
    exact = [query[0] * k + query[1] * m for k, m in keys]
    best = max(range(len(keys)), key=lambda i: (exact[i], i))
    assert len(keys) - 1 - int(np.argmax(scores[::-1])) == best


def test_a_query_with_too_many_bits_is_refused_and_really_fails() -> None:
    x = Fraction(2**20) + Fraction(1, 2) - Fraction(1, 2**32)
    assert not enough(position_needs(Range.of(x), Range.of(1), 2**21, None))
    keys = [Fraction(p) for p in range(2**20 - 5, 2**20 + 5)]
    assert computed(x, Fraction(1), keys) != winner(x, Fraction(1), keys)


@pytest.mark.parametrize("low", [0, -1])
def test_a_divisor_that_may_be_zero_is_refused(low: int) -> None:
    assert not enough(position_needs(Range.of(5), Range.of(low, 2), 100, None))

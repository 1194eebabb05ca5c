"""`HullHead` against brute force over exact scores."""

from __future__ import annotations

import itertools
import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import hull_oracle as oracle
from hullcache import HullHead, Mode

modes = st.sampled_from(["latest", "mean"])
loads = st.sampled_from([2, 3, 512])
directions = [(float(x), float(y)) for x, y in itertools.product((-3, -1, 0, 1, 2), repeat=2)]


def filled(mode: Mode, keys: list[oracle.Point]) -> tuple[HullHead, oracle.BruteHead]:
    """A hull and a brute head with the same keys; value number n is (n, n squared)."""
    head, brute = HullHead(mode), oracle.BruteHead(mode)
    for n, (x, y) in enumerate(keys):
        for one in (head, brute):
            one.insert(x, y, (float(n), float(n * n)))
    return head, brute


def assert_sound(head: HullHead) -> None:
    if head._spread:
        oracle.check_chain(head._upper)
        if head._underside.chain is not None:
            oracle.check_chain(head._underside.chain)


@settings(max_examples=300, deadline=None)
@given(modes, loads, oracle.key_lists("integer", 40), st.data())
def test_integer_keys_answer_as_brute_force(
    mode: Mode, load: int, keys: list[oracle.Point], data: st.DataObject
) -> None:
    queries = data.draw(st.lists(oracle.integer_queries, max_size=6))
    with oracle.blocks_of(load):
        head, brute = filled(mode, keys)
        assert_sound(head)
        for q in queries + oracle.normals(keys) + oracle.normals(oracle.kept(head)):
            assert head.query(*q) == brute.query(*q), q


@settings(max_examples=150, deadline=None)
@given(modes, loads, st.lists(oracle.small_keys, min_size=1, max_size=40))
def test_a_small_grid_answers_every_direction(
    mode: Mode, load: int, keys: list[oracle.Point]
) -> None:
    with oracle.blocks_of(load):
        head, brute = filled(mode, keys)
        for q in directions:
            assert head.query(*q) == brute.query(*q), q


@settings(max_examples=250, deadline=None)
@given(modes, loads, oracle.key_lists("float", 25), st.data())
def test_float_keys_answer_as_exact_scores_do(
    mode: Mode, load: int, keys: list[oracle.Point], data: st.DataObject
) -> None:
    queries = data.draw(st.lists(oracle.float_queries, max_size=6))
    with oracle.blocks_of(load):
        head, brute = filled(mode, keys)
        assert_sound(head)
        for q in queries + oracle.normals(keys) + oracle.normals(oracle.kept(head)):
            assert head.query(*q) == brute.query(*q), q


@settings(max_examples=150, deadline=None)
@given(modes, loads, oracle.key_lists("integer", 30))
def test_queries_between_inserts_change_nothing(
    mode: Mode, load: int, keys: list[oracle.Point]
) -> None:
    with oracle.blocks_of(load):
        head, brute = HullHead(mode), oracle.BruteHead(mode)
        for n, (x, y) in enumerate(keys):
            for one in (head, brute):
                one.insert(x, y, (float(n), 1.0))
            around = oracle.normals(oracle.kept(head))[-6:]
            for q in (
                *around,
                (y, 1.0),
                (-x, -1.0),
                (1.0, 0.0),
                (0.0, 0.0),
                *oracle.normals(keys[: n + 1])[-2:],
            ):
                assert head.query(*q) == brute.query(*q), q
        assert_sound(head)


@settings(max_examples=100, deadline=None)
@given(
    loads,
    st.lists(st.one_of(oracle.integer_keys, oracle.float_keys), min_size=1, max_size=20),
    st.randoms(),
)
def test_means_do_not_depend_on_the_order_of_insertion(
    load: int, keys: list[oracle.Point], rng: random.Random
) -> None:
    numbered = [(x, y, (float(n),)) for n, (x, y) in enumerate(keys)]
    shuffled = numbered[:]
    rng.shuffle(shuffled)
    with oracle.blocks_of(load):
        heads = [HullHead("mean", width=1), HullHead("mean", width=1)]
        for head, order in zip(heads, (numbered, shuffled), strict=True):
            for key in order:
                head.insert(*key)
    for q in directions + oracle.normals(keys):
        assert heads[0].query(*q) == heads[1].query(*q)


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(oracle.small_keys, st.floats(-1e6, 1e6)), min_size=1, max_size=40))
def test_means_of_any_floats_are_right_to_rounding(keys: list[tuple[oracle.Point, float]]) -> None:
    head, brute = HullHead("mean", width=1), oracle.BruteHead("mean")
    for (x, y), value in keys:
        for one in (head, brute):
            one.insert(x, y, (value,))
    for q in directions:
        assert math.isclose(head.query(*q)[0], brute.query(*q)[0], rel_tol=1e-12, abs_tol=1e-8)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_keys_on_an_edge_tie_with_its_ends(sign: float, order: tuple[int, ...]) -> None:
    """Two ends and two keys between them, in every order; then a key that breaks the edge."""
    points = [(0.0, 0.0), (1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]
    latest, mean = HullHead("latest", width=1), HullHead("mean", width=1)
    for head in (latest, mean):
        for n in order:
            x, y = points[n]
            head.insert(x, sign * y, (10.0**n,))
        head.insert(1.0, -9.0 * sign, (7.0,))
    assert latest.query(-1.0, sign) == (10.0 ** order[-1],)
    assert mean.query(-1.0, sign) == (1111 / 4,)
    for head in (latest, mean):
        head.insert(1.5, 2.0 * sign, (5.0,))
        assert head.query(-1.0, sign) == (5.0,)
    assert mean.query(-4.0, 3.0 * sign) == ((1.0 + 5.0) / 2,)


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("top", [(0.0, 6.0), (3.0, 6.0), (6.0, 6.0), (2.0, 2.5)])
def test_an_edge_is_forgotten_when_a_key_overtops_it(sign: float, top: oracle.Point) -> None:
    """The keys inside the edges 0-3 and 3-6 never tie again once a key is above their edge."""
    head, brute = HullHead("mean", width=1), oracle.BruteHead("mean")
    points = [(-9.0, -99.0), (0.0, 0.0), (3.0, 3.0), (1.0, 1.0), (6.0, 3.0), (4.0, 3.0)]
    points += [(15.0, -99.0), top]
    for n, (x, y) in enumerate(points):
        for one in (head, brute):
            one.insert(x, sign * y, (2.0**n,))
    for x, y in oracle.normals(oracle.kept(head)) + [(-6.0, 3.0), (-3.0, 3.0), (1.0, 2.0)]:
        for q in ((x, y), (-x, -y)):
            assert head.query(*q) == brute.query(*q), q


@pytest.mark.parametrize("seed", range(3))
def test_keys_as_nearly_on_a_line_as_floats_get(seed: int) -> None:
    """Computed slopes of neighbouring edges are often in the wrong order here."""
    rng = random.Random(seed)
    for _ in range(250):
        slope, sign = rng.choice([0.1, 0.3, -0.7]), rng.choice([1, -1])
        xs = [sign * math.ldexp(rng.randrange(1, 64), rng.randrange(-6, 2)) for _ in range(6)]
        keys = [(x, slope * x) for x in (sorted(xs) if rng.random() < 0.5 else xs)]
        head, brute = filled(rng.choice(["latest", "mean"]), keys)
        assert_sound(head)
        for q in oracle.normals(oracle.kept(head)) + oracle.normals(sorted(keys)):
            assert head.query(*q) == brute.query(*q), (keys, q)


def test_all_keys_with_the_extreme_x_tie_under_a_horizontal_query() -> None:
    head = HullHead("mean", width=1)
    for y, value in ((0.0, 1.0), (5.0, 2.0), (2.0, 6.0), (-3.0, 3.0)):
        head.insert(4.0, y, (value,))
        head.insert(-4.0, y, (-value,))
    head.insert(0.0, 100.0, (50.0,))
    assert head.query(2.0, 0.0) == (3.0,)
    assert head.query(-2.0, 0.0) == (-3.0,)


def test_a_zero_query_sees_keys_that_left_the_hull() -> None:
    latest, mean = HullHead("latest", width=1), HullHead("mean", width=1)
    corners = [(-9.0, -9.0), (-9.0, 9.0), (9.0, -9.0), (9.0, 9.0)]
    for head in (latest, mean):
        for n, (x, y) in enumerate([*corners, (0.0, 0.0), (1.0, 0.0)]):
            head.insert(x, y, (float(n),))
    assert latest.query(0.0, -0.0) == (5.0,)
    assert mean.query(0.0, 0.0) == (2.5,)


def test_one_key_alone_gives_the_running_mean() -> None:
    head = HullHead("mean")
    total = 0
    for n in range(1, 2000):
        total += n * n
        head.insert(3.0, -1.0, (float(n * n), -1.0))
        assert head.query(0.5, -7.0) == (total / n, -1.0)
    assert head.n_kept == 1


def test_large_scores_are_compared_exactly() -> None:
    """Keys up to 2**27, 2**52 and queries of 47 bits: in float64 the scores of neighbours tie."""
    top = 2**26
    head = HullHead("latest", width=1)
    for k in range(top - 40, top):
        head.insert(2.0 * k, -float(k * k), (float(k),))
    for k in range(top - 40, top):
        for scale in (1.0, 2.0**60, 2.0**-39, 2.0**20 + 1, 2.0**-39 + 2.0**-60):
            assert head.query(k * scale, scale) == (k,)
    half = (top - 20.5) * (2.0**20 + 1)
    assert head.query(half, 2.0**20 + 1) == (top - 20,)  # a tie, and this the later
    assert head.query(math.nextafter(half, 0.0), 2.0**20 + 1) == (top - 21,)
    assert head.query(math.nextafter(half, math.inf), 2.0**20 + 1) == (top - 20,)


def test_keys_inside_the_hull_cost_no_memory() -> None:
    rng = random.Random(5)
    head = HullHead("latest")
    for _ in range(5000):
        head.insert(rng.gauss(0, 1), rng.gauss(0, 1), (1.0, 2.0))
    assert head.n_kept < 60
    assert head.nbytes < 40_000
    for _ in range(3000):  # on an edge, and equal to a key: nothing new to keep
        head.insert(100.0, float(rng.randrange(5)), (1.0, 2.0))
    assert head.n_kept < 60


def test_parabolic_keys_pay_nothing_for_a_lower_hull() -> None:
    head = HullHead("latest")
    for k in range(3000):
        head.insert(2.0 * k, -1.0 * k * k, (float(k), 0.0))
    assert head.n_kept == 3000
    assert head._underside.chain is None
    assert head.query(1.0, -1.0) == (2999.0, 0.0)
    assert 3000 * 150 < head.nbytes < 3000 * 400


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("load", [2, 512])
def test_a_stress_of_thousands_of_vertices_in_any_order(sign: float, load: int) -> None:
    """Grow a wide hull in random order, rewrite it, hide most of it in steps, and ask all along."""
    rng = random.Random(int(sign) + load)
    n = 400 * load if load == 2 else 2500
    order = list(range(n))
    rng.shuffle(order)
    keys = [(2.0 * k, -sign * k * k) for k in order]
    keys += [(2.0 * k, -sign * k * k) for k in rng.choices(order, k=n // 2)]
    keys += [(2.0 * k + 1.0, sign * (n - k * k)) for k in rng.choices(order, k=n // 20)]
    keys += [(n * 1.0, -sign * n * 1.0), (2.0 * n, 0.0), (-3.0, 0.0), (n * 1.0, sign * n * n)]
    with oracle.blocks_of(load):
        head = HullHead("latest", width=1)
        seen: dict[tuple[int, int], int] = {}
        for step, (x, y) in enumerate(keys):
            head.insert(x, y, (float(step),))
            seen[int(x), int(y)] = step
            if step % (n // 12) == 0 or step >= len(keys) - 4:
                assert_sound(head)
                for _ in range(6):
                    i = rng.randrange(-2, 2 * n) / rng.choice([1, 2])
                    for q in ((i, sign), (i, -sign)):
                        best = max((q[0] * x + q[1] * y, s) for (x, y), s in seen.items())
                        assert head.query(*q) == (best[1],), q


def test_values_of_any_width_share_one_hull() -> None:
    wide = HullHead("mean", width=5)
    narrow = [HullHead("mean", width=1) for _ in range(5)]
    for n in range(30):
        value = tuple(float(n * k) for k in range(5))
        wide.insert(float(n % 4), float(n % 3), value)
        for head, number in zip(narrow, value, strict=True):
            head.insert(float(n % 4), float(n % 3), (number,))
    for q in directions:
        assert wide.query(*q) == tuple(head.query(*q)[0] for head in narrow)


def test_refusals_leave_the_head_as_it_was() -> None:
    head = HullHead("latest")
    with pytest.raises(ValueError, match="empty"):
        head.query(1.0, 1.0)
    head.insert(0.0, 0.0, (1.0, 2.0))
    for bad in (math.nan, math.inf, -math.inf, 2.0**1022):
        for x, y in ((bad, 0.0), (0.0, bad)):
            with pytest.raises(ValueError, match="key"):
                head.insert(x, y, (9.0, 9.0))
            with pytest.raises(ValueError, match="query"):
                head.query(x, y)
    with pytest.raises(ValueError, match="3 numbers"):
        head.insert(0.0, 0.0, (1.0, 2.0, 3.0))
    assert len(head) == 1
    assert head.query(0.0, 0.0) == (1.0, 2.0)


def test_clear_empties_a_head() -> None:
    head = HullHead("latest", width=1)
    for k in range(10):
        head.insert(float(k), float(-k * k), (1.0,))
    head.clear()
    assert len(head) == head.n_kept == 0
    with pytest.raises(ValueError, match="empty"):
        head.query(0.0, 1.0)
    head.insert(1.0, 1.0, (4.0,))
    assert head.query(-1.0, -1.0) == (4.0,)


def test_unknown_modes_and_widths_are_refused() -> None:
    with pytest.raises(ValueError, match="median"):
        HullHead("median")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="width"):
        HullHead("mean", width=0)

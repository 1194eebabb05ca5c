"""What both caches share, and that they agree; the rules of the package."""

from __future__ import annotations

import ast
import doctest
import importlib
import pkgutil
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import hullcache
from hullcache import HullKVCache, KVCache, Mode, StandardKVCache

MODES: list[list[Mode]] = [["latest", "mean", "mean"], ["mean", "latest", "latest"]]
both = pytest.mark.parametrize("kind", [HullKVCache, StandardKVCache])


def history(seed: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Keys, values, queries (n, 3, 2): a constant, a parabolic and a small-grid head."""
    rng = np.random.default_rng(seed)
    keys = rng.integers(-4, 5, (n, 3, 2)).astype(float)
    keys[:, 0] = (1.0, 0.0)
    index = rng.integers(0, 40, n)
    keys[:, 1, 0], keys[:, 1, 1] = 2 * index, -(index**2)
    queries = rng.integers(-5, 6, (n, 3, 2)).astype(float)
    queries[::2, 1] = np.stack(
        [rng.integers(0, 80, len(queries[::2])) / 2, np.ones(len(queries[::2]))], 1
    )
    return keys, rng.integers(-99, 99, (n, 3, 2)).astype(float), queries


@pytest.mark.parametrize("seed", range(4))
def test_the_caches_agree_at_every_step(seed: int) -> None:
    hull, standard = HullKVCache(2, 3, MODES), StandardKVCache(2, 3, MODES)
    keys, values, queries = history(seed, 300)
    for k, v, q in zip(keys, values, queries, strict=True):
        for layer in range(2):
            answers = [cache.append_attend(layer, k, v, q) for cache in (hull, standard)]
            assert answers[0].tolist() == answers[1].tolist()
    assert len(hull) == len(standard) == 300


@both
def test_batches_equal_single_steps(kind: type[KVCache]) -> None:
    keys, values, queries = history(9, 150)
    single, batch, causal = kind(2, 3, MODES), kind(2, 3, MODES), kind(2, 3, MODES)
    answers = []
    for k, v, q in zip(keys, values, queries, strict=True):
        single.append(1, k, v)
        answers.append(single.attend(1, q))
    assert causal.append_attend(1, keys, values, queries).tolist() == np.array(answers).tolist()
    batch.extend(1, keys[:70], values[:70])
    batch.extend(1, keys[70:70], values[70:70])
    batch.extend(1, keys[70:], values[70:])
    singly = [single.attend(1, q).tolist() for q in queries]
    assert batch.attend(1, queries).tolist() == singly
    assert batch.length(1) == 150
    assert len(batch) == 0  # layer 0 has none


@both
def test_clear_forgets_everything(kind: type[KVCache]) -> None:
    cache = kind(2, 3, MODES)
    keys, values, queries = history(3, 120)
    empty = cache.nbytes
    for layer in range(2):
        cache.extend(layer, keys, values)
    assert len(cache) == 120
    assert cache.nbytes > empty
    cache.clear()
    assert len(cache) == 0
    assert cache.nbytes == empty
    with pytest.raises(ValueError, match="layer 1 has no keys"):
        cache.attend(1, queries[0])
    fresh = kind(2, 3, MODES)
    for one in (cache, fresh):
        one.extend(1, keys[50:60], values[50:60])
    assert cache.attend(1, queries[0]).tolist() == fresh.attend(1, queries[0]).tolist()


@both
def test_inputs_are_not_kept_by_reference(kind: type[KVCache]) -> None:
    cache = kind(1, 1)
    keys, values = np.array([[1.0, 0.0]]), np.array([[5.0, 6.0]])
    cache.append(0, keys, values)
    keys[:], values[:] = 7.0, 8.0
    cache.attend(0, [[1, 1]])[:] = 9.0
    assert cache.attend(0, [[1, 1]]).tolist() == [[5.0, 6.0]]


@both
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_refused_whole(kind: type[KVCache], bad: float) -> None:
    cache = kind(1, 2)
    good = np.ones((3, 2, 2))
    cache.extend(0, good, good)
    wrong = good.copy()
    wrong[2, 1, 1] = bad
    for arguments in ((wrong, good, good), (good, wrong, good), (good, good, wrong)):
        with pytest.raises(ValueError, match="not finite"):
            cache.append_attend(0, *arguments)
    for pair in ((wrong, good), (good, wrong)):
        with pytest.raises(ValueError, match="not finite"):
            cache.extend(0, *pair)
    with pytest.raises(ValueError, match="not finite"):
        cache.attend(0, wrong)
    with pytest.raises(ValueError, match="1022"):
        cache.attend(0, good * 2.0**1022)
    assert len(cache) == 3


@both
def test_shapes_and_layers_that_do_not_fit_are_refused(kind: type[KVCache]) -> None:
    cache = kind(2, 3, MODES)
    one, some = np.zeros((3, 2)), np.zeros((4, 3, 2))
    wrong_calls: list[tuple[Callable[[], object], str]] = [
        (lambda: cache.append(0, some, some), "one position"),
        (lambda: cache.append(0, one[:2], one[:2]), "keys"),
        (lambda: cache.extend(0, one, one), "T"),
        (lambda: cache.extend(0, some, some[:3]), "values"),
        (lambda: cache.append_attend(0, some, some, one), "differ"),
        (lambda: cache.attend(0, np.zeros((3, 3))), "queries"),
        (lambda: kind(2, 3, MODES[:1]), "2 sequences"),
        (lambda: kind(2, 2, MODES), "sequences of 2"),
        (lambda: kind(0, 3), "positive"),
        (lambda: kind(1, 1, [["median"]]), "median"),  # type: ignore[list-item]
    ]
    for call, message in wrong_calls:
        with pytest.raises(ValueError, match=message):
            call()
    for layer in (-1, 2):
        with pytest.raises(IndexError, match=f"layer {layer}"):
            cache.append(layer, one, one)
        with pytest.raises(IndexError, match=f"layer {layer}"):
            cache.attend(layer, one)
    assert cache.length(0) == 0


def test_heads_can_be_called_directly() -> None:
    cache = HullKVCache(2, 3, MODES)
    cache.heads[1][2].insert(1.0, 2.0, (3.0, 4.0))
    assert cache.heads[1][2].query(1.0, 0.0) == (3.0, 4.0)
    assert len(cache.heads) == 2
    assert len(cache.heads[0]) == 3


MODULES = ["hullcache", *(f"hullcache.{m.name}" for m in pkgutil.iter_modules(hullcache.__path__))]


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_in_the_docstrings_run(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_there_are_examples() -> None:
    finder = doctest.DocTestFinder()
    examples = [
        t for name in MODULES for t in finder.find(importlib.import_module(name)) if t.examples
    ]
    assert len(examples) >= 15


def test_the_package_stands_alone() -> None:
    """It imports the standard library, numpy, sortedcontainers and itself, nothing of its users."""
    allowed = {*sys.stdlib_module_names, "numpy", "sortedcontainers", "hullcache"}
    for path in Path(hullcache.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            else:
                continue
            assert {name.split(".")[0] for name in names} <= allowed, path.name

"""Settings of the whole test run, and ``--sample N --seed S``: only N of the selected tests."""

from __future__ import annotations

import contextlib
import os
import random
from collections.abc import Iterator

import pytest

from compiler.store import cache_folders, make_folder

# Tests run side by side; threads of BLAS and torch would only take turns on the same cores.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
os.environ.setdefault("TRANSPUTER_WAIT", "1")  # for the engine: no process outlives a test
os.environ.pop("COLUMNS", None)  # workers have it; output is piped, as wide as it wants to be


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sample", type=int, help="run only so many of the selected tests")
    parser.addoption("--seed", type=int, default=0, help="which ones --sample takes")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """After the markers have selected."""
    count = config.getoption("--sample")
    if count is not None and count < len(items):
        chosen = random.Random(config.getoption("--seed")).sample(range(len(items)), count)
        kept = set(chosen)
        config.hook.pytest_deselected(
            items=[item for number, item in enumerate(items) if number not in kept]
        )
        items[:] = [item for number, item in enumerate(items) if number in kept]


def pytest_report_header(config: pytest.Config) -> str | None:
    count, seed = config.getoption("--sample"), config.getoption("--seed")
    return None if count is None else f"a sample of {count} tests, seed {seed}"


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Programs are kept for this test run alone, so that none that a test has bent gets out.

    C libraries and engines take long to make; they are the user's.
    """
    cache = tmp_path_factory.mktemp("cache")
    for part in ("libraries", "native"):
        for folder in cache_folders(part):
            with contextlib.suppress(OSError):
                make_folder(folder)
                (cache / part).symlink_to(folder)
                break
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRANSPUTER_CACHE", str(cache))
        yield

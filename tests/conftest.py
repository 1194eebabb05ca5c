"""Settings of the whole test run, and ``--sample N --seed S``: only N of the selected tests."""

from __future__ import annotations

import os
import random

import pytest

# Tests run side by side; threads of BLAS and torch would only take turns on the same cores.
for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")


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

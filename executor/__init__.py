"""Runs compiled programs inside a transformer: ``run``, ``check``, ``load_model``."""

from __future__ import annotations

from executor.checking import CheckResult, check
from executor.loading import load_model
from executor.runner import RunResult, run

__all__ = ["CheckResult", "RunResult", "check", "load_model", "run"]

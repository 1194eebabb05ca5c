"""Runs programs inside a transformer: ``run``, ``check``, ``load_model``.

``generate`` runs machines that are not computers, see ``docs/tutorial.md``.
"""

from __future__ import annotations

from executor.checking import CheckResult, check
from executor.loading import load_model
from executor.machine_run import generate
from executor.runner import RunResult, run

__all__ = ["CheckResult", "RunResult", "check", "generate", "load_model", "run"]

"""Runs programs inside a transformer: ``run``, ``run_batch``, ``check``, ``profile``, ``explain``.

``load_model`` gives the transformer itself. ``generate`` runs machines that are not computers,
``checkpoint_of`` makes a model of one and ``save_checkpoint`` writes it: see ``docs/tutorial.md``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from executor.batch import BatchJob, BatchResult, run_batch
    from executor.checking import CheckResult, check
    from executor.checkpoint import save_checkpoint
    from executor.inside import Explanation, explain
    from executor.loading import checkpoint_of, load_model
    from executor.machine_run import generate
    from executor.profiling import Profile, profile
    from executor.runner import RunResult, run

__all__ = [
    "BatchJob", "BatchResult", "CheckResult", "Explanation", "Profile", "RunResult", "check",
    "checkpoint_of", "explain", "generate", "load_model", "profile", "run", "run_batch",
    "save_checkpoint",
]  # fmt: skip

_MODULES = {
    "BatchJob": "batch",
    "BatchResult": "batch",
    "CheckResult": "checking",
    "Explanation": "inside",
    "Profile": "profiling",
    "RunResult": "runner",
    "check": "checking",
    "checkpoint_of": "loading",
    "explain": "inside",
    "generate": "machine_run",
    "load_model": "loading",
    "profile": "profiling",
    "run": "runner",
    "run_batch": "batch",
    "save_checkpoint": "checkpoint",
}


def __getattr__(name: str) -> Any:
    """Imported when asked for: the command line starts with less."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)

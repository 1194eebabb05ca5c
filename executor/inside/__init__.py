"""Looking inside a model: what every head asked and read, what stood in every slot, and why a
token won. ``from executor import explain`` is the way in; ``docs/explain.md`` explains."""

from __future__ import annotations

from executor.inside.explain import explain
from executor.inside.explanation import Answer, Attention, Explanation, FeedForward, Layer
from executor.inside.forward import explain_tokens

__all__ = [
    "Answer",
    "Attention",
    "Explanation",
    "FeedForward",
    "Layer",
    "explain",
    "explain_tokens",
]

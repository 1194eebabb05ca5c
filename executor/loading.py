"""Where a model comes from: a folder, a value, or the default machine built now."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from compiler.errors import UsageError
from executor.checkpoint import Checkpoint, load_checkpoint
from executor.config import ModelConfig

if TYPE_CHECKING:
    from executor.model import VanillaTransformer

ModelSource = Checkpoint | str | os.PathLike[str] | None
"""A loaded model, the folder of one, or None for the default machine."""


def build_checkpoint(attention: str = "hard", tokens: int | None = None) -> Checkpoint:
    """The default machine's model, built from its stored plan (well under two seconds).

    Args:
        attention: ``hard``, or ``softmax`` for weights with a temperature and a tie-break.
        tokens: for ``softmax``: the sequence length that the tie-break must last for, by default
            the greatest possible.

    Raises:
        UsageError: if no export for so many tokens is exact.
    """
    from compiler.build import MOST_SOFTMAX_TOKENS, build_machine, softmax_export

    machine = build_machine()
    settings: dict[str, object] = {}
    if attention == "softmax":
        tokens = tokens or MOST_SOFTMAX_TOKENS
        if tokens > MOST_SOFTMAX_TOKENS:
            raise UsageError(
                f"plain softmax is exact for up to {MOST_SOFTMAX_TOKENS} tokens, not for {tokens}"
            )
        machine = softmax_export(machine, tokens)
        settings["max_tokens"] = tokens
    ids = {spelling: token for token, spelling in enumerate(machine.vocabulary)}
    return Checkpoint(
        config=ModelConfig.from_mapping({**machine.config, **settings}),
        vocabulary=tuple(machine.vocabulary),
        weights=machine.weights(),
        rom=tuple(ids[spelling] for spelling in machine.rom),
    )


def open_checkpoint(model: ModelSource, attention: str = "hard") -> Checkpoint:
    """The model that ``model`` names; the default machine is built for ``attention``."""
    if isinstance(model, Checkpoint):
        return model
    if model is None:
        return build_checkpoint(attention)
    return load_checkpoint(model)


def load_model(folder: str | os.PathLike[str] | None = None) -> VanillaTransformer:
    """A model as a torch module: ``model(token_ids)`` gives logits.

    Args:
        folder: written by ``transputer build``; None for the default machine, exported for
            plain softmax, which is what the module computes.

    Raises:
        UsageError: if torch is not installed.
        TransputerError: if the folder is not a usable model.
    """
    checkpoint = open_checkpoint(folder, attention="softmax")
    try:
        from executor.torch_engine import make_model
    except ImportError as error:
        raise UsageError(f"this needs PyTorch: pip install torch ({error})") from error
    return make_model(checkpoint)

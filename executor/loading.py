"""Where a model comes from: a folder, a value, or the default machine built now."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from compiler.errors import UsageError
from executor.checkpoint import Checkpoint, load_checkpoint
from executor.config import ModelConfig
from executor.kept import kept_checkpoint

if TYPE_CHECKING:
    from compiler.build import Machine
    from compiler.program import Program
    from executor.model import VanillaTransformer

ModelSource = Checkpoint | str | os.PathLike[str] | None
"""A loaded model, the folder of one, or None for the default machine."""


def build_checkpoint(
    attention: str = "hard",
    tokens: int | None = None,
    memory: int | None = None,
    calls: int | None = None,
) -> Checkpoint:
    """The default machine's model, built from its stored plan (well under two seconds).

    Args:
        attention: ``hard``, or ``softmax`` for weights with a temperature and a tie-break.
        tokens, memory, calls: for ``softmax``: the longest sequence, the bytes of memory and the
            depth of calls to be exact for, see :func:`compiler.softmax.softmax_export`.

    Raises:
        UsageError: if no such export is exact.
    """
    from compiler.build import build_machine
    from compiler.softmax import SOFTMAX_CALLS, SOFTMAX_TOKENS, softmax_export

    if attention == "softmax":
        tokens, calls = tokens or SOFTMAX_TOKENS, calls or SOFTMAX_CALLS
        return checkpoint_of(softmax_export(tokens, memory, calls).machine)
    return checkpoint_of(build_machine())


def build_base_checkpoint() -> Checkpoint:
    """The smallest machine's model: 35 opcodes, see ``docs/machines.md``."""
    from compiler.machine_base_build import build_base_machine

    return checkpoint_of(build_base_machine())


def checkpoint_of(machine: Machine) -> Checkpoint:
    """A machine as a model that engines run."""
    from compiler.names import names_of

    ids = machine.ids
    return Checkpoint(
        config=ModelConfig.from_mapping(machine.config),
        vocabulary=machine.vocabulary,
        weights=machine.arrays,
        rom=tuple(ids[spelling] for spelling in machine.rom),
        names=names_of(machine.graph, machine.plan, machine.placed),
    )


def refusal(config: ModelConfig, program: Program) -> str | None:
    """Why a program is beyond what a model is exact for; None if it is not.

    The depth of the operand stack (``max_stack``) shows only while the program runs, and a call
    too deep (``max_calls``) traps.
    """
    if config.prompts != "programs":
        return f"{program.name} is a program, and this model is a machine that runs none"
    if config.max_memory is not None and program.memory_bytes > config.max_memory:
        used, limit, what = program.memory_bytes, config.max_memory, "bytes of memory"
        remedy = "; C can be compiled for less: --libc tiny, --memory BYTES" if program.wasm else ""
    elif config.max_locals is not None and program.n_locals > config.max_locals:
        used, limit, what, remedy = program.n_locals, config.max_locals, "locals", ""
    else:
        return None
    return f"{program.name} has {used:,} {what}; this model is made for {limit:,}{remedy}"


def open_checkpoint(model: ModelSource, attention: str = "hard") -> Checkpoint:
    """The model that ``model`` names; the default machine's is for ``attention``."""
    if isinstance(model, Checkpoint):
        return model
    if model is None:
        return kept_checkpoint() if attention == "hard" else build_checkpoint(attention)
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

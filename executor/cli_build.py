"""``transputer build``: a machine as a model folder, as a picture, or both."""

from __future__ import annotations

import argparse

from compiler.build import Machine
from compiler.errors import UsageError
from executor.checkpoint import save_checkpoint
from executor.loading import checkpoint_of
from executor.machine_run import PATIENCE
from executor.process import patience

SIZES = ("d_model", "heads", "layers", "d_ffn", "seconds")
"""Options for machines of somebody's own."""
UNCERTIFIED = "\nit runs, but engines may differ: keep numbers integers, or halves and quarters"
NO_STOP = f"\nno stop token: a run ends at --max-tokens, {PATIENCE:,} if that is not given"
LIMITS = ("tokens", "memory", "calls")
"""Options for ``--softmax``."""


def build_verb(options: argparse.Namespace) -> int:
    """Write a model folder or draw a machine."""
    if not options.out and not options.draw:
        raise UsageError("nothing to write: --out DIR or --draw FILE is missing")
    for name in LIMITS:
        if getattr(options, name) and not options.softmax:
            raise UsageError(f"--{name} is for --softmax: hard attention needs no such choice")
    if options.draw:
        from compiler.draw import picture_path

        picture_path(options.draw)  # before the solver is at work
    own = options.machine not in ("default", "base")
    for name in SIZES:
        if getattr(options, name) is not None and not own:
            raise UsageError(f"--{name.replace('_', '-')} is for --machine FILE.py")
    with patience("placing the machine and computing what it is exact for"):
        machine, words = _own(options) if own else _ours(options)
    checkpoint = checkpoint_of(machine)
    if options.out:
        path, attention = save_checkpoint(checkpoint, options.out), checkpoint.config.attention
        print(f"{path}: {checkpoint.n_parameters:,} parameters, for {attention} attention")
        if words:
            print(words)
    if options.draw:
        from compiler.draw import draw_plan

        print(draw_plan(machine.graph, machine.plan, options.draw))
    return 0


def _ours(options: argparse.Namespace) -> tuple[Machine, str]:
    """The default or the base machine, and what it is exact for."""
    from compiler.build import build_machine
    from compiler.machine_base_build import build_base_machine
    from compiler.softmax import SOFTMAX_CALLS, SOFTMAX_TOKENS, softmax_export

    if options.machine == "base":
        if options.softmax:
            raise UsageError("--machine base has no export for softmax; leave out one of the two")
        return build_base_machine(), ""
    if not options.softmax:
        return build_machine(), ""
    tokens, calls = options.tokens or SOFTMAX_TOKENS, options.calls or SOFTMAX_CALLS
    export = softmax_export(tokens, options.memory, calls)
    limits = export.limits
    return export.machine, (
        f"exact for {limits.tokens:,} tokens, {limits.memory:,} bytes of memory, "
        f"{limits.locals:,} locals, {limits.stack:,} stack entries; "
        f"{limits.calls:,} calls deep it traps"
    )


def _own(options: argparse.Namespace) -> tuple[Machine, str]:
    """The machine of a Python file; how it was placed, and what it is exact for."""
    from compiler.machine_file import SUFFIX, load_machine_file
    from compiler.own_machine import build_own_machine
    from compiler.placement import SECONDS, Sizes
    from compiler.softmax import SOFTMAX_TOKENS

    if not options.machine.endswith(SUFFIX):
        raise UsageError(f"--machine {options.machine}: neither default, base, nor a FILE.py")
    if options.memory or options.calls:
        raise UsageError("--memory and --calls are for the default machine")
    own = build_own_machine(
        load_machine_file(options.machine),
        Sizes(options.d_model, options.heads, options.layers, options.d_ffn),
        seconds=SECONDS if options.seconds is None else options.seconds,
        softmax_tokens=(options.tokens or SOFTMAX_TOKENS) if options.softmax else None,
    )
    config, shape = own.machine.config, own.machine.plan.shape
    notes = "".join(
        [
            f"\nleft out, as no score depends on it: {', '.join(own.unread)}" if own.unread else "",
            "" if own.certificate else UNCERTIFIED,
            NO_STOP if not config["stop_tokens"] else "",
        ]
    )
    exact = f"exact for {config['max_tokens']:,} tokens; " if config["max_tokens"] else ""
    return own.machine, (
        f"d_model {shape.d_model}, {shape.n_heads} heads, {shape.n_layers} layers, d_ffn "
        f"{shape.d_ffn}; placed {own.placement}\n{exact}{config['exactness']}{notes}"
    )

"""The verbs of ``transputer`` besides ``run``: compile, trace, check, build, info."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from compiler.errors import UsageError
from compiler.program import Program
from executor.checkpoint import Checkpoint, save_checkpoint
from executor.cli_run import compile_job, read_input, start
from executor.files import write_atomically
from executor.loading import build_checkpoint, open_checkpoint


def compile_verb(options: argparse.Namespace) -> int:
    """Write the token program, and what else is asked for."""
    from compiler.tokfile import format_tok

    job = compile_job(options)
    text = format_tok(job.program)
    if options.wasm:
        if not job.program.wasm:
            raise UsageError(f"{options.file}: a token program has no WebAssembly module")
        _write(options.wasm, job.program.wasm)
    if options.out:
        _write(options.out, text.encode("ascii"))
    if options.report:
        for name, value in _report(job.program):
            print(f"{name:<24} {value}")
    elif not options.out and not options.wasm:
        sys.stdout.write(text)
    return 0


def _report(program: Program) -> Iterator[tuple[str, object]]:
    yield "program", program.name
    yield "entry", program.entry or "the first instruction"
    yield "memory_bytes", program.memory_bytes
    yield "reads_arguments", program.wants_args
    for name, value in program.report.items():
        if isinstance(value, dict):
            yield from ((f"{name}: {key}", entry) for key, entry in value.items())
        else:
            yield name, value


def trace_verb(options: argparse.Namespace) -> int:
    """One line per executed instruction, as the model writes it or from a file."""
    from executor.replay import Replay, pretty_line
    from executor.trace import TraceReader, split_trace

    job = compile_job(options)
    state, number = Replay(job.program), 0
    if options.trace:
        reader: TraceReader | None = None
        tokens = split_trace(_read_text(options.trace))
    else:
        execution = start(options, job, read_input(options.stdin, job.program))
        reader = execution.reader
        tokens = (token for event in execution for token in event.tokens)
    try:
        for token in tokens:
            step = state.push(token)
            if step is not None:
                print(pretty_line(number, step))
                number += 1
    finally:
        pending = reader.pending if reader is not None else state.reader.pending
        if pending:
            print(f"{number:>8}  unfinished: {' '.join(pending)}")
    return 0


def check_verb(options: argparse.Namespace) -> int:
    """Model against wasmtime: 0 if they agree, 1 if not."""
    from executor.checking import check_execution

    job = compile_job(options)
    stdin = read_input(options.stdin, job.program)
    checked = check_execution(job, start(options, job, stdin), options.args, stdin)
    print(f"{job.program.name}: {checked.summary}")
    for difference in checked.differences:
        print(difference)
    return 0 if checked.agrees else 1


def build_verb(options: argparse.Namespace) -> int:
    """Write a model folder."""
    if options.tokens and not options.softmax:
        raise UsageError("--tokens is for --softmax: hard attention has no length of its own")
    attention = "softmax" if options.softmax else "hard"
    checkpoint = build_checkpoint(attention, options.tokens)
    path = save_checkpoint(checkpoint, options.out)
    length = f" over {checkpoint.config.max_tokens:,} tokens" if options.softmax else ""
    print(f"{path}: {checkpoint.n_parameters:,} parameters, for {attention} attention{length}")
    return 0


def info_verb(options: argparse.Namespace) -> int:
    """Describe the default machine or a model folder."""
    checkpoint = open_checkpoint(options.model)
    if options.source:
        from executor.codegen import generate

        sys.stdout.write(generate(checkpoint.config, checkpoint.weights).source)
        return 0
    for name, value in _info(checkpoint):
        print(f"{name:<14} {value}")
    return 0


def _info(checkpoint: Checkpoint) -> Iterator[tuple[str, object]]:
    from executor.liveness import live_layers, support

    config = checkpoint.config
    layers = live_layers(config, checkpoint.weights, support(checkpoint.weights["head.weight"]))
    yield "d_model", config.d_model
    yield "heads", config.n_heads
    yield "layers", config.n_layers
    yield "d_ffn", config.d_ffn
    yield "vocabulary", config.vocab_size
    yield "parameters", f"{checkpoint.n_parameters:,}"
    yield "non-zeros", f"{checkpoint.n_nonzero:,}"
    yield "live heads", " ".join(str(len(layer.queried)) for layer in layers)
    yield "live neurons", " ".join(str(len(layer.neurons)) for layer in layers)
    yield "ROM tokens", len(checkpoint.rom)
    yield "attention", config.attention
    yield "longest run", f"{config.max_tokens:,} tokens" if config.max_tokens else "no limit stated"


def _write(file: str, data: bytes) -> None:
    try:
        write_atomically(file, data)
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror or error}") from None


def _read_text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text("ascii")
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise UsageError(f"{file}: not a trace (it is not ASCII text)") from None

"""The verbs of ``transputer`` besides ``run`` and ``build``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING

from compiler.errors import UsageError
from executor.checkpoint import Checkpoint
from executor.cli_machine import own_machine
from executor.cli_run import (
    begin_engine,
    compile_job,
    read_input,
    start,
    trace_chunks,
    warn_of_debug_information,
)
from executor.files import write_atomically
from executor.loading import open_checkpoint
from executor.process import PIPED, WIDEST, patience, screen_width

if TYPE_CHECKING:
    from compiler.program import Program
    from executor.decode import Ids
    from executor.replay import Step


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
    if options.report or options.json:
        from compiler.report import prompt_report
        from executor.cli_report import print_report

        warn_of_debug_information(job.program)
        print_report(prompt_report(job.program), options.json)
    elif not options.out and not options.wasm:
        sys.stdout.write(text)
    return 0


def trace_verb(options: argparse.Namespace) -> int:
    """One line per executed instruction, as the model writes it or from a file.

    Raises:
        UsageError: for a machine of somebody's own, which executes none.
    """
    if own_machine(options) is not None:
        raise UsageError(
            "trace shows the instructions of programs, and this model reads tokens of its own: "
            "transputer run prints what it writes, transputer explain what goes on inside"
        )
    job = compile_job(options)
    warn_of_debug_information(job.program)
    if options.report or options.json:
        from executor.cli_report import trace_report

        return trace_report(options, job)
    return _list(options, job.program, *trace_chunks(options, job))


def _list(
    options: argparse.Namespace,
    program: Program,
    vocabulary: tuple[str, ...],
    chunks: Iterable[Ids],
) -> int:
    from executor.listing import cut, numbered_listing, own
    from executor.seek import Excerpt, Part
    from executor.trace_file import unended

    all_steps = None if options.source else options.count
    with patience("going to that place of the trace"):
        excerpt = Excerpt(
            program, vocabulary, chunks, Part(options.at, options.instruction, all_steps)
        )
    state, width = excerpt.state, screen_width()
    steps: Iterator[tuple[int, Step]] = enumerate(excerpt, state.n_steps)
    if options.source:
        steps = islice(((n, step) for n, step in steps if own(step)), options.count)
    try:
        for line in numbered_listing(steps, width, sources=bool(program.wasm)):
            print(line)
    finally:
        if state.reader.pending and not options.source:
            print(cut(f"{state.n_steps:>8}  unfinished: {' '.join(state.reader.pending)}", width))
    if excerpt.unended and options.count is None:
        raise unended(options.trace, state.reader.n_tokens)
    return 0


def check_verb(options: argparse.Namespace) -> int:
    """Model against wasmtime: 0 if they agree, 1 if not."""
    from executor.checking import check_execution

    engine = begin_engine(options)
    job = compile_job(options)
    stdin = read_input(options.stdin, job.program)
    warn_of_debug_information(job.program)
    checked = check_execution(job, start(options, job, stdin, engine), options.args, stdin)
    print(f"{job.program.name}: {checked.summary}")
    for difference in checked.differences:
        print(difference)
    return 0 if checked.agrees else 1


def info_verb(options: argparse.Namespace) -> int:
    """Describe the default machine or a model folder."""
    checkpoint = open_checkpoint(options.model)
    if options.engine:
        from executor.native.describe import describe

        width = min(screen_width() or PIPED, WIDEST)
        print(describe(checkpoint, width, options.all))
        return 0
    if options.all:
        raise UsageError("--all is for --engine native")
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
    if config.prompts != "programs":
        yield "prompts", config.prompts
    yield from _certificate(checkpoint)


def _certificate(checkpoint: Checkpoint) -> Iterator[tuple[str, object]]:
    """What the model is exact for, and what sets the limit."""
    from compiler.certificate import load_certificate
    from compiler.softmax import softmax_export

    config, certificate = checkpoint.config, load_certificate()
    if config.exactness:
        exact = "" if config.max_tokens is None else f"{config.max_tokens:,} tokens; "
        yield "exact for", f"{exact}{config.exactness}"
    elif config.max_tokens is None:
        yield "exact for", "no certificate"
    elif config.attention == "hard" and config.max_tokens == certificate.tokens.value:
        yield "exact for", f"{config.max_tokens:,} tokens; limit: {certificate.tokens.beyond}"
        yield "memory", f"{certificate.memory.value:,} bytes; limit: {certificate.memory.beyond}"
    elif config.attention == "softmax" and config.max_memory and config.max_calls:
        export = softmax_export(config.max_tokens, config.max_memory, config.max_calls)
        head = export.limiting
        yield "exact for", f"{config.max_tokens:,} tokens; limit: head {head.name}, {head.kind}"
        yield "memory", f"{config.max_memory:,} bytes"
        yield "locals, stack", f"{config.max_locals:,}, {config.max_stack:,}"
        yield "calls", f"{config.max_calls:,} deep they trap"
    else:
        yield "exact for", f"{config.max_tokens:,} tokens, as its folder says"


def _write(file: str, data: bytes) -> None:
    try:
        write_atomically(file, data)
    except OSError as error:
        raise UsageError(f"{file}: cannot be written: {error.strerror or error}") from None

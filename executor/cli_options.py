"""The options of the command ``transputer``: a command line in, its options by name out."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from typing import NoReturn

from compiler.errors import UsageError
from executor.cli_where import explain_options, trace_options
from executor.config import AUTO, ENGINES
from executor.demo.options import add_options as add_demo_options
from executor.process import say


class _Parser(argparse.ArgumentParser):
    """Raises instead of exiting, so that every error ends in the same place."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")

    def is_option(self, argument: str) -> bool:
        """Whether an argument is spelled like one of the options here: ``--stdin=x``, ``-O2``."""
        name = argument.partition("=")[0] if argument.startswith("--") else argument[:2]
        return name in self._option_string_actions


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Options of a command line; ``verb`` holds the verb's name.

    Raises:
        UsageError: for options that make no sense.
    """
    parser = _Parser(
        prog="transputer",
        description="Compiles programs into tokens and runs them inside a transformer.",
        allow_abbrev=False,
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def add(name: str, text: str) -> _Parser:
        return verbs.add_parser(name, help=text, description=text, allow_abbrev=False)

    run = add("run", "Run a program inside the model; exits with the program's exit code.")
    run.add_argument("--prompt", metavar="TOKENS", help=_PROMPT)
    _compile_options(run)
    _run_options(run)
    run.add_argument(
        "--trace",
        metavar="FILE",
        type=_name,
        help="write the trace, compressed if FILE ends in .zst; - for only the trace",
    )
    run.add_argument("--check", action="store_true", help="compare with wasmtime afterwards")
    _checkpoint_options(run)
    _batch_options(run)
    _program(run, needed=False, more=_TOKENS)

    compile_ = add("compile", "Compile a program and print its tokens.")
    _compile_options(compile_)
    compile_.add_argument("--call", metavar="CALL", type=_name, help="with this call as the entry")
    compile_.add_argument("-o", "--out", metavar="FILE", help="write the tokens to a .tok file")
    compile_.add_argument("--wasm", metavar="FILE", help="also write the WebAssembly module")
    _report_options(compile_, "print what the prompt's tokens are for, by function of the source")
    compile_.add_argument("file", help=_FILE)

    trace = add("trace", "Print a run instruction by instruction, with where each comes from.")
    _compile_options(trace)
    _run_options(trace)
    trace.add_argument(
        "--from", dest="trace", metavar="FILE", type=_name, help="read this trace, do not run"
    )
    trace_options(trace)
    _report_options(trace, "print where the tokens go, by function and line, not the instructions")
    trace.add_argument("--prompt", help=argparse.SUPPRESS)  # refused with a word on what to use
    _program(trace, needed=False)

    explain = add("explain", "Look inside the model where it writes a token: heads, slots, logits.")
    explain.add_argument("--prompt", metavar="TOKENS", help=_PROMPT)
    _compile_options(explain)
    _run_options(explain)
    explain_options(explain)
    _program(explain, needed=False, more=_TOKENS)

    check = add("check", "Compare a run inside the model with wasmtime; exits 1 if they differ.")
    _compile_options(check)
    _run_options(check)
    _program(check)

    build = add("build", "Write the model: safetensors, configuration, vocabulary.")
    build.add_argument("--out", metavar="DIR", type=_name, help="folder to write")
    build.add_argument(
        "--machine",
        metavar="MACHINE",
        type=_name,
        default="default",
        help="default, base, or a FILE.py with a machine of your own (docs/tutorial.md)",
    )
    build.add_argument(
        "--draw", metavar="FILE.svg", type=_name, help="draw what stands where (.svg, .png, .pdf)"
    )
    build.add_argument("--softmax", action="store_true", help="weights for plain softmax")
    build.add_argument("--tokens", metavar="N", type=_count, help="longest sequence, for --softmax")
    build.add_argument("--memory", metavar="BYTES", type=_count, help="memory, for --softmax")
    build.add_argument("--calls", metavar="D", type=_count, help="depth of calls, for --softmax")
    _size_options(build)

    info = add("info", "Describe the model: sizes, parameters, longest run.")
    info.add_argument("--model", metavar="DIR", help="a folder written by build")
    info.add_argument("--source", action="store_true", help="print the hull engine's code")
    info.add_argument(
        "--engine", choices=("native",), help="what the engine takes each head and neuron for"
    )
    info.add_argument("--all", action="store_true", help="with --engine: slots too")

    add_demo_options(add("demo", "Watch a program at work inside the model."))
    taking = {"run": run, "trace": trace, "explain": explain, "check": check}
    if not (arguments[:1] and arguments[0] in taking):
        return parser.parse_args(arguments)
    return _split_dashes(
        parser.parse_args([_mark(argument) for argument in arguments]), taking[arguments[0]]
    )


_DASHES = "\0"
"""Stands for ``--`` while argparse, whose versions differ in it, is at work."""


def _mark(argument: str) -> str:
    return _DASHES if argument == "--" else argument


def _split_dashes(options: argparse.Namespace, verb: _Parser) -> argparse.Namespace:
    """One ``--`` may stand before the file and one between it and the program's arguments."""
    if options.file == _DASHES:
        if not options.args:
            raise UsageError("a file is missing after --")
        options.file = options.args.pop(0)
    if options.args[:1] == [_DASHES]:
        del options.args[0]
    else:
        _warn_of_options(options, verb)
    options.args = ["--" if argument == _DASHES else argument for argument in options.args]
    values = vars(options).values()
    if any(_DASHES in value if isinstance(value, list) else value == _DASHES for value in values):
        raise UsageError("an option lacks its value before --")
    return options


def _warn_of_options(options: argparse.Namespace, verb: _Parser) -> None:
    """Say that what looks like an option of ours is an argument of the program."""
    found = [argument for argument in options.args if verb.is_option(argument)]
    if found:
        say(
            f"after {options.file} all goes to the program, {' '.join(found)} too; our own options "
            f"go before it ({options.file} -- ... says that this is meant)"
        )


_PROMPT = "tokens for a machine of your own, which --model names; - for standard input"
_FILE = "a .c, .cpp, .wat, .wasm or .tok file"
_TOKENS = "; with --model, of tokens for a machine of your own"


def _program(parser: argparse.ArgumentParser, needed: bool = True, more: str = "") -> None:
    parser.add_argument("file", help=f"{_FILE}{more}", nargs=None if needed else "?")
    parser.add_argument(
        "args",
        nargs=argparse.REMAINDER,
        help="arguments for the program: all that follows the file; our own options go before it",
    )


def _report_options(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument("--report", action="store_true", help=text)
    parser.add_argument("--json", action="store_true", help="the report as JSON, all of it")


def _compile_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("compiling C and C++")
    group.add_argument("-O", dest="opt", choices=tuple("0123sz"), default="2", help="default -O2")
    group.add_argument("-I", dest="include", action="append", default=[], metavar="DIR")
    group.add_argument("-D", dest="define", action="append", default=[], metavar="NAME[=VALUE]")
    group.add_argument(
        "--cflags",
        metavar="FLAGS",
        type=_flags,
        default=(),
        help="more flags for the compiler, as --cflags='-std=gnu89 -fwrapv -w'",
    )
    group.add_argument(
        "--with",
        dest="more",
        action="append",
        default=[],
        metavar="FILE",
        help="one more C or C++ file",
    )
    group.add_argument("--clang", metavar="PROGRAM", help="a system clang instead of zig's")
    group.add_argument("--sysroot", metavar="DIR", help="where that clang's WASI library is")
    group.add_argument(
        "--libc",
        choices=("wasi", "tiny"),
        help="the whole C library (default), or a small one of our own",
    )
    group.add_argument(
        "--stack",
        metavar="BYTES",
        type=_bytes,
        help="size of the C stack; default 1M, with --libc tiny 32K",
    )
    group.add_argument(
        "--memory",
        metavar="BYTES",
        type=_bytes,
        help="size of the memory (stack, data, heap); default 16M, with --libc tiny what they fill",
    )


def _run_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("running")
    group.add_argument("--stdin", metavar="FILE", help="the program's input; - for our own")
    group.add_argument(
        "--engine",
        choices=ENGINES,
        default=AUTO,
        help="default native (whose first run begins with plain code), or hull where no C compiler "
        "works",
    )
    group.add_argument(
        "--keep-source", metavar="DIR", type=_name, help="write the native engine's C there"
    )
    group.add_argument("--model", metavar="DIR", help="a folder written by build")
    group.add_argument("--max-tokens", metavar="N", type=_count, help="stop after N tokens")
    group.add_argument(
        "--max-memory", metavar="BYTES", type=_bytes, help="stop when so much is in use; 2G, 500M"
    )
    group.add_argument(
        "--call", metavar="CALL", type=_name, help="call one function: 'gcd(48, 36)', 'f(0.5)'"
    )


def _checkpoint_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("long runs")
    group.add_argument(
        "--checkpoint", metavar="FILE", type=_name, help="save the run there as it goes"
    )
    group.add_argument(
        "--checkpoint-every", metavar="SECONDS", type=_seconds, help="default every 10 seconds"
    )
    group.add_argument(
        "--resume",
        metavar="FILE",
        type=_name,
        help="go on from a checkpoint; prints all output, from the beginning",
    )


def _size_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("shape of a machine of your own; default the smallest")
    group.add_argument("--d-model", metavar="N", type=_count, help="slots of the residual stream")
    group.add_argument("--heads", metavar="N", type=_count, help="half of d_model")
    group.add_argument("--layers", metavar="N", type=_count)
    group.add_argument("--d-ffn", metavar="N", type=_count, help="neurons of a layer")
    group.add_argument(
        "--seconds",
        metavar="S",
        type=_duration,
        help="for each run of the solver (extra `scheduler`); 0 for the simple placement",
    )


def _batch_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group(
        "many runs",
        'FILE has a line for each: an object {"file": "gcd.c", "args": ["48", "36"], "stdin": "", '
        '"stdin_file": "input.txt", "call": "gcd(48, 36)"}, where what is missing is taken from '
        "the command line, or just a list of arguments. A line for each result is printed, in "
        "order. Exits 0 if all programs do, else 1; limits are for each run.",
    )
    group.add_argument(
        "--batch", metavar="FILE", type=_name, help="run all that a file of JSON lines names"
    )
    group.add_argument(
        "--jobs", metavar="N", type=_count, help="how many at once; default: one for each core"
    )


def _name(text: str) -> str:
    """Something that must not be empty."""
    if not text:
        raise argparse.ArgumentTypeError("it is empty")
    return text


def _count(text: str) -> int:
    """A positive number: ``1000000``, ``1_000_000`` or ``2**20``."""
    base, power, exponent = text.partition("**")
    try:
        value = int(base) ** int(exponent) if power and len(exponent) < 3 else int(text)
    except ValueError:
        value = 0
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number")
    return value


def _bytes(text: str) -> int:
    """A number of bytes: ``500000000``, ``500M``, ``2G``; K, M, G are powers of 1024."""
    power = 1 + "KMG".find(text[-1:].upper()) if text else 0
    return _count(text[:-1] if power else text) << 10 * power


def _duration(text: str) -> float:
    """A number of seconds, 0 allowed."""
    return 0.0 if text == "0" else _seconds(text)


def _flags(text: str) -> tuple[str, ...]:
    """Flags as a shell takes them apart."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None


def _seconds(text: str) -> float:
    """A positive number of seconds."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0.0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a positive number of seconds")
    return value

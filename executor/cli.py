"""The command ``transputer``: options, dispatch, exit codes, and one line for every error.

``run`` exits with the program's own code; 134 after a trap, 124 at a limit, 125 for an error of
ours. The other verbs exit 2 on errors. Ctrl-C exits 130, a closed pipe 141.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from compiler.errors import LimitError, TransputerError, UsageError

VERB_ERROR = 2
RUN_ERROR, RUN_LIMIT = 125, 124
INTERRUPTED, CLOSED_PIPE = 130, 141
ENGINES = ("hull", "standard", "torch")


class _Parser(argparse.ArgumentParser):
    """Raises instead of exiting, so that every error ends in the same place."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message} (see {self.prog} --help)")


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

    def add(name: str, text: str) -> argparse.ArgumentParser:
        return verbs.add_parser(name, help=text, description=text, allow_abbrev=False)

    run = add("run", "Run a program inside the model; exits with the program's exit code.")
    _compile_options(run)
    _run_options(run)
    run.add_argument("--trace", metavar="FILE", help="write the trace; - for only the trace")
    run.add_argument("--check", action="store_true", help="compare with wasmtime afterwards")
    _program(run)

    compile_ = add("compile", "Compile a program and print its tokens.")
    _compile_options(compile_)
    compile_.add_argument("--call", metavar="CALL", help="with this call as the entry")
    compile_.add_argument("-o", "--out", metavar="FILE", help="write the tokens to a .tok file")
    compile_.add_argument("--wasm", metavar="FILE", help="also write the WebAssembly module")
    compile_.add_argument("--report", action="store_true", help="print the compiler's report")
    compile_.add_argument("file", help=_FILE)

    trace = add("trace", "Print a run instruction by instruction, with where each comes from.")
    _compile_options(trace)
    _run_options(trace)
    trace.add_argument("--from", dest="trace", metavar="FILE", help="read this trace, do not run")
    _program(trace)

    check = add("check", "Compare a run inside the model with wasmtime; exits 1 if they differ.")
    _compile_options(check)
    _run_options(check)
    _program(check)

    build = add("build", "Write the model: safetensors, configuration, vocabulary.")
    build.add_argument("--out", metavar="DIR", required=True, help="folder to write")
    build.add_argument("--softmax", action="store_true", help="weights for plain softmax")
    build.add_argument("--tokens", metavar="N", type=_count, help="longest sequence, for --softmax")

    info = add("info", "Describe the model: sizes, parameters, longest run.")
    info.add_argument("--model", metavar="DIR", help="a folder written by build")
    info.add_argument("--source", action="store_true", help="print the hull engine's code")
    return parser.parse_args(arguments)


_FILE = "a .c, .wat, .wasm or .tok file"


def _program(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", help=_FILE)
    parser.add_argument("args", nargs=argparse.REMAINDER, help="arguments for the program")


def _compile_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("compiling C")
    group.add_argument("-O", dest="opt", choices=tuple("0123sz"), default="2", help="default -O2")
    group.add_argument("-I", dest="include", action="append", default=[], metavar="DIR")
    group.add_argument("-D", dest="define", action="append", default=[], metavar="NAME[=VALUE]")
    group.add_argument(
        "--with", dest="more", action="append", default=[], metavar="FILE", help="one more C file"
    )
    group.add_argument("--clang", metavar="PROGRAM", help="a system clang instead of zig's")


def _run_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("running")
    group.add_argument("--stdin", metavar="FILE", help="the program's input; - for our own")
    group.add_argument("--engine", choices=ENGINES, default="hull")
    group.add_argument("--model", metavar="DIR", help="a folder written by build")
    group.add_argument("--max-tokens", metavar="N", type=_count, help="stop after N tokens")
    group.add_argument("--call", metavar="CALL", help="call one function: 'gcd(48, 36)'")


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


def _verb(name: str) -> Callable[[argparse.Namespace], int]:
    """The function behind a verb; imported only now, for a quick start."""
    if name == "run":
        from executor.cli_run import run_verb

        return run_verb
    from executor import cli_tools

    return {
        "compile": cli_tools.compile_verb,
        "trace": cli_tools.trace_verb,
        "check": cli_tools.check_verb,
        "build": cli_tools.build_verb,
        "info": cli_tools.info_verb,
    }[name]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    _open_streams()
    running = "run" in arguments[:1]
    failed = RUN_ERROR if running else VERB_ERROR
    try:
        options = parse(arguments)
        code = _verb(options.verb)(options)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        # Nobody reads on. Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CLOSED_PIPE
    except LimitError as error:
        _say(str(error))
        return RUN_LIMIT if running else VERB_ERROR
    except TransputerError as error:
        _say(str(error))
    except MemoryError:
        _say("out of memory")
    except ModuleNotFoundError as error:
        _say(f"the package {error.name} is missing: install transputer with its dependencies")
    except OSError as error:
        _say(f"{error.filename or 'input or output'}: {error.strerror or error}")
    except Exception as error:
        if os.environ.get("TRANSPUTER_DEBUG"):
            raise
        _say(
            f"a bug in transputer, please report it: {type(error).__name__}: {error} "
            "(TRANSPUTER_DEBUG=1 shows where)"
        )
    return failed


def _open_streams() -> None:
    """A standard stream that our caller closed reads as empty and swallows what is written."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115


def _say(message: str) -> None:
    """An error message; where nobody can hear it the exit code has to do."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
    try:
        print(f"transputer: error: {message}", file=sys.stderr, flush=True)
    except OSError:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115

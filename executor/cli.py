"""The command ``transputer``: dispatch, exit codes, and one line for every error.

``run`` exits with the program's own code; 134 after a trap, 124 at a limit, 125 for an error of
ours. The other verbs exit 2 on errors. Ctrl-C exits 130, a closed pipe 141.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Sequence

from compiler.errors import LimitError, TransputerError
from executor.cli_options import parse

VERB_ERROR = 2
RUN_ERROR, RUN_LIMIT = 125, 124
INTERRUPTED, CLOSED_PIPE = 130, 141


def _verb(name: str) -> Callable[[argparse.Namespace], int]:
    """The function behind a verb; imported only now, for a quick start."""
    if name == "run":
        from executor.cli_run import run_verb

        return run_verb
    if name == "explain":
        from executor.cli_explain import explain_verb

        return explain_verb
    if name == "build":
        from executor.cli_build import build_verb

        return build_verb
    if name == "demo":
        from executor.demo.verb import demo_verb

        return demo_verb
    from executor import cli_tools

    return {
        "compile": cli_tools.compile_verb,
        "trace": cli_tools.trace_verb,
        "check": cli_tools.check_verb,
        "info": cli_tools.info_verb,
    }[name]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    # NumPy starts BLAS's threads when it is imported, which takes time; nothing here gains by them.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
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
        _give_up_output()  # nobody reads on
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
    try:
        sys.stdout.flush()
    except OSError:
        _give_up_output()
    try:
        print(f"transputer: error: {message}", file=sys.stderr, flush=True)
    except OSError:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115


def _give_up_output() -> None:
    """Nothing can be written any more; Python would complain once more when it flushes at exit."""
    with contextlib.suppress(OSError, ValueError):  # no file at all, or a closed one
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""A machine of somebody's own, from one Python file.

The file has a function ``machine()`` that takes nothing and returns a :class:`compiler.graph.Graph`
with its vocabulary, scores and stop tokens. What is wrong with it is told with file and line.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from compiler.errors import CompileError, GraphError, Place, TransputerError, UsageError
from compiler.graph import Graph
from compiler.graph_core import close

FUNCTION = "machine"
SUFFIX = ".py"


def load_machine_file(file: str | os.PathLike[str]) -> Graph:
    """The graph that the file's ``machine()`` returns, checked by :func:`check_graph`.

    Raises:
        UsageError: if the file cannot be read.
        CompileError: for anything that is wrong in it, with the line.
    """
    path = Path(file)
    try:
        source = path.read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror or error}") from None
    module = ModuleType(f"transputer_machine_{path.stem}")
    module.__file__ = str(path)
    with _explained(path), _importable(path, module):
        exec(compile(source, str(path), "exec"), module.__dict__)
        build = getattr(module, FUNCTION, None)
        if not callable(build):
            raise GraphError(
                f"the file has no function {FUNCTION}()",
                f"define {FUNCTION}() so that it returns a compiler.graph.Graph",
                Place(str(path)),
            )
        graph = build()
        if not isinstance(graph, Graph):
            raise GraphError(
                f"{FUNCTION}() returns {type(graph).__name__}, not a compiler.graph.Graph",
                "end it with: return graph",
                Place(str(path)),
            )
        check_graph(graph)
    return graph


def check_graph(graph: Graph) -> None:
    """What can only be said of a whole graph.

    Raises:
        GraphError: for what no machine can mean: a cycle, a quantity that nothing ever adds to
            but something reads, tokens that no prompt can spell, no token that can be written.
    """
    for spelling in graph.embedding:
        if not spelling or spelling.split() != [spelling] or not spelling.isprintable():
            raise GraphError(
                f"token {spelling!r} holds white space or nothing",
                "prompts are split at white space: spell tokens without",
            )
    if not graph.scores:
        raise GraphError(
            "no token has a score, so there is nothing to write",
            "give those that the machine writes one: graph.score(...), graph.score_nearest(...)",
        )
    silent = [spelling for spelling in graph.stops if spelling not in graph.scores]
    if silent:
        raise GraphError(f"the stop token {silent[0]!r} has no score, so it is never written")
    graph.ordered()
    writers, readers, scored = graph.writers(), graph.readers(), graph.scored()
    for name in graph.quantities:
        if name not in graph.inputs and not writers[name] and (readers[name] or name in scored):
            raise GraphError(
                f"quantity {name!r} is read, but nothing adds to it",
                "name it as the target of a head or neuron, or make it an input(...)",
                graph.places.get(f"quantity {name}"),
            )


@contextlib.contextmanager
def _importable(path: Path, module: ModuleType) -> Iterator[None]:
    """Neighbours of the file can be imported, as if it were run as a script."""
    folder = str(path.resolve().parent)
    sys.path.insert(0, folder)
    sys.modules[module.__name__] = module  # dataclasses look their module up
    try:
        yield
    finally:
        sys.modules.pop(module.__name__, None)
        with contextlib.suppress(ValueError):
            sys.path.remove(folder)


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    """Every failure of the file's code as a CompileError."""
    try:
        yield
    except GraphError as error:
        place = error.place or _line(error, path)
        raise CompileError(error.reason, place, error.remedy) from None
    except TransputerError:
        raise
    except SyntaxError as error:
        place = Place(error.filename or str(path), "", f"line {error.lineno}")
        raise CompileError(f"not valid Python: {error.msg}", place) from None
    except (Exception, SystemExit) as error:
        reason = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        if isinstance(error, AttributeError | NameError) and isinstance(error.name, str):
            known = dir(error.obj) if isinstance(error, AttributeError) else ()
            found = close(error.name, known).strip()
            raise CompileError(reason, _line(error, path), found) from None
        raise CompileError(reason, _line(error, path)) from None


def _line(error: BaseException, path: Path) -> Place:
    """The last line of the file that was being executed."""
    lines = [
        frame.lineno
        for frame in traceback.extract_tb(error.__traceback__)
        if frame.filename == str(path)
    ]
    return Place(str(path), "", f"line {lines[-1]}") if lines else Place(str(path))

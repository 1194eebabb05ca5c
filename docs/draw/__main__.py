"""Draws the pictures of the documentation: ``make pictures``.

Every number in them comes from the weights of a machine and from traces that it wrote. The same
versions of the packages give the same bytes.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import attention
import memory
import numpy as np
from stream import Inside, look_inside

from compiler import compile_program
from compiler.build import Machine, build_machine
from compiler.draw import plan_figure, save_figure
from compiler.evaluate import generate
from compiler.machine_file import load_machine_file
from compiler.own_machine import build_own_machine
from executor import Explanation, explain, run
from executor.inside.picture import attention_figure, hull_figure

HERE = Path(__file__).parent
FOLDER = HERE.parent / "pictures"
MACHINES = HERE.parent.parent / "programs" / "machines"
ADD = "../../programs/add.tok"
SUM = "2 7 1 8 2 8 + 3 1 4 1 5 9 ="


@cache
def own(name: str) -> Machine:
    """A machine of the tutorial, by the simple placement or the solver, whichever is installed."""
    return build_own_machine(load_machine_file(MACHINES / f"{name}.py")).machine


@cache
def adder() -> Inside:
    """The adder at work."""
    machine = own("adder")
    prompt = [*machine.rom, *SUM.split()]
    trace = generate(machine.graph, prompt, machine.graph.stops, 99)
    return look_inside(machine, (*prompt, *trace))


@cache
def program(name: str) -> Inside:
    """The default machine running a program of this folder; the model itself wrote the trace."""
    machine, compiled = build_machine(), compile_program(HERE / name)
    result = run(compiled, engine="hull")
    prompt = (*machine.rom, *compiled.tokens, *compiled.input_tokens())
    inside = look_inside(machine, (*prompt, *result.trace))
    logits = inside.streams[-1] @ machine.arrays["head.weight"].T
    written = [machine.vocabulary[token] for token in np.argmax(logits, axis=1)]
    if tuple(written[len(prompt) - 1 : -1]) != inside.tokens[len(prompt) :]:
        raise RuntimeError(f"{name}: what is drawn is not what the machine wrote")
    return inside


@cache
def explained() -> Explanation:
    """Where the default machine writes the 08 of 3 + 5."""
    return explain(HERE / ADD, at=10, engine="hull")


def prompt_of(name: str) -> int:
    """Tokens of the prompt of one of the programs."""
    return program(name).tokens.index("eof") + 1


PICTURES: dict[str, Callable[[], Any]] = {
    "parabola": lambda: attention.parabola(adder(), "first", adder().tokens.index("=") + 1),
    "lookups": lambda: memory.lookups(program(ADD)),
    "memory": lambda: memory.rewritten_memory(program("histogram.wat"), prompt_of("histogram.wat")),
    "carry": lambda: memory.carry(program("carry.tok")),
    "division": lambda: attention.division(program("division.tok"), 1000, 7),
    "verbs": lambda: plan_figure(own("verbs").graph, own("verbs").plan),
    "adder": lambda: plan_figure(own("adder").graph, own("adder").plan),
    "arcs": lambda: attention_figure(explained(), int(explained().positions[0])),
    "hull": lambda: hull_figure(explained(), int(explained().positions[0]), 2, 2),
    "slots": lambda: plan_figure(build_machine().graph, build_machine().plan),
}


def main() -> None:
    """Draw all pictures, or those that are named."""
    parser = argparse.ArgumentParser(prog="python docs/draw", description=main.__doc__)
    parser.add_argument("name", nargs="*", metavar="NAME", help=", ".join(PICTURES))
    parser.add_argument("--folder", type=Path, default=FOLDER)
    parser.add_argument("--format", choices=("svg", "png"), default="svg")
    options = parser.parse_args()
    unknown = set(options.name) - set(PICTURES)
    if unknown:
        parser.error(f"no picture {', '.join(sorted(unknown))}; choose from {', '.join(PICTURES)}")
    options.folder.mkdir(exist_ok=True)
    for name in options.name or PICTURES:
        path = options.folder / f"{name}.{options.format}"
        save_figure(PICTURES[name](), path)
        print(f"{path}: {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()

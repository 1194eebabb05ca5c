"""Find a plan with OR-tools' CP-SAT solver (the ``scheduler`` extra).

``python -m compiler.solve [default] [base]`` solves these machines, the default one if none is
named, and writes ``compiler/plans/NAME.json``.

The model has one Boolean "done by half-layer h" per node and h. Births, deaths and erasures of
quantities are conjunctions and disjunctions of these, so that the number of occupied slots after
each half-layer is a linear sum, without big-M constraints.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ortools.sat.python import cp_model

from compiler.errors import TransputerError
from compiler.graph import ONE, POSITION, POSITION_SQUARED, Graph
from compiler.machine import build_graph
from compiler.machine_base import BASE_SHAPE, build_base_graph
from compiler.schedule import Life, Plan, Shape, check_plan, lives, parity, usage

Steps = list[cp_model.IntVar]
"""Element h is true from the moment when something is done in half-layer h or before."""

MACHINES: dict[str, tuple[Callable[[], Graph], Shape]] = {
    "default": (build_graph, Shape()),
    "base": (build_base_graph, BASE_SHAPE),
}
"""Name of a plan: the graph it places, and the shape it has to fit."""


class NoPlanError(TransputerError):
    """There is no plan, or none was found in time."""


@dataclass(frozen=True)
class Solved:
    """A plan, and whether the solver proved that no other is better in what it was to minimise.

    ``neurons``: the ``d_ffn`` that suffices.
    """

    plan: Plan
    proved: bool
    neurons: int

    @property
    def width(self) -> int:
        """Slots in use."""
        return 1 + max(self.plan.slots.values())


@dataclass(frozen=True)
class Size:
    """The smallest shape that was found, a plan that fits it, and what is proved to be least."""

    shape: Shape
    plan: Plan
    slots: int
    width_proved: bool
    neurons_proved: bool

    @property
    def proved(self) -> str:
        """In words."""
        if not self.width_proved:
            return "not proved"
        return "proved" if self.neurons_proved else "d_model proved"


class _Problem:
    """The constraint model of one graph and shape."""

    def __init__(self, graph: Graph, shape: Shape) -> None:
        self.graph, self.shape = graph, shape
        self.model = cp_model.CpModel()
        self.done = {name: self._steps(name) for name in graph.nodes}
        for name, steps in self.done.items():
            self.model.add(steps[-1] == 1)
            for time in range(shape.end):
                if time % 2 != parity(graph.nodes[name]):
                    before = steps[time - 1] if time else 0
                    self.model.add(steps[time] == before)
        self._order()
        self.born, self.erased = self._lives()
        self._erasures_read()
        self.width = self.model.new_int_var(1, shape.d_model, "d_model")
        self.neurons = self.model.new_int_var(0, shape.d_ffn, "d_ffn")
        self._slots()
        self._capacity()

    def _steps(self, name: str) -> Steps:
        steps = [self.model.new_bool_var(f"{name}@{time}") for time in range(self.shape.end)]
        for earlier, later in zip(steps, steps[1:], strict=False):
            self.model.add_implication(earlier, later)
        return steps

    def _order(self) -> None:
        for name, waits in self.graph.dependencies().items():
            for earlier in waits:
                self.model.add(self.done[name][0] == 0)
                for time in range(1, self.shape.end):
                    self.model.add_implication(self.done[name][time], self.done[earlier][time - 1])

    def _lives(self) -> tuple[dict[str, Steps], dict[str, Steps]]:
        writers, readers = self.graph.writers(), self.graph.readers()
        scored = self.graph.scored()
        born, erased = {}, {}
        for name in self.graph.quantities:
            born[name] = self._steps(f"born {name}")
            for writer in writers[name]:
                for time in range(self.shape.end):
                    self.model.add_implication(self.done[writer][time], born[name][time])
            if name in self.graph.inputs or not writers[name]:
                self.model.add(born[name][0] == 1)
            erased[name] = self._steps(f"erased {name}")
            if name in scored:
                self.model.add(erased[name][-1] == 0)
            for reader in readers[name]:
                for time in range(self.shape.end):
                    self.model.add_implication(erased[name][time], self.done[reader][time])
            for writer in writers[name]:
                self.model.add(erased[name][0] == 0)
                for time in range(1, self.shape.end):
                    self.model.add_implication(erased[name][time], self.done[writer][time - 1])
        return born, erased

    def _erasures_read(self) -> None:
        """Erasures read ``one``, those by heads the position: these must still be there."""
        for read in (ONE, POSITION, POSITION_SQUARED):
            for name, steps in self.erased.items():
                for time in range(1, self.shape.end):
                    if name != read and (read == ONE or time % 2 == 0):
                        gone = self.erased[read][time - 1]
                        self.model.add(self._at(steps, time) + gone <= 1)

    def _slots(self) -> None:
        """What is not an integer needs its slot one half-layer sooner and longer."""
        first: list[cp_model.LinearExprT] = [
            self.born[name][0]
            for name, quantity in self.graph.quantities.items()
            if not quantity.integral or name in self.graph.inputs
        ]
        self.model.add(cp_model.LinearExpr.sum(first) <= self.width)
        for time in range(self.shape.end):
            occupied: list[cp_model.LinearExprT] = []
            for name, quantity in self.graph.quantities.items():
                sooner = min(time + (0 if quantity.integral else 1), self.shape.end - 1)
                later = time - (0 if quantity.integral else 1)
                occupied.append(self.born[name][sooner])
                if later >= 0:
                    occupied.append(-1 * self.erased[name][later])
            self.model.add(cp_model.LinearExpr.sum(occupied) <= self.width)

    def _capacity(self) -> None:
        for time in range(self.shape.end):
            weight = 1 if time % 2 else 2
            used = [weight * self._at(steps, time) for steps in self.done.values()]
            used += [self._at(steps, time) for steps in self.erased.values()]
            limit = self.neurons if time % 2 else weight * self.shape.n_heads
            self.model.add(cp_model.LinearExpr.sum(used) <= limit)

    @staticmethod
    def _at(steps: Steps, time: int) -> cp_model.LinearExpr:
        """1 if the thing is done in half-layer ``time`` itself."""
        return steps[time] - (steps[time - 1] if time else 0)


def solve(graph: Graph, shape: Shape, seconds: float, workers: int = 2, log: bool = False) -> Plan:
    """The plan with the fewest residual slots that was found in ``seconds``.

    Raises NoPlanError if there is none, or none was found in time.
    """
    return fewest_slots(graph, shape, seconds, workers, log).plan


def fewest_slots(
    graph: Graph, shape: Shape, seconds: float, workers: int = 2, log: bool = False
) -> Solved:
    """As :func:`solve`, and whether the number of slots is proved to be the least."""
    problem = _Problem(graph, shape)
    problem.model.minimize(problem.width)
    return _solve(problem, seconds, workers, log)


def fewest_neurons(
    graph: Graph, shape: Shape, seconds: float, workers: int = 2, log: bool = False
) -> Solved:
    """A plan in ``shape`` with the least ``d_ffn``."""
    problem = _Problem(graph, shape)
    problem.model.minimize(problem.neurons)
    return _solve(problem, seconds, workers, log)


def smallest(graph: Graph, seconds: float, widest: Shape, workers: int = 2) -> Size:
    """The least ``d_model`` that is even, as heads have two dimensions, then the least ``d_ffn``.

    Raises TransputerError if ``widest`` has no room for the graph, or nothing was found in time.
    """
    first = fewest_slots(graph, widest, seconds, workers)
    proved = first.proved
    for width in range(first.width + first.width % 2, widest.d_model + 1, 2):
        shape = replace(widest, d_model=width, n_heads=width // 2)
        try:
            solved = fewest_neurons(graph, shape, seconds, workers)
        except NoPlanError as error:
            proved = proved and "INFEASIBLE" in str(error)
            continue
        shape = replace(shape, d_ffn=max(1, solved.neurons))
        return Size(shape, solved.plan, first.width, proved, solved.proved)
    raise NoPlanError(f"no plan up to {widest}")


def _solve(problem: _Problem, seconds: float, workers: int, log: bool) -> Solved:
    graph, shape = problem.graph, problem.shape
    solver = cp_model.CpSolver()
    solver.parameters.max_time_in_seconds = seconds
    solver.parameters.num_workers = workers
    solver.parameters.random_seed = 1
    solver.parameters.log_search_progress = log
    status = solver.solve(problem.model)
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        raise NoPlanError(f"no plan for {shape}: {solver.status_name(status)}")
    times = {n: _first(solver, steps) for n, steps in problem.done.items()}
    erased = {
        n: time
        for n, steps in problem.erased.items()
        if (time := _first(solver, steps)) < shape.end
    }
    plan = place(graph, shape, times, erased)
    faults = check_plan(graph, plan)
    if faults:
        raise TransputerError("the solver's plan is wrong: " + "; ".join(faults))
    used = usage(graph, plan)
    neurons = max(used[time] for time in range(1, shape.end, 2))
    return Solved(plan, status == cp_model.OPTIMAL, neurons)


def _first(solver: cp_model.CpSolver, steps: Sequence[cp_model.IntVar]) -> int:
    return next((t for t, step in enumerate(steps) if solver.value(step)), len(steps))


def place(graph: Graph, shape: Shape, times: Mapping[str, int], erased: Mapping[str, int]) -> Plan:
    """Give every quantity a slot, in order of birth; drop erasures that free nothing."""
    life = lives(graph, times, shape.end)
    slots: dict[str, int] = {}
    holder: list[str | None] = [None] * shape.d_model
    for name in sorted(
        graph.quantities, key=lambda n: (life[n].birth, graph.quantities[n].integral)
    ):
        slot = next(
            (s for s, old in enumerate(holder) if _is_free(graph, life, erased, old, name)), None
        )
        if slot is None:
            raise TransputerError(f"no free slot for {name}")
        slots[name] = slot
        holder[slot] = name
    kept = {name: time for name, time in erased.items() if holder[slots[name]] != name}
    return Plan(shape, dict(times), slots, kept)


def _is_free(
    graph: Graph, life: Mapping[str, Life], erased: Mapping[str, int], old: str | None, new: str
) -> bool:
    if old is None:
        return True
    both_integral = graph.quantities[old].integral and graph.quantities[new].integral
    return old in erased and erased[old] + (0 if both_integral else 1) <= life[new].birth


def main(arguments: Sequence[str] | None = None) -> None:
    """Solve machines and write their plans."""
    parser = argparse.ArgumentParser(prog="python -m compiler.solve", description=main.__doc__)
    parser.add_argument("machine", nargs="*", default=["default"], metavar="MACHINE")
    parser.add_argument("--seconds", type=float, default=120, help="for each machine")
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent / "plans")
    parser.add_argument("--verbose", action="store_true", help="print the solver's log")
    options = parser.parse_args(arguments)
    for name in options.machine:
        if name not in MACHINES:
            parser.error(f"no machine {name!r}; choose from {', '.join(MACHINES)}")
    for name in options.machine:
        build, shape = MACHINES[name]
        solved = fewest_slots(build(), shape, options.seconds, log=options.verbose)
        path = options.folder / f"{name}.json"
        path.write_text(solved.plan.to_json(), encoding="utf-8")
        print(f"{path}: {solved.width} slots{', proved' if solved.proved else ''}")


if __name__ == "__main__":
    main()

"""The base machine against the oracle, token for token, and every test of its opcodes."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest

from base_programs import (
    PAGE,
    agree,
    all_pairs,
    assembled,
    const,
    memory_accesses,
    random_module,
    small_program,
)
from compiler import circle, compile_program, isa
from compiler.errors import TransputerError
from compiler.evaluate import Evaluator
from compiler.graph import Gate
from compiler.machine_base import BASE_SHAPE, MAX_MEMORY
from compiler.machine_base_build import build_base_machine
from compiler.machine_base_tokens import CLASS, CODES, DUE, ORDER, POINTS, is_pair, is_point
from compiler.program import Program
from compiler.schedule import check_plan, lives
from executor.checkpoint import Array, Checkpoint
from executor.loading import checkpoint_of, refusal
from executor.oracle import Oracle, trace
from orders import (
    Attention,
    Pass,
    Way,
    backward,
    blas,
    blurred,
    einsum,
    forward,
    in_order,
    mean_of_sum,
    shuffled,
)


@pytest.fixture(scope="module")
def checkpoint() -> Checkpoint:
    return checkpoint_of(build_base_machine())


# --- the model against the oracle ----------------------------------------------------------------


@pytest.mark.parametrize("op", ["i32.add", "i32.sub", *isa.COMPARISONS])
def test_operations_on_pairs(checkpoint: Checkpoint, op: str) -> None:
    agree(checkpoint, all_pairs(op))


@pytest.mark.parametrize("seed", range(4))
def test_memory_accesses(checkpoint: Checkpoint, seed: int) -> None:
    agree(checkpoint, memory_accesses(seed))


def test_farthest_addresses(checkpoint: Checkpoint) -> None:
    """The last bytes of the largest memory, and the last local, whose squares are the greatest."""
    agree(checkpoint, memory_accesses(5, MAX_MEMORY))
    last = isa.MAX_LOCALS - 1
    code = [("local.set", last), ("local.get", last), ("global.get", last), ("return", 10)]
    program = assembled(const(1), ("global.set", last), const(2), ("call", 10), ("halt", 0), *code)
    found = agree(checkpoint, program)
    assert found[-1] == isa.HALT and found.count("return_commit") == 1


@pytest.mark.parametrize("seed", range(20))
def test_random_modules(checkpoint: Checkpoint, seed: int) -> None:
    agree(checkpoint, random_module(seed), limit=500)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 160))
def test_more_random_modules(checkpoint: Checkpoint, seed: int) -> None:
    agree(checkpoint, random_module(seed), limit=10_000)


@pytest.mark.parametrize("source", ["programs/hello.c", "programs/add.tok"])
def test_programs(checkpoint: Checkpoint, source: str) -> None:
    agree(checkpoint, compile_program(source, libc="tiny"))


def test_every_opcode_is_executed(checkpoint: Checkpoint) -> None:
    """By the programs above, so that none of them is tested by none."""
    programs = [all_pairs(op) for op in ("i32.add", "i32.sub", *isa.COMPARISONS)]
    programs += [memory_accesses(seed) for seed in range(4)]
    programs += [random_module(seed) for seed in range(20)]
    seen = set()
    for program in programs:
        oracle = Oracle(program, program.input_tokens())
        for number, _ in enumerate(oracle.trace()):
            seen.add(oracle.code.instructions[min(oracle.index, len(oracle.code.instructions)) - 1])
            if number > 500:
                break
    executed = {name for name, _ in seen} | {"br", "return", "call"}
    assert set(ORDER) - executed <= set()


@pytest.mark.parametrize(("op", "width"), [(n, w) for n, (w, _) in isa.LOADS.items()])
def test_loads_trap_one_byte_beyond_the_memory(checkpoint: Checkpoint, op: str, width: int) -> None:
    for address, offset in ((PAGE - width, 0), (0, PAGE - width)):
        inside = assembled(const(address), (op, offset), memory=PAGE)
        assert agree(checkpoint, inside)[-1] == isa.HALT
        beyond = assembled(const(address + 1), (op, offset), memory=PAGE)
        assert agree(checkpoint, beyond)[-1] == "trap(out_of_bounds)"
    far = assembled(const(-1), (op, 0xFFFFFFFF), memory=PAGE)
    assert agree(checkpoint, far)[-1] == "trap(out_of_bounds)"


@pytest.mark.parametrize(("op", "width"), isa.STORES.items())
def test_stores_trap_one_byte_beyond_the_memory(
    checkpoint: Checkpoint, op: str, width: int
) -> None:
    for address, offset in ((PAGE - width, 0), (0, PAGE - width)):
        inside = assembled(const(address), const(-1), (op, offset), memory=PAGE)
        assert agree(checkpoint, inside)[-1] == isa.HALT
        beyond = assembled(const(address + 1), const(-1), (op, offset), memory=PAGE)
        assert agree(checkpoint, beyond)[-1] == "trap(out_of_bounds)"
    far = assembled(const(-1), const(-1), (op, 0xFFFFFFFF), memory=PAGE)
    assert agree(checkpoint, far)[-1] == "trap(out_of_bounds)"


@pytest.mark.long
def test_calls_too_deep_trap(checkpoint: Checkpoint) -> None:
    program = assembled(("call", 0))
    found = agree(checkpoint, program, limit=5 * isa.MAX_CALL_DEPTH)
    assert found[-1] == "trap(stack_exhausted)"


@pytest.mark.parametrize("taken", [0, 1, 0x80000000])
def test_branches_on_an_empty_stack(checkpoint: Checkpoint, taken: int) -> None:
    """A byte of ``br`` finds itself on top of an empty stack, and ``branch_taken`` in its word."""
    code = [("br", 5), ("br", 5), const(taken), ("br_if", 10), ("br", 5), ("br", 5)]
    assert agree(checkpoint, assembled(*code))[-1] == isa.HALT


def test_exact_evaluator_says_the_same() -> None:
    """The plan's order of half-layers, in integers and fractions."""
    machine, program = build_base_machine(), small_program()
    evaluator = Evaluator(machine.graph, machine.plan.times)
    for token in [*program.tokens, *program.input_tokens()]:
        evaluator.feed(token)
    expected = list(trace(program, program.input_tokens(), limit=1000))
    for token in expected:
        assert evaluator.best() == token
        evaluator.feed(token)
    assert len(expected) > 50


class _Pass(Pass):
    """A pass that allows a layer whose heads fetch nothing."""

    def _attend(self, layer: int, projected: Array) -> Attention:
        if self.parts(projected)[2].any():
            return super()._attend(layer, projected)
        own = np.arange(len(projected))[:, None]
        return Attention([0], [], own, np.repeat(own[:, :, None], 4, axis=2))


@pytest.mark.parametrize(
    "program",
    [small_program(), memory_accesses(2), memory_accesses(5, MAX_MEMORY), all_pairs("i32.lt_s")],
)
def test_the_stream_is_the_same_in_any_order(checkpoint: Checkpoint, program: Program) -> None:
    """Bit by bit, however sums are computed (see ``orders.py``)."""
    dots = [in_order(forward), in_order(backward), in_order(shuffled(1)), blas, einsum]
    ways = [Way(str(number), dot, mean_of_sum) for number, dot in enumerate(dots)]
    tokens = [*program.tokens, *program.input_tokens()]
    tokens += islice(trace(program, program.input_tokens()), 400)
    one = _Pass(checkpoint, checkpoint.encode(tokens), ways, blurred(build_base_machine()))
    for layer in range(BASE_SHAPE.n_layers):
        assert not list(one.layer(layer))


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2])
def test_engines_agree(checkpoint: Checkpoint, seed: int) -> None:
    program = random_module(seed)
    assert agree(checkpoint, program, 1500) == agree(checkpoint, program, 1500, "standard")


# --- what is refused -----------------------------------------------------------------------------


def test_other_opcodes_are_refused(checkpoint: Checkpoint) -> None:
    for name in set(isa.OPCODES) - set(ORDER):
        with pytest.raises(TransputerError, match="no token"):
            checkpoint.encode([name])


def test_more_memory_than_exact_addresses_is_refused(checkpoint: Checkpoint) -> None:
    fits = assembled(const(0), ("i32.load", 0), memory=MAX_MEMORY)
    assert refusal(checkpoint.config, fits) is None
    assert refusal(checkpoint.config, assembled(const(0), memory=MAX_MEMORY + 1)) is not None


# --- the plan and the circle ---------------------------------------------------------------------


def test_stored_plan_obeys_every_rule_and_is_small() -> None:
    machine = build_base_machine()
    assert check_plan(machine.graph, machine.plan) == []
    assert machine.plan.shape == BASE_SHAPE
    assert (BASE_SHAPE.d_model, BASE_SHAPE.n_heads, BASE_SHAPE.n_layers) <= (22, 11, 7)
    assert max(array.shape[-1] for array in machine.arrays.values()) == BASE_SHAPE.d_ffn


def test_sums_are_born_where_nothing_or_a_small_integer_stood() -> None:
    """They count as integers so that their slots may be used again, but are rounded at birth."""
    machine = build_base_machine()
    graph, slots, erased = machine.graph, machine.plan.slots, machine.plan.erased
    life = lives(graph, machine.plan.times, BASE_SHAPE.end)
    for name in ("depth", "call_depth", "cursor"):
        for old, time in erased.items():
            if slots[old] == slots[name] and time == life[name].birth:
                assert old in {*graph.inputs, "last_byte", "word"}, name


def test_solver_finds_nothing_smaller() -> None:
    solve = pytest.importorskip("compiler.solve", reason="the scheduler extra is not installed")
    graph = build_base_machine().graph
    for shape in ((15, 9, 7, 40), (16, 8, 7, BASE_SHAPE.d_ffn - 1), (40, 20, 6, 200)):
        with pytest.raises(TransputerError, match="INFEASIBLE"):
            solve.solve(graph, type(BASE_SHAPE)(*shape), seconds=60)


def test_35_opcodes_are_known() -> None:
    assert len(ORDER) == len(set(ORDER)) == 35
    assert set(ORDER) <= set(isa.OPCODES)


def test_points_and_pairs_are_recognised_and_nothing_else() -> None:
    """Bytes with and without carry, and all other opcodes, pass no test."""
    others = [(byte, carry) for byte in range(256) for carry in (-1, 0, 1)]
    for name in ORDER:
        passed = [n for n, point in POINTS.items() if is_point(name)(point) > 0]
        assert passed == [name] and is_point(name)(POINTS[name]) == 1
        assert all(is_point(name)(point) <= 0 for point in others)
    for pair in zip(ORDER, ORDER[1:], strict=False):
        test = is_pair(*pair)
        assert [n for n, point in POINTS.items() if test(point) > 0] == list(pair)
        assert test(POINTS[pair[0]]) == test(POINTS[pair[1]]) == 1
        assert all(test(point) <= 0 for point in others)
    assert all(y > 0 and x * x + y * y == circle.RADIUS_SQUARED for x, y in POINTS.values())


def test_control_codes_win_at_their_result_and_only_there() -> None:
    for _, (code, slope, offset) in CODES.items():
        own = slope * code - offset
        rest = [s * code - o for c, s, o in CODES.values() if c != code]
        assert own > 1 + max([0, *rest])
        assert offset > 3


def test_no_commit_class_outweighs_a_commit_that_is_not_due() -> None:
    machine = build_base_machine()
    points = np.array(list(POINTS.values()))
    for token in (isa.commit_token(*commit) for commit in isa.COMMITS):
        terms = machine.graph.scores[token].terms
        constant = terms["one"] + 4 * DUE
        classes = points @ np.array([terms["x"], terms["y"]]) + constant
        assert np.all(np.abs(classes) >= CLASS) and np.all(classes < DUE / 2)


def test_a_neuron_opens_for_the_opcodes_in_its_name_alone() -> None:
    """``result: local.get|global.get`` and its like, on every opcode, all else being zero."""
    gates = [n for n in build_base_machine().graph.nodes.values() if isinstance(n, Gate)]
    checked = 0
    for gate in gates:
        named = gate.name.partition(": ")[2].split("|")
        by_address = "key_squared" in gate.name or "sign" in gate.name
        if not set(named) <= set(ORDER) or by_address:
            continue
        for op, (x, y) in POINTS.items():
            terms = {"x": 0.0, "y": 0.0, **gate.gate.terms}
            value = terms["one"] + terms["x"] * x + terms["y"] * y
            assert (value > 0) == (op in named), (gate.name, op)
            checked += 1
    assert checked > 1000

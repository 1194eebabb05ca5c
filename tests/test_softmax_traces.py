"""The exported module writes the expected traces: whole short ones, samples of long ones.

A sample's query runs through all layers of the module, against the exact history of each.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from compiler import isa  # noqa: E402
from compiler.build import Machine  # noqa: E402
from compiler.machine_arithmetic import LOOSE_FLOORS  # noqa: E402
from compiler.program import Program  # noqa: E402
from compiler.softmax import softmax_export, tie_break, with_softmax_weights  # noqa: E402
from executor.checkpoint import Array, Checkpoint  # noqa: E402
from executor.loading import build_checkpoint, refusal  # noqa: E402
from executor.oracle import trace, trace_tokens  # noqa: E402
from executor.torch_engine import TorchEngine, make_model  # noqa: E402
from probe import INPUT, probe, prompt_ids  # noqa: E402
from softmax_tools import best_tokens, exact_streams, hard_checkpoint, module_predicts  # noqa: E402
from test_programs import CASES, LARGE, Case, compiled, named  # noqa: E402

BOTH = pytest.mark.parametrize("explicit", [False, True], ids=["fused", "explicit"])
HARDEST = "8..........36......7..9.2...5...7.......457.....1...3...1....68..85...1..9....4.."
USUAL = (CASES[0], *LARGE)
DEPTH = 256


@dataclass(frozen=True)
class Known:
    """A sequence whose every token is known, and each layer's exact input."""

    ids: np.ndarray
    start: int
    streams: list[Array]

    def wrong(
        self, model: Checkpoint, positions: np.ndarray, *, explicit: bool = False, block: int = 64
    ) -> int:
        """At how many of the positions the module predicts another token than the next."""
        module = make_model(model)
        found = module_predicts(module, self.streams, positions, explicit=explicit, block=block)
        return int((found != self.ids[positions + 1]).sum())

    @property
    def asked(self) -> np.ndarray:
        """The positions whose next token belongs to the trace."""
        return np.arange(self.start - 1, len(self.ids) - 1)


def known(prompt: list[int], expected: Iterator[str]) -> Known:
    """Raises AssertionError if the machine for hard attention does not write this trace."""
    model = hard()
    ids = np.array(prompt + model.encode(expected))
    streams = exact_streams(model, ids)
    assert (best_tokens(model, streams[-1])[len(prompt) - 1 : -1] == ids[len(prompt) :]).all()
    return Known(ids, len(prompt), streams)


@cache
def hard() -> Checkpoint:
    return hard_checkpoint(DEPTH)


def of_case(case: Case, most: int) -> Known:
    program = compiled(case)
    expected = islice(trace_tokens(program, case.args, case.stdin), most)
    return known(prompt_ids(hard(), program, case.args, case.stdin), expected)


def of_program(program: Program) -> Known:
    return known(prompt_ids(hard(), program), trace(program, program.input_tokens()))


def changed(eps: float, temperature: float) -> Checkpoint:
    """The export with another tie-break and temperature."""
    right = build_checkpoint("softmax")
    machine = softmax_export().machine
    plain = Machine(
        machine.vocabulary, machine.rom, dict(hard().weights), machine.config, machine.placed,
        machine.graph, machine.plan,
    )  # fmt: skip
    weights = with_softmax_weights(plain, plain.config, eps, temperature).arrays
    return Checkpoint(right.config, right.vocabulary, weights, right.rom)


# --- whole traces -----------------------------------------------------------------------------


@BOTH
def test_the_module_predicts_every_instruction(explicit: bool) -> None:
    """Some tokens of the probe, which touches every instruction and table row."""
    sequence = known(prompt_ids(hard(), probe(), (), INPUT), trace_tokens(probe(), stdin=INPUT))
    positions = sequence.asked[:: 700 if explicit else 150]
    assert sequence.wrong(build_checkpoint("softmax"), positions, explicit=explicit) == 0


def test_the_module_predicts_the_first_tokens() -> None:
    teacher_forced(USUAL[1], 150)


@pytest.mark.long
@pytest.mark.parametrize("case", named(USUAL))
def test_the_module_predicts_six_thousand_tokens(case: Case) -> None:
    teacher_forced(case, 6000)


@pytest.mark.long
@pytest.mark.parametrize("case", named(USUAL))
def test_explicit_weights_predict_six_thousand_tokens(case: Case) -> None:
    sequence = of_case(case, most_trace(case, 6000))
    assert sequence.wrong(build_checkpoint("softmax"), sequence.asked, explicit=True) == 0


def most_trace(case: Case, most: int) -> int:
    """Tokens of trace in ``most`` tokens of all; a thousand where the prompt alone is longer."""
    return max(1000, most - len(prompt_ids(hard(), compiled(case), case.args, case.stdin)))


def teacher_forced(case: Case, most: int) -> None:
    """The whole sequence through the module, in chunks; nothing comes from elsewhere."""
    model, program = build_checkpoint("softmax"), compiled(case)
    assert refusal(model.config, program) is None
    prompt = prompt_ids(model, program, case.args, case.stdin)
    count = most_trace(case, most) if most >= 1000 else most
    expected = islice(trace_tokens(program, case.args, case.stdin), count)
    ids = prompt + model.encode(expected)
    engine = TorchEngine(model)
    engine.feed(ids[: len(prompt) - 1])
    assert engine.predict(ids[len(prompt) - 1 : -1]) == ids[len(prompt) :]


# --- long traces ------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize(("length", "samples"), [(100_000, 2000), (500_000, 2000)])
def test_samples_of_a_long_trace(length: int, samples: int) -> None:
    """Arto Inkala's puzzle, in an export made for 2^19 tokens and 64 KiB."""
    sequence = of_case(Case("sudoku.c", (HARDEST,)), length)
    model = build_checkpoint("softmax", 2**19, 65536, DEPTH)
    rng = np.random.default_rng(length)
    positions = rng.choice(sequence.asked, samples, replace=False)
    assert sequence.wrong(model, positions) == 0
    assert sequence.wrong(model, positions[: samples // 40], explicit=True, block=8) == 0


# --- what must fail ---------------------------------------------------------------------------


def code(*instructions: tuple[str, int]) -> Program:
    """A program written by hand, with 64 KiB of memory."""
    head = "00 00 01 00 memory 0a 00 00 00 segment {"  # the cursor comes up to where the code is
    tokens = head.split()
    for name, immediate in (*instructions, ("halt", 0)):
        tokens += [name, *(f"{byte:02x}" for byte in (immediate % 2**32).to_bytes(4, "little"))]
    return Program("test.tok", (*tokens, isa.CLOSE), memory_bytes=65536)


def products(number: int, count: int) -> list[tuple[int, int]]:
    """Operands whose product leaves a loose floor undecided but for its last bits.

    The accumulator of result byte 3 is y = (A·B_low + A_low·B_high·2^16) / 2^24; for odd A and
    B = j/A mod 2^32 it is a multiple of 2^8 plus j·2^-24. Chosen are those with
    y = size·(k + slack) + j·2^-24, k > 0.
    """
    size, slack = LOOSE_FLOORS[number]
    rng = np.random.default_rng(number)
    found: list[tuple[int, int]] = []
    while len(found) < count:
        a = rng.integers(2**31, size=1 << 18).astype(np.uint64) * np.uint64(2) + np.uint64(1)
        inverse = a.copy()
        for _ in range(5):  # Newton: three bits are right, then six, ...
            inverse = inverse * (np.uint64(2) - a * inverse)
        j = rng.integers(1, 4)
        b = inverse * np.uint64(j) % np.uint64(2**32)
        low = np.uint64(0xFFFF)
        y = a * (b & low) + (((a & low) * (b >> np.uint64(16))) << np.uint64(16))
        rest = (y - np.uint64(j)) % np.uint64(int(size * 2**24))
        near = (rest == np.uint64(int(size * slack * 2**24))) & (y >= np.uint64(size * 2**24))
        found += [(int(one), int(other)) for one, other in zip(a[near], b[near], strict=True)]
    return found[:count]


def multiplications(number: int) -> Known:
    steps = []
    for a, b in products(number, 6):
        steps += [("i32.const", a), ("i32.const", b), ("i32.mul", 0), ("drop", 0)]
    return of_program(code(*steps))


@BOTH
@pytest.mark.parametrize("number", [0, 1])
def test_products_next_to_a_boundary_are_right(number: int, explicit: bool) -> None:
    sequence = multiplications(number)
    assert sequence.wrong(build_checkpoint("softmax"), sequence.asked, explicit=explicit) == 0


def test_a_temperature_of_2_46_fails_on_them() -> None:
    sequence = multiplications(0)
    right = tie_break(2**15)
    assert sequence.wrong(changed(right, 2.0**64), sequence.asked) == 0
    assert sequence.wrong(changed(right, 2.0**46), sequence.asked) > 0


def test_a_temperature_of_2_34_fails_where_a_product_is_a_multiple_of_256() -> None:
    steps = []
    for a, b in ((16, 16), (128, 2), (2**31 + 2**15, 2**8 + 2)):
        steps += [("i32.const", a), ("i32.const", b), ("i32.mul", 0), ("drop", 0)]
    sequence = of_program(code(*steps))
    assert sequence.wrong(build_checkpoint("softmax"), sequence.asked) == 0
    assert sequence.wrong(changed(tie_break(2**15), 2.0**34), sequence.asked) > 0


def writes_and_reads() -> Known:
    """The top byte of the memory and the byte below it, written and read in turn."""
    steps: list[tuple[str, int]] = []
    for value in range(1, 7):
        for address in (65535, 65534):
            steps += [("i32.const", address), ("i32.const", value * 16 + address % 16)]
            steps += [("i32.store8", 0)]
        steps += [("i32.const", 65535), ("i32.load8_u", 0), ("drop", 0)]
    return of_program(code(*steps))


def test_memory_up_to_the_last_byte_is_right_and_a_wrong_tie_break_is_not() -> None:
    sequence = writes_and_reads()
    largest = build_checkpoint("softmax", 2**19, 65536)
    assert sequence.wrong(largest, sequence.asked) == 0
    assert sequence.wrong(largest, sequence.asked, explicit=True) == 0
    too_small, too_large = 2.0**-26, 2.0**-6
    assert sequence.wrong(changed(too_small, 2.0**64), sequence.asked) > 0
    assert sequence.wrong(changed(too_large, 2.0**64), sequence.asked) > 0


def test_samples_can_tell_a_wrong_history() -> None:
    """The tools notice a stream that is not the exact one."""
    sequence = multiplications(0)
    model = build_checkpoint("softmax")
    for layer in (1, 3, 5):
        streams = list(sequence.streams)
        streams[layer] = np.zeros_like(streams[layer])
        broken = Known(sequence.ids, sequence.start, streams)
        assert broken.wrong(model, sequence.asked) > 0

"""Instructions on a million operands inside the model, by the native engine, against wasmtime.

Each pair is two constants, the instruction and a drop; the results are read off the trace.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pytest
import wasmtime

from compiler import isa
from compiler.build import build_machine
from executor.checkpoint import Checkpoint
from executor.decode import extend_chunks, feed_chunks, make_engine
from executor.loading import build_checkpoint

EDGES = np.array(
    [0, 1, 2, 3, 7, 8, 9, 31, 32, 33, 127, 128, 255, 256, 257, 65535, 65536, 2**24 - 1, 2**24,
     2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1, 0x00FF00FF, 0xFF00FF00],
    np.uint64,
)  # fmt: skip
BINARY = (*isa.BINARY, *isa.COMPARISONS, *isa.DIVISIONS)
UNARY = ("i32.eqz", *isa.COUNTS)
Words = npt.NDArray[np.uint32]


def operands(op: str, count: int) -> tuple[Words, Words]:
    """All pairs of edges, then random numbers of all lengths; none that traps."""
    rng = np.random.default_rng(list(op.encode()))
    first, second = (edges.ravel() for edges in np.meshgrid(EDGES, EDGES))
    drawn = count + count // 10  # more than are left out
    lengths = rng.integers(1, 33, (2, drawn), dtype=np.uint64)
    random = rng.integers(0, 2**32, (2, drawn), dtype=np.uint64) >> (32 - lengths)
    a, b = np.concatenate((first, random[0])), np.concatenate((second, random[1]))
    if op in isa.DIVISIONS:
        overflows = (a == 2**31) & (b == 2**32 - 1) & (op == "i32.div_s")
        right = (b != 0) & ~overflows
        a, b = a[right], b[right]
    return a[:count].astype(np.uint32), b[:count].astype(np.uint32)


def reference(op: str, a: Words, b: Words) -> Words:
    """wasmtime's results, by a loop over a memory that holds both arrays."""
    count = len(a)
    second = "" if op in UNARY else f"(i32.load offset={4 * count} (local.get $i))"
    text = f"""(module (memory (export "m") {count // 5000 + 1})
      (func (export "run") (local $i i32) (loop $next
        (i32.store offset={8 * count} (local.get $i)
          ({op} (i32.load (local.get $i)) {second}))
        (local.set $i (i32.add (local.get $i) (i32.const 4)))
        (br_if $next (i32.lt_u (local.get $i) (i32.const {4 * count}))))))"""
    store = wasmtime.Store()
    exports = wasmtime.Instance(store, wasmtime.Module(store.engine, text), []).exports(store)
    memory, run = exports["m"], exports["run"]
    assert isinstance(memory, wasmtime.Memory) and isinstance(run, wasmtime.Func)
    memory.write(store, np.concatenate((a, b)).tobytes(), 0)
    run(store)
    return np.frombuffer(memory.read(store, 8 * count, 12 * count), np.uint32)


def program(op: str, a: Words, b: Words, ids: dict[str, int]) -> npt.NDArray[np.int32]:
    """Token ids of the program, one row of instructions for each pair."""
    bytes_ = np.array([ids[isa.byte_token(value)] for value in range(256)], np.int32)
    zeros = [bytes_[0]] * 4

    def constant(words: Words) -> npt.NDArray[np.int32]:
        opcode = np.full((len(words), 1), ids["i32.const"], np.int32)
        digits = bytes_[words.astype("<u4").view(np.uint8).reshape(-1, 4)]
        return np.concatenate((opcode, digits), axis=1)

    def plain(name: str) -> npt.NDArray[np.int32]:
        return np.tile(np.array([ids[name], *zeros], np.int32), (len(a), 1))

    parts = [constant(a), *([] if op in UNARY else [constant(b)]), plain(op), plain("drop")]
    body = np.concatenate(parts, axis=1).ravel()
    head, tail = [ids[isa.OPEN]], [ids["halt"], *zeros, ids[isa.CLOSE], ids[isa.END_OF_INPUT]]
    return np.concatenate((head, body, tail)).astype(np.int32)


def in_the_model(op: str, a: Words, b: Words, checkpoint: Checkpoint, engine: str) -> Words:
    """The model's results: the four bytes before each commit of the instruction."""
    machine = build_machine()
    ids = machine.ids
    prompt = np.concatenate((checkpoint.rom, program(op, a, b, ids))).astype(np.int32)
    writer = make_engine(engine, checkpoint, say=lambda line: None)
    for _ in feed_chunks(writer, prompt[:-1]):
        pass
    stop = checkpoint.config.stop_tokens
    chunks = extend_chunks(writer, int(prompt[-1]), stop, 20 * len(a) + 1)
    trace = np.concatenate(list(chunks))
    assert machine.vocabulary[trace[-1]] == isa.HALT
    commit = ids[isa.commit_token(isa.OPCODES[op].delta, True, False)]
    ends = np.flatnonzero(trace == commit)
    value = np.zeros(len(machine.vocabulary), np.uint32)
    for byte in range(256):
        for carry in (False, True):
            value[ids[isa.byte_token(byte, carry)]] = byte
    digits = value[trace[ends[:, None] - np.arange(4, 0, -1)]]
    result: Words = (digits << np.arange(0, 32, 8, dtype=np.uint32)).sum(1, dtype=np.uint32)
    return result


Agree = Callable[[str, int], None]


@pytest.fixture(scope="module")
def agree() -> Agree:
    checkpoint = build_checkpoint()

    def compare(op: str, count: int) -> None:
        a, b = operands(op, count)
        assert len(a) == count
        found, expected = in_the_model(op, a, b, checkpoint, "native"), reference(op, a, b)
        wrong = np.flatnonzero(found != expected)
        assert not wrong.size, (op, a[wrong[:5]], b[wrong[:5]], found[wrong[:5]])

    return compare


@pytest.mark.parametrize("op", (*BINARY, *UNARY))
def test_instruction_agrees_with_wasmtime_on_five_thousand_pairs(op: str, agree: Agree) -> None:
    agree(op, 5000)


@pytest.mark.long
@pytest.mark.parametrize("op", (*BINARY, *UNARY))
def test_instruction_agrees_with_wasmtime_on_a_million_pairs(op: str, agree: Agree) -> None:
    agree(op, 1_000_000)

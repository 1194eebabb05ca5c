"""Every binary instruction on edge and random pairs: the model's trace against wasmtime."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
import wasmtime

from compiler import isa
from compiler.build import build_machine
from executor.decode import decode, make_engine
from executor.loading import build_checkpoint

EDGES = (
    0, 1, 2, 3, 7, 8, 9, 15, 16, 17, 24, 31, 32, 33, 127, 128, 255, 256, 257, 65535, 65536,
    2**24 - 1, 2**24, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 2, 2**32 - 1, 0x00FF00FF, 0xFF00FF00,
)  # fmt: skip
BINARY = (*isa.BINARY, *isa.COMPARISONS, *isa.DIVISIONS)
PAIRS_EACH = 2000


def operands(op: str, count: int) -> Iterator[tuple[int, int]]:
    """Edge pairs first, then random ones of all magnitudes; none that traps."""
    rng = random.Random(op)
    edges = [(a, b) for a in EDGES for b in EDGES]
    rng.shuffle(edges)
    made = 0
    while made < count:
        if edges:
            a, b = edges.pop()
        else:
            a = rng.getrandbits(rng.choice((8, 16, 32, 32)))
            b = rng.getrandbits(rng.choice((5, 16, 32)))
        overflows = op == "i32.div_s" and (a, b) == (2**31, 2**32 - 1)
        traps = op in isa.DIVISIONS and (b == 0 or overflows)
        if not traps:
            made += 1
            yield a, b


def reference(op: str, pairs: list[tuple[int, int]]) -> list[int]:
    """wasmtime's results, unsigned."""
    text = f'(module (func (export "f") (param i32 i32) (result i32) local.get 0 local.get 1 {op}))'
    store = wasmtime.Store()
    instance = wasmtime.Instance(store, wasmtime.Module(store.engine, text), [])
    function = instance.exports(store)["f"]
    assert isinstance(function, wasmtime.Func)
    return [function(store, *map(signed, pair)) & 0xFFFFFFFF for pair in pairs]


def signed(value: int) -> int:
    return value - 2**32 if value >> 31 else value


def in_the_model(op: str, pairs: list[tuple[int, int]]) -> list[int]:
    """The model's results: the word before every third commit."""
    machine = build_machine()
    program = [isa.OPEN]
    for a, b in pairs:
        for name, immediate in (("i32.const", a), ("i32.const", b), (op, 0), ("drop", 0)):
            program += [name, *(isa.byte_token(byte) for byte in immediate.to_bytes(4, "little"))]
    program += ["halt", *[isa.byte_token(0)] * 4, isa.CLOSE, isa.END_OF_INPUT]
    ids = machine.ids
    prompt = [ids[token] for token in (*machine.rom, *program)]
    checkpoint = build_checkpoint()
    engine = make_engine("hull", checkpoint)
    stop = checkpoint.config.stop_tokens
    trace = [machine.vocabulary[t] for t in decode(engine, prompt, stop, 20 * len(pairs) + 1)]
    assert trace[-1] == isa.HALT
    commit = isa.commit_token(-1, True, False)
    return [
        sum(int(trace[at - 4 + i][:2], 16) << 8 * i for i in range(4))
        for at, token in enumerate(trace)
        if token == commit
    ]


@pytest.mark.parametrize("op", BINARY)
def test_instruction_agrees_with_wasmtime(op: str) -> None:
    count = PAIRS_EACH // 10 if op in isa.COMPARISONS else PAIRS_EACH // 4
    pairs = list(operands(op, count))
    assert in_the_model(op, pairs) == reference(op, pairs)


@pytest.mark.long
@pytest.mark.parametrize("op", BINARY)
def test_instruction_agrees_with_wasmtime_on_many_pairs(op: str) -> None:
    pairs = list(operands(op, 5000))
    assert in_the_model(op, pairs) == reference(op, pairs)

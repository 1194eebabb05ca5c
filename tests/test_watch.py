"""Watching memory by chunks agrees with the replay, which explains every single store."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from compiler import compile_program, compile_wasm
from compiler.errors import UsageError
from compiler.frontend import to_wasm
from compiler.program import Program
from compiler.toolchain import ENTRY, TINY
from executor.oracle import trace_tokens
from executor.replay import Replay
from executor.watch import MemoryWatch, addresses
from test_scan import IDS, VOCABULARY
from wat_programs import compiled

PROGRAMS = Path(__file__).parent.parent / "programs"
WIDTHS = """(module (memory 1) (data (i32.const 8) "abcdefgh")
  (func $store (param i32 i32) (result i32)
    (i32.store16 offset=2 (local.get 0) (local.get 1))
    (i32.store8 (local.get 0) (i32.div_u (local.get 1) (i32.const 3)))
    (i32.load (local.get 0)))
  (func (export "main") (result i32) (local $i i32)
    (loop $again
      (i32.store (i32.add (i32.const 100) (local.get $i))
        (i32.add (i32.const 0x01020304) (call $store (local.get $i) (i32.const 0x7F0E0D0C))))
      (local.set $i (i32.add (local.get $i) (i32.const 3)))
      (br_if $again (i32.lt_u (local.get $i) (i32.const 60))))
    END))"""
ENDS = ("(i32.const 7)", "(i32.store (i32.const -1) (i32.const 9)) (i32.const 7)", "unreachable")
VARIABLES = """
int row[3] = {1, 2, -3};
int main(void) { for (int i = 0; i < 3; i++) row[i] *= 10; return row[2]; }
"""


def agrees(program: Program, args: Sequence[str] = (), stdin: bytes = b"", seed: int = 0) -> int:
    """Watch a trace in chunks of many lengths; after each chunk the memory is the replay's, and so
    are the addresses stored to, in order. Returns how many these were."""
    tokens = list(trace_tokens(program, args, stdin))
    ids = np.array([IDS[token] for token in tokens], np.int32)
    watch, replay = MemoryWatch(program, VOCABULARY), Replay(program)
    chosen = random.Random(seed)
    at = count = 0
    while at < len(ids):
        length = chosen.choice((1, 2, 4, 5, 9, 40, 1000))
        watch.push(ids[at : at + length])
        stored = []
        for token in tokens[at : at + length]:
            replay.push(token)
            if replay.stored is not None and not replay.reader.pending:
                stored.append(replay.stored.start)
        assert watch.written.tolist() == stored
        assert watch.memory.tobytes() == bytes(replay.memory)
        at, count = at + length, count + len(stored)
    assert watch.end == replay.reader.end
    return count


@pytest.mark.parametrize("end", ENDS)
def test_stores_of_all_widths_up_to_a_trap(end: str) -> None:
    program = compiled(WIDTHS.replace("END", end))
    for seed in range(5):
        assert agrees(program, seed=seed) == 60


@pytest.mark.parametrize(
    ("name", "args", "stdin"),
    [("sort.c", (), b"3 1 2"), ("ackermann.c", ("1", "2"), b""), ("hungarian.c", (), b"2 1 2 3 4")],
)
def test_programs_in_chunks(name: str, args: tuple[str, ...], stdin: bytes) -> None:
    program = compile_program(PROGRAMS / name, libc=TINY)
    assert agrees(program, args, stdin) > 20


def test_a_variable_is_found_by_its_name(tmp_path: Path) -> None:
    source = tmp_path / "variables.c"
    source.write_text(VARIABLES)
    module = to_wasm(source, exports=(ENTRY, "row"), libc=TINY)
    program = compile_wasm(module.wasm, module.name)
    at = addresses(program, ["row"])["row"]
    watch = MemoryWatch(program, VOCABULARY)
    assert watch.words(at, 3).tolist() == [1, 2, -3]
    watch.push(np.array([IDS[token] for token in trace_tokens(program)], np.int32))
    assert watch.words(at, 3).tolist() == [10, 20, -30]
    for name in ("column", ENTRY):
        with pytest.raises(UsageError, match=f"exports no variable {name}"):
            addresses(program, [name])

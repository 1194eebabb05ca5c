"""A part of a trace is shown as the whole trace shows it, wherever it begins."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from command_line import FOREVER, ROOT, transputer, write_tok
from compiler.errors import TransputerError, UsageError
from compiler.program import Program
from executor.decode import Ids
from executor.job import prepare
from executor.listing import listing
from executor.loading import build_checkpoint
from executor.replay import Replay
from executor.runner import Execution
from executor.seek import Excerpt, Part
from executor.trace_file import read_ids
from wat_programs import compiled

WAT = """(module (memory 1) (global $sum (mut i32) (i32.const 0))
  (func $twice (param i32) (result i32) (i32.mul (local.get 0) (i32.const 2)))
  (func (export "main") (result i32) (local i32)
    (loop
      (i32.store8 offset=3 (local.get 0) (call $twice (local.get 0)))
      (global.set $sum (i32.add (global.get $sum) (i32.load offset=1 (local.get 0))))
      (br_if 0 (i32.lt_s (local.tee 0 (i32.add (local.get 0) (i32.const 1))) (i32.const 5))))
    (i32.div_u (global.get $sum) (i32.const 7))))"""


@cache
def run_of(source: str = WAT) -> tuple[Program, tuple[str, ...], Ids]:
    """A program, the vocabulary, and its whole trace."""
    job = prepare(compiled(source))
    execution = Execution(job.program, build_checkpoint(), job.program.input_tokens())
    ids = np.concatenate([chunk.ids for chunk in execution.chunks()])
    return job.program, execution.vocabulary, ids


def pieces(ids: Ids, size: int) -> Iterator[Ids]:
    for start in range(0, len(ids), size):
        yield ids[start : start + size]


def lines_of(ids: Ids, part: Part, size: int = 7) -> list[str]:
    program, vocabulary, _ = run_of()
    excerpt = Excerpt(program, vocabulary, pieces(ids, size), part)
    return list(listing(excerpt, excerpt.state.n_steps))


@cache
def whole() -> tuple[list[str], list[int]]:
    """Every line, and the token at which each instruction begins."""
    program, vocabulary, ids = run_of()
    state = Replay(program)
    starts = [step.event.position for step in state.steps(vocabulary[i] for i in ids.tolist())]
    return lines_of(ids, Part()), starts


def test_a_part_from_any_token_is_what_the_whole_has_there() -> None:
    lines, starts = whole()
    _, _, ids = run_of()
    assert len(lines) == len(starts) > 100
    for token in range(0, len(ids), 31):
        first = int(np.searchsorted(starts, token, "right")) - 1
        assert lines_of(ids, Part(token=token, count=4)) == lines[first : first + 4]
    assert lines_of(ids, Part(token=len(ids) - 1)) == lines[-1:]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_part_from_any_instruction_however_the_trace_is_cut(size: int) -> None:
    lines, _ = whole()
    _, _, ids = run_of()
    for step in range(0, len(lines), 11):
        part = Part(step=step, count=3)
        assert lines_of(ids, part, size) == lines[step : step + 3]


def test_the_state_after_a_part_is_that_after_everything() -> None:
    program, vocabulary, ids = run_of()
    everything = Replay(program)
    list(everything.steps(vocabulary[i] for i in ids.tolist()))
    assert any(everything.memory)
    for token in (0, 50, 200, len(ids) - 1):
        excerpt = Excerpt(program, vocabulary, pieces(ids, 30), Part(token=token))
        list(excerpt)
        state = excerpt.state
        assert state.memory == everything.memory
        assert state.reader.stack == everything.reader.stack
        assert state.reader.n_tokens == len(ids)
        assert (state.index, state.n_steps) == (everything.index, everything.n_steps)
        assert not excerpt.unended


def test_places_behind_the_end_are_refused() -> None:
    program, vocabulary, ids = run_of()
    steps = len(whole()[0])
    for part in (Part(token=len(ids)), Part(step=steps), Part(token=10**9, count=1)):
        excerpt = Excerpt(program, vocabulary, pieces(ids, 30), part)
        with pytest.raises(UsageError, match=f"{len(ids):,} tokens, of {steps:,} instructions"):
            list(excerpt)


def test_lines_tell_stack_locals_and_memory() -> None:
    lines, _ = whole()
    text = "\n".join(lines)
    assert "= 2, to memory[4]" in text
    assert "from memory[1]" in text
    assert "to global 0" in text
    assert "from local 0" in text
    load = next(line for line in lines if "i32.load 1 " in line)
    assert load.split("|")[1].split()[-1] == load.split("= ")[1].split(",")[0]
    deep = [line for line in lines if "| .. " in line]
    assert all(len(line.split("| .. ")[1].split()) == 3 for line in deep)


# --- files --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["trace.txt", "trace.zst"])
def test_files_are_read_from_any_place(tmp_path: Path, name: str) -> None:
    add = ROOT / "programs" / "add.tok"
    trace = tmp_path / name
    assert transputer("run", "--trace", trace, add)[0] == 0
    code, out, _ = transputer("trace", "--from", trace, add)
    assert code == 0
    lines = out.splitlines()
    part = ("trace", "--from", trace, "--at", 7, "--count", 2, add)
    assert transputer(*part) == (0, "\n".join(lines[1:3]) + "\n", "")
    assert (
        transputer("trace", "--from", trace, "--instruction", 3, add)[1].splitlines() == lines[3:]
    )
    code, out, err = transputer("trace", "--from", trace, "--at", 17, add)
    assert (code, out) == (2, "")
    assert "the trace has 17 tokens, of 5 instructions" in err


def test_a_partial_trace_is_shown_up_to_where_it_breaks_off(tmp_path: Path) -> None:
    program, trace = write_tok(tmp_path / "forever.tok", *FOREVER), tmp_path / "trace.txt"
    assert transputer("run", "--trace", trace, "--max-tokens", 15, program)[0] == 124
    part = ("trace", "--from", trace, "--at", 11)
    code, out, err = transputer(*part, "--count", 1, program)
    assert (code, err) == (0, "")
    code, out, err = transputer(*part, program)
    assert code == 2
    assert "the trace ends after 15 tokens" in err
    assert "unfinished: " in out


def test_tokens_of_another_model_are_named(tmp_path: Path) -> None:
    trace = tmp_path / "trace.txt"
    trace.write_text("03 00 00 00 hello")
    with pytest.raises(TransputerError, match=r"trace\.txt: this model has no token 'hello'"):
        list(read_ids(str(trace), build_checkpoint().vocabulary))

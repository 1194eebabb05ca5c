"""The scanner reads chunks of ids and must agree with the reader of single tokens in everything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from command_line import ARTICLE
from compiler import isa
from executor.scan import Scanner
from executor.trace import Event, Kind, TraceError, TraceReader
from test_trace import ALL_TOKENS, flat, traces, value

DIGITS = (isa.digit_token(k, b) for k in range(4) for b in range(256))
VOCABULARY = tuple(dict.fromkeys((*ALL_TOKENS, *DIGITS, "i32.add", "data(00)")))
IDS = {token: number for number, token in enumerate(VOCABULARY)}
State = tuple[object, ...]


def state(reader: Scanner | TraceReader) -> State:
    return (
        reader.stack,
        bytes(reader.output),
        reader.call_depth if isinstance(reader, TraceReader) else len(reader.calls),
        reader.n_tokens,
        reader.end,
        reader.pending,
    )


def follow(events: Iterable[Event]) -> tuple[int, list[int]]:
    """Where the instructions lead, in tokens of the program, and which made the open calls."""
    at, calls = 0, []
    for event in events:
        if event.kind is Kind.CALL:
            calls.append(at // isa.INSTRUCTION_TOKENS)
        if event.kind in (Kind.BRANCH, Kind.CALL):
            at += event.signed
        elif event.kind is Kind.RETURN:
            at -= event.signed
            calls.pop()
        elif event.kind not in (Kind.HALT, Kind.TRAP):
            at += isa.INSTRUCTION_TOKENS
    return at, calls


def cursor(events: Iterable[Event]) -> tuple[int | None, list[int]]:
    """Which instruction they lead to, None if to no instruction; and where the open calls were."""
    at, calls = follow(events)
    here = at // isa.INSTRUCTION_TOKENS if at >= 0 and at % isa.INSTRUCTION_TOKENS == 0 else None
    return here, calls


def agree(tokens: Sequence[str], cuts: Sequence[int]) -> None:
    """Read ``tokens`` in chunks that end at ``cuts``, and one by one beside that."""
    scanner, reader = Scanner(VOCABULARY), TraceReader()
    events: list[Event] = []
    ids = np.array([IDS[token] for token in tokens], np.int32)
    for chunk in np.split(ids, sorted(cuts)):
        wrong = None
        written = len(reader.output)
        try:
            for token in chunk.tolist():
                event = reader.push(VOCABULARY[token])
                events += [event] if event else []
        except TraceError as error:
            wrong = str(error)
        try:
            output = scanner.push(chunk)
            assert b"".join(data for _, data in scanner.take_written()) == output
        except TraceError as error:
            assert str(error) == wrong
            # what cannot go on is not compared: stack and pending tokens
            assert (scanner.n_tokens, scanner.output) == (reader.n_tokens, reader.output)
            return
        assert wrong is None
        assert state(scanner) == state(reader)
        assert output == reader.output[written:]
        assert (scanner.instruction, scanner.calls) == cursor(events)


@settings(max_examples=150)
@given(traces(), st.data())
def test_traces_in_chunks(
    trace: list[tuple[Kind, tuple[str, ...], int]], data: st.DataObject
) -> None:
    tokens = flat(trace)
    agree(tokens, data.draw(st.lists(st.integers(0, len(tokens)), max_size=5)))


@settings(max_examples=250)
@given(traces(), st.data())
def test_damaged_traces_in_chunks(
    trace: list[tuple[Kind, tuple[str, ...], int]], data: st.DataObject
) -> None:
    """A token is lost, doubled, replaced or put in; then both say the same."""
    tokens = flat(trace)
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.integers(0, len(tokens)))
        length = data.draw(st.integers(0, 2))
        likely = st.sampled_from(
            ["00", "branch_taken", "commit(-1,sts=1,bt=0)", "q3(00)", "out(A)"]
        )
        some = st.one_of(likely, st.sampled_from(VOCABULARY))
        tokens[at : at + length] = data.draw(st.lists(some, max_size=2))
    agree(tokens, data.draw(st.lists(st.integers(0, len(tokens)), max_size=3)))


@given(st.lists(st.sampled_from(VOCABULARY), max_size=8))
def test_anything_in_one_chunk(tokens: list[str]) -> None:
    agree(tokens, [])


PUSH, ADD = "commit(+1,sts=1,bt=0)", "commit(-1,sts=1,bt=0)"


@pytest.mark.parametrize(
    "text",
    [
        ARTICLE,
        "",
        "halt halt",
        f"{value(1, PUSH)} {value(2, PUSH)} {value(3, ADD)} {value(4, ADD)}",
        f"{value(1, PUSH)} {value(2, PUSH)} q3(00) q2(00) q1(00) q0(01) {value(1, ADD)} halt",
        f"{value(1, PUSH)} {value(2, PUSH)} q3(00) q2(00) q2(00) q0(01) {value(1, ADD)}",
        f"{value(1, PUSH)} {value(2, PUSH)} 00 00 00 00 {value(1, ADD)}",
        f"branch_taken {value(7, 'commit(0,sts=0,bt=1)')} halt",
        f"00 {value(5, 'commit(0,sts=0,bt=1)')}",
        f"00 00 branch_taken 00 {PUSH}",
        f"{value(5, 'return_commit')}",
        f"{value(5, 'call_commit')} {value(5, 'return_commit')} {value(5, 'return_commit')}",
        " ".join(["00"] * 12),
        f"{value(-5, 'call_commit')} trap(stack_exhausted)",
    ],
)
@pytest.mark.parametrize("step", [1, 3, 1000])
def test_particular_traces(text: str, step: int) -> None:
    tokens = text.split()
    agree(tokens, range(step, len(tokens), step))


def test_a_deep_stack_survives_many_chunks() -> None:
    """Values at the bottom are kept while chunks come and go above them."""
    deep = " ".join(value(number, PUSH) for number in range(300))
    up_and_down = f"{value(7, PUSH)} {value(8, PUSH)} {value(15, ADD)} commit(-1,sts=0,bt=0) " * 50
    down = "commit(-1,sts=0,bt=0) " * 299
    tokens = f"{deep} {up_and_down} {down} halt".split()
    scanner = Scanner(VOCABULARY)
    for start in range(0, len(tokens), 97):
        ids = [IDS[token] for token in tokens[start : start + 97]]
        scanner.push(np.array(ids, np.int32))
    assert scanner.stack == [0]
    assert scanner.end is not None and scanner.end.position == len(tokens) - 1


def places(events: list[Event]) -> list[tuple[int, int]]:
    """Of every byte that is written: the place in the program that does it, and the byte."""
    return [
        (follow(events[:number])[0], event.value)
        for number, event in enumerate(events)
        if event.kind is Kind.OUTPUT
    ]


@settings(max_examples=100)
@given(traces(), st.data())
def test_bytes_go_to_the_stream_of_the_instruction_that_writes_them(
    trace: list[tuple[Kind, tuple[str, ...], int]], data: st.DataObject
) -> None:
    """Whole traces with outputs put in, cut anywhere."""
    tokens = ["out(A)", *flat(trace)]
    reader = TraceReader()
    reader.stack.append(0)
    events = [event for token in tokens if (event := reader.push(token))]
    expected = places(events)
    errors = set(data.draw(st.lists(st.sampled_from(sorted(dict(expected))), max_size=4)))
    errors = {at for at in errors if at % isa.INSTRUCTION_TOKENS == 0}
    scanner = Scanner(VOCABULARY, {at // isa.INSTRUCTION_TOKENS for at in errors})
    scanner.stack.append(0)
    ids = np.array([IDS[token] for token in tokens], np.int32)
    cuts = data.draw(st.lists(st.integers(0, len(ids)), max_size=4))
    written = []
    for chunk in np.split(ids, sorted(cuts)):
        scanner.push(chunk)
        written += scanner.take_written()
    flattened = [(stream, byte) for stream, part in written for byte in part]
    assert flattened == [(2 if at in errors else 1, byte) for at, byte in expected]
    assert bytes(scanner.output) == bytes(byte for at, byte in expected if at not in errors)
    assert bytes(scanner.errors) == bytes(byte for at, byte in expected if at in errors)

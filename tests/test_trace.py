"""Reading traces: every trace that instructions can write is read back; nothing else is."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command_line import ARTICLE
from compiler import isa
from compiler.errors import TransputerError
from compiler.program import Origin, Program
from executor.listing import pretty_line
from executor.replay import Replay, replay
from executor.trace import Kind, TraceError, TraceReader, read_trace, split_trace

ARTICLE_PROGRAM = (
    "{ i32.const 03 00 00 00 i32.const 05 00 00 00 i32.add 00 00 00 00 output 00 00 00 00 "
    "halt 00 00 00 00 }"
)
ALL_TOKENS = (
    [isa.byte_token(b, c) for b in range(256) for c in (False, True)]
    + [isa.commit_token(*commit) for commit in isa.COMMITS]
    + [isa.out_token(b) for b in range(256)]
    + [isa.digit_token(k, b) for k in range(4) for b in (0, 1, 255)]
    + [isa.BRANCH_TAKEN, isa.CALL_COMMIT, isa.RETURN_COMMIT, *isa.STOP_TOKENS]
)


def program(text: str, **fields: object) -> Program:
    return Program("test", tuple(text.split()), **fields)  # type: ignore[arg-type]


def instruction(name: str, immediate: int = 0) -> str:
    data = (immediate & 0xFFFFFFFF).to_bytes(4, "little")
    return " ".join([name, *map(isa.byte_token, data)])


def value(number: int, ending: str) -> str:
    data = (number & 0xFFFFFFFF).to_bytes(4, "little")
    return " ".join([*map(isa.byte_token, data), ending])


@st.composite
def traces(draw: st.DrawFn) -> list[tuple[Kind, tuple[str, ...], int]]:
    """Instructions that never pop an empty stack: (kind, tokens, value)."""
    found, depth, calls = [], 0, 0
    numbers = st.integers(0, 0xFFFFFFFF)

    def add(kind: Kind, tokens: Iterable[str], number: int = 0) -> None:
        found.append((kind, tuple(tokens), number))

    def four(number: int) -> list[str]:
        marks = draw(st.lists(st.booleans(), min_size=4, max_size=4))
        return list(map(isa.byte_token, number.to_bytes(4, "little"), marks))

    for _ in range(draw(st.integers(0, 20))):
        number = draw(numbers)
        pops, choice = draw(
            st.sampled_from(
                [(max(-d + s, 0), (d, s, b)) for d, s, b in isa.COMMITS]
                + [(0, "call"), (0, "return"), (1, "out"), (1, "drop"), (2, "divide")]
            )
        )
        if pops > depth or (choice == "return" and not calls):
            continue
        if choice == "call":
            add(Kind.CALL, [*four(number), isa.CALL_COMMIT], number)
            calls += 1
        elif choice == "return":
            add(Kind.RETURN, [*four(number), isa.RETURN_COMMIT], number)
            calls -= 1
        elif choice == "divide":
            digits = [isa.digit_token(k, number >> 8 * k & 255) for k in (3, 2, 1, 0)]
            end = isa.commit_token(-1, True, False)
            add(Kind.VALUE, [*digits, *four(number), end], number)
            depth -= 1
        elif choice == "out":
            add(Kind.OUTPUT, [isa.out_token(number & 255)], number & 255)
            depth -= 1
        elif choice == "drop":
            add(Kind.COMMIT, [isa.commit_token(-1, False, False)])
            depth -= 1
        else:
            delta, stores, branched = choice
            start = [isa.BRANCH_TAKEN] if branched else []
            kind = Kind.BRANCH if branched else Kind.VALUE
            add(kind, [*start, *four(number), isa.commit_token(*choice)], number)
            depth += delta
    end = draw(st.sampled_from(isa.STOP_TOKENS))
    add(Kind.HALT if end == isa.HALT else Kind.TRAP, [end])
    return found


def flat(trace: Iterable[tuple[Kind, tuple[str, ...], int]]) -> list[str]:
    return [token for _, tokens, _ in trace for token in tokens]


@given(traces())
def test_every_trace_is_read_back_by_instructions(
    trace: list[tuple[Kind, tuple[str, ...], int]],
) -> None:
    events = list(read_trace(flat(trace)))
    assert [(event.kind, event.tokens, event.value) for event in events] == trace
    assert [event.position for event in events] == [
        len(flat(trace[:number])) for number in range(len(trace))
    ]


@given(traces(), st.data())
def test_a_trace_cut_short_is_an_error_unless_partial(
    trace: list[tuple[Kind, tuple[str, ...], int]], data: st.DataObject
) -> None:
    tokens = flat(trace)
    cut = tokens[: data.draw(st.integers(0, len(tokens) - 1))]
    whole = [event.tokens for event in read_trace(cut, partial=True)]
    assert whole == [tokens for _, tokens, _ in trace][: len(whole)]
    assert len(cut) - len(flat(trace[: len(whole)])) < len(trace[len(whole)][1])
    with pytest.raises(TraceError, match=f"ends after {len(cut):,} tokens"):
        list(read_trace(cut))


@given(st.lists(st.sampled_from(ALL_TOKENS), max_size=12))
def test_what_is_read_is_what_was_written(tokens: list[str]) -> None:
    """Arbitrary tokens are refused, or come back exactly, with no negative depth."""
    reader = TraceReader()
    events = []
    try:
        for token in tokens:
            event = reader.push(token)
            if event:
                events.append(event)
    except TraceError:
        return
    assert [token for event in events for token in event.tokens] + [*reader.pending] == tokens
    assert len(reader.stack) == sum(event.delta for event in events)


@given(traces(), st.data())
def test_a_dropped_byte_is_noticed(
    trace: list[tuple[Kind, tuple[str, ...], int]], data: st.DataObject
) -> None:
    tokens = flat(trace)
    places = [at for at, token in enumerate(tokens) if len(token.rstrip("'")) == 2]
    if places:
        del tokens[data.draw(st.sampled_from(places))]
        with pytest.raises(TraceError):
            list(read_trace(tokens))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("01 02 03 04 05", "token 5: '05' after '01 02 03 04': a fifth byte"),
        ("01 02 03 commit(+1,sts=1,bt=0)", "after 3 bytes"),
        ("commit(+1,sts=1,bt=0)", "after 0 bytes"),
        ("commit(-1,sts=0,bt=0)", "the stack has too few values"),
        ("out(A)", "the stack has too few values"),
        (value(1, "commit(-1,sts=1,bt=0)"), "the stack has too few values"),
        (value(1, "commit(0,sts=1,bt=0)"), "the stack has too few values"),
        (value(1, "commit(0,sts=0,bt=1)"), "after 4 bytes"),
        (f"branch_taken {value(1, 'commit(0,sts=0,bt=0)')}", "after 4 bytes"),
        ("branch_taken halt", "not expected here"),
        ("branch_taken branch_taken", "not expected here"),
        ("01 branch_taken", "not expected here"),
        ("01 halt", "not expected here"),
        ("01 02 03 call_commit", "not expected here"),
        (f"branch_taken {value(1, 'call_commit')}", "not expected here"),
        (value(1, "return_commit"), "no call to return from"),
        ("halt halt", "token 2: 'halt'.*after halt|token 1: 'halt': after halt"),
        ("q2(00)", "not expected here"),
        ("q3(00) q3(00)", "not expected here"),
        ("00 q2(00)", "not expected here"),
        ("q3(00) q2(00) q1(00) 00", "a quotient has four digits"),
        (f"q3(00) q2(00) q1(00) q0(00) {value(1, 'commit(+1,sts=1,bt=0)')}", "after 4 bytes"),
        (f"q3(00) q2(00) q1(00) q0(00) {value(1, 'call_commit')}", "not expected here"),
        ("q3(00) halt", "not expected here"),
        ("trap(unreachable) 00", "after trap"),
        ("xyz", "'xyz': not expected here"),
        ("data(00)", "not expected here"),
        ("i32.add", "not expected here"),
    ],
)
def test_malformed_traces_say_where_and_why(text: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        list(read_trace(text.split(), partial=True))


def test_the_article_s_trace() -> None:
    reader = TraceReader()
    lines = [str(event) for token in split_trace(ARTICLE) if (event := reader.push(token))]
    assert lines == ARTICLE.splitlines()
    assert reader.output == b"\x08"
    assert reader.stack == []
    assert reader.end is not None and reader.end.kind is Kind.HALT
    assert reader.n_tokens == 17


def test_the_stack_is_rebuilt_from_commits() -> None:
    reader = TraceReader()
    text = [
        value(7, "commit(+1,sts=1,bt=0)"),
        value(-2, "commit(+1,sts=1,bt=0)"),
        value(99, "commit(0,sts=0,bt=0)"),  # local.tee
        value(5, "commit(0,sts=1,bt=0)"),
        value(1, "commit(+1,sts=1,bt=0)"),
    ]
    events = [event for token in " ".join(text).split() if (event := reader.push(token))]
    assert reader.stack == [7, 5, 1]
    assert events[1].signed == -2
    for token in value(40, "commit(-2,sts=1,bt=0)").split():  # select
        reader.push(token)
    assert reader.stack == [40]


def test_comments_and_layout_of_a_trace_file_do_not_matter() -> None:
    text = "# a run of add.tok\n03 00\n00 00   commit(+1,sts=1,bt=0)\n\n# more\nout(#) halt\n"
    assert list(split_trace(text)) == [
        "03", "00", "00", "00", "commit(+1,sts=1,bt=0)", "out(#)", "halt",
    ]  # fmt: skip


# --- beside the program ---------------------------------------------------------------------


def steps(code: str, trace: str, **fields: object) -> list[str]:
    found = replay(program(f"{{ {code} }}", **fields), trace.split())
    return [step.instruction.name for step in found]


def test_a_replay_names_the_instructions() -> None:
    assert steps(ARTICLE_PROGRAM[2:-2], ARTICLE) == [
        "i32.const", "i32.const", "i32.add", "output", "halt",
    ]  # fmt: skip


def test_a_replay_follows_branches_calls_and_returns() -> None:
    code = " ".join(
        [
            instruction("br", 10),  # 0 -> 2
            instruction("halt"),  # 1
            instruction("call", 10),  # 2 -> 4
            instruction("br", -10),  # 3 -> 1
            instruction("i32.const", 1),  # 4: the function
            instruction("br_if", 10),  # 5 -> 7
            instruction("unreachable"),  # 6
            instruction("return", 10),  # 7: 3 instructions after 4, less 5
        ]
    )
    trace = " ".join(
        [
            f"branch_taken {value(10, 'commit(0,sts=0,bt=1)')}",
            value(10, "call_commit"),
            value(1, "commit(+1,sts=1,bt=0)"),
            f"branch_taken {value(10, 'commit(-1,sts=0,bt=1)')}",
            value(20, "return_commit"),
            f"branch_taken {value(-10, 'commit(0,sts=0,bt=1)')}",
            "halt",
        ]
    )
    assert steps(code, trace) == ["br", "call", "i32.const", "br_if", "return", "br", "halt"]


def test_a_branch_not_taken_goes_on() -> None:
    code = " ".join(
        [instruction("i32.const", 0), instruction("br_if", 50), instruction("unreachable")]
    )
    trace = f"{value(0, 'commit(+1,sts=1,bt=0)')} commit(-1,sts=0,bt=0) trap(unreachable)"
    assert steps(code, trace) == ["i32.const", "br_if", "unreachable"]


@pytest.mark.parametrize(
    ("code", "trace", "message"),
    [
        ("i32.add", value(1, "commit(+1,sts=1,bt=0)"), "does not come from i32.add 0"),
        ("drop", value(1, "commit(+1,sts=1,bt=0)"), "does not come from drop"),
        ("local.get", "halt", "does not come from local.get"),
        ("output", "trap(out_of_bounds)", "does not come from output"),
        ("br", "branch_taken " + value(3, "commit(0,sts=0,bt=1)"), "into an instruction"),
        ("br", "branch_taken " + value(5, "commit(0,sts=0,bt=1)") + " halt", "program has ended"),
        ("br", "branch_taken " + value(-5, "commit(0,sts=0,bt=1)") + " halt", "program has ended"),
    ],
)
def test_a_trace_of_another_program_is_noticed(code: str, trace: str, message: str) -> None:
    with pytest.raises(TraceError, match=message):
        steps(instruction(code), trace)


@pytest.mark.parametrize(("name", "divides"), [("i32.div_u", False), ("i32.mul", True)])
def test_divisions_and_only_they_write_digits(name: str, divides: bool) -> None:
    push = value(6, "commit(+1,sts=1,bt=0)")
    code = " ".join([instruction("i32.const", 6)] * 2 + [instruction(name)])
    digits = "q3(00) q2(00) q1(00) q0(01) "
    result = value(1, "commit(-1,sts=1,bt=0)")
    right, wrong = (digits * has + result for has in (not divides, divides))
    assert steps(code, f"{push} {push} {right}")[-1] == name
    with pytest.raises(TraceError, match=f"does not come from {name}"):
        steps(code, f"{push} {push} {wrong}")


def test_memory_is_rebuilt_from_data_and_stores() -> None:
    seek, back, to_code = value(3, "segment"), value(-4, "segment"), value(21, "segment")
    head = f"10 00 00 00 memory {seek} data(aa) data(bb) {back} data(cc) {to_code}"
    code = " ".join(
        [
            instruction("i32.const", 4),
            instruction("i32.const", -2),
            instruction("i32.store16", 6),
            instruction("i32.const", 0),
            instruction("i32.const", 0x11),
            instruction("i32.store8", 0),
            instruction("halt"),
        ]
    )
    push = "commit(+1,sts=1,bt=0)"
    store = "commit(-2,sts=0,bt=0)"
    trace = " ".join(
        [value(4, push), value(-2, push), value(-2, store)]
        + [value(0, push), value(0x11, push), value(0x11, store), "halt"]
    )
    source = program(f"{head} {{ {code} }}")
    assert Replay(source).memory == bytes.fromhex("00cc00aabb") + bytes(11)
    state = Replay(source)
    for token in trace.split():
        state.push(token)
    assert state.memory == bytes.fromhex("11cc00aabb0000000000feff") + bytes(4)


def test_a_store_outside_memory_that_does_not_trap_is_noticed() -> None:
    code = " ".join([instruction("i32.const", 14)] * 2 + [instruction("i32.store")])
    push = value(14, "commit(+1,sts=1,bt=0)")
    source = program(f"10 00 00 00 memory 0a 00 00 00 segment {{ {code} }}")
    with pytest.raises(TraceError, match="a store to 14, outside the 16 bytes"):
        list(replay(source, f"{push} {push} {value(14, 'commit(-2,sts=0,bt=0)')}".split()))


def test_pretty_lines_show_place_instruction_tokens_and_meaning() -> None:
    origins = tuple(Origin("main", text, n) for n, text in enumerate("abcd")) + (
        Origin("(start)", "(halt)", -1),
    )
    source = program(ARTICLE_PROGRAM, origins=origins)
    lines = [pretty_line(n, step) for n, step in enumerate(replay(source, ARTICLE.split()))]
    words = [line.split() for line in lines]
    assert words[2][:8] == ["2", "main+2:", "c", "i32.add", "0", "08", "00", "00"]
    assert words[2][8:] == ["00", "commit(-1,sts=1,bt=0)", "=", "8", "|", "8"]
    assert words[4] == ["4", "(start):", "(halt)", "halt", "0", "halt", "|"]


@pytest.mark.parametrize("text", ["i32.const 00", "{ nop 00 00 00 00 }", "{ drop 00 00 }", "{"])
def test_programs_that_are_none_are_refused(text: str) -> None:
    with pytest.raises(TransputerError, match="test: "):
        Replay(program(text))


def test_the_specification_names_every_token() -> None:
    text = (Path(__file__).parent.parent / "docs" / "trace-format.md").read_text()
    names = " ".join(re.findall(r"`([^`]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)))
    wanted = {*isa.OPCODES, *map(isa.trap_token, isa.TRAPS)}
    wanted |= {isa.END_OF_INPUT, isa.CALL_COMMIT, isa.RETURN_COMMIT, isa.SEGMENT, isa.BRANCH_TAKEN}
    assert [token for token in sorted(wanted) if token not in names.split()] == []
    assert ARTICLE in text
    assert f"{isa.MAX_CALL_DEPTH - 1:,} calls" in text

"""The oracle's tokens: what each kind of instruction writes, and where it stops."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler import isa
from compiler.assemble import word_tokens
from compiler.errors import LimitError
from compiler.program import Program
from executor.oracle import Oracle, execute, trace, trace_tokens
from executor.oracle_code import UndefinedError
from test_lower_control import FIBONACCI
from wat_programs import compiled

WORD = st.integers(0, 0xFFFFFFFF)


def program(
    *code: tuple[str, int], head: tuple[str, ...] = (), has_result: bool = False
) -> Program:
    """A token program from opcodes and immediates."""
    tokens = [*head, isa.OPEN]
    for op, immediate in code:
        tokens += [op, *word_tokens(immediate)]
    return Program("t.tok", (*tokens, isa.CLOSE), has_result=has_result)


def written(*code: tuple[str, int], head: tuple[str, ...] = ()) -> list[str]:
    """The trace of some code, as lines that end with the token that ends an instruction."""
    lines: list[list[str]] = [[]]
    for token in trace_tokens(program(*code, head=head)):
        lines[-1].append(token)
        if token not in BYTES and token != isa.BRANCH_TAKEN:
            lines.append([])
    return [" ".join(line) for line in lines if line]


HALT = ("halt", 0)
BYTES = {isa.byte_token(value, carry) for value in range(256) for carry in (False, True)}
MEMORY = ("00", "00", "01", "00", "memory", "0a", "00", "00", "00", "segment")


def test_values_and_commits() -> None:
    code = [("i32.const", 0x01020304), ("global.set", 2), ("global.get", 2), ("i32.const", 7),
            ("i32.const", 9), ("select", 0), ("i32.eqz", 0), ("drop", 0), ("halt", 0)]  # fmt: skip
    assert written(*code) == [
        "04 03 02 01 commit(+1,sts=1,bt=0)",
        "04 03 02 01 commit(-1,sts=0,bt=0)",
        "04 03 02 01 commit(+1,sts=1,bt=0)",
        "07 00 00 00 commit(+1,sts=1,bt=0)",
        "09 00 00 00 commit(+1,sts=1,bt=0)",
        "04 03 02 01 commit(-2,sts=1,bt=0)",
        "00 00 00 00 commit(0,sts=1,bt=0)",
        "commit(-1,sts=0,bt=0)",
        "halt",
    ]


def test_carries_are_marked_in_sums_and_differences_and_nowhere_else() -> None:
    def result(op: str, a: int, b: int) -> str:
        return written(("i32.const", a), ("i32.const", b), (op, 0), ("halt", 0))[2]

    end = " commit(-1,sts=1,bt=0)"
    assert result("i32.add", 0xFF, 1) == "00' 01 00 00" + end
    assert result("i32.add", 0x80FF00FF, 0x80010001) == "00' 01 00' 01'" + end
    assert result("i32.sub", 5, 3) == "02' 00' 00' 00'" + end
    assert result("i32.sub", 3, 5) == "fe ff ff ff" + end
    assert result("i32.sub", 0x100, 1) == "ff 00' 00' 00'" + end
    assert result("i32.mul", 0xFFFFFFFF, 0xFFFFFFFF) == "01 00 00 00" + end


@given(WORD, WORD)
def test_sums_and_differences_are_right_with_their_carries(a: int, b: int) -> None:
    for op, value, complement, carry in (
        ("i32.add", a + b, b, 0),
        ("i32.sub", a - b, b ^ 0xFFFFFFFF, 1),
    ):
        line = written(("i32.const", a), ("i32.const", b), (op, 0), ("halt", 0))[2].split()
        low = 0
        for position, token in enumerate(line[:4]):
            low += ((a >> 8 * position & 255) + (complement >> 8 * position & 255)) << 8 * position
            carried = (low + carry) >> 8 * (position + 1)
            assert token == isa.byte_token(value >> 8 * position & 255, bool(carried))


def test_divisions_write_the_digits_of_the_magnitudes_quotient_first() -> None:
    def result(op: str, a: int, b: int) -> str:
        return " ".join(
            [*trace_tokens(program(("i32.const", a), ("i32.const", b), (op, 0), HALT))][10:]
        )

    commit = "commit(-1,sts=1,bt=0) halt"
    assert result("i32.div_u", 70000, 7) == f"q3(00) q2(00) q1(27) q0(10) 10 27 00 00 {commit}"
    assert result("i32.rem_u", 70000, 9) == f"q3(00) q2(00) q1(1e) q0(61) 07 00 00 00 {commit}"
    assert result("i32.div_s", -70000, 7) == f"q3(00) q2(00) q1(27) q0(10) f0 d8 ff ff {commit}"
    assert result("i32.rem_s", -10, -4) == f"q3(00) q2(00) q1(00) q0(02) fe ff ff ff {commit}"
    assert result("i32.div_u", -1, 1) == f"q3(ff) q2(ff) q1(ff) q0(ff) ff ff ff ff {commit}"
    assert result("i32.rem_s", 1 << 31, -1) == f"q3(80) q2(00) q1(00) q0(00) 00 00 00 00 {commit}"
    assert result("i32.rem_u", 5, 0) == "trap(divide_by_zero)"
    assert result("i32.div_s", 1 << 31, -1) == "trap(integer_overflow)"


def test_branches_calls_and_returns() -> None:
    lines = written(
        ("call", 20), ("i32.const", 0), ("br_if", 5), ("halt", 0),
        ("i32.const", 1), ("br_if", 10), ("unreachable", 0), ("br", 5), ("return", 15),
    )  # fmt: skip
    assert lines == [
        "14 00 00 00 call_commit",
        "01 00 00 00 commit(+1,sts=1,bt=0)",
        "branch_taken 0a 00 00 00 commit(-1,sts=0,bt=1)",
        "branch_taken 05 00 00 00 commit(0,sts=0,bt=1)",
        "23 00 00 00 return_commit",
        "00 00 00 00 commit(+1,sts=1,bt=0)",
        "commit(-1,sts=0,bt=0)",
        "halt",
    ]


def test_a_backward_call_returns_with_carries() -> None:
    lines = written(
        ("br", 15), ("i32.const", 9), ("return", 0), ("call", -10), ("halt", 0),
    )  # fmt: skip
    assert lines[1:] == [
        "f6 ff ff ff call_commit",
        "09 00 00 00 commit(+1,sts=1,bt=0)",
        "f6 ff ff ff return_commit",
        "halt",
    ]


def test_stores_write_the_whole_operand_to_the_trace() -> None:
    lines = written(
        ("i32.const", 8), ("i32.const", 0x8182), ("i32.store8", 1), ("i32.const", 0),
        ("i32.load16_s", 9), ("i32.const", 65533), ("i32.load", 0), head=MEMORY,
    )  # fmt: skip
    assert lines[2] == "82 81 00 00 commit(-2,sts=0,bt=0)"
    assert lines[4] == "82 00 00 00 commit(0,sts=1,bt=0)"
    assert lines[6] == "trap(out_of_bounds)"


def test_the_memory_of_the_result_includes_stores_across_pages() -> None:
    code = program(
        ("i32.const", 4094), ("i32.const", 0x04030201), ("i32.store", 0), ("halt", 0), head=MEMORY
    )  # fmt: skip
    assert execute(code).memory == {4094: 1, 4095: 2, 4096: 3, 4097: 4}


def test_input_and_output() -> None:
    code = [
        ("i32.const", 0),
        ("input", 32),
        ("output", 0),
        ("i32.const", 1),
        ("input", 32),
        ("halt", 0),
    ]
    oracle = Oracle(program(*code), ["in(A)", "eof"])
    assert " ".join(list(oracle.trace())[5:]) == (
        "41 00 00 00 commit(0,sts=1,bt=0) out(A) 01 00 00 00 commit(+1,sts=1,bt=0) "
        "ff ff ff ff commit(0,sts=1,bt=0) halt"
    )
    assert oracle.output == b"A"


def test_the_result_holds_what_the_execution_left() -> None:
    code = program(
        ("i32.const", 300), ("i32.const", -2), ("i32.store16", 0), ("i32.const", -56), ("halt", 0),
        head=MEMORY, has_result=True,
    )  # fmt: skip
    result = execute(code)
    assert (result.value, result.exit_code, result.trap) == (-56, 200, None)
    assert result.memory == {300: 0xFE, 301: 0xFF}
    assert (result.steps, result.n_tokens) == (5, 21)
    trapped = execute(program(("i32.const", 5), ("unreachable", 0), has_result=True))
    assert (trapped.value, trapped.exit_code, trapped.trap) == (None, 134, "unreachable")


def test_the_limit_stops_an_endless_run() -> None:
    endless = program(("br", 0))
    with pytest.raises(LimitError, match="60 tokens"):
        execute(endless, limit=60)
    tokens = trace(endless, ["eof"], limit=7)
    assert [next(tokens) for _ in range(7)][-1] == isa.BRANCH_TAKEN
    with pytest.raises(LimitError):
        next(tokens)
    assert execute(program(("halt", 0)), limit=1).n_tokens == 1


def test_calls_stop_at_the_greatest_depth() -> None:
    tokens = list(trace_tokens(program(("call", 0))))
    assert tokens[-1] == "trap(stack_exhausted)"
    assert tokens.count("call_commit") == isa.MAX_CALL_DEPTH - 1


@pytest.mark.parametrize("code", [
    [("i32.add", 0)], [("i32.const", 0), ("i32.add", 0)], [("local.get", 0)], [("global.get", 3)],
    [("i32.const", 0)], [("br", 50)], [("br", -5)], [("br", 3)], [("return", 0)], [("drop", 0)],
    [("i32.const", 5), ("input", 17)], [("i32.const", 0), ("input", 0)],
])  # fmt: skip
def test_programs_without_meaning_are_refused(code: list[tuple[str, int]]) -> None:
    with pytest.raises(UndefinedError, match=r"t\.tok: .*instruction"):
        execute(program(*code))


@pytest.mark.parametrize(("last", "reason"), [
    (("br", 50), "leaves the code"), (("br", 3), "middle"), (("drop", 0), "never written"),
    (("local.get", 7), "never written"), (("br", -10), "leaves the code"),
])  # fmt: skip
def test_the_message_names_the_instruction_without_meaning(
    last: tuple[str, int], reason: str
) -> None:
    name, immediate = last
    culprit = rf"{reason}.*\(instruction 1: {name} {immediate & 0xFFFFFFFF:#x}\)"
    with pytest.raises(UndefinedError, match=culprit):
        execute(program(("br", 5), last, ("halt", 0)))


@pytest.mark.parametrize("immediate", [0, 17])
def test_the_message_names_the_instruction_that_reads_no_input(immediate: int) -> None:
    culprit = rf"\(instruction 1: input {immediate:#x}\)"
    with pytest.raises(UndefinedError, match=culprit):
        execute(program(("i32.const", 5), ("input", immediate), ("halt", 0)))


@pytest.mark.parametrize("tokens", [
    ("{", "}", "halt"), ("halt", "00", "00", "00", "00"), ("{", "halt", "00", "}"),
    ("{", "nope", "00", "00", "00", "00", "}"), ("00", "00", "00", "00", "segment", "{", "}"),
    ("data(00)", "{", "}"), ("00", "memory", "{", "}"),
])  # fmt: skip
def test_tokens_that_are_no_program_are_refused(tokens: tuple[str, ...]) -> None:
    with pytest.raises(UndefinedError):
        execute(Program("t.tok", tokens))


def test_locals_of_an_earlier_call_are_still_there() -> None:
    code = program(
        ("call", 20), ("call", 30), ("drop", 0), ("halt", 0),
        ("i32.const", 42), ("local.set", 0), ("return", 5),
        ("local.get", 0), ("return", 0),
    )  # fmt: skip
    tokens = list(trace_tokens(code))
    assert tokens.count("2a") == 3  # constant, assignment, and the read in the second call


def test_a_trace_can_be_followed_token_by_token() -> None:
    oracle = Oracle(compiled(FIBONACCI, ("fib", 4)), ["eof"])
    deepest = max(oracle.depth for _ in oracle.trace())
    assert deepest == 4
    assert oracle.stack == [3]

"""The passes over basic blocks: what each removes, and what it must leave alone."""

from __future__ import annotations

import pytest

from compiler import isa
from compiler.lower_code import Block, Label, Native, NativeFunction
from compiler.lower_layout import lay_out, optimise
from compiler.lower_optimise import forward_values, live_locals, merge_blocks, peephole
from compiler.program import Origin
from wat_programs import agreed, compiled

HERE = Origin("f", "here", 0)


def body(text: str) -> list[Native]:
    """Instructions such as ``get 1, const 5, add``."""
    names = {"get": "local.get", "set": "local.set", "tee": "local.tee"}
    code = []
    for item in text.split(","):
        op, _, imm = item.strip().partition(" ")
        name = names.get(op) or (f"i32.{op}" if f"i32.{op}" in isa.OPCODES else op)
        code.append(Native(name, int(imm or "0"), HERE))
    return code


def text_of(code: list[Native]) -> str:
    short = [c.op.removeprefix("local.").removeprefix("i32.") for c in code]
    numbered = {"get", "set", "tee", "const"}
    return ", ".join(
        f"{s} {c.imm}" if s in numbered else s for s, c in zip(short, code, strict=True)
    )


def optimised(text: str) -> str:
    """One block that returns, after all passes."""
    blocks = optimise([Block(0, body(text))])
    return text_of(blocks[0].body)


@pytest.mark.parametrize(("before", "after"), [
    ("set 1, get 1, get 1, add, return", "tee 1, get 1, add, return"),
    ("get 0, set 1, get 1, return", "get 0, return"),
    ("get 0, set 1, get 0, const 1, add, set 0, get 1, get 0, add, return",
     "get 0, tee 1, const 1, add, set 0, get 1, get 0, add, return"),
    ("const 5, set 1, get 0, get 1, add, return", "get 0, const 5, add, return"),
    ("const 5, set 1, get 0, set 1, get 1, return", "get 0, return"),
    ("get 0, load, set 1, get 2, load, set 1, get 1, get 1, add, return",
     "get 0, load, drop, get 2, load, tee 1, get 1, add, return"),
    ("get 0, tee 2, drop, const 1, return", "const 1, return"),
    ("get 0, get 1, add, drop, const 1, return", "const 1, return"),
    ("get 0, load 0, drop, const 1, return", "get 0, load, drop, const 1, return"),
    ("get 0, get 1, div_u, drop, const 1, return", "get 0, get 1, div_u, drop, const 1, return"),
    ("get 0, get 1, lt_s, eqz, return", "get 0, get 1, ge_s, return"),
    ("get 0, const 0, eq, return", "get 0, eqz, return"),
    ("get 0, const 0, add, const 1, mul, return", "get 0, return"),
    ("const 6, const 7, mul, const 2, sub, return", "const 40, return"),
    ("const 3, const 5, sub, return", "const 4294967294, return"),
    ("get 0, const 32, div_u, return", "get 0, const 5, shr_u, return"),
    ("get 0, const 32, rem_u, return", "get 0, const 31, and, return"),
    ("get 0, const 32, div_s, return", "get 0, const 32, div_s, return"),
    ("set 0, const 0, return", "drop, const 0, return"),
    ("global.get 0, set 1, get 1, get 1, add, return", "global.get, tee 1, get 1, add, return"),
])  # fmt: skip
def test_straight_line_code(before: str, after: str) -> None:
    assert optimised(before) == after


def loop() -> list[Block]:
    """Local 1 counts down from local 0; local 2 is read only after the loop, 3 never."""
    entry = Block(0, body("set 0, get 0, set 1, const 7, set 3"), origin=HERE)
    entry.set_jump(1)
    head = Block(1, body("get 1, const 1, sub, tee 1, set 2, get 1"), origin=HERE)
    head.set_branch(1, 2)
    return [entry, head, Block(2, body("get 2, return"))]


def test_locals_are_live_from_their_read_back_to_their_assignment() -> None:
    assert live_locals(loop()) == {0: 0b0000, 1: 0b0010, 2: 0b0100}


def test_assignments_that_nobody_reads_are_dropped_and_loops_kept() -> None:
    blocks = optimise(loop())
    assert text_of(blocks[0].body) == "set 1"
    assert text_of(blocks[1].body) == "get 1, const 1, sub, tee 1"
    assert text_of(blocks[2].body) == "get 1, return"
    assert (blocks[1].if_true, blocks[1].if_false) == (1, 2)


def test_values_are_not_forwarded_where_two_paths_meet() -> None:
    entry = Block(0, body("const 1, set 1, get 0"), origin=HERE)
    entry.set_branch(1, 2)
    left = Block(1, body("const 2, set 1"), origin=HERE)
    left.set_jump(2)
    blocks = [entry, left, Block(2, body("get 1, return"))]
    forward_values(blocks)
    assert text_of(blocks[2].body) == "get 1, return"


def test_values_are_forwarded_past_a_branch_that_nothing_else_joins() -> None:
    entry = Block(0, body("const 1, set 1, get 0"), origin=HERE)
    entry.set_branch(1, 2)
    blocks = [entry, Block(1, body("get 1, return")), Block(2, body("get 1, return"))]
    forward_values(blocks)
    assert [text_of(block.body) for block in blocks[1:]] == ["const 1, return", "const 1, return"]


def test_blocks_that_cannot_be_reached_are_dropped_and_chains_joined() -> None:
    first, second = Block(0, body("get 0"), origin=HERE), Block(2, body("drop"), origin=HERE)
    first.set_jump(2)
    second.set_jump(3)
    dead = Block(1, body("get 0"), origin=HERE)
    dead.set_jump(3)
    blocks = merge_blocks([first, dead, second, Block(3, body("const 1, return"))])
    assert [text_of(block.body) for block in blocks] == ["get 0, drop, const 1, return"]


def test_drop_after_assignment_becomes_the_assignment() -> None:
    block = Block(0, body("get 0, tee 1, drop"))
    peephole([block])
    assert text_of(block.body) == "get 0, set 1"


def ops(function: NativeFunction) -> str:
    return " ".join(
        "L" if isinstance(c, Label) else c.op.removeprefix("i32.") for c in function.code
    )


def test_an_if_without_else_takes_no_branch_when_its_comparison_holds() -> None:
    entry = Block(0, body("set 0, get 0, const 5, lt_s"), origin=HERE)
    entry.set_branch(1, 2)
    then = Block(1, body("const 3, set 0"), origin=HERE)
    then.set_jump(2)
    end = Block(2, body("get 0, get 0, get 0, get 0, return"))
    code = lay_out("f", "f", [entry, then, end])
    gets = "local.get local.get local.get local.get return"
    assert ops(code) == f"local.tee const ge_s br_if const local.set L {gets}"


def test_a_jump_to_a_return_becomes_a_return() -> None:
    entry = Block(0, body("set 0, get 0"), origin=HERE)
    entry.set_branch(1, 2)
    one = Block(1, body("const 1"), origin=HERE)
    one.set_jump(3)
    two = Block(2, body("const 2"), origin=HERE)
    two.set_jump(3)
    code = lay_out("f", "f", [entry, one, two, Block(3, body("return"))])
    assert ops(code) == "local.tee br_if const return L const return"


def test_locals_are_numbered_from_zero_in_order_of_use() -> None:
    code = lay_out("f", "f", [Block(0, body("set 9, set 4, get 9, get 4, sub, return"))])
    assert text_of([c for c in code.code if isinstance(c, Native)]) == (
        "set 0, tee 1, drop, get 0, get 1, sub, return"
    ).replace("tee 1, drop", "set 1")


def test_an_empty_endless_loop_stays_one() -> None:
    program = compiled('(module (func (export "main") (loop (br 0))))')
    assert "br" in program.tokens


def test_optimised_code_is_not_longer_than_the_module() -> None:
    text = """(module (func (export "f") (param i32) (result i32) (local i32 i32)
      (local.set 1 (i32.const 1))
      (block (loop
        (br_if 1 (i32.eqz (local.get 0)))
        (local.set 1 (i32.mul (local.get 1) (local.get 0)))
        (local.set 0 (i32.sub (local.get 0) (i32.const 1)))
        (br 0)))
      (local.get 1)))"""
    assert agreed(text, ("f", 5)).value == 120
    function = [o for o in compiled(text, ("f", 5)).origins if o.function == "f"]
    assert len(function) <= 16

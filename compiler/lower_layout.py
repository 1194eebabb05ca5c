"""From basic blocks to a list of instructions: runs the passes, orders the blocks, sets branches.

A branch costs one token of the trace when it is not taken and six when it is, an unconditional one
six. So blocks are put in an order in which most go on to the next, and a comparison is inverted if
that saves a branch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from compiler.lower_code import INVERSE, Block, Label, Native, NativeFunction
from compiler.lower_optimise import (
    copy_returns,
    fold_branches,
    forward_values,
    merge_blocks,
    peephole,
    remove_dead_assignments,
    thread_jumps,
    zero_locals,
)
from compiler.program import Origin

_ROUNDS = 6
"""Most rounds of passes; two or three reach a fixed point in practice."""


def optimise(blocks: list[Block]) -> list[Block]:
    """Run the passes until nothing changes any more."""
    size = -1
    for _ in range(_ROUNDS):
        thread_jumps(blocks)
        blocks = merge_blocks(blocks)
        forward_values(blocks)
        remove_dead_assignments(blocks)
        peephole(blocks)
        fold_branches(blocks)
        new_size = sum(len(block.body) + 1 for block in blocks)
        if new_size == size:
            break
        size = new_size
    return blocks


def lay_out(key: str, name: str, blocks: list[Block], offset: int = -1) -> NativeFunction:
    """Finish a function: zero what must be zero, order the blocks, and set the branches.

    ``offset``: of its body in the module's file.
    """
    zero_locals(blocks, Origin(name, "(zero local)", -1, offset))
    peephole(blocks)
    thread_jumps(blocks)
    copy_returns(blocks)
    ordered = _order(merge_blocks(blocks))
    code: list[Native | Label] = []
    for block, following in zip(ordered, [*ordered[1:], None], strict=True):
        code.append(Label(block.label))
        code += _block_code(block, following.label if following else -1)
    return NativeFunction(key, name, _renumber_locals(_without_unused_labels(code)))


def _order(blocks: Sequence[Block]) -> list[Block]:
    """Source order, but a block into which nothing falls follows the one that jumps to it."""
    by_label = {block.label: block for block in blocks}
    before = {block.label: previous for previous, block in zip(blocks, blocks[1:], strict=False)}
    placed: set[int] = set()
    ordered: list[Block] = []
    source = iter(blocks)
    current: Block | None = blocks[0]
    while current is not None:
        placed.add(current.label)
        ordered.append(current)
        following = _following(current, before, placed)
        if following is not None:
            current = by_label[following]
        else:
            current = next((block for block in source if block.label not in placed), None)
    return ordered


def _following(block: Block, before: dict[int, Block], placed: set[int]) -> int | None:
    """The successor to put next: the one that comes next in the source, or one that is free.

    A free block is one that its predecessor in the source does not go on to. If the condition
    cannot be inverted, a free false side is best: the true side takes a branch in any case.
    """

    def free(label: int) -> bool:
        previous = before.get(label)
        return previous is not None and (
            previous.label in placed or label not in previous.successors()
        )

    open_ = [label for label in block.successors() if label not in placed]
    false_side = block.if_false
    if false_side in open_ and false_side is not None and free(false_side):
        invertible = bool(block.body) and block.body[-1].op in INVERSE
        if not invertible:
            return false_side
    nearest = [label for label in open_ if before.get(label) is block]
    return next(iter(nearest + [label for label in open_ if free(label)]), None)


def _block_code(block: Block, following: int) -> list[Native]:
    """The instructions of ``block``, its branches included, when ``following`` comes next."""
    origin = block.origin or Origin("", "(branch)", -1)
    if block.jump is not None:
        jump = [] if block.jump == following else [Native("br", 0, origin, target=block.jump)]
        return block.body + jump
    if block.if_true is None or block.if_false is None:
        return block.body
    last = block.body[-1] if block.body else None
    if block.if_true == following and last is not None and last.op in INVERSE:
        inverse = Native(INVERSE[last.op], 0, last.origin)
        return [*block.body[:-1], inverse, Native("br_if", 0, origin, target=block.if_false)]
    code = [*block.body, Native("br_if", 0, origin, target=block.if_true)]
    if block.if_false != following:
        code.append(Native("br", 0, origin, target=block.if_false))
    return code


def _without_unused_labels(code: Sequence[Native | Label]) -> list[Native | Label]:
    used = {item.target for item in code if isinstance(item, Native)}
    return [item for item in code if isinstance(item, Native) or item.number in used]


def _renumber_locals(code: Sequence[Native | Label]) -> tuple[Native | Label, ...]:
    """Number the locals that are left from 0, in order of their first use."""
    numbers: dict[int, int] = {}
    return tuple(
        replace(item, imm=numbers.setdefault(item.imm, len(numbers)))
        if isinstance(item, Native) and item.op.startswith("local.")
        else item
        for item in code
    )

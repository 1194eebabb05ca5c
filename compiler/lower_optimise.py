"""Improves basic blocks so that fewer instructions are executed; the order of effects is kept.

Each function below does one thing to a list of blocks. The passes that ``lower_layout.py`` runs:
forward constants and copies inside (extended) basic blocks, remove assignments that nobody reads,
apply peephole rules, fold branches, merge blocks, and zero the locals that may be read before they
are written (WebAssembly's locals start at zero, the machine's hold what an earlier call left).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from compiler.lower_code import INVERSE, MASK, Block, Native
from compiler.program import Origin

_PUSHES = frozenset({"i32.const", "local.get", "global.get"})
"""Instructions that only push a value."""
_NEUTRAL = {
    "i32.add": 0, "i32.sub": 0, "i32.or": 0, "i32.xor": 0, "i32.shl": 0, "i32.shr_u": 0,
    "i32.shr_s": 0, "i32.rotl": 0, "i32.rotr": 0, "i32.mul": 1, "i32.and": MASK, "i32.div_u": 1,
    "i32.div_s": 1,
}  # fmt: skip
"""Second operand that leaves the first one as it is."""
_FOLDED: dict[str, Callable[[int, int], int]] = {
    "i32.add": lambda a, b: a + b, "i32.sub": lambda a, b: a - b, "i32.mul": lambda a, b: a * b,
    "i32.and": lambda a, b: a & b, "i32.or": lambda a, b: a | b, "i32.xor": lambda a, b: a ^ b,
    "i32.shl": lambda a, b: a << (b & 31), "i32.shr_u": lambda a, b: a >> (b & 31),
}  # fmt: skip
"""Operations on two constants that are computed here."""
_RETURN_COPY = 3
"""Blocks of at most this many instructions that return are copied in place of a branch."""


def forward_values(blocks: Sequence[Block]) -> None:
    """Replace ``local.get x`` by the constant or the older local that x is known to equal."""
    predecessors = count_predecessors(blocks)
    known_at_end: dict[int, dict[int, Native]] = {}
    entered_from: dict[int, int] = {}
    for block in blocks:
        known: dict[int, Native] = {}
        if predecessors[block.label] == 1 and block.label in entered_from:
            known = dict(known_at_end[entered_from[block.label]])
        body = block.body
        for index, code in enumerate(body):
            if code.op == "local.get" and code.imm in known:
                value = known[code.imm]
                body[index] = Native(value.op, value.imm, code.origin)
            elif code.op in ("local.set", "local.tee"):
                _assign(known, code.imm, body[index - 1] if index else None)
        known_at_end[block.label] = known
        for label in block.successors():
            entered_from[label] = block.label


def _assign(known: dict[int, Native], local: int, producer: Native | None) -> None:
    """Note that ``local`` is set to what the instruction before the assignment left on top."""
    known.pop(local, None)
    copies = [x for x, value in known.items() if value.op == "local.get" and value.imm == local]
    for copy in copies:
        del known[copy]
    if producer is None:
        return
    if producer.op == "i32.const" or (producer.op == "local.get" and producer.imm != local):
        known[local] = producer
    elif producer.op == "local.tee" and producer.imm != local:
        known[local] = Native("local.get", producer.imm, producer.origin)


def count_predecessors(blocks: Sequence[Block]) -> Counter[int]:
    """How many edges lead to each label; the entry has one from outside."""
    counts = Counter(label for block in blocks for label in block.successors())
    counts[blocks[0].label] += 1
    return counts


# --- dead assignments and zeroing --------------------------------------------------------------


def _uses(block: Block) -> tuple[int, int]:
    """Locals read before they are written in the block, and locals written, as bit sets."""
    read = written = 0
    for code in block.body:
        if code.op == "local.get":
            read |= (1 << code.imm) & ~written
        elif code.op in ("local.set", "local.tee"):
            written |= 1 << code.imm
    return read, written


def live_locals(blocks: Sequence[Block]) -> dict[int, int]:
    """Locals whose value may still be read at the beginning of each block, as bit sets.

    Complexity: a few passes over the blocks, more with deeper loops.
    """
    uses = {block.label: _uses(block) for block in blocks}
    live = dict.fromkeys(uses, 0)
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            read, written = uses[block.label]
            after = _live_after(block, live)
            before = read | (after & ~written)
            if before != live[block.label]:
                live[block.label] = before
                changed = True
    return live


def _live_after(block: Block, live: dict[int, int]) -> int:
    after = 0
    for label in block.successors():
        after |= live[label]
    return after


def remove_dead_assignments(blocks: Sequence[Block]) -> None:
    """Turn assignments that nobody reads into ``drop``, or into nothing."""
    live = live_locals(blocks)
    for block in blocks:
        needed = _live_after(block, live)
        kept: list[Native] = []
        for code in reversed(block.body):
            bit = 1 << code.imm if code.op.startswith("local.") else 0
            if code.op == "local.get":
                needed |= bit
            elif bit and not needed & bit:
                if code.op == "local.set":
                    kept.append(Native("drop", 0, code.origin))
                continue
            elif bit:
                needed &= ~bit
            kept.append(code)
        block.body[:] = reversed(kept)


def zero_locals(blocks: Sequence[Block], origin: Origin) -> None:
    """Assign zero, at the entry, to every local that may be read before it is written."""
    needed = live_locals(blocks)[blocks[0].label]
    zeroing: list[Native] = []
    for local in range(needed.bit_length()):
        if needed >> local & 1:
            zeroing += [Native("i32.const", 0, origin), Native("local.set", local, origin)]
    blocks[0].body[:0] = zeroing


# --- peephole ----------------------------------------------------------------------------------


def peephole(blocks: Sequence[Block]) -> None:
    """Apply the rules of :func:`_append` to every block."""
    for block in blocks:
        body: list[Native] = []
        for code in block.body:
            _append(body, code)
        block.body = body


def _append(body: list[Native], code: Native) -> None:
    """Append ``code``, or change the end of ``body`` so that it has the same effect."""
    last = body[-1] if body else None
    if last is None:
        body.append(code)
    elif code.op == "drop":
        _append_drop(body, code, last)
    elif code.op == "local.get" and last.op == "local.set" and last.imm == code.imm:
        body[-1] = Native("local.tee", code.imm, last.origin)
    elif code.op == "local.set" and last.op == "local.get" and last.imm == code.imm:
        body.pop()
    elif code.op in _PUSHES and last.op == "local.set" and _pushes_same(body, code):
        body[-1] = Native("local.tee", last.imm, last.origin)
    elif code.op == "i32.eqz" and last.op in INVERSE:
        body[-1] = Native(INVERSE[last.op], 0, code.origin)
    elif last.op == "i32.const" and code.op not in _PUSHES:
        _append_after_constant(body, code, last)
    else:
        body.append(code)


def _pushes_same(body: list[Native], code: Native) -> bool:
    """Whether ``local.set x`` at the end of ``body`` takes the very value that ``code`` pushes."""
    if len(body) < 2 or (body[-2].op, body[-2].imm) != (code.op, code.imm):
        return False
    return not (code.op == "local.get" and code.imm == body[-1].imm)


def _append_drop(body: list[Native], code: Native, last: Native) -> None:
    body.pop()
    if last.op in _PUSHES:
        return
    if last.op == "local.tee":
        body.append(Native("local.set", last.imm, last.origin))
    elif last.op == "i32.eqz":
        _append(body, code)
    elif last.op in INVERSE or last.op in _FOLDED:
        _append(body, code)
        _append(body, code)
    else:
        body.extend((last, code))


def _append_after_constant(body: list[Native], code: Native, last: Native) -> None:
    constant = last.imm
    before = body[-2] if len(body) > 1 else None
    if _NEUTRAL.get(code.op) == constant:
        body.pop()
    elif code.op in _FOLDED and before is not None and before.op == "i32.const":
        value = _FOLDED[code.op](before.imm, constant) & MASK
        body[-2:] = [Native("i32.const", value, code.origin)]
    elif code.op in ("i32.div_u", "i32.rem_u") and constant.bit_count() == 1:
        _divide_by_power(body, code, last)
    elif code.op == "i32.eq" and constant == 0:
        body.pop()
        _append(body, Native("i32.eqz", 0, code.origin))
    else:
        body.append(code)


def _divide_by_power(body: list[Native], code: Native, last: Native) -> None:
    """Four tokens less: a division writes its quotient's digits, a shift does not."""
    quotient = code.op == "i32.div_u"
    operand = last.imm.bit_length() - 1 if quotient else last.imm - 1
    body[-1] = Native("i32.const", operand, last.origin)
    _append(body, Native("i32.shr_u" if quotient else "i32.and", 0, code.origin))


# --- branches and blocks -----------------------------------------------------------------------


def fold_branches(blocks: Sequence[Block]) -> None:
    """Simplify conditions: constants, ``eqz`` and comparisons with zero, equal targets."""
    for block in blocks:
        if block.if_true is None or block.if_false is None:
            continue
        if block.if_true == block.if_false:
            block.body.append(Native("drop", 0, block.origin or block.body[-1].origin))
            block.set_jump(block.if_true)
            continue
        while block.body and block.body[-1].op == "i32.eqz":
            block.body.pop()
            block.set_branch(block.if_false, block.if_true)
        tail = [code.op for code in block.body[-2:]]
        if tail == ["i32.const", "i32.ne"] and block.body[-2].imm == 0:
            del block.body[-2:]
        elif tail and tail[-1] == "i32.const":
            taken = block.body.pop().imm != 0
            block.set_jump(block.if_true if taken else block.if_false)


def thread_jumps(blocks: Sequence[Block]) -> None:
    """Send branches to an empty block that only jumps on to where it jumps."""
    onward = {b.label: b.jump for b in blocks if not b.body and b.jump is not None}
    new: dict[int, int] = {}
    for label in onward:
        seen = {label}
        target = onward[label]
        while target in onward and target not in seen:
            seen.add(target)
            target = onward[target]
        new[label] = target
    for block in blocks:
        block.retarget(new)


def merge_blocks(blocks: Sequence[Block]) -> list[Block]:
    """Drop blocks that cannot be reached; join a block to its only predecessor if that jumps."""
    by_label = {block.label: block for block in blocks}
    reached = {blocks[0].label}
    queue = [blocks[0].label]
    while queue:
        for label in by_label[queue.pop()].successors():
            if label not in reached:
                reached.add(label)
                queue.append(label)
    kept = [block for block in blocks if block.label in reached]
    predecessors = count_predecessors(kept)
    gone: set[int] = set()
    for block in kept:
        if block.label in gone:
            continue
        while (
            block.jump is not None and predecessors[block.jump] == 1 and block.jump != block.label
        ):
            following = by_label[block.jump]
            gone.add(following.label)
            block.body += following.body
            block.jump, block.if_true, block.if_false, block.origin = (
                following.jump, following.if_true, following.if_false, following.origin,
            )  # fmt: skip
    return [block for block in kept if block.label not in gone]


def copy_returns(blocks: Sequence[Block]) -> None:
    """Replace a jump to a short block that ends the function by a copy of it."""
    by_label = {block.label: block for block in blocks}
    for block in blocks:
        if block.jump is None:
            continue
        target = by_label[block.jump]
        if not target.successors() and len(target.body) <= _RETURN_COPY:
            block.body += target.body
            block.jump = None

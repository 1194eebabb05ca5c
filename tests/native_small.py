"""Small machines made by hand, each for one condition under which specialised code is right."""

from __future__ import annotations

import numpy as np

from executor.checkpoint import Checkpoint
from native_rich import BY_POSITION, ONE, POSITION, Builder, Mode, Row

SNAP = 1.5 * 2.0**48
TABLE: Row = ({"key": 2.0}, {"key²": -1.0})


def marks_and_cursor(b: Builder, mark: np.ndarray, code: np.ndarray) -> None:
    """Layers 0 and 1: the latest mark, and ``got``, the code at a cursor that marks move."""
    b.token("mark", mark)
    b.token("code", code)
    b.token("code²", code**2)
    b.head(0, ({ONE: 1.0}, {}), ({"mark": 1.0}, {}), ({POSITION: 1.0}, {}), ("latest",))
    b.head(0, ({}, {}), ({}, {}), ({"mark": 1.0}, {}), ("mean",), "mean")
    b.token("total", np.full(b.vocab, SNAP))
    b.neuron(0, {POSITION: 1.0, ONE: 1.0}, {"mean": 1.0}, {"total": 1.0})
    b.head(
        1,
        ({"total": 1.0, ONE: -SNAP}, {ONE: 1.0}),
        BY_POSITION,
        ({"code": 1.0}, {"code²": 1.0}),
        ("got", "got²"),
    )


def on_code(b: Builder, layer: int, code: int, value: dict[str, float], slot: str) -> None:
    """A neuron that adds a value where the fetched code is this one."""
    gate = {ONE: 1.0 - code * code, "got": 2.0 * code, "got²": -1.0}
    b.neuron(layer, gate, value, {slot: 1.0})


def by_nearest(b: Builder, y: str, tokens: range) -> None:
    """Output: the token whose number in the range is nearest to a quantity."""
    for k, token in enumerate(tokens):
        b.rows[token] = {y: 2.0 * k, ONE: -float(k * k)}


def late_model(read: str) -> Checkpoint:
    """What a structure keeps depends on few keys, of which new ones turn up late.

    A token finds its own key among the few: so it has to be there before anything else is kept.
    But with it goes what was fetched, while what is kept elsewhere does not depend on that: so it
    might be kept before.

    Args:
        read: ``zero``: from a table, at the key 0 of tokens that write nothing; ``chained``: a
            second table keeps what the first has, which is not stored; ``greatest``: an extreme;
            ``table``, ``hull``: like ``zero``, with a structure in place of the few whose keys are
            of the token before.
    """
    vocab, codes = 96, 6
    ids = np.arange(vocab)
    b = Builder(vocab, 5)
    marks_and_cursor(b, (ids % 3 == 0) * 1.0, ids * 7 // 2 % codes)
    digit = np.where(ids % 2, ids // 2, 0) * 1.0
    b.token("digit", digit)
    b.token("digit²", digit**2)
    of_zero = read in ("zero", "table", "hull")
    writes = (ids % 3 == of_zero) * (ids % 4 < 2)  # then no mark does
    if read == "chained":
        writes = ids % 3 == 0  # all marks do, so nothing is done twice
    b.token("writes", writes * 1.0)
    b.token("grade", ids * 5 % 7)
    b.token("next", ids * 11 % 79)
    kind = ids * 5 % 4
    b.token("kind", kind)
    b.token("kind²", kind**2)
    before: Row = ({POSITION: 1.0, ONE: -1.0}, {ONE: 1.0})
    b.head(0, before, BY_POSITION, ({"kind": 1.0}, {"kind²": 1.0}), ("back", "back²"))
    for code in range(codes - 1):
        on_code(b, 1, code, {"kind": 0.5, ONE: float(code % 5 - 2)}, "out")
    for shift, factor in ((0.0, 2.0), (1.0, -2.0)):
        b.neuron(1, {POSITION: 1.0, "latest": -1.0, ONE: -shift}, {ONE: 1.0}, {"out": factor})
    b.neuron(1, {"writes": 1.0}, {"back": 1.0}, {"key": 1.0})
    b.neuron(1, {"writes": 1.0}, {"back²": 1.0}, {"key²": 1.0})
    digits: Row = ({"digit": 2.0}, {"digit²": -1.0, "digit": 0.25})  # no two can tie
    if read in ("table", "hull"):
        b.head(0, before, BY_POSITION, ({"digit": 1.0}, {"digit²": 1.0}), ("was", "was²"))
        digits = ({"was": 2.0}, {"was²": -1.0, "grade": 0.25 * (read == "hull")})
    b.head(2, ({"digit": 1.0}, {ONE: 1.0}), digits, ({"digit": 1.0}, {"out": 1.0}), ("few", "x"))
    if read == "greatest":
        b.head(3, ({ONE: 1.0}, {}), ({"grade": 1.0}, {}), ({"few": 1.0}, {}), ("greatest",))
        on_code(b, 4, codes - 1, {"greatest": 1.0}, "out")
    elif of_zero:
        b.head(3, ({"kind": 1.0}, {ONE: 1.0}), TABLE, ({"few": 1.0}, {}), ("zero",))
        b.neuron(4, {ONE: 1.0}, {"zero": 1.0}, {"out": 1.0})
    else:
        b.head(3, ({"key": 1.0}, {ONE: 1.0}), TABLE, ({"few": 1.0}, {}), ("own",))
        b.head(4, ({"kind": 1.0}, {ONE: 1.0}), TABLE, ({"own": 1.0}, {}), ("chained",))
        b.neuron(4, {ONE: 1.0}, {"chained": 1.0}, {"out": 1.0})
    b.neuron(3, {ONE: 1.0}, {"next": 1.0, "x": 0.25}, {"out": 1.0})
    by_nearest(b, "out", range(80))
    for token in range(80, vocab):
        b.rows[token] = {ONE: -99.0}
    return b.checkpoint([0, 8, 5, 24], (0,))


def apart_model() -> Checkpoint:
    """Marks do not move the cursor, other tokens do, and some look one farther or nearer."""
    vocab, codes = 60, 6
    ids = np.arange(vocab)
    b = Builder(vocab, 3)
    b.token("mark", (ids % 5 == 0) * 1.0)
    b.token("step", (ids % 5 == 1) * 1.0)
    b.token("look", np.where(ids % 5 == 2, 1.0, np.where(ids % 5 == 3, -1.0, 0.0)))
    code = ids * 7 // 3 % codes
    b.token("code", code)
    b.token("code²", code**2)
    b.token("kind", ids * 11 % 7)
    b.token("out", ids * 17 % 48)
    b.head(0, ({ONE: 1.0}, {}), ({"mark": 1.0}, {}), ({POSITION: 1.0}, {"kind": 1.0}),
           ("latest", "latest kind"))  # fmt: skip
    b.head(0, ({}, {}), ({}, {}), ({"step": 1.0}, {}), ("mean",), "mean")
    b.token("total", np.full(vocab, SNAP))
    b.neuron(0, {POSITION: 1.0, ONE: 1.0}, {"mean": 1.0}, {"total": 1.0})
    cursor = ({"total": 1.0, "look": 1.0, ONE: 2.0 - SNAP}, {ONE: 1.0})
    b.head(1, cursor, BY_POSITION, ({"code": 1.0}, {"code²": 1.0}), ("got", "got²"))
    for c in range(codes):
        on_code(b, 1, c, {"kind": 1.0, "latest kind": 0.5, ONE: float(c - 4)}, "out")
    for shift, factor in ((1.0, 3.0), (2.0, -3.0)):
        gate = {POSITION: 1.0, "latest": -1.0, ONE: -shift}
        b.neuron(1, gate, {ONE: 1.0}, {"out": factor})
    b.neuron(1, {"look": 1.0}, {"latest kind": 1.0}, {"out": 0.5})
    b.neuron(1, {"step": 1.0}, {"latest kind": 1.0}, {"out": -0.5})
    by_nearest(b, "out", range(56))
    for token in range(56, vocab):
        b.rows[token] = {ONE: -99.0}
    return b.checkpoint([0], (0,))


def late_zero_model(bent: bool = False) -> Checkpoint:
    """Almost all tokens write to a table, so the first that does not may come late.

    Args:
        bent: whether one token writes with a key that is none of a table.
    """
    vocab, codes = 48, 6
    ids = np.arange(vocab)
    b = Builder(vocab, 4)
    marks_and_cursor(b, (ids % 3 == 1) * 1.0, ids * 7 // 2 % codes)
    b.token("writes", (ids % 6 > 0) * 1.0)
    kind = ids % 3 + 1
    b.token("kind", kind)
    b.token("kind²", kind**2)
    b.token("asks", ids * 5 % 4)
    b.token("out", ids * 17 % 40)
    before: Row = ({POSITION: 1.0, ONE: -1.0}, {ONE: 1.0})
    b.head(0, before, BY_POSITION, ({"kind": 1.0}, {"kind²": 1.0}), ("back", "back²"))
    for code in range(codes):
        on_code(b, 1, code, {"kind": 1.0, ONE: float(code % 5 - 2)}, "out")
    for shift, factor in ((0.0, 2.0), (1.0, -2.0)):
        b.neuron(1, {POSITION: 1.0, "latest": -1.0, ONE: -shift}, {ONE: 1.0}, {"out": factor})
    b.neuron(1, {"writes": 1.0}, {"back": 1.0}, {"key": 1.0})
    b.neuron(1, {"writes": 1.0}, {"back²": 1.0}, {"key²": 1.0})
    if bent:
        b.token("bent", (ids == 20) * 1.0)
        b.neuron(1, {"bent": 1.0}, {"back": 0.5}, {"key": 1.0})
    b.head(2, ({"asks": 1.0}, {ONE: 1.0}), TABLE, ({"key": 1.0}, {"kind": 1.0}), ("found", "of"))
    b.neuron(3, {ONE: 1.0}, {"found": 4.0, "of": 1.0}, {"out": 1.0})
    by_nearest(b, "out", range(vocab))
    return b.checkpoint([1], (0,))


def gap_model() -> Checkpoint:
    """A token that comes out only five or more after a mark, but may stand nearer in a prompt.

    Tokens 0 to 3 are marks, 4 to 7 follow them, 8 to 11 come five after a mark. What follows one
    of those depends on how far back the mark is.
    """
    vocab = 12
    ids = np.arange(vocab)
    b = Builder(vocab, 2)
    b.token("mark", (ids < 4) * 1.0)
    b.token("late", (ids >= 8) * 1.0)
    b.token("sort", ids % 4)
    b.head(0, ({ONE: 1.0}, {}), ({"mark": 1.0}, {}), ({POSITION: 1.0}, {}), ("latest",))
    for shift, factor in ((3.0, 1.0), (4.0, -1.0)):  # 4 or more: 1
        gate = {POSITION: 1.0, "latest": -1.0, ONE: -shift}
        b.neuron(0, gate, {ONE: 1.0}, {"far": factor})
    b.neuron(1, {"late": 1.0}, {"far": 8.0}, {"to mark": 1.0})
    for token in range(vocab):
        b.rows[token] = {"sort": float(token % 4) / 4, ONE: -((token % 4) ** 2) / 8}
        kind = ({"to mark": 1.0, ONE: -3.0}, {}, {"far": 4.0, ONE: -2.0})[token // 4]
        for name, weight in kind.items():
            b.rows[token][name] = b.rows[token].get(name, 0.0) + weight
    return b.checkpoint([0], (0,))


def ahead_model(fraction: float) -> Checkpoint:
    """Positions that would be after the current token, in traces.

    Args:
        fraction: what a position is off an integer by.
    """
    vocab = 48
    ids = np.arange(vocab)
    b = Builder(vocab, 2)
    b.token("mark", (ids % 4 == 0) * 1.0)
    b.token("ahead", ids * 7 % 5 - 2)
    b.token("number", ids * 11 % 16)
    b.token("out", ids * 5 % 32)
    b.head(0, ({ONE: 1.0}, {}), ({"mark": 1.0}, {}), ({POSITION: 1.0}, {}), ("latest",))
    there: Row = ({POSITION: 1.0, "ahead": 1.0, ONE: fraction}, {ONE: 1.0})
    b.head(0, there, BY_POSITION, ({"number": 1.0}, {}), ("found",))
    b.token("grade", (ids % 3 > 0) * 1.0)
    b.head(0, ({ONE: -1.0}, {}), ({"grade": 1.0}, {}), ({POSITION: 1.0}, {}), ("lowest",))
    after = ({"lowest": 1.0, ONE: 2.0 + fraction}, {ONE: 1.0})  # the same for most of a trace
    b.head(1, after, BY_POSITION, ({"number": 1.0}, {}), ("found after",))
    for shift, factor in ((0.0, 2.0), (1.0, -2.0)):
        b.neuron(1, {POSITION: 1.0, "latest": -1.0, ONE: -shift}, {ONE: 1.0}, {"out": factor})
    b.neuron(1, {ONE: 1.0}, {"found": 1.0, "found after": 1.0}, {"out": 1.0})
    by_nearest(b, "out", range(vocab))
    return b.checkpoint([0], (0,))


def two_queries_model(mode: Mode, of_token: bool) -> Checkpoint:
    """Two records of one structure, of which the first is read again after the second is found.

    Args:
        mode: of both heads. Queries tie often.
        of_token: whether the keys depend on the token alone.
    """
    vocab = 48
    ids = np.arange(vocab)
    b = Builder(vocab, 3)
    for name, column in (
        ("x", ids % 3), ("y", ids // 3 % 2), ("ask", ids * 7 % 5 - 2), ("ask more", ids % 2),
        ("one", ids * 5 % 8), ("other", ids * 11 % 8), ("out", ids % 6),
    ):  # fmt: skip
        b.token(name, column)
    before: Row = ({POSITION: 1.0, ONE: -1.0}, {ONE: 1.0})
    b.head(0, before, BY_POSITION, ({"y": 1.0}, {"one": 1.0}), ("back", "one back"))
    key: Row = ({"x": 1.0} if of_token else {"x": 1.0, "back": 1.0}, {"y": 1.0})
    values: Row = ({"one": 1.0, "one back": 1.0}, {"other": 1.0, "one back": -1.0})
    b.head(1, ({"ask": 1.0}, {ONE: 1.0}), key, values, ("a", "a again"), mode)
    b.head(1, ({"ask more": 1.0}, {ONE: -1.0}), key, values, ("b", "b again"), mode)
    for name in ("a", "b", "a again", "b again"):
        b.neuron(2, {ONE: 1.0}, {name: 2.0 if "a" in name else 1.0}, {"out": 1.0})
    by_nearest(b, "out", range(vocab))
    return b.checkpoint([1], (0,))

"""Random small machines with all that specialised code makes use of, in random combinations.

Each has a cursor that sums move, a place that it fetches from, marks with distances to the latest,
tables, structures of few keys, comparisons that are 0 or 1, fractions, large constants and several
families of outputs. All arithmetic is exact in any order, but for sums that a large constant
rounds: of those there are only two numbers at a time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from executor.checkpoint import Checkpoint
from executor.config import ModelConfig

Entry = dict[str, float]
"""Weights by the name of a slot."""
Row = tuple[Entry, Entry]
Mode = Literal["latest", "mean"]
POSITION, SQUARE, ONE = "p", "p²", "1"
BY_POSITION: Row = ({POSITION: 2.0}, {SQUARE: -1.0})


class Builder:
    """Weights of a model, with slots that have names."""

    def __init__(self, vocab: int, layers: int) -> None:
        self.vocab, self.layers = vocab, layers
        self.slots: dict[str, int] = {POSITION: 0, SQUARE: 1, ONE: 2}
        self.columns: dict[str, np.ndarray] = {ONE: np.ones(vocab)}
        self.heads: list[list[tuple[Row, Row, Row, tuple[str, ...], Mode]]] = [
            [] for _ in range(layers)
        ]
        self.neurons: list[list[tuple[Entry, Entry, Entry]]] = [[] for _ in range(layers)]
        self.rows: list[Entry] = [{} for _ in range(vocab)]

    def slot(self, name: str) -> int:
        return self.slots.setdefault(name, len(self.slots))

    def token(self, name: str, column: Sequence[float] | np.ndarray) -> str:
        """A number of the token."""
        self.slot(name)
        self.columns[name] = np.asarray(column, dtype=np.float64)
        return name

    def head(
        self,
        layer: int,
        query: Row,
        key: Row,
        values: Row,
        outs: Sequence[str],
        mode: Mode = "latest",
    ) -> None:
        """A head; what it finds goes to slots of its own."""
        for name in outs:
            self.slot(name)
        self.heads[layer].append((query, key, values, tuple(outs), mode))

    def neuron(self, layer: int, gate: Entry, value: Entry, down: Entry) -> None:
        for name in down:
            self.slot(name)
        self.neurons[layer].append((gate, value, down))

    def checkpoint(self, rom: Sequence[int], stop: Sequence[int]) -> Checkpoint:
        n_heads = max((len(self.slots) + 1) // 2, *map(len, self.heads))
        wide = 2 * n_heads
        config = ModelConfig(
            self.vocab, d_model=wide, n_heads=n_heads, n_layers=self.layers,
            d_ffn=max(1, *map(len, self.neurons)), stop_tokens=tuple(stop),
            head_modes=tuple(
                tuple([h[4] for h in layer] + ["latest"] * (n_heads - len(layer)))
                for layer in self.heads
            ),
        )  # fmt: skip
        weights = {name: np.zeros(shape) for name, shape in config.shapes.items()}

        def put(row: np.ndarray, entry: Entry) -> None:
            for name, weight in entry.items():
                row[self.slots[name]] += weight

        for name, column in self.columns.items():
            weights["tok.weight"][:, self.slots[name]] = column
        for layer in range(self.layers):
            rows = weights[f"attn.{layer}.in_proj_weight"].reshape(3, wide, wide)
            for n, (query, key, values, outs, _) in enumerate(self.heads[layer]):
                for part, pair in enumerate((query, key, values)):
                    for component, entry in enumerate(pair):
                        put(rows[part, 2 * n + component], entry)
                for component, name in enumerate(outs):
                    weights[f"attn.{layer}.out_proj.weight"][
                        self.slots[name], 2 * n + component
                    ] = 1.0
            for n, (gate, value, down) in enumerate(self.neurons[layer]):
                put(weights[f"gate.{layer}.weight"][n], gate)
                put(weights[f"value.{layer}.weight"][n], value)
                put(weights[f"down.{layer}.weight"][:, n], down)
        for token, entry in enumerate(self.rows):
            put(weights["head.weight"][token], entry)
        return Checkpoint(config, tuple(map(str, range(self.vocab))), weights, tuple(rom))


def rich_model(seed: int) -> Checkpoint:
    """Model number ``seed``."""
    rng = np.random.default_rng(5000 + seed)
    vocab = int(rng.integers(24, 60))
    b = Builder(vocab, int(rng.integers(3, 5)))

    def maybe(chance: float) -> bool:
        return bool(rng.random() < chance)

    def pick(*options: float) -> float:
        return float(rng.choice(options))

    # Tokens
    snap = 1.5 * 2.0 ** pick(46, 48, 50)
    codes, stride = int(rng.integers(4, 8)), int(pick(1, 1, 2, 3))
    mark = (rng.random(vocab) < pick(0.15, 0.3, 0.5)) * 1.0
    mark[0] = maybe(0.7) * 1.0
    mark[1] = 1.0
    b.token("mark", mark)
    step = mark * stride
    if maybe(0.4):  # tokens that move the cursor without being marked, or back
        step[rng.random(vocab) < 0.1] = pick(1, 2, -1)
    if maybe(0.2):  # marked tokens that do not move it
        step[rng.random(vocab) < 0.2] = 0.0
    b.token("step", step)
    code = rng.integers(0, codes, vocab)
    b.token("code", code)
    b.token("code²", code**2)
    number = rng.integers(int(pick(0, 0, -4)), 7, vocab) * (rng.random(vocab) < pick(0.3, 0.8))
    b.token("number", number)
    b.token("number²", number**2)
    digit = np.minimum(rng.permutation(vocab) // 2, int(pick(5, 12))) * (rng.random(vocab) < 0.6)
    off = pick(0, 0.25, 0.5)
    b.token("digit", digit)
    b.token("-digit²", digit * off - digit**2)
    b.token("grade", rng.integers(-3, 4, vocab))
    fine = pick(1, 4, 10, 24)
    b.token("part", rng.integers(-8 * 2**fine, 8 * 2**fine, vocab) * 2.0**-fine)
    numbers = ["number", "grade", "digit"]
    b.token("out", rng.integers(0, vocab // 2, vocab))  # so that it does not stay the same token

    # Layer 0: the latest mark, the cursor, the token before
    b.head(0, ({ONE: 1.0}, {}), ({"mark": 1.0}, {}), ({POSITION: 1.0}, {}), ("latest",))
    if maybe(0.4):
        b.head(0, ({ONE: 1.0}, {}), ({"mark": 1.0}, {}), ({"number": 1.0}, {"code": 1.0}),
               ("latest number", "latest code"))  # fmt: skip
        numbers += ["latest number", "latest code"]
    if maybe(0.4):
        b.head(0, ({ONE: -1.0}, {}), ({"grade": 1.0}, {}), ({POSITION: 1.0}, {"number": 1.0}),
               ("lowest", "lowest number"))  # fmt: skip
        numbers += ["lowest number"]
    b.head(0, ({}, {}), ({}, {}), ({"step": 1.0}, {}), ("mean",), "mean")
    b.token("total", np.full(vocab, snap))
    b.neuron(0, {POSITION: 1.0, ONE: 1.0}, {"mean": 1.0}, {"total": 1.0})
    if maybe(0.3):
        b.head(0, ({}, {}), ({}, {}), ({"grade": 1.0}, {}), ("mean grade",), "mean")
        b.token("balance", np.full(vocab, snap))
        b.neuron(0, {POSITION: 1.0, ONE: 1.0}, {"mean grade": 1.0}, {"balance": 1.0})
    for back in (1, *((2,) if maybe(0.5) else ())):
        b.head(0, ({POSITION: 1.0, ONE: -float(back)}, {ONE: 1.0}), BY_POSITION,
               ({"number": 1.0}, {"code": 1.0}), (f"back{back}", f"code{back}"))  # fmt: skip
        numbers += [f"back{back}", f"code{back}"]

    # Layer 1: what is at the cursor; few keys; comparisons
    cursor = {"total": 1.0, ONE: -snap + pick(0, 0, -1, 1, -3)}
    b.head(1, (cursor, {ONE: 1.0}), BY_POSITION, ({"code": 1.0}, {"code²": 1.0}), ("got", "got²"))
    if maybe(0.5):
        b.head(1, ({**cursor, POSITION: pick(0, 0, 0.5)}, {ONE: 1.0}), BY_POSITION,
               ({"number": 1.0}, {"part": 1.0}), ("operand", "operand part"))  # fmt: skip
        numbers += ["operand"]
    digits: Row = ({"digit": 2.0}, {"-digit²": 1.0})
    asked = {str(rng.choice(["number", "back1"])): pick(1, 2, 3), ONE: pick(0, 0.5)}
    second = {ONE: pick(1, 1, 1, 2)} if maybe(0.8) else {"grade": 1.0}
    b.head(1, (asked, second), digits, ({"digit": 1.0}, {"number": 1.0}), ("nearest", "lately"))
    if maybe(0.3):
        b.head(1, (asked, second), digits, ({POSITION: 1.0}, {"code": 1.0}), ("nearly", "kind"))
        numbers.append("kind")
    if maybe(0.15):  # means, which must not be done twice; of powers of two no more than one
        b.head(
            1,
            ({ONE: 1.0}, {}),
            ({"grade": 1.0}, {}),
            ({"number": 1.0}, {}),
            ("mean of greatest",),
            "mean",
        )
        b.token("rounded", np.full(vocab, snap))
        b.neuron(1, {ONE: 1.0}, {"mean of greatest": 1.0}, {"rounded": 1.0})
    if maybe(0.4):  # somewhere in the first tokens
        at = {str(rng.choice(["number", "digit", "back1"])): pick(1, 0.5, -1), ONE: pick(0, 2, 7.5)}
        b.head(1, (at, {ONE: pick(1, 2)}), BY_POSITION, ({"number": 1.0}, {"code": 1.0}),
               ("first", "first code"))  # fmt: skip
        numbers += ["first", "first code"]
    if maybe(0.5):
        numbers.append("nearest")
    if maybe(0.3):
        numbers.append("lately")
    for c in range(codes):
        value = {str(rng.choice(numbers)): pick(-1, 1), ONE: pick(-2, 0, 3)}
        down = {"out": pick(-1, 1)}
        b.neuron(1, {ONE: 1.0 - c * c, "got": 2.0 * c, "got²": -1.0}, value, down)
    gates: list[Entry] = []
    for _ in range(int(rng.integers(1, 4))):
        gates.append({POSITION: 1.0, "latest": -1.0, ONE: -float(rng.integers(0, 7))})
    for _ in range(int(rng.integers(1, 4))):
        one, other = rng.choice(numbers, 2, replace=False)
        gates.append({str(one): 1.0, str(other): pick(-1, 1), ONE: pick(-4, -1, 0, 2)})
    for n, gate in enumerate(gates):
        slot = "out" if maybe(0.5) else f"flag{n}"
        value = {ONE: 1.0} if maybe(0.7) else {str(rng.choice(numbers)): 1.0}
        size = pick(-3, 1, 2)
        shape = [(1, 0), (-1, -1)] if maybe(0.7) else [(1, 0), (-2, -1), (1, -2)]
        if maybe(0.15):
            shape = [(1, 0)]  # a gate, no stairs
        for factor, shift in shape:
            b.neuron(1, {**gate, ONE: gate[ONE] + shift}, value, {slot: factor * size})
        if slot != "out":
            numbers.append(slot)
    kept = {"back1": 1.0} if maybe(0.7) else {"number": 1.0}
    squares = {"back1": "back1²", "number": "number²"}[next(iter(kept))]
    if squares == "back1²":
        b.head(0, ({POSITION: 1.0, ONE: -1.0}, {ONE: 1.0}), BY_POSITION,
               ({"number²": 1.0}, {}), ("back1²",))  # fmt: skip
    b.neuron(1, {"mark": 1.0}, kept, {"key": 1.0})
    b.neuron(1, {"mark": 1.0}, {squares: 1.0}, {"key²": 1.0})
    if maybe(0.3):  # now and then a key that is not one of a table
        b.neuron(1, {"grade": 1.0, ONE: -2.0}, {"mark": pick(0.5, 1)}, {"key²": 1.0})

    # Layer 2: tables, extremes of what was found
    table: Row = ({"key": 2.0}, {"key²": -1.0})
    for n in range(int(rng.integers(1, 3))):
        stored = [str(x) for x in rng.choice(["nearest", "lately", "out", *numbers], 2)]
        if maybe(0.4):
            stored[0] = "key"
        query = {str(rng.choice(numbers)): 1.0, ONE: pick(-1, 0, 0, 1, 0.5)}
        b.head(2, (query, {ONE: 1.0}), table, ({stored[0]: 1.0}, {stored[1]: 1.0}),
               (f"found{n}", f"value{n}"))  # fmt: skip
        if maybe(0.5):
            b.head(2, (query, {ONE: 1.0}), table, ({POSITION: 1.0}, {}), (f"when{n}",))
    if maybe(0.5):
        extreme = {"grade": 1.0} if maybe(0.5) else {str(rng.choice(numbers)): 1.0}
        b.head(2, ({ONE: pick(-1, 1)}, {}), (extreme, {}),
               ({str(rng.choice(["nearest", "code", "lately"])): 1.0}, {"out": 1.0}),
               ("record", "record out"))  # fmt: skip
        numbers += ["record"]
    if maybe(0.3):
        query = ({str(rng.choice(numbers)): 3.0, ONE: 20.0}, {"code": 1.0, ONE: pick(1, -2)})
        values = ({"number": 1.0}, {"code": 1.0})
        b.head(2, query, BY_POSITION, values, ("quotient", "quotient code"))
        numbers += ["quotient"]
    numbers += ["found0", "value0"]
    b.neuron(2, {"found0": 1.0, ONE: 0.5}, {ONE: 1.0}, {"out": pick(-1, 0.5)})
    for _ in range(int(rng.integers(1, 4))):
        one, other = (str(x) for x in rng.choice(numbers, 2, replace=False))
        gate = {one: 1.0, other: pick(-1, 1), ONE: pick(-3, 0, 1)}
        value = {ONE: 1.0} if maybe(0.7) else {str(rng.choice(numbers)): 1.0}
        b.neuron(2, gate, value, {"out": pick(-0.5, 0.5)})
    if maybe(0.5):  # a comparison, and what depends on it
        one, other = (str(x) for x in rng.choice(numbers, 2, replace=False))
        for factor, shift in ((1, 0), (-1, -1)):
            gate = {one: 1.0, other: -1.0, ONE: pick(0) + shift}
            b.neuron(2, gate, {ONE: 1.0}, {"less": factor})
    else:
        b.slot("less")
    large = pick(2.0**50, 1.5 * 2.0**51, 1.5 * 2.0**52)
    if maybe(0.5):  # a fraction that a large constant rounds
        b.neuron(0, {ONE: 1.0}, {ONE: large}, {"part": 1.0})
        b.neuron(1, {ONE: 1.0}, {ONE: -large}, {"part": 1.0})
        b.neuron(2, {ONE: 1.0}, {"part": pick(0.25, 1)}, {"out": 1.0})
    elif maybe(0.5):
        b.neuron(2, {ONE: 1.0}, {"part": pick(0.25, 1, 2)}, {"out": 1.0})
        if maybe(0.5):
            b.neuron(2, {"number": 1.0}, {"part": pick(0.25, 1)}, {"out": 1.0})

    # Outputs
    half = vocab // 2
    order = rng.permutation(half) if maybe(0.3) else np.arange(half)
    for k in range(half):
        x = float(order[k])
        b.rows[k] = {"out": 2 * x, ONE: -x * x}
    third = (vocab - half) // 2
    lift = pick(-1, -0.5, 0, 0.25, 3)
    common = {"less": pick(-60, 2, 40)} if maybe(0.6) else {}
    y = "out" if maybe(0.6) else str(rng.choice(numbers))
    for k in range(third):
        x = float(k) * pick(1, 1, 2)
        b.rows[half + k] = {**common, y: 2 * x, ONE: lift - x * x}
    for k in range(half + third, vocab):
        entry = {str(name): pick(-3, -1, 1, 2) for name in rng.choice(numbers, 2)}
        b.rows[k] = {**entry, "less": pick(0, 0, 9, -9), ONE: pick(-9, -3, 0, 5)}
    prompt = rng.integers(0, vocab, 10).tolist() if maybe(0.4) else []
    if maybe(0.3):  # all keys of the token are there from the start
        prompt = rng.permutation(vocab).tolist()
    return b.checkpoint([0, *prompt], (0,))

"""Random small machines whose sums are rounded, and whose outputs show every bit of them.

Numbers of tokens at several places are added up in more than one order, products and large
constants come in, and the differences, which are a few units in the last place, decide about
gates, positions and tokens. Only code that does the same operations in the same order, or exact
ones, gives the same tokens. So these compare specialised with plain code alone.
"""

from __future__ import annotations

import numpy as np

from executor.checkpoint import Checkpoint
from native_rich import BY_POSITION, ONE, POSITION, Builder, Entry


def rough_model(seed: int) -> Checkpoint:
    """Model number ``seed``; the numbers of bits are about as many as a float64 has."""
    rng = np.random.default_rng(9000 + seed)
    vocab, half = 32, 16
    b = Builder(vocab, 6)

    def maybe(chance: float) -> bool:
        return bool(rng.random() < chance)

    def pick(*options: float) -> float:
        return float(rng.choice(options))

    bits, fine = int(rng.integers(49, 55)), int(pick(0, 1, 20, 30))

    def rough(least: int = 0) -> np.ndarray:
        """A few numbers of about so many bits, or fewer, down to a fixed unit."""
        size = 2 ** int(rng.integers(max(least, bits - 4), bits))
        found = rng.integers(-size if maybe(0.5) else size // 2, size, vocab)
        if maybe(0.3):
            found = found // 2 * 2
        return found * 2.0**-fine

    mark = (np.arange(vocab) % 3 == 0) * 1.0
    b.token("mark", mark)
    kind = rng.integers(0, 6, vocab)
    b.token("kind", kind)
    b.token("kind²", kind**2)
    names = ["x", "y", "z"]
    for name in names:
        b.token(name, rough())
    b.token("small", rng.integers(-3, 4, vocab) * 2.0 ** -pick(0, 0, 1, fine))
    b.head(0, ({ONE: 1.0}, {}), ({"mark": 1.0}, {}), ({POSITION: 1.0}, {}), ("latest",))
    for back in (1, 2):
        b.head(0, ({POSITION: 1.0, ONE: -float(back)}, {ONE: 1.0}), BY_POSITION,
               ({"y": 1.0}, {"z": 1.0}), (f"y{back}", f"z{back}"))  # fmt: skip

    # One sum in two orders, and with a large constant in between
    unit = 2.0 ** (bits - 53 - fine)
    large = 2.0 ** (bits - fine + int(rng.integers(-2, 2))) * pick(1.0, 1.25, 1.5)
    names = ["x", "y1", "z2", "small"] if maybe(0.3) else ["x", "y1", "z2"]
    terms = [(str(n), pick(-1, 1, 1, 0.5)) for n in rng.permutation(names)[:3]]
    orders = [terms, terms[::-1], [terms[i] for i in rng.permutation(len(terms))]]
    for n, order in enumerate(orders[: int(rng.integers(2, 4))]):
        for layer, (name, factor) in enumerate(order[:3]):
            b.neuron(layer, {ONE: 1.0}, {name: factor}, {f"sum{n}": 1.0})
        if maybe(0.3):
            b.neuron(1, {ONE: 1.0}, {ONE: large}, {f"sum{n}": 1.0})
            b.neuron(2, {ONE: 1.0}, {ONE: -large}, {f"sum{n}": 1.0})
    b.neuron(0, {ONE: 1.0}, {"x": 1.0}, {"large": 1.0})
    b.neuron(1, {ONE: 1.0}, {ONE: large}, {"large": 1.0})
    b.neuron(2, {ONE: 1.0}, {ONE: -large}, {"large": 1.0})
    if maybe(0.5):  # products
        b.token("g", rng.integers(1, 2 ** int(pick(3, 20, 27)), vocab))
        b.token("h", rng.integers(1, 2 ** int(pick(3, 25, 27)), vocab))
        b.neuron(0, {"g": 1.0}, {"y1": 1.0 if maybe(0.5) else 0.0, "h": 1.0}, {"gh": unit})
        b.neuron(1, {"g": 1.0, "small": 1.0}, {"h": 1.0}, {"hg": unit})

    # A running sum, whose mean times the number of tokens is not quite the sum
    steps = rng.integers(0, 2 ** int(pick(1, 10, 20, 30, 41)), vocab) * mark
    b.token("step", steps * pick(1, 1, 0.5))
    snap = 1.5 * 2.0 ** pick(44, 46, 48, 50)
    b.head(0, ({}, {}), ({}, {}), ({"step": 1.0}, {}), ("mean",), "mean")
    b.token("total", np.full(vocab, snap))
    b.neuron(0, {POSITION: 1.0, ONE: 1.0}, {"mean": 1.0}, {"total": 1.0})
    b.neuron(0, {POSITION: 1.0, ONE: 1.0}, {"mean": 1.0}, {"product": 1.0})
    rest = 2.0 ** pick(53 - int(np.log2(snap)), 30, 40)

    # What decides: differences, in units
    per = 1.0 / unit
    differences: list[Entry] = [
        {"sum0": per, "sum1": -per},
        {"large": per, "x": -per},
        {"total": rest, ONE: -snap * rest, "product": -rest},
    ]
    if "sum2" in b.slots:
        differences.append({"sum2": per / 2, "sum0": -per / 2})
    if "gh" in b.slots:
        differences.append({"gh": per / 2**20, "hg": -per / 2**20})
    for n, entry in enumerate(differences):
        b.neuron(3, {ONE: 1.0}, entry, {f"d{n}": 1.0})
        for at in rng.permutation(np.arange(-3, 4) / 2)[: int(rng.integers(1, 4))]:
            size, value = pick(-2, -1, 1, 3), {ONE: 1.0} if maybe(0.7) else {"kind": 0.5}
            for shift, factor in ((0.0, size), (1.0, -size)):
                b.neuron(4, {f"d{n}": 1.0, ONE: at - shift}, value, {f"c{n}": factor})
    some = f"c{rng.integers(len(differences))}"
    b.head(5, ({POSITION: 1.0, ONE: -3.0, some: 0.5}, {ONE: 1.0}), BY_POSITION,
           ({"kind": 1.0}, {}), ("there",))  # fmt: skip
    b.head(5, ({ONE: 2.0, some: 0.5}, {ONE: 1.0}), ({"kind": 2.0}, {"kind²": -1.0}),
           ({POSITION: 1.0}, {"small": 1.0}), ("when", "found"))  # fmt: skip
    b.neuron(5, {ONE: 1.0}, {"there": 1.0, "found": 1.0}, {"out": 1.0})
    b.neuron(5, {POSITION: 1.0, "when": -1.0, ONE: -4.0}, {ONE: 1.0}, {"out": -1.0})
    b.token("out", rng.integers(0, half - 4, vocab))
    changes = {f"c{n}": 1.0 for n in range(len(differences))}
    for k in range(half):
        y = {name: 2.0 * k * weight for name, weight in {**changes, "out": 1.0}.items()}
        b.rows[k] = {**y, ONE: -float(k * k)}
    for k in range(half, vocab):
        n = k % len(differences)
        b.rows[k] = {f"c{n}": pick(-9, 9), "out": float(k - half), ONE: pick(-60, -30, -9)}
    return b.checkpoint([0], (0,))

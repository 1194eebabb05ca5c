"""Random small machines without a plan: heads of all kinds that read whatever there is.

Unlike :mod:`native_rich` nothing has to be there, no cursor, no marks, no table, and anything may
depend on anything. Sums may be rounded, so the tokens are to be compared with those of plain code.
"""

from __future__ import annotations

import numpy as np

from executor.checkpoint import Checkpoint
from native_rich import BY_POSITION, ONE, POSITION, Builder, Entry, Mode, Row

SNAP = 1.5 * 2.0**48


class _Free:
    """One machine.

    Attributes:
        names: quantities that later layers may read.
        squares: for some of them, the name of the square.
    """

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng([seed, 9])
        layers = int(self.rng.integers(2, 5))
        self.b = Builder(int(self.rng.integers(24, 56)), layers)
        self.names: list[str] = []
        self.of_token: list[str] = []
        self.squares: dict[str, str] = {}
        self._new: list[str] = []
        self.count = 0

    def maybe(self, chance: float) -> bool:
        return bool(self.rng.random() < chance)

    def pick(self, *options: float) -> float:
        return float(self.rng.choice(options))

    def some(self) -> str:
        return str(self.rng.choice(self.names))

    def name(self) -> str:
        self.count += 1
        return f"x{self.count}"

    def sum(self, chance: float = 0.3) -> Entry:
        """One quantity or two, and a constant."""
        found = {self.some(): self.pick(1, 1, -1, 2, 0.5)}
        if self.maybe(chance):
            found[self.some()] = self.pick(1, -1)
        return {**found, ONE: self.pick(0, 0, 1, -2, 0.5)}

    def tokens(self) -> None:
        vocab, b, rng = self.b.vocab, self.b, self.rng
        b.token("mark", (rng.random(vocab) < self.pick(0.2, 0.4, 0.7)) * 1.0)
        for n in range(int(rng.integers(2, 5))):
            low, high = (
                (0, 1) if self.maybe(0.2) else (int(self.pick(0, 0, -3)), int(self.pick(3, 9)))
            )
            column = rng.integers(low, high + 1, vocab) * (rng.random(vocab) < self.pick(0.5, 1.0))
            name = b.token(f"n{n}", column)
            self.squares[name] = b.token(f"n{n}²", column**2)
        if self.maybe(0.4):
            self.names.append(
                b.token("part", rng.integers(-99, 99, vocab) * 2.0 ** -self.pick(1, 9))
            )
        self.names += ["mark", *self.squares]
        self.of_token = list(self.names)
        b.token("out", rng.integers(0, vocab, vocab))

    def values(self) -> Row:
        one = {POSITION: 1.0} if self.maybe(0.2) else self.sum(0.2)
        return one, ({} if self.maybe(0.3) else self.sum(0.2))

    def head(self, layer: int, query: Row, key: Row, mode: Mode = "latest") -> None:
        values, outs = self.values(), (self.name(), self.name())
        self.b.head(layer, query, key, values, outs, mode)
        self._new += outs if values[1] else outs[:1]

    def any_head(self, layer: int) -> None:
        """A head of any kind."""
        kind = int(self.rng.integers(10))
        mode: Mode = "mean" if self.maybe(0.1) else "latest"
        if kind == 0:  # an extreme, of a mark or of anything
            key = {"mark": 1.0} if self.maybe(0.5) else self.sum()
            self.head(layer, ({ONE: self.pick(1, 1, -1)}, {}), (key, {}), mode)
        elif kind == 1:  # a running sum
            value, out = self.sum(0.1), self.name()
            self.b.head(layer, ({}, {}), ({}, {}), (value, {}), (out,), "mean")
            if self.maybe(0.8):
                total = self.name()
                self.b.token(total, np.full(self.b.vocab, SNAP))
                gate = {POSITION: 1.0, ONE: 1.0}
                self.b.neuron(layer, gate, {out: 1.0}, {total: 1.0})
                self.b.neuron(layer, {ONE: 1.0}, {ONE: -SNAP}, {self._also(total): 1.0})
        elif kind == 2:  # some tokens back
            at = {POSITION: 1.0, ONE: -self.pick(0, 1, 2, 3, 1.5)}
            out = self.name(), self.name()
            name = str(self.rng.choice(list(self.squares)))
            self.b.head(layer, (at, {ONE: 1.0}), BY_POSITION,
                        ({name: 1.0}, {self.squares[name]: 1.0}), out)  # fmt: skip
            self.squares[out[0]] = out[1]
            self._new.append(out[0])
        elif kind in (3, 4):  # a position that is computed
            at = {POSITION: self.pick(0, 1, 0.5), **self.sum()}
            self.head(layer, (at, {ONE: self.pick(1, 1, 2)}), BY_POSITION)
        elif kind == 5:  # a quotient
            at = {POSITION: 1.0, **self.sum()} if self.maybe(0.5) else self.sum()
            self.head(layer, (at, {ONE: self.pick(1, 3), **self.sum()}), BY_POSITION)
        elif kind == 6:  # few keys
            one, other = (str(self.rng.choice(self.of_token)) for _ in range(2))
            query = (self.sum(), {ONE: self.pick(1, 1, -1)} if self.maybe(0.7) else self.sum())
            for _ in range(1 + self.maybe(0.4)):
                self.head(layer, query, ({one: 1.0}, {other: 1.0}), mode)
                query = (self.sum(), {ONE: 1.0})
        elif kind in (7, 8):  # a table
            name = str(self.rng.choice(list(self.squares)))
            for _ in range(1 + self.maybe(0.4)):
                key, square = name, self.squares[name]
                if layer and self.maybe(0.6):  # tokens without a mark write nothing
                    key, square = self.name(), self.name()
                    self.b.neuron(layer - 1, {"mark": 1.0}, {name: 1.0}, {key: 1.0})
                    self.b.neuron(
                        layer - 1, {"mark": 1.0}, {self.squares[name]: 1.0}, {square: 1.0}
                    )
                row: Row = ({key: 2.0}, {square: -1.0})
                self.head(layer, (self.sum(0.1), {ONE: 1.0}), row)
        else:  # a hull
            self.head(layer, (self.sum(), {ONE: self.pick(1, -1)}), (self.sum(), self.sum()), mode)

    def _also(self, total: str) -> str:
        """The slot of a sum, which may be read from the next layer on."""
        self._new.append(total)
        return total

    def marks(self) -> None:
        """The latest mark, and how far back it is."""
        self.b.head(0, ({ONE: 1.0}, {}), ({"mark": 1.0}, {}), ({POSITION: 1.0}, {}), ("latest",))
        for shift in range(int(self.rng.integers(1, 5))):
            gate = {POSITION: 1.0, "latest": -1.0, ONE: -float(shift)}
            self.b.neuron(0, gate, {ONE: 1.0}, {"far": self.pick(1, -1, 2)})
        self._new.append("far")

    def code(self) -> None:
        """A place whose token decides about gates."""
        column = self.rng.integers(0, 5, self.b.vocab)
        code, square = self.b.token("code", column), self.b.token("code²", column**2)
        at = self.sum(0.5) if self.maybe(0.7) else {POSITION: 1.0, **self.sum(0.5)}
        self.b.head(1, (at, {ONE: 1.0}), BY_POSITION, ({code: 1.0}, {square: 1.0}), ("got", "got²"))
        for c in range(5):
            gate = {ONE: 1.0 - c * c, "got": 2.0 * c, "got²": -1.0}
            self.b.neuron(1, gate, self.sum(0.1), {"out": self.pick(1, -1)})

    def neurons(self, layer: int) -> None:
        for _ in range(int(self.rng.integers(1, 5))):
            gate = {self.some(): 1.0, self.some(): self.pick(1, -1), ONE: self.pick(-3, -1, 0, 1)}
            if self.maybe(0.2):
                gate[POSITION] = self.pick(1, -1)
            value = {ONE: 1.0} if self.maybe(0.7) else self.sum(0.1)
            slot = "out" if self.maybe(0.5) else self._also(self.name())
            size = self.pick(-2, -1, 1, 1, 3)
            for factor, shift in ((1.0, 0.0), (-1.0, -1.0))[: 1 + self.maybe(0.7)]:
                shifted = {**gate, ONE: gate[ONE] + shift}
                self.b.neuron(layer, shifted, value, {slot: factor * size})

    def outputs(self) -> None:
        b, half = self.b, self.b.vocab // 2
        for _ in range(2):
            b.neuron(b.layers - 1, {ONE: 1.0}, self.sum(), {"out": self.pick(1, 0.5)})
        y = "out" if self.maybe(0.5) else self.some()
        for k in range(b.vocab):
            x = float(k % half)
            b.rows[k] = {"out" if k < half else y: 2 * x, ONE: -x * x}
            if self.maybe(0.1):
                b.rows[k] = {self.some(): self.pick(-2, 1), self.some(): 1.0, ONE: self.pick(0, 5)}


def free_model(seed: int) -> Checkpoint:
    """Model number ``seed``."""
    free = _Free(seed)
    free.tokens()
    if free.maybe(0.7):
        free.marks()
    for layer in range(free.b.layers):
        for _ in range(int(free.rng.integers(1, 5))):
            free.any_head(layer)
        if layer:
            free.neurons(layer)
        if layer == 1 and free.maybe(0.5):
            free.code()
        free.names += free._new
        free._new = []
    free.outputs()
    prompt = free.rng.integers(0, free.b.vocab, 9).tolist() if free.maybe(0.5) else []
    return free.b.checkpoint([0, *prompt], (0,))

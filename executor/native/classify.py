"""What kind of lookup a head is, from the values of its keys and queries.

In: key and query of one head as :class:`~executor.native.forms.Linear` values. Out: a :class:`Kind`
with its reason. All kinds but ``indexed`` are facts; that keys are indexed is a guess that the
generated code checks for every key, with a general hull to fall back on.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from executor.config import Mode
from executor.native.forms import HERE, Linear

MOST_DISTINCT_KEYS = 16
MOST_KEYS_BY_TOKEN = 256
"""As many, if they are not those of a table."""

Name = Literal[
    "self", "uniform", "extreme", "position", "quotient", "few-valued", "indexed", "general", "scan"
]
Lookups = Literal["classified", "hull", "scan"]
"""How heads are answered whose keys do not all score alike: each by its kind, or all in one way."""


@dataclass(frozen=True)
class Kind:
    """A class of heads.

    Attributes:
        reason: for people, one clause.
        back: ``position``: the query is this many tokens back (0: itself); None if it is computed.
        scale: ``position`` and ``indexed``: the query divided by this is (e, 1), or 0.
        axis: ``extreme``: which component of the key counts.
        sign: ``extreme``: whether the greatest (1) or least (-1) wins.
    """

    name: Name
    reason: str
    back: int | None = None
    scale: float = 0.0
    axis: int = 0
    sign: float = 1.0


def classify(
    mode: Mode,
    key: tuple[Linear, Linear],
    query: tuple[Linear, Linear],
    lookups: Lookups = "classified",
) -> Kind:
    """The kind of a head."""
    alike = _constant(mode, key, query)
    if alike is None and lookups == "hull":
        return Kind("general", "a convex hull, as asked for")
    if alike is None and lookups == "scan":
        return Kind("scan", "a scan of all keys, as asked for")
    return (
        alike
        or _extreme(mode, key, query)
        or _position(mode, key, query)
        or _few(key)
        or _indexed(mode, key, query)
        or _general(key)
    )


def _constant(mode: Mode, key: tuple[Linear, Linear], query: tuple[Linear, Linear]) -> Kind | None:
    """All keys score alike."""
    counts = [q.constant != 0.0 and k.constant is None for k, q in zip(key, query, strict=True)]
    if any(counts):
        return None
    reason = "all keys score alike, for they or the query are constant"
    if mode == "mean":
        return Kind("uniform", f"{reason}: the mean of all tokens")
    return Kind("self", f"{reason}: the latest is the token itself")


def _extreme(mode: Mode, key: tuple[Linear, Linear], query: tuple[Linear, Linear]) -> Kind | None:
    """One component of the key counts, always with the same sign."""
    for axis in (0, 1):
        other = 1 - axis
        size = query[axis].constant
        if size and (query[other].constant == 0.0 or key[other].constant is not None):
            ending = "greatest" if size > 0 else "least"
            reason = f"the query is constant: the {ending} key {'xy'[axis]} wins"
            return Kind("extreme", reason, axis=axis, sign=float(np.sign(size)))
    return None


def _position(mode: Mode, key: tuple[Linear, Linear], query: tuple[Linear, Linear]) -> Kind | None:
    """Keys (2p, -p²) times a positive number."""
    x, y = key
    if mode != "latest" or x.variables or y.variables:
        return None
    if x.form.columns or y.form.columns or x.form.const or y.form.const or x.form.square:
        return None
    if y.form.p or y.form.square >= 0 or x.form.p != -2 * y.form.square:
        return None
    size = query[1].constant
    keyed = "keys (2p, -p²)"
    if size is None or size <= 0 or np.frexp(size)[0] != 0.5:
        return Kind("quotient", f"{keyed}, the query's second component is not a power of two")
    form = query[0].form
    if not query[0].variables and not form.columns and not form.square and form.p == size:
        back = max(0, -((Fraction(1, 2) + Fraction(form.const) / Fraction(size)).__floor__()))
        if back == 0:
            return Kind("self", f"{keyed}, the query is the token's own position")
        return Kind("position", f"{keyed}, the query is {back} back", back=back)
    return Kind("position", f"{keyed}, the query is a position", scale=size)


def _few(key: tuple[Linear, Linear]) -> Kind | None:
    """Keys that depend on the token and take few values."""
    if not is_of_token(key):
        return None
    values = key_values(key)[0]
    n = len(values)
    squares = bool((values[:, 1] == -((values[:, 0] / 2) ** 2)).all())
    if n > (MOST_DISTINCT_KEYS if squares else MOST_KEYS_BY_TOKEN):
        return None
    return Kind("few-valued", f"the key depends on the token and takes {n} values")


def _indexed(mode: Mode, key: tuple[Linear, Linear], query: tuple[Linear, Linear]) -> Kind | None:
    """Keys that may be (2k, -k²)."""
    size = query[1].constant
    if mode != "latest" or size is None or size <= 0 or np.frexp(size)[0] != 0.5:
        return None
    if any(part.constant is not None for part in key):
        return None
    if is_of_token(key):
        values = key_values(key)[0]
        if (values[:, 1] != -((values[:, 0] / 2) ** 2)).any():
            return None
    return Kind("indexed", "keys (2k, -k²) for integers k, as far as they are", scale=size)


def _general(key: tuple[Linear, Linear]) -> Kind:
    moving = [name for name, part in zip("xy", key, strict=True) if part.constant is None]
    return Kind("general", f"key {' and '.join(moving)} of no known kind: a convex hull")


def is_of_token(key: tuple[Linear, Linear]) -> bool:
    """Whether both components depend on the current token only, or are constant."""
    return all(part.constant is not None or part.place == HERE for part in key)


def key_values(
    key: tuple[Linear, Linear],
) -> tuple[
    np.ndarray[tuple[int, int], np.dtype[np.float64]], np.ndarray[tuple[int], np.dtype[np.intp]]
]:
    """The distinct keys (n, 2) of a key of the current token, and for each token id which."""
    size = max(len(column) for part in key for column in part.form.columns.values())
    pairs = np.empty((size, 2))
    for axis, part in enumerate(key):
        pairs[:, axis] = part.form.const if part.constant is not None else part.form.table(HERE)
    values, which = np.unique(pairs + 0.0, axis=0, return_inverse=True)
    return values, which.reshape(-1)

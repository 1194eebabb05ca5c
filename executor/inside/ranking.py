"""Who wins a query, by how much, and who would be next: a scan of all keys, decided exactly.

Doubles narrow the search; where rounding could decide, integers do.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from executor.inside.explanation import Flags, Floats, Integers
from hullcache.exact import SLACK, TINY
from hullcache.standard import exact_ties

CELLS = 1 << 22
"""Scores that are held at once."""


@dataclass(frozen=True)
class Ranking:
    """The answers to n queries of one head, each (n,).

    Attributes:
        winners: the latest position with the greatest score.
        ties: how many positions have it.
        scores: the greatest score.
        runners_up: the latest position with the next lower score, -1 if all score alike.
        leads: greatest less next lower score, 0 if all score alike.
    """

    winners: Integers
    ties: Integers
    scores: Floats
    runners_up: Integers
    leads: Floats


def rank(keys: Floats, queries: Floats, positions: Integers) -> Ranking:
    """Rank the keys (T, 2) for queries (n, 2); query i sees keys up to ``positions[i]``.

    O(n T). Scores are compared exactly.
    """
    reach = np.maximum.accumulate(np.abs(keys), axis=0)
    rows = max(1, CELLS // len(keys))
    picked: list[_Picked] = []
    for start in range(0, len(positions), rows):
        part = slice(start, start + rows)
        picked += _pick(keys, queries[part], positions[part], reach)
    winners, ties, runners_up, scores, leads = zip(*picked, strict=True)
    return Ranking(
        np.array(winners), np.array(ties), np.array(scores), np.array(runners_up), np.array(leads)
    )


_Picked = tuple[int, int, int, float, float]
"""Winner, number of ties, runner-up, score, lead."""


def _pick(keys: Floats, queries: Floats, positions: Integers, reach: Floats) -> list[_Picked]:
    last = int(positions.max()) + 1
    with np.errstate(over="ignore", invalid="ignore"):
        scores = queries @ keys[:last].T  # (n, T)
        size = (np.abs(queries) * reach[positions]).sum(axis=1)
    slack = np.where(_is_exact(keys[:last], queries, size), 0.0, size * SLACK + TINY)
    picked = []
    for row, position in enumerate(positions.tolist()):
        own, query = scores[row, : position + 1], queries[row]
        ties = _greatest(keys, own, query, slack[row])
        winner, runner_up, score, lead = int(ties[-1]), -1, float(own[ties[-1]]), 0.0
        if len(ties) <= position:
            own[ties] = -np.inf
            runner_up = int(_greatest(keys, own, query, slack[row])[-1])
            lead = score - float(own[runner_up])
        if slack[row]:
            exactly = _exact_score(keys[winner], query)
            score = float(exactly)
            if runner_up >= 0:
                lead = float(exactly - _exact_score(keys[runner_up], query))
        picked.append((winner, len(ties), runner_up, score, lead))
    return picked


def _is_exact(keys: Floats, queries: Floats, size: Floats) -> Flags:
    """For which queries no score needs more than 53 bits; ``size`` bounds all parts of a score."""
    exact = np.zeros(len(queries), np.bool_)
    if (keys == np.rint(keys)).all():
        for scale in (1.0, 2.0**16, 2.0**32):
            scaled = queries * scale
            exact |= (scaled == np.rint(scaled)).all(axis=1) & (size * scale < 2.0**53)
    return exact


def _greatest(keys: Floats, scores: Floats, query: Floats, slack: float) -> NDArray[np.intp]:
    """The positions of the greatest score, of scores with a rounding of less than ``slack``."""
    with np.errstate(invalid="ignore"):
        least = scores.max() - slack
    if not np.isfinite(least):
        return exact_ties(keys.T, np.flatnonzero(scores > -np.inf), query)
    close = np.flatnonzero(scores >= least)
    return close if slack == 0 else exact_ties(keys.T, close, query)


def _exact_score(key: Floats, query: Floats) -> Fraction:
    return sum(
        (Fraction(q) * Fraction(k) for q, k in zip(query.tolist(), key.tolist(), strict=True)),
        Fraction(0),
    )

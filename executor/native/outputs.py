"""The output head on one path: what cannot win there is left out.

The scores of what is left are those of the plain code; a lone winner needs none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import frexp

import numpy as np

from executor.checkpoint import Array
from executor.native.columns import Mask
from executor.native.exprs import Expr, constant
from executor.native.families import Family
from executor.native.ranges import Range, total
from executor.native.tails import Tail
from executor.native.writer import number

TOKEN = "token"
"""The C variable of the current token, and then of the next."""
OUTPUT = ("output", 0)
"""Columns of tokens that come out are one table."""
ROUNDING = 2.0**-48
"""Relative error of a score, at most."""


@dataclass(frozen=True)
class Rival:
    """A family (its index, the quantity its lines are in, what is common) or, without one, a token.

    ``scores`` are all its best member can score.
    """

    scores: Range
    family: int | None
    y: Expr
    common: Expr
    token: Expr


def rivals(tail: Tail, families: Sequence[Family]) -> list[Rival]:
    """What can win on a path."""
    found = []
    for scored in tail.shared.program.families:
        y, common = tail.linear(scored.y), tail.linear(scored.common)
        key = (scored.index, y.range.low, y.range.high)
        line = tail.shared.envelopes.get(key)
        if line is None:
            line = tail.shared.envelopes[key] = envelope(families[scored.index], y.range)
        scores = _rounded([common.range, line])
        found.append(Rival(scores, scored.index, y, common, constant(0.0)))
    for one in tail.shared.program.candidates:
        score, token = tail.linear(one.score), tail.linear(one.token)
        found.append(Rival(_rounded([score.range]), None, score, constant(0.0), token))
    least = max(rival.scores.low for rival in found)
    found = [rival for rival in found if rival.scores.high >= least]
    return [one for one in found if not any(beaten(tail, one, other, families) for other in found)]


def beaten(tail: Tail, one: Rival, other: Rival, families: Sequence[Family]) -> bool:
    """Whether one family with lines in the same quantity always scores less than another."""
    if one is other or one.family is None or other.family is None or one.y.key != other.y.key:
        return False
    common = [(1.0, one.common), (-1.0, other.common)]
    if not tail.is_exact(common):
        return False
    key = (one.family, other.family, *one.y.range[:2])
    known = tail.shared.leads.get(key)
    if known is None:
        known = _lead(families[one.family], families[other.family], one.y.range)
        tail.shared.leads[key] = known
    lead, size = known
    room = size + one.common.range.size + other.common.range.size
    return lead + tail.combine(common).range.high < -room * ROUNDING


def _lead(ours: Family, theirs: Family, y: Range) -> tuple[float, float]:
    """By how much one family's greatest line is above another's at most; magnitudes added."""
    corners = np.unique([*ours.corners, *theirs.corners])
    at = np.concatenate([[y.low, y.high], corners[(corners > y.low) & (corners < y.high)]])
    (first, size), (second, size_of_other) = (_envelope(f, at) for f in (ours, theirs))
    return float((first - second).max()), float((size + size_of_other).max())


def _envelope(family: Family, at: Array) -> tuple[Array, Array]:
    """The greatest line at some numbers, and a bound of the magnitudes that are added."""
    slopes, tops, corners = family.arrays
    which = np.searchsorted(corners, at)
    rise = slopes[which] * at
    return rise + tops[which], np.abs(rise) + np.abs(tops[which])


def _rounded(parts: list[Range]) -> Range:
    """A sum of ranges, with room for rounding."""
    room = sum(part.size for part in parts) * ROUNDING
    full = total(parts)
    return Range(full.low - room, full.high + room, full.grain)


def envelope(family: Family, y: Range) -> Range:
    """The greatest of the lines for y in an interval: a convex function of y."""
    corners = family.arrays[2]
    inside = corners[(corners > y.low) & (corners < y.high)]
    values, size = _envelope(family, np.concatenate([[y.low, y.high], inside]))
    room = float(size.max()) * ROUNDING
    return Range(float(values.min()) - room, float(values.max()) + room, 0)


def write_rivals(
    tail: Tail, families: Sequence[Family], left: Sequence[Rival] = ()
) -> tuple[str, Mask]:
    """Statements that find the winner; C of it, and the tokens it may be.

    Args:
        left: what can win, if that is known.
    """
    left = left or rivals(tail, families)
    corners: dict[object, str] = {}
    first, *others = left
    tokens = np.zeros(tail.shared.columns.n_tokens, np.bool_)
    for rival in left:
        tokens[_tokens(rival, families)] = True
    if not others:
        return _token(tail, first, families, corners), tokens
    best, greatest = tail.name("best"), tail.name("greatest")
    tail.say(f"int32_t {best} = {_token(tail, first, families, corners)};")
    tail.say(f"double {greatest} = {_score(tail, first, families, corners)};")
    for rival in others:
        token = _token(tail, rival, families, corners)
        score = _score(tail, rival, families, corners)
        tail.say("{", 4)
        tail.say(f"    const double score = {score};")
        tail.say(f"    const int32_t rival = {token};")
        tail.say(f"    if (score > {greatest} || (score == {greatest} && rival < {best}))")
        tail.say(f"        {greatest} = score, {best} = rival;")
        tail.say("}")
    return best, tokens


def _tokens(rival: Rival, families: Sequence[Family]) -> list[int]:
    """All tokens a rival may be."""
    if rival.family is None:
        return list(range(int(rival.token.range.low), int(rival.token.range.high) + 1))
    family = families[rival.family]
    low, high = (
        np.searchsorted(family.corners, y) for y in (rival.y.range.low, rival.y.range.high)
    )
    winners = [line.token for line in family.winners[int(low) : int(high) + 1]]
    return [*winners, *family.at_corner[int(low) : int(high) + 1]]


def _token(tail: Tail, rival: Rival, families: Sequence[Family], corners: dict[object, str]) -> str:
    """C of a rival's token."""
    if rival.family is None:
        constant = rival.token.constant
        if constant is not None:
            return str(int(constant))
        return tail.rounded(rival.token, convert=False) or tail.text(rival.token)
    family, index = families[rival.family], rival.family
    of_token = _by_token(tail, rival, family)
    if of_token:
        return of_token
    at = corner(tail, rival, family, corners)
    tokens = [line.token for line in family.winners]
    last = len(family.corners)
    if at.isdigit() and (int(at) == last or family.at_corner[int(at)] == tokens[int(at)]):
        return str(tokens[int(at)])
    step = tokens[1] - tokens[0] if last else 0
    if step == 1 and tokens == list(range(tokens[0], tokens[0] + last + 1)):
        text = f"{tokens[0]} + {at}"
    else:
        text = f"family_{index}[{at}].token"
    ties = [family.corners[k] for k, t in enumerate(family.at_corner) if t != tokens[k]]
    if any(tail.can_be(rival.y, corner) for corner in ties):
        edge = f"{at} < {last} && {tail.factor(rival.y)} == {_edges(tail, rival, family)}[{at}]"
        text = f"{edge} ? ties_{index}[{at}] : {text}"
    return text


def _by_token(tail: Tail, rival: Rival, family: Family) -> str:
    """C of a token that depends on another one alone, which is a column; empty if not."""
    y, columns = rival.y, tail.shared.columns
    column = tail.column_of.get(y.terms[0][1]) if len(y.terms) == 1 else None
    if column is None or not family.corners or not tail.is_exact([(1.0, y)]):
        return ""
    number, mask, spot = column
    held = columns.masks[mask]
    values = y.terms[0][0] * columns.arrays[number][held] + y.const
    slopes, _, corners = family.arrays
    at = np.searchsorted(corners, values)
    inside = np.minimum(at, len(corners) - 1)
    winners = np.array([line.token for line in family.winners], float)
    ties = np.array(family.at_corner, float)
    tokens = np.zeros(len(held))
    on_corner = (at < len(corners)) & (corners[inside] == values)
    tokens[held] = np.where(on_corner, ties[inside], winners[at])
    factor, found = columns.column(tokens)
    return "" if factor != 1.0 else tail.whole_column(OUTPUT, found, 0, mask, spot)


def _score(tail: Tail, rival: Rival, families: Sequence[Family], corners: dict[object, str]) -> str:
    """C of a rival's score, by the operations of the plain code."""
    if rival.family is None:
        return tail.text(rival.y)
    index = rival.family
    line = f"family_{index}[{corner(tail, rival, families[index], corners)}]"
    text = f"({line}.slope * {tail.factor(rival.y)} + {line}.intercept)"
    return text if rival.common.constant == 0.0 else f"{tail.text(rival.common)} + {text}"


def _edges(tail: Tail, rival: Rival, family: Family) -> str:
    """The C array of a family's corners."""
    name = f"edges_{rival.family}"
    numbers = ", ".join(map(number, family.corners)) or "0.0"
    tail.shared.constants[name] = f"static const double {name}[] = {{{numbers}}};"
    return name


def corner(tail: Tail, rival: Rival, family: Family, corners: dict[object, str]) -> str:
    """C of the number of corners below y."""
    last, y = len(family.corners), rival.y
    low, high = (int(np.searchsorted(family.corners, end)) for end in (y.range.low, y.range.high))
    if low == high:
        return str(low)
    key = (y.key, family.corners)
    if key in corners:
        return corners[key]
    text, first = "", family.corners[0]
    if family.spacing is not None:
        text = tail.rounded(y, frexp(family.spacing)[1] - 1, -first, up=True)
    if text:
        gap, start = Fraction(family.spacing or 0.0), Fraction(first)
        text = text if y.range.high <= start + last * gap else f"at_most({text}, {last})"
        text = text if y.range.low > start - gap else f"at_least_0({text})"
    elif family.spacing is not None:
        edges, scale = _edges(tail, rival, family), number(1.0 / family.spacing)
        text = f"corners_near({edges}, {last}, {tail.text(y)}, {scale})"
    else:
        text = f"corners_below({_edges(tail, rival, family)}, {last}, {tail.text(y)})"
    name = corners[key] = tail.name("at")
    tail.say(f"const int64_t {name} = {text};", 3)
    return name

"""The machine for plain softmax: weights, and a certificate of what they are exact for.

In: the longest sequence, the memory and the depth of calls. Out: the default machine with a
temperature in its queries and a tie-break in its keys, and one :class:`HeadBound` for each head.

``nn.MultiheadAttention`` scores a query q and a key k of width 2 as c·(q·k), c = 1/sqrt(2), and
weights values by exp(score - greatest score). A score is rounded (relative error u = 2^-53 each
time) either twice, as the dot product and as c times it (fused attention), or as c·q, as two
products and as their sum (``need_weights``). With a = |q0·k0|, b = |q1·k1| and the temperature, a
power of two, taken out, either way it is off by at most E = u·(3a + b). If the winner is ahead by
``gap`` and c·gap > 2E, and the temperature times the difference is at least ``DEAD``, then every
other weight is exactly 0 and the value that is returned is exactly the winner's.

- Heads on keys (2p, -p²) have gap 1 for integer queries, and a = 2p², b = p².
- Heads whose keys repeat need a tie-break: eps·p in the component that meets the constant of the
  query. It takes eps·N <= 1/2 over N tokens, so that it never outweighs half a score. A key
  eps·p - k² is exact if eps is a multiple of g = 2^(ceil(2·log2 k) - 53), the spacing of doubles
  below the power of two that k² does not pass. With eps >= 2g the score k² + eps·p is exact too,
  and c·eps > g keeps two of them apart however c·score, of spacing g at most, is rounded. (With
  ``need_weights`` c·key is rounded in the same way; adding c·q·2k, about twice as large, to it
  is exact, or merges pairs in a binade where the keys are two spacings apart.) So k²·N <= 2^51.
- The last floor decides by a multiple of 2^-25 in an accumulator below 2^16·(1 + 2^-6).
- The other floors may take either neighbour, and half of both, where they are close: the halves
  are multiples of 256. What they may not do is weight one by a third. ``TEMPERATURE`` makes
  scores that differ at all, by the last bit of a number of at least 1, differ by ``DEAD``.
- A division's scores near the winner, 255 at most, are sums of numbers up to 2·255·2^32.
- Averages are exact sums of integers divided and multiplied again in fused attention. With
  ``need_weights`` every weight 1/n is rounded, and sums may be taken in any order.

Instructions that read no memory query it all the same, at addresses up to 2^33, where ties may be
mixed: what they fetch meets closed gates only, and leaves less than 2^-30 where its slot is used
again. The kernels that scale queries and keys by the root of c each (``SDPBackend.MATH``) round
keys once more: for them half as many tokens are proved.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil, isqrt, sqrt, ulp
from typing import Any

from compiler import isa, rom
from compiler.build import Machine, make_machine
from compiler.errors import UsageError
from compiler.graph import ONE, POSITION, SNAP, Graph, Lookup
from compiler.machine import build_graph
from compiler.machine_arithmetic import LOOSE_FLOORS
from compiler.machine_tokens import PROMPT_CURSOR
from compiler.patterns import is_position_key
from compiler.schedule import load_plan

SOFTMAX_TOKENS, SOFTMAX_CALLS = 2**15, 256
"""Of an export for which nothing else is said."""

TEMPERATURE = 2.0**64
DEAD = 1100.0
"""exp(-DEAD) is 0 in double precision, with a good margin."""
UNIT = 2.0**-53
SCALE = 1 / sqrt(2)
ROOM = 51
"""Bits that the square of an address and the number of tokens have together."""

FINEST = 2 * (0.5 - rom.FINE_HALF)
"""Twice the least distance of a floor's argument from a multiple of its size."""
MOST_DIVIDEND = 2.0**32
STACK_HEADS = ("top", "second", "third", "amount", "second_magnitude")
COUNT_HEADS = "counts: "
"""These read the stack as well."""
LINES = "zeros: "
"""Heads on the table of leading zeros, whose lines are 1 apart at every integer."""


@dataclass(frozen=True)
class Limits:
    """What an export is made for, and what programs may use of it.

    Attributes:
        tokens: longest sequence, prompt included.
        memory: bytes.
        calls: calls nest at most this deep less one; a deeper one traps.
        locals: of a function, as well as globals: indices below this.
        stack: entries of the operand stack.
    """

    tokens: int
    memory: int
    calls: int
    locals: int
    stack: int


@dataclass(frozen=True)
class HeadBound:
    """Why one head returns exactly what hard attention does; scores without the temperature.

    Attributes:
        name, kind: the head, and which argument of the module's text is about it.
        gap: least lead of the winner (averages: spacing of the sums).
        score: greatest magnitude that a score is summed from, where the decision is close.
        error: how far a computed score (averages: a sum) may be off.
        temperature: the least that makes all other weights 0; 0 where none is needed.
        tokens: the longest run for which the bound holds, other limits being what they are.
        address: the largest key number that this run needs, and what it may be; None for heads
            without addresses.
    """

    name: str
    kind: str
    gap: float
    score: float
    error: float
    temperature: float
    tokens: int
    address: int | None = None
    most_address: int | None = None

    @property
    def holds(self) -> bool:
        """Whether the error is less than what the decision allows."""
        if self.kind == "mean":
            return self.error < self.gap / 2
        return 2 * self.error < SCALE * self.gap


@dataclass(frozen=True)
class Export:
    """Weights for plain softmax with their certificate.

    Attributes:
        longest_jump: tokens that a branch, call or return may jump so that averages are exact
            even with ``need_weights``; fused attention, which the module uses, has no such limit.
    """

    machine: Machine
    limits: Limits
    heads: tuple[HeadBound, ...]
    longest_jump: int

    @property
    def limiting(self) -> HeadBound:
        """The head that allows the fewest tokens."""
        return min(self.heads, key=lambda head: head.tokens)


def softmax_export(
    tokens: int = SOFTMAX_TOKENS, memory: int | None = None, calls: int = SOFTMAX_CALLS
) -> Export:
    """The default machine for plain softmax, as ``nn.MultiheadAttention`` computes it.

    Args:
        tokens: longest sequence, prompt included.
        memory: bytes; None for as many as go with so many tokens.
        calls: depth at which calls trap, a power of two; locals have addresses
            index·calls + depth.

    Raises:
        UsageError: if no such export is exact; the message says what would be.
    """
    limits = softmax_limits(tokens, memory, calls)
    graph, plan = build_graph(calls), load_plan()
    machine = make_machine(graph, plan)
    heads = certify(graph, limits)
    for bound in heads:
        if not bound.holds or bound.temperature > TEMPERATURE or bound.tokens < tokens:
            raise UsageError(
                f"plain softmax over {tokens:,} tokens is not exact: head {bound.name!r} decides "
                f"by {bound.gap:.3g} and is off by up to {bound.error:.3g}"
            )
    config = machine.config | {
        "attention": "softmax",
        "max_tokens": limits.tokens,
        "max_memory": limits.memory,
        "max_calls": limits.calls,
        "max_locals": limits.locals,
        "max_stack": limits.stack,
    }
    exported = with_softmax_weights(machine, config, tie_break(tokens))
    return Export(exported, limits, heads, _longest_jump(tokens))


def tie_break(tokens: int) -> float:
    """A power of two that times ``tokens`` is at most 1/2."""
    return 0.5 ** ((tokens - 1).bit_length() + 1)


def most_address(tokens: int) -> int:
    """The largest key number k of a head with ties: k²·2^ceil(log2 tokens) <= 2^51."""
    return isqrt(2 ** max(ROOM - (tokens - 1).bit_length(), 0))


def most_tokens(address: int) -> int:
    """The inverse of :func:`most_address`: the longest run for keys up to ``address``."""
    return int(2 ** max(ROOM - (address * address - 1).bit_length(), 0))


def softmax_limits(tokens: int, memory: int | None, calls: int) -> Limits:
    """Limits that go together; UsageError, naming head, quantity and remedy, if none do."""
    most = most_address(tokens)
    memory = most if memory is None else memory
    over = f"plain softmax over {tokens:,} tokens"
    if calls < 2 or calls & (calls - 1):
        raise UsageError(f"--calls {calls}: not a power of two")
    longest = _longest_square(0.5)
    if tokens > longest:
        raise UsageError(
            f"{over} is not exact: head 'memory' keeps an input byte under its position, whose "
            f"square is rounded by too much; --tokens {longest} would fit"
        )
    if memory > most:
        raise UsageError(
            f"{over} cannot have {memory:,} bytes of memory: head 'memory' tells the latest of two "
            f"writes by a tie-break that the square of an address above {most:,} swallows; "
            f"--memory {most} would fit, or --tokens {most_tokens(memory)}"
        )
    most_locals = (most + 1) // calls - 1
    if most_locals < 1:
        raise UsageError(
            f"{over} cannot nest {calls:,} calls: head 'local' needs addresses up to "
            f"{2 * calls - 1:,} for one local, and the tie-break allows {most:,}; "
            f"--calls {1 << (most // 2).bit_length() - 1} would fit, "
            f"or --tokens {most_tokens(2 * calls - 1)}"
        )
    most_locals = min(most_locals, isa.EXACT_ADDRESSES // calls - 1)
    return Limits(tokens, memory, calls, most_locals, max(1, min(tokens // 5, most - 1)))


# --- the certificate --------------------------------------------------------------------------


def certify(graph: Graph, limits: Limits) -> tuple[HeadBound, ...]:
    """A bound for every lookup of the machine's graph.

    Raises:
        ValueError: for a head that no argument is known for.
    """
    lookups = [node for node in graph.nodes.values() if isinstance(node, Lookup)]
    return tuple(_bound(node, graph, limits) for node in lookups)


def _bound(node: Lookup, graph: Graph, limits: Limits) -> HeadBound:
    if node.mode == "mean":
        return _mean(node)
    if POSITION in node.key[0].terms:
        return _position(node, limits.tokens)
    if node.name.startswith(LINES):
        return decided(node.name, "lines", 1, 2.0**38, 2.0**33, None)
    if not node.key[1].terms:
        return _flag(node, graph, limits.tokens)
    addresses = dict.fromkeys(STACK_HEADS, limits.stack + 1)
    addresses |= {"memory": limits.memory, "local": limits.calls * (limits.locals + 1) - 1}
    if node.name.startswith(COUNT_HEADS):
        addresses[node.name] = addresses["top"]
    if node.name not in addresses:
        raise ValueError(f"nothing is known of the keys of head {node.name!r}")
    bound = _address(node.name, addresses[node.name], limits.tokens)
    if node.name == "memory":
        # Input bytes are kept at -position - 1: half a unit must survive their squares.
        return replace(bound, tokens=min(bound.tokens, _longest_square(0.5)))
    return bound


def _mean(node: Lookup) -> HeadBound:
    """Three roundings of the sum: the divisor's inverse, the mean, the product."""
    most = 2.0 * PROMPT_CURSOR
    return HeadBound(node.name, "mean", ulp(SNAP), most, 4 * UNIT * most, 0, isa.EXACT_ADDRESSES)


def _position(node: Lookup, tokens: int) -> HeadBound:
    floors = {f"floor_{n}": size for n, (size, _) in enumerate(LOOSE_FLOORS)}
    if node.name in floors:
        return _loose_floor(node.name, [*floors].index(node.name))
    if node.name == f"floor_{len(floors)}":
        size, slack = LOOSE_FLOORS[-1]
        most = size * (1 + slack) / 256 + 1
        return decided(node.name, "floor", FINEST / 256, 2 * most * most, most * most, None)
    if node.name == "division":
        # Close to the winner, 255 at most, divisor·position is at most the dividend.
        return decided(node.name, "division", 1, 2 * 255 * MOST_DIVIDEND, 255 * MOST_DIVIDEND, None)
    whole = all(c == round(c) for c in node.query[0].terms.values())
    if not whole or node.query[1].terms != {ONE: 1}:
        raise ValueError(f"nothing is known of the queries of head {node.name!r}")
    square = 1.0 * tokens**2
    return decided(node.name, "position", 1, 2 * square, square, _longest_square(1))


def _longest_square(gap: float) -> int:
    """The greatest p such that scores 2p·p - p² are told apart that differ by ``gap``."""
    return isqrt(int(SCALE * gap / (2 * 7 * UNIT)))


def decided(
    name: str, kind: str, gap: float, first: float, second: float, longest: int | None
) -> HeadBound:
    error = UNIT * (3 * first + second)
    lead = SCALE * gap - 2 * error
    needed = DEAD / lead if lead > 0 else float("inf")
    return HeadBound(name, kind, gap, first, error, needed, longest or isa.EXACT_ADDRESSES)


def _loose_floor(name: str, number: int) -> HeadBound:
    """May be off by its slack; scores of at least 1 that differ, differ by 2·UNIT or more."""
    bounds = [MOST_DIVIDEND, *(size * (1 + slack) for size, slack in LOOSE_FLOORS)]
    size, slack = LOOSE_FLOORS[number]
    most = bounds[number] / size + 1
    bound = decided(name, "loose floor", slack, 2 * most * most, most * most, None)
    return replace(bound, temperature=DEAD / (2 * UNIT))


def _flag(node: Lookup, graph: Graph, tokens: int) -> HeadBound:
    """Keys that take few values, fixed by the token; the tie-break takes half of their distance."""
    if any(graph.writers()[name] for name in node.key[0].terms):
        raise ValueError(f"the keys of head {node.name!r} are not fixed by the token")
    levels = sorted(
        {
            sum(c * values.get(name, 0) for name, c in node.key[0].terms.items())
            for values in graph.embedding.values()
        }
    )
    apart = min(b - a for a, b in zip(levels, levels[1:], strict=False))
    eps, most = tie_break(tokens), max(map(abs, levels)) + 1
    # Half a unit is the least distance; eps·(tokens - 1) stays below it by eps.
    gap = min(eps, apart - eps * (tokens - 1))
    longest = int(2 ** (ROOM - 2 * ceil(most).bit_length()))
    return decided(node.name, "flag", gap, most, 0, longest)


def _address(name: str, address: int, tokens: int) -> HeadBound:
    eps = tie_break(tokens)
    spacing = 2.0 ** ((max(address, 1) ** 2 - 1).bit_length() - 53)
    lead = SCALE * eps - spacing
    return HeadBound(
        name,
        "address",
        eps,
        2.0 * address**2,
        spacing / 2,
        DEAD / lead if lead > 0 else float("inf"),
        most_tokens(address),
        address,
        most_address(tokens),
    )


def _longest_jump(tokens: int) -> int:
    """How far branches may go so that the cursor's sum is exact in any order of rounded terms.

    The sum of n terms v/n, each rounded, is off by less than (n + 4)·u·sum|v| / n; times n that
    must stay below half of what ``SNAP`` rounds to. The terms: the prompt's start and end, 5 for
    an instruction, and one jump at most in five tokens.
    """
    room = ulp(SNAP) / 2 / UNIT / (tokens + 4) - 2 * (PROMPT_CURSOR + rom.ROM_TOKENS)
    return max(0, int(5 * (room - 5 * tokens) / tokens))


# --- the weights ------------------------------------------------------------------------------


def with_softmax_weights(
    machine: Machine, config: dict[str, Any], eps: float, temperature: float = TEMPERATURE
) -> Machine:
    """Multiply the queries by the temperature; add ``eps`` times the position to keys that repeat.

    Both are powers of two, so that queries and tie-breaks are exact.
    """
    arrays = {name: array.copy() for name, array in machine.arrays.items()}
    slots, width = machine.plan.slots, machine.plan.shape.d_model
    for time, names in enumerate(machine.placed.names):
        if time % 2:
            continue
        projection = arrays[f"attn.{time // 2}.in_proj_weight"]
        for head, name in enumerate(names):
            node = machine.graph.nodes.get(name)
            if isinstance(node, Lookup) and node.mode == "latest" and _can_tie(node):
                part, constant = constant_query(node)
                projection[width + 2 * head + part, slots[POSITION]] += eps / constant
        projection[:width] *= temperature
    return replace(machine, arrays=arrays, config=config)


def _can_tie(node: Lookup) -> bool:
    """Keys that are made of the position alone are all different."""
    return not is_position_key(node)


def constant_query(node: Lookup) -> tuple[int, float]:
    """A component of the query that is the same number at every token."""
    for part, expr in enumerate(node.query):
        if set(expr.terms) == {ONE}:
            return part, expr.terms[ONE]
    raise ValueError(f"head {node.name} has no constant query component to break ties with")

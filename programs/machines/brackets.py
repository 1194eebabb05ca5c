"""Are the brackets balanced? A stack, kept in the tokens that push.

Prompt: ``( [ ] ) ?``. Each closing bracket looks up which one opened its level, and ``?`` sums up
what was wrong. The machine writes one token: ``balanced``, ``unclosed`` or ``mismatch``.
"""

from compiler.graph import Graph

PAIRS = ("()", "[]", "{}")


def machine() -> Graph:
    graph = Graph()
    opens, closes, kind = map(graph.input, ("opens", "closes", "kind"))
    for number, (left, right) in enumerate(PAIRS):
        graph.token(left, opens=1, kind=number)
        graph.token(right, closes=1, kind=number)
    for word in ("?", "balanced", "unclosed", "mismatch"):
        graph.token(word)

    # An opening bracket writes its kind at its depth; a closing one reads at the depth it leaves.
    depth = graph.running_sum("depth", opens - closes)
    (opener,) = graph.fetch_written(
        "opener", depth + closes, {"opener_kind": kind}, index=depth, where=opens
    )

    # It must be of the same kind, and there must be one.
    differs = graph.function("differs", kind - opener, {-1: 1, 0: 0, 1: 1})
    wrong = graph.relu("wrong", closes, times=differs)
    below = graph.relu("below", -depth)
    faults = graph.running_sum("faults", wrong + below)

    is_open = graph.function("is_open", depth, {0: 0, 1: 1})
    is_wrong = graph.function("is_wrong", faults, {0: 0, 1: 1})
    graph.score("balanced", 0)
    graph.score("unclosed", 2 * is_open - 1)
    graph.score("mismatch", 4 * is_wrong - 2)
    graph.stop("balanced", "unclosed", "mismatch")
    graph.describe({"opener": "the bracket that opened this level"})
    return graph

"""Adds two numbers of any length, as on paper: from the right, with a carry, then copied out.

Prompt: ``9 5 + 7 =``. The machine writes the digits of the sum from the right, one with a mark
where it carries (``2' 0' 1``), then ``is``, and reads them back in order: ``1 0 2 done``.
"""

from compiler.graph import Graph

DIGITS = range(10)
FAR = 2.0**26


def machine() -> Graph:
    graph = Graph()

    # The vocabulary. ``edge`` marks what stands beside a number, ``mark`` what a walk starts from.
    digit, carry = graph.input("digit"), graph.input("carry")
    edge, plus = graph.input("edge"), graph.input("plus")
    mark, reading = graph.input("mark"), graph.input("reading")
    for n in DIGITS:
        graph.token(f"{n}", digit=n)
    for n in DIGITS:
        graph.token(f"{n}'", digit=n, carry=1)
    graph.token("start", edge=1)
    graph.token("+", edge=1, plus=1)
    graph.token("=", edge=1, mark=1)
    graph.token("is", mark=1, reading=1)
    graph.token("done")
    graph.begin("start")

    # Where are we? ``steps`` tokens behind the last mark.
    (middle,) = graph.fetch_marked("plus_sign", plus, {"middle": graph.position})
    last, copying = graph.fetch_marked(
        "last_mark", mark, {"last": graph.position, "copying": reading}
    )
    steps = graph.position - last

    # The next digit of each number, from the right; at its left edge the walk stays.
    below = graph.relu("below", last - 1 - steps - middle)
    b, b_edge = graph.fetch_position("second", middle + below, {"b": digit, "b_edge": edge})
    a_at = middle - 1 - steps - FAR * copying
    a, a_edge = graph.fetch_position("first", a_at, {"a": digit, "a_edge": edge})

    # A sum of 10 or more is a digit with a carry, so tokens 0 to 19 are all there is to choose.
    numbers = {f"{n}{mark}": n + 10 * len(mark) for mark in ("", "'") for n in DIGITS}
    graph.score_nearest(a + b + carry, numbers)
    both_over = a_edge + b_edge
    graph.score("is", 1000 * (2 * (both_over - carry) - 3 - 4 * copying))
    graph.score("done", 1000 * (2 * (both_over + copying) - 5))
    graph.stop("done")
    graph.describe({"first": "digit of the first number", "second": "digit of the second number"})
    return graph

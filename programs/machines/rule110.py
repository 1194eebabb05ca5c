"""Rule 110: rows of cells, each from the three above it. Turing-complete, and it never stops.

Prompt: a first row of any width and the end of it: ``. . . . . . . # /``. The machine writes row
after row. Every token looks at three tokens one row back, and at the end of the first row to
know how long a row is.
"""

from compiler.graph import Graph

RULE = 110
FIRST = 2.0**30


def machine() -> Graph:
    graph = Graph()
    alive, end = graph.input("alive"), graph.input("end")
    graph.token(".")
    graph.token("#", alive=1)
    graph.token("/", end=1)
    graph.token("start")
    graph.begin("start")  # a dead neighbour for the first cell

    # The first end of a row, not the latest: its key is the greatest because its position is least.
    first = FIRST * end - graph.position
    (row_end,) = graph.fetch_marked("first_row", first, {"row_end": graph.position})

    # The cell to be written stands at position + 1, the one above it a row and an end before.
    above = graph.position + 1 - row_end
    (left,) = graph.fetch_position("left", above - 1, {"left_alive": alive})
    middle, row_ends = graph.fetch_position("above", above, {"alive_above": alive, "ends": end})
    (right,) = graph.fetch_position("right", above + 1, {"right_alive": alive})

    bits = {n: RULE >> n & 1 for n in range(8)}
    cell = graph.function("cell", 4 * left + 2 * middle + right, bits)
    graph.score_nearest(cell, {".": 0, "#": 1})
    graph.score("/", 10 * row_ends - 5)
    return graph

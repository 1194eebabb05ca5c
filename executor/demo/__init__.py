"""``transputer demo``: two programs run inside the model while their memory is on show.

What a view draws comes from the trace: output bytes, and the C variables as its stores leave them
(:mod:`executor.watch`). :mod:`sudoku` and :mod:`hungarian` read their program's variables and draw
them, :mod:`stage` runs the model and sets the pace, :mod:`screen` is the terminal, :mod:`svg` the
recording; :mod:`many` solves whole collections and checks each answer.
"""

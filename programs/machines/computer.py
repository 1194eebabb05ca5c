"""The computer that runs C programs, as a machine like the others.

Its prompts are token programs: ``{ i32.const 03 00 00 00 halt 00 00 00 00 } eof``.
"""

from compiler.machine import build_graph as machine

__all__ = ["machine"]

"""Programs whose lines are looked for, the folder they are written to, and where a run ends."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from compiler.program import Program
from executor.oracle import trace_tokens
from executor.replay import Step, replay

DIVIDE = """\
static int quotient(int a, int b) {
  return a / b;
}
int main(int argc, char **argv) {
  volatile int zero = 0;
  argc = argc * 3;
  return quotient(argc, zero);
}
"""

RATIO = """\
#include <transputer.h>
static inline __attribute__((always_inline)) long long ratio(long long a, int b) {
  return a /
         b;
}
static __attribute__((noinline)) int half(int a, int b) {
  if (a > 70)
    return (int)ratio(a * 70000LL, b);
  return half(a + 10, b);
}
int main(int argc, char **argv) {
  volatile int zero = 0;
  print_int(half(argc + 60, zero));
  return 0;
}
"""


def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: paths of sources are relative to it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def last_step(program: Program, args: Sequence[str] = ()) -> Step:
    """Where a run ends, by the interpreter of token programs."""
    return list(replay(program, trace_tokens(program, args)))[-1]

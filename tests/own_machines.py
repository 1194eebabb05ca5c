"""The machines of ``programs/machines``, and what they must write, computed in plain Python."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from compiler.graph import Graph
from compiler.machine_file import load_machine_file
from compiler.own_machine import OwnMachine, build_own_machine
from executor.checkpoint import Checkpoint
from executor.loading import checkpoint_of
from programs.machines.brackets import PAIRS
from programs.machines.verbs import VERBS

FOLDER = Path(__file__).parent.parent / "programs" / "machines"
NAMES = ("verbs", "adder", "rule110", "brackets")


def graph(name: str) -> Graph:
    """One of the machines as a graph."""
    return load_machine_file(FOLDER / f"{name}.py")


@lru_cache
def built(name: str, softmax_tokens: int | None = None) -> OwnMachine:
    """One of the machines, by the simple placement."""
    return build_own_machine(graph(name), seconds=0, softmax_tokens=softmax_tokens)


def parities(sentence: str) -> str:
    """What the machine of verbs writes."""
    odd, written = False, []
    for word in sentence.split()[:-1]:
        odd ^= word in VERBS
        written.append("odd" if odd else "even")
    return " ".join([*written, "done"])


def addition(a: int, b: int) -> tuple[str, str]:
    """A prompt for the adder and what it writes."""
    width = max(len(str(a)), len(str(b)))
    digits, carry = [], 0
    for place in range(width + 1):
        total = a // 10**place % 10 + b // 10**place % 10 + carry
        if place == width and total == 0:
            break
        carry = total // 10
        digits.append(f"{total % 10}" + "'" * carry)
    back = [digit.rstrip("'") for digit in reversed(digits)]
    prompt = f"{' '.join(str(a))} + {' '.join(str(b))} ="
    return prompt, " ".join([*digits, "is", *back, "done"])


def rows(first: str, count: int) -> str:
    """The rows of rule 110 that follow, with dead cells beside them."""
    written, row = [], first
    for _ in range(count):
        wide = f".{row}."
        number = [wide[i : i + 3].replace(".", "0").replace("#", "1") for i in range(len(row))]
        row = "".join(".#"[110 >> int(n, 2) & 1] for n in number)
        written.append(" ".join(row) + " /")
    return " ".join(written)


def verdict(text: str) -> str:
    """What the machine of brackets writes."""
    stack: list[str] = []
    for bracket in text:
        pair = next(pair for pair in PAIRS if bracket in pair)
        if bracket == pair[0]:
            stack.append(bracket)
        elif not stack or stack.pop() != pair[0]:
            return "mismatch"
    return "unclosed" if stack else "balanced"


def model(name: str, engine: str = "hull") -> Checkpoint:
    """One of the machines for an engine."""
    return checkpoint_of(built(name, 2**12 if engine == "torch" else None).machine)

"""Makes a failing program small: lines are left out as long as what remains fails the same way.

The method is delta debugging (Zeller and Hildebrandt, 2002): pieces of half the lines, then of
half that size, down to single lines. Between rounds, whole blocks in braces go, or what stands
around their lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

Lines = list[str]


def reduced(text: str, fails: Callable[[str], bool], most_tries: int = 2000) -> str:
    """The text without lines that are not needed for ``fails`` to say True.

    Args:
        fails: whether a text still shows the fault; True for ``text`` itself.
        most_tries: how often ``fails`` may be asked.
    """
    search = _Search([line for line in text.splitlines() if line.strip()], fails, most_tries)
    before = None
    while before != search.lines and search.tries_left:
        before = search.lines
        search.pieces()
        search.blocks()
    return _text(search.lines)


class _Search:
    """The lines so far, which fail, and how often one may still ask."""

    def __init__(self, lines: Lines, fails: Callable[[str], bool], tries: int) -> None:
        self.lines = lines
        self.fails = fails
        self.tries_left = tries

    def accept(self, candidate: Lines) -> bool:
        """Goes on from these lines, if they fail too."""
        if not self.tries_left:
            return False
        self.tries_left -= 1
        if not self.fails(_text(candidate)):
            return False
        self.lines = candidate
        return True

    def pieces(self) -> None:
        """Leaves out pieces of equal size, from half the lines down to single ones."""
        size = len(self.lines) // 2
        while size:
            at = 0
            while at < len(self.lines):
                if not self.accept(self.lines[:at] + self.lines[at + size :]):
                    at += size
            size //= 2

    def blocks(self) -> None:
        """Leaves out blocks in braces, from the largest down, or the lines that make a block."""
        tried: set[str] = set()
        while found := next((c for c in _blocks(self.lines) if _text(c) not in tried), None):
            tried.add(_text(found))
            self.accept(found)


def _blocks(lines: Lines) -> Iterator[Lines]:
    """The lines without one block, or without the lines of its braces only; in both cases with and
    without the line before, which may be the block's head."""
    opened: list[int] = []
    pairs = []
    for number, line in enumerate(lines):
        for letter in line:
            if letter == "{":
                opened.append(number)
            elif letter == "}" and opened:
                pairs.append((opened.pop(), number))
    for start, end in sorted(set(pairs), key=lambda pair: pair[0] - pair[1]):
        for head in {start, max(0, start - 1)}:
            yield lines[:head] + lines[end + 1 :]
            if start != end:
                yield lines[:head] + lines[start + 1 : end] + lines[end + 1 :]


def _text(lines: Lines) -> str:
    return "\n".join(lines) + "\n"

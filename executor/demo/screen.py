"""The terminal: a scene between a title and its counters, redrawn a few times a second.

The picture is on the terminal's alternate screen, which gives the user's own back at the end, come
what may; the last picture is then printed there.
"""

from __future__ import annotations

import time
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from executor.demo.stage import Show
from executor.managed import Managed

ASCII = str.maketrans("┌┬┐├┼┤└┴┘┏┯┳┓┠╂┨┣┿╋┫┗┷┻┛─━│┃·■", "+" * 24 + "--||.#")
"""For terminals that have no other characters."""


def compose(show: Show, width: int, height: int) -> list[Text]:
    """Title, picture, and at the bottom two lines of counters, in so many columns and lines."""
    scene = show.scene
    body = scene.picture(width, max(height - 3, 1))[: max(height - 3, 0)]
    space = [Text()] * max(height - 3 - len(body), 0)
    lines = [
        Text(scene.title, "bold"),
        *space[:1],
        *body,
        *space[1:],
        Text(scene.counters(), "bold"),
        Text(show.rate()),
    ]
    for line in lines:
        line.truncate(width)
    return lines


def compact(show: Show, width: int) -> list[Text]:
    """The same without empty lines."""
    body = show.scene.picture(width, 1000)
    return compose(show, width, len(body) + 3)


def joined(lines: list[Text], console: Console) -> Text:
    """Lines as one text that the console can show."""
    text = Text("\n", no_wrap=True, overflow="crop").join(lines)
    if console.options.ascii_only:
        text.plain = text.plain.translate(ASCII)
    return text


class Screen(Managed):
    """A context manager; ``draw`` as often as there is something new."""

    def __init__(self, console: Console, interval: float) -> None:
        """Args: interval: least seconds between two pictures."""
        self._console = console
        self._interval = interval
        self._next = 0.0
        self._live = Live(console=console, screen=True, auto_refresh=False)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def leave(self, error: BaseException | None) -> None:
        self._live.stop()

    def draw(self, show: Show) -> None:
        """Show the scene as it is, unless the last picture was a moment ago."""
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self._interval
        width, height = self._console.size
        self._live.update(joined(compose(show, width, height), self._console), refresh=True)

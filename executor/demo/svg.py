"""Recording: pictures of a terminal as one animated SVG.

A line that stays the same over several pictures is written once, with the times at which it is
there. Viewers that do not animate show the last picture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from io import StringIO

from rich.console import Console
from rich.style import Style
from rich.terminal_theme import SVG_EXPORT_THEME
from rich.text import Text

MOST_FRAMES = 240
HOLD = 3.0
"""Seconds for which the last picture stays before the recording begins again."""
CHARACTER, LINE, MARGIN, FONT = 8.4, 17.0, 12.0, 14
"""Width of a character, height of a line, and the rest, in pixels."""

Pieces = tuple[tuple[str, str], ...]
"""A line: text and the CSS classes of its style."""


@dataclass
class Recording:
    """Pictures to come, of one size, each shown for so many seconds.

    With more than ``MOST_FRAMES`` every other one is dropped, and from then on as many.
    """

    width: int
    height: int
    seconds: float
    _frames: list[list[Pieces]] = field(default_factory=list)
    _stride: int = 1
    _seen: int = 0
    _classes: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._console = Console(
            file=StringIO(), width=self.width, force_terminal=True, color_system="truecolor"
        )

    def add(self, lines: Sequence[Text], *, last: bool = False) -> None:
        """One more picture; the last one is kept in any case."""
        self._seen += 1
        if (self._seen - 1) % self._stride and not last:
            return
        self._frames.append([self._pieces(line) for line in lines[: self.height]])
        if len(self._frames) > MOST_FRAMES:
            del self._frames[1::2]
            self._stride *= 2

    def text(self) -> str:
        """The SVG document."""
        width = self.width * CHARACTER + 2 * MARGIN
        height = self.height * LINE + 2 * MARGIN
        theme = SVG_EXPORT_THEME
        rules = "".join(f".{name}{{{css}}}" for css, name in self._classes.items())
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}">\n'
            f"<style>text{{font:{FONT}px Menlo,Consolas,'DejaVu Sans Mono',monospace;"
            f"white-space:pre;fill:{theme.foreground_color.hex}}}{rules}</style>\n"
            f'<rect width="100%" height="100%" rx="8" fill="{theme.background_color.hex}"/>\n'
            f"{''.join(self._lines())}</svg>\n"
        )

    def _lines(self) -> list[str]:
        """Every line that is ever there, with its times."""
        shown = []
        count = len(self._frames)
        for row in range(self.height):
            contents = [frame[row] if row < len(frame) else () for frame in self._frames]
            begun = 0
            for at in range(1, count + 1):
                if at == count or contents[at] != contents[begun]:
                    if contents[begun]:
                        shown.append(self._line(row, contents[begun], begun, at))
                    begun = at
        return shown

    def _line(self, row: int, content: Pieces, begin: int, end: int) -> str:
        count = len(self._frames)
        y = MARGIN + (row + 0.75) * LINE
        length = sum(len(text) for text, _ in content)
        spans = "".join(
            f'<tspan class="{name}">{escape(text)}</tspan>' if name else escape(text)
            for text, name in content
        )
        box = f'x="{MARGIN:g}" y="{y:g}" textLength="{length * CHARACTER:g}"'
        if (begin, end) == (0, count):
            return f'<text xml:space="preserve" {box}>{spans}</text>\n'
        step = self.seconds * self._stride
        total = count * step + HOLD
        first, last = begin * step / total, end * step / total
        values, times = ["visible"], ["0"]
        if begin:
            values, times = ["hidden", "visible"], ["0", f"{first:.5f}"]
        if end < count:
            values.append("hidden")
            times.append(f"{last:.5f}")
        hidden = ' visibility="hidden"' if end < count else ""
        return (
            f'<text xml:space="preserve" {box}{hidden}>{spans}<animate attributeName="visibility" '
            f'calcMode="discrete" dur="{total:g}s" repeatCount="indefinite" '
            f'values="{";".join(values)}" keyTimes="{";".join(times)}"/></text>\n'
        )

    def _pieces(self, line: Text) -> Pieces:
        pieces: list[tuple[str, str]] = []
        for segment in Text().append_text(line).render(self._console):
            name = self._class(segment.style) if segment.style else ""
            if not segment.text.strip():
                name = pieces[-1][1] if pieces else ""
            if pieces and pieces[-1][1] == name:
                pieces[-1] = (pieces[-1][0] + segment.text, name)
            elif segment.text:
                pieces.append((segment.text, name))
        return tuple(pieces) if "".join(text for text, _ in pieces).strip() else ()

    def _class(self, style: Style) -> str:
        """The CSS class of a style, empty for a plain one."""
        css = ""
        if style.color is not None and not style.color.is_default:
            css += f"fill:{style.color.get_truecolor(SVG_EXPORT_THEME).hex}"
        if style.bold:
            css += ";font-weight:bold" if css else "font-weight:bold"
        if not css:
            return ""
        return self._classes.setdefault(css, f"c{len(self._classes)}")

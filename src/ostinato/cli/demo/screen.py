"""Lines of styled text, written to a terminal with ANSI colours or plain to other streams, and kept for the SVG."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple, TextIO

from ostinato.api.text.colour import coloured


class Style(NamedTuple):
    """Style of text: ANSI codes on a terminal, a colour in an SVG."""

    codes: str  # ANSI SGR codes; "" for plain
    colour: str
    bold: bool = False


PLAIN: Final = Style("", "#c9d1d9")
FAINT: Final = Style("2", "#6e7681")
STRONG: Final = Style("1", "#f0f6fc", bold=True)
GOOD: Final = Style("32", "#3fb950")
BAD: Final = Style("31", "#ff7b72")

_ASCII: Final = str.maketrans(
    {"│": "|", "●": "*", "├": "|", "└": "`", "─": "-", "█": "#", "→": ">", "✓": "+", "▌": "="}
)


class Span(NamedTuple):
    text: str
    style: Style = PLAIN


Line = tuple[Span, ...]


class Screen:
    """`colour`: whether to write ANSI codes. Characters that the stream cannot encode are replaced by ASCII ones."""

    def __init__(self, stream: TextIO, *, colour: bool) -> None:
        self.lines: list[Line] = []  # all lines shown so far
        self._stream = stream
        self._colour = colour
        self._ascii = not _can_write(stream, "│●✓")

    def show(self, *spans: Span | str) -> None:
        line = tuple(Span(each) if isinstance(each, str) else each for each in spans)
        self.lines.append(line)
        text = "".join(self._rendered(line)).rstrip()
        self._stream.write((text.translate(_ASCII) if self._ascii else text) + "\n")
        self._stream.flush()

    def _rendered(self, line: Line) -> Iterable[str]:
        for text, style in line:
            yield coloured(text, style.codes) if self._colour else text


def _can_write(stream: TextIO, text: str) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True

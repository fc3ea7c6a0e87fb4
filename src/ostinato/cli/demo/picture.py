"""Render screen lines as an SVG of a terminal window, on a fixed grid that does not depend on the font."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final
from xml.sax.saxutils import escape

from ostinato.cli.demo.screen import Line, Span

_FONT: Final = "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
_SIZE: Final = 13
_ADVANCE: Final = 7.8  # width of a character
_LEADING: Final = 18
_MARGIN: Final = 18
_BAR: Final = 34  # height of the title bar
_LIGHTS: Final = ("#ff5f57", "#febc2e", "#28c840")


def svg(lines: Sequence[Line], title: str) -> str:
    """Return the SVG; equal lines give equal SVGs."""
    columns = max((sum(len(span.text) for span in line) for line in lines), default=0)
    width = round(columns * _ADVANCE) + 2 * _MARGIN
    height = _BAR + len(lines) * _LEADING + _MARGIN
    return "\n".join([*_window(width, height, title), *_text(lines), "</svg>", ""])


def _window(width: int, height: int, title: str) -> Iterator[str]:
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'font-family="{_FONT}" font-size="{_SIZE}" role="img">'
    )
    yield f"<title>{escape(title)}</title>"
    yield f'<rect width="{width}" height="{height}" rx="9" fill="#0d1117" stroke="#30363d"/>'
    for number, light in enumerate(_LIGHTS):
        yield f'<circle cx="{_MARGIN + 4 + number * 18}" cy="18" r="5.5" fill="{light}"/>'
    yield f'<text x="{width / 2:g}" y="22" fill="#8b949e" text-anchor="middle">{escape(title)}</text>'


def _text(lines: Sequence[Line]) -> Iterator[str]:
    for number, line in enumerate(lines):
        y = _BAR + (number + 1) * _LEADING - 4
        spans = "".join(_placed(line))
        if spans:
            yield f'<text y="{y}" xml:space="preserve">{spans}</text>'


def _placed(line: Line) -> Iterator[str]:
    """Yield a tspan per span, positioned and sized on the character grid."""
    column = 0
    for span in line:
        text = span.text.strip(" ")
        if text:
            at = column + len(span.text) - len(span.text.lstrip(" "))
            yield _tspan(Span(text, span.style), at)
        column += len(span.text)


def _tspan(span: Span, column: int) -> str:
    weight = ' font-weight="bold"' if span.style.bold else ""
    return (
        f'<tspan x="{_MARGIN + column * _ADVANCE:.1f}" textLength="{len(span.text) * _ADVANCE:.1f}" '
        f'fill="{span.style.colour}"{weight}>{escape(span.text)}</tspan>'
    )

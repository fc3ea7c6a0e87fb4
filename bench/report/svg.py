"""Drawings as SVG: elements, styles and axes.

- Colours are those of Okabe and Ito, which people with colour vision deficiency can tell apart; series also differ in
  their marks and dashes, and are labelled where they are.
- A drawing has a background of its own, and follows the colour scheme of the reader's system.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape
from typing import NamedTuple

BLUE, ORANGE, GREEN, PURPLE = "c1", "c2", "c3", "c4"  # classes

_STYLE = """
text { font: 12px system-ui, sans-serif; fill: var(--text); }
svg { --back: #ffffff; --text: #1f2a44; --dim: #55617d; --grid: #dfe3ec; --axis: #8a94a9;
  --c1: #0072b2; --c2: #d55e00; --c3: #008060; --c4: #a0528a; }
@media (prefers-color-scheme: dark) { svg { --back: #1c212e; --text: #e8ebf4; --dim: #aab3c7; --grid: #333b4d;
  --axis: #76819a; --c1: #56b4e9; --c2: #f0a050; --c3: #2fc79a; --c4: #dd9bc8; } }
.back { fill: var(--back); }
.h { font-size: 14px; font-weight: 600; }
.d { fill: var(--dim); font-size: 11px; }
.e { text-anchor: end; }
.m { text-anchor: middle; }
.grid { stroke: var(--grid); }
.axis { stroke: var(--axis); }
.note { stroke: var(--dim); stroke-dasharray: 2 3; }
.c1 { fill: var(--c1); stroke: var(--c1); }
.c2 { fill: var(--c2); stroke: var(--c2); }
.c3 { fill: var(--c3); stroke: var(--c3); }
.c4 { fill: var(--c4); stroke: var(--c4); }
text.c1, text.c2, text.c3, text.c4 { stroke: none; font-weight: 600; }
path.line { fill: none; stroke-width: 2; }
.goal { fill: var(--back); stroke: var(--text); stroke-width: 1.5; }
.range { stroke: var(--text); stroke-width: 1.5; opacity: 0.7; }
"""
_DASHES = {BLUE: "", ORANGE: "7 4", GREEN: "2 4", PURPLE: "8 3 2 3"}


class Drawing:
    """An SVG of a size, with a title for people who do not see it."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self._size = f'viewBox="0 0 {_n(width)} {_n(height)}" width="{_n(width)}" height="{_n(height)}"'
        self._title = escape(title)
        self._parts = [f'<rect class="back" width="{_n(width)}" height="{_n(height)}" rx="8"/>']

    def text(self, x: float, y: float, words: str, classes: str = "") -> None:
        self._parts.append(f'<text x="{_n(x)}" y="{_n(y)}"{_class(classes)}>{escape(words)}</text>')

    def line(self, x1: float, y1: float, x2: float, y2: float, classes: str) -> None:
        at = f'x1="{_n(x1)}" y1="{_n(y1)}" x2="{_n(x2)}" y2="{_n(y2)}"'
        self._parts.append(f"<line {at}{_class(classes)}/>")

    def bar(self, x: float, y: float, width: float, height: float, classes: str) -> None:
        at = f'x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}"'
        self._parts.append(f'<rect {at} rx="2"{_class(classes)}/>')

    def series(self, points: Sequence[tuple[float, float]], colour: str, *, marks: bool = True) -> None:
        """Draw a line through points, with the dashes and marks of its colour."""
        path = " ".join(f"{'L' if number else 'M'}{_n(x)} {_n(y)}" for number, (x, y) in enumerate(points))
        dashes = f' stroke-dasharray="{_DASHES[colour]}"' if _DASHES[colour] else ""
        self._parts.append(f'<path d="{path}" class="line {colour}" style="fill:none"{dashes}/>')
        for x, y in points if marks else ():
            self.mark(x, y, colour)

    def mark(self, x: float, y: float, colour: str) -> None:
        shapes = {
            BLUE: f'<circle cx="{_n(x)}" cy="{_n(y)}" r="4.5"',
            ORANGE: f'<rect x="{_n(x - 4)}" y="{_n(y - 4)}" width="8" height="8"',
            GREEN: f'<path d="M{_n(x)} {_n(y - 5)} L{_n(x + 5)} {_n(y + 4)} L{_n(x - 5)} {_n(y + 4)} z"',
            PURPLE: f'<path d="M{_n(x)} {_n(y - 5)} L{_n(x + 5)} {_n(y)} L{_n(x)} {_n(y + 5)} L{_n(x - 5)} {_n(y)} z"',
        }
        self._parts.append(f'{shapes[colour]} class="{colour}"/>')

    def diamond(self, x: float, y: float) -> None:
        path = f"M{_n(x)} {_n(y - 5)} L{_n(x + 5)} {_n(y)} L{_n(x)} {_n(y + 5)} L{_n(x - 5)} {_n(y)} z"
        self._parts.append(f'<path d="{path}" class="goal"/>')

    def __str__(self) -> str:
        head = f'<svg xmlns="http://www.w3.org/2000/svg" {self._size} role="img" aria-label="{self._title}">'
        body = "\n".join(self._parts)
        return f"{head}\n<title>{self._title}</title>\n<style>{_STYLE}</style>\n{body}\n</svg>\n"


class Scale(NamedTuple):
    """Maps values to positions on one axis."""

    low: float
    high: float
    start: float
    end: float
    logarithmic: bool = True

    def __call__(self, value: float) -> float:
        low, high, at = self.low, self.high, min(max(value, self.low), self.high)
        if self.logarithmic:
            low, high, at = math.log10(low), math.log10(high), math.log10(at)
        return self.start + (at - low) / (high - low) * (self.end - self.start)

    def ticks(self) -> list[float]:
        if not self.logarithmic:
            step = _nice((self.high - self.low) / 4)
            return [step * each for each in range(math.ceil(self.low / step), int(self.high / step) + 1)]
        powers = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        steps = (1, 3) if len(powers) <= 4 else (1,)
        return [step * 10.0**each for each in powers for step in steps if self.low <= step * 10.0**each <= self.high]


def _nice(step: float) -> float:
    power = 10.0 ** math.floor(math.log10(step))
    return next(each * power for each in (1, 2, 5, 10) if each * power >= step)


def _class(classes: str) -> str:
    return f' class="{classes}"' if classes else ""


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")

"""Picture of a timeline: a lane for each participant, time downwards, faults in red. Self-contained SVG."""

from __future__ import annotations

from html import escape
from typing import Final

from ostinato.testing.explore.output.timeline import Line, lines_of
from ostinato.testing.explore.world.outcome import Outcome
from ostinato.testing.explore.world.record import FAULT

_ROW: Final = 22
_LANE: Final = 330
_LEFT: Final = 90
_TOP: Final = 64
_MOST: Final = 400  # lines
_CHARACTERS: Final = 48  # of a text
_STYLE: Final = """
text { font: 12px ui-monospace, Menlo, Consolas, monospace; fill: #1f2933; }
.title { font-size: 15px; font-weight: 600; } .lane { stroke: #cbd2d9; } .name { font-weight: 600; }
.time { fill: #7b8794; } .fault { fill: #b91c1c; font-weight: 600; } .wrong { fill: #b45309; }
.dot { fill: #2563eb; } .dot.fault { fill: #dc2626; } .dot.wrong { fill: #f59e0b; }
.band { fill: #fee2e2; } rect.back { fill: #ffffff; }
"""


def picture(outcome: Outcome, name: str) -> str:
    """Return the timeline of a world as SVG."""
    lines = lines_of(outcome.record.entries)[:_MOST]
    actors = [actor for actor in dict.fromkeys(line.actor for line in lines) if actor != FAULT]
    width, height = _LEFT + _LANE * max(1, len(actors)), _TOP + _ROW * (len(lines) + len(outcome.problems) + 2)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<style>{_STYLE}</style>",
        f'<rect class="back" width="{width}" height="{height}"/>',
        _text(12, 22, f"{name}: {outcome.plan}", "title"),
    ]
    for number, actor in enumerate(actors):
        x = _LEFT + number * _LANE
        parts.append(_text(x + 12, 46, actor, "name"))
        parts.append(f'<line class="lane" x1="{x}" y1="{_TOP - 8}" x2="{x}" y2="{height - 2 * _ROW}"/>')
    y = _TOP
    for line in lines:
        y += _ROW
        parts += _row(line, y, actors, width)
    for problem in outcome.problems:
        y += _ROW
        parts.append(_text(12, y, f"{problem.oracle}: {problem.text}", "fault"))
    return "\n".join([*parts, "</svg>", ""])


def _row(line: Line, y: int, actors: list[str], width: int) -> list[str]:
    time = _text(12, y, f"t+{line.time:.3f}", "time")
    if line.is_fault:
        band = f'<rect class="band" x="0" y="{y - 15}" width="{width}" height="{_ROW}"/>'
        return [band, time, _text(_LEFT + 12, y, f"FAULT {line.text}", "fault")]
    x = _LEFT + actors.index(line.actor) * _LANE
    kind = "wrong" if line.is_wrong else ""
    dot = f'<circle class="dot {kind}" cx="{x}" cy="{y - 4}" r="4"/>'
    return [time, dot, _text(x + 12, y, _short(line.text), kind, line.text)]


def _short(text: str) -> str:
    return text if len(text) <= _CHARACTERS else f"{text[: _CHARACTERS - 3]}..."


def _text(x: int, y: int, text: str, kind: str, whole: str = "") -> str:
    title = f"<title>{escape(whole)}</title>" if whole else ""
    return f'<text x="{x}" y="{y}" class="{kind}">{title}{escape(text)}</text>'

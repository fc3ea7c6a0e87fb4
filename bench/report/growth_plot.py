"""How time, processor time and memory grow with the number of Pods."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bench.large import Large
from bench.plane import DEFAULT, OURS, RAISED
from bench.report.svg import BLUE, GREEN, ORANGE, Drawing, Scale
from bench.suite.printed import number
from bench.suite.results import Run

WIDTH, HEIGHT = 860, 640
PANEL, GAP, LEFT, TOP, DEEP = 330, 90, 70, 92, 200
NAMES = {
    OURS: (BLUE, "ostinato"),
    RAISED: (ORANGE, "Kubernetes + kwok, rate limits raised"),
    DEFAULT: (GREEN, "Kubernetes + kwok"),
}


class Size(NamedTuple):
    """One contender at one number of Pods. `is_done`: all Pods became available and were deleted."""

    contender: str
    pods: int
    available: float
    deleted: float
    cpu: float
    memory: float
    is_done: bool


def sizes(run: Run, large: Large | None) -> list[Size]:
    """Return all sizes, in order."""
    found = [
        Size(
            each.contender,
            each.pods,
            each.available.seconds,
            each.deleted.seconds,
            each.available.cpu + each.deleted.cpu,
            each.memory,
            each.available.reached == each.pods,
        )
        for each in run.growth
    ]
    if large is not None:
        found.append(
            Size(OURS, large.pods, large.available, large.deleted, large.cpu, large.memory, is_done=not large.lost)
        )
    return sorted(found, key=lambda each: (each.contender, each.pods))


def drawn(run: Run, large: Large | None) -> str:
    found = sizes(run, large)
    drawing = Drawing(WIDTH, HEIGHT, "Time, processor time and memory at 1,000, 10,000 and 50,000 Pods")
    drawing.text(16, 26, "Growth with the number of Pods, ten on a node", "h")
    x = 16.0
    for contender, (colour, name) in NAMES.items():
        if any(each.contender == contender for each in found):
            drawing.series([(x, 46), (x + 30, 46)], colour, marks=False)
            drawing.mark(x + 15, 46, colour)
            drawing.text(x + 38, 50, name)
            x += 64 + 6.2 * len(name)
    panels: list[tuple[str, str, Callable[[Size], float]]] = [
        ("until all are available", "s", lambda each: each.available),
        ("until all are deleted", "s", lambda each: each.deleted),
        ("processor time per Pod, both", "ms", lambda each: each.cpu * 1000 / each.pods),
        ("peak memory", "MB", lambda each: each.memory),
    ]
    for place, (title, unit, value) in enumerate(panels):
        left, top = LEFT + place % 2 * (PANEL + GAP), TOP + place // 2 * (DEEP + 76)
        _panel(drawing, (left, top), f"{title} ({unit})", [(each, value(each)) for each in found])
    return str(drawing)


def _panel(drawing: Drawing, corner: tuple[float, float], title: str, values: list[tuple[Size, float]]) -> None:
    left, top = corner
    values = [(size, value) for size, value in values if value > 0]
    drawing.text(left, top - 8, title, "h")
    if not values:
        return
    across = Scale(700, 70_000, left, left + PANEL)
    shown = [value for _, value in values]
    up = Scale(min(shown) * 0.6, max(shown) * 1.8, top + DEEP, top)
    for tick in up.ticks():
        drawing.line(left, up(tick), left + PANEL, up(tick), "grid")
        drawing.text(left - 8, up(tick) + 4, f"{tick:,g}", "d e")
    for tick in (1000, 10_000, 50_000):
        drawing.line(across(tick), top, across(tick), top + DEEP, "grid")
        drawing.text(across(tick), top + DEEP + 16, f"{tick:,} Pods", "d m")
    drawing.line(left, top + DEEP, left + PANEL, top + DEEP, "axis")
    for contender, (colour, _) in NAMES.items():
        points = [(size, value) for size, value in values if size.contender == contender]
        if points:
            drawing.series([(across(size.pods), up(value)) for size, value in points], colour)
        for size, value in points:
            label = number(value) if size.is_done else f">{number(value)}"
            below = colour == BLUE
            drawing.text(across(size.pods), up(value) + (18 if below else -9), label, f"m {colour}")

"""The large cluster: Pods over time, and the slowest request of each sort beside the objectives."""

from __future__ import annotations

from bench.large import Large
from bench.probe import CREATE, GET, LIST
from bench.report.svg import BLUE, GREEN, ORANGE, Drawing, Scale

WIDTH, HEIGHT, LEFT, RIGHT = 860, 580, 80, 140
SERIES = {GET: (BLUE, "get"), CREATE: (ORANGE, "create"), LIST: (GREEN, "list of all Pods")}


def drawn(large: Large) -> str:
    drawing = Drawing(WIDTH, HEIGHT, f"{large.pods:,} Pods over time and the slowest request of every ten seconds")
    drawing.text(16, 26, f"{large.pods:,} Pods on {large.nodes:,} nodes: creation, rest, deletion", "h")
    end = max(each.at for each in large.points) or 1.0
    across = Scale(0, end, LEFT, WIDTH - RIGHT, logarithmic=False)
    _pods(drawing, large, across, 66, 226)
    _latencies(drawing, large, across, 310, 520)
    for tick in across.ticks():
        drawing.text(across(tick), 540, f"{tick:g} s", "d m")
    return str(drawing)


def _pods(drawing: Drawing, large: Large, across: Scale, top: float, bottom: float) -> None:
    up = Scale(0, large.pods * 1.05, bottom, top, logarithmic=False)
    _grid(drawing, across, up, top, bottom)
    for colour, values in (
        (ORANGE, [(0.0, 0), *((each.at, each.pods) for each in large.points)]),
        (BLUE, [(0.0, 0), *((each.at, each.available) for each in large.points)]),
    ):
        drawing.series([(across(at), up(value)) for at, value in values], colour, marks=False)
    _legend(drawing, 46, [(ORANGE, "Pods"), (BLUE, "available Pods")])


def _latencies(drawing: Drawing, large: Large, across: Scale, top: float, bottom: float) -> None:
    drawing.text(16, top - 36, "Slowest request of every ten seconds (ms), by its start", "h")
    shown = [value for point in large.points for value in point.slowest.values() if value > 0]
    up = Scale(max(min(shown, default=1) * 0.7, 0.1), 60_000, bottom, top)
    _grid(drawing, across, up, top, bottom)
    for limit, name in ((1000, "objective: one object"), (30_000, "objective: lists")):
        drawing.line(LEFT, up(limit), WIDTH - RIGHT, up(limit), "note")
        drawing.text(WIDTH - RIGHT + 6, up(limit) + 4, name, "d")
    _legend(drawing, top - 14, list(SERIES.values()))
    for what, (colour, _) in SERIES.items():
        points = [(across(each.at), up(each.slowest[what])) for each in large.points if each.slowest.get(what)]
        if points:
            drawing.series(points, colour, marks=len(points) < 40)


def _legend(drawing: Drawing, y: float, entries: list[tuple[str, str]]) -> None:
    x = 16.0
    for colour, name in entries:
        drawing.series([(x, y - 4), (x + 30, y - 4)], colour, marks=False)
        drawing.mark(x + 15, y - 4, colour)
        drawing.text(x + 38, y, name)
        x += 64 + 6.4 * len(name)


def _grid(drawing: Drawing, across: Scale, up: Scale, top: float, bottom: float) -> None:
    for tick in up.ticks():
        drawing.line(LEFT, up(tick), WIDTH - RIGHT, up(tick), "grid")
        drawing.text(LEFT - 8, up(tick) + 4, f"{tick:,g}", "d e")
    for tick in across.ticks():
        drawing.line(across(tick), top, across(tick), bottom, "grid")
    drawing.line(LEFT, bottom, WIDTH - RIGHT, bottom, "axis")

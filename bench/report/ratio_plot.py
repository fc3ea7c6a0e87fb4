"""All ratios as bars on one logarithmic axis: right of 1 Ostinato is better, left of it the peer."""

from __future__ import annotations

from bench.report.svg import BLUE, ORANGE, Drawing, Scale
from bench.suite.printed import short
from bench.suite.results import Figure, Run
from bench.suite.table import ENVTEST, KWOK, KWOK_RAISED, SAME_ETCD, SECTIONS

WIDTH, LEFT, RIGHT = 900, 430, 90
_SHORT = {KWOK_RAISED: "kwok, limits raised", KWOK: "kwok", SAME_ETCD: "kube-apiserver", ENVTEST: "envtest"}
ROW, HEADING, TOP, BOTTOM = 20, 30, 76, 42


def drawn(run: Run) -> str:
    groups = {
        section.title: [each for each in run.figures if each.info.section == section.name and each.ratio]
        for section in SECTIONS.values()
    }
    groups = {title: figures for title, figures in groups.items() if figures}
    height = TOP + BOTTOM + sum(HEADING + ROW * len(figures) for figures in groups.values())
    drawing = Drawing(WIDTH, height, "How many times better than each peer, by row, on a logarithmic axis")
    scale = _scale(groups)
    drawing.text(16, 26, "Times better than the peer", "h")
    drawing.text(16, 46, "Right of 1: Ostinato is better. Diamond: goal. Thin line: range of the rounds.", "d")
    for tick in scale.ticks():
        drawing.line(scale(tick), TOP - 8, scale(tick), height - BOTTOM + 4, "axis" if tick == 1 else "grid")
        drawing.text(scale(tick), height - BOTTOM + 22, f"{tick:g}x", "d m")
    y = float(TOP)
    for title, figures in groups.items():
        drawing.text(16, y + 12, title, "h")
        y += HEADING
        for figure in figures:
            _row(drawing, scale, figure, y)
            y += ROW
    return str(drawing)


def _scale(groups: dict[str, list[Figure]]) -> Scale:
    shown = [value for figures in groups.values() for each in figures for value in (*each.ratios, each.info.goal or 1)]
    low = min([*shown, 1.0]) * 0.8
    return Scale(low, max([*shown, 2.0]) * 1.15, LEFT, WIDTH - RIGHT)


def _row(drawing: Drawing, scale: Scale, figure: Figure, y: float) -> None:
    assert figure.ratio is not None
    one, at = scale(1), scale(figure.ratio)
    peer = _SHORT.get(figure.info.peer, figure.info.peer)
    drawing.text(16, y + 4, figure.info.title)
    drawing.text(LEFT - 14, y + 4, peer, "e d")
    drawing.bar(min(one, at), y - 6, max(abs(at - one), 1), 12, BLUE if figure.ratio >= 1 else ORANGE)
    if figure.range:
        drawing.line(scale(figure.range[0]), y, scale(figure.range[1]), y, "range")
    if figure.info.goal:
        drawing.diamond(scale(figure.info.goal), y)
    mark = f"{'>' if figure.at_least else ''}{short(figure.ratio)}{'*' if figure.is_unsteady else ''}"
    drawing.text(WIDTH - 16, y + 4, f"{mark}x", "e")

"""The files that the report consists of."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bench.large import FILE as LARGE
from bench.large import Large
from bench.report import growth_plot, large_plot, ratio_plot
from bench.report.page import page
from bench.suite.results import LATEST, load

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGE = DOCS / "performance.md"
PLOTS = DOCS / "performance"


def made(latest: Path = LATEST, large: Path = LARGE) -> dict[Path, str]:
    """Return the text of each file, from the stored results."""
    run = load(latest)
    biggest = msgspec.json.decode(large.read_bytes(), type=Large) if large.exists() else None
    plots = {"ratios.svg": ratio_plot.drawn(run), "growth.svg": growth_plot.drawn(run, biggest)}
    if biggest is not None:
        plots["large.svg"] = large_plot.drawn(biggest)
    return {PAGE: page(run, biggest), **{PLOTS / name: text for name, text in plots.items()}}

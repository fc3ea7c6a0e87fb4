"""The files that the report consists of."""

from __future__ import annotations

from pathlib import Path

import msgspec

from bench.large import FILE as LARGE
from bench.large import Large
from bench.report import growth_plot, large_plot, ratio_plot
from bench.report.headlines import with_headlines
from bench.report.page import page
from bench.suite.results import LATEST, load

ROOT = Path(__file__).resolve().parents[2]
README, DOCS = ROOT / "README.md", ROOT / "docs"
PAGE = DOCS / "performance.md"
PLOTS = DOCS / "performance"


def made(latest: Path = LATEST, large: Path = LARGE) -> dict[Path, str]:
    """Return the text of each file, from the stored results."""
    run = load(latest)
    biggest = msgspec.json.decode(large.read_bytes(), type=Large) if large.exists() else None
    plots = {"ratios.svg": ratio_plot.drawn(run), "growth.svg": growth_plot.drawn(run, biggest)}
    if biggest is not None:
        plots["large.svg"] = large_plot.drawn(biggest)
    readme = README.read_text(encoding="utf-8")
    return {
        PAGE: page(run, biggest),
        README: readme if run.quick else with_headlines(readme, run),
        **{PLOTS / name: text for name, text in plots.items()},
    }

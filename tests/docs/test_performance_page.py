"""docs/performance.md and its plots are made from the stored results, and the arithmetic of its ratios."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import msgspec
import pytest
from bench.report.files import PLOTS, README, made
from bench.report.headlines import with_headlines
from bench.report.page import page
from bench.suite.results import Figure, Origin, Run, load
from bench.suite.table import ROWS, SECTIONS

FILES = made()


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_page_and_its_plots_are_those_of_the_stored_results(file: Path) -> None:
    assert file.read_text(encoding="utf-8") == FILES[file], "`python -m bench.report` writes it"


def test_every_plot_is_used() -> None:
    assert set(PLOTS.iterdir()) == {file for file in FILES if file.parent == PLOTS}


@pytest.mark.parametrize("file", [file for file in FILES if file.suffix == ".svg"], ids=lambda file: file.name)
def test_plots_are_well_formed_and_say_what_they_show(file: Path) -> None:
    root = ET.fromstring(FILES[file])
    assert root.get("aria-label")


def test_rows_belong_to_sections_and_have_one_kind_of_goal() -> None:
    for row in ROWS.values():
        assert row.section in SECTIONS
        assert not (row.goal and row.most), row.key


@pytest.mark.parametrize(
    ("row", "ours", "peer", "ratio"),
    [
        ("api-create", [200.0, 300.0, 900.0], [100.0, 100.0, 100.0], 3.0),  # rates: more is better
        ("start-time", [1.0, 2.0], [4.0, 4.0], 3.0),  # times: less is better
        ("plane-available", [40.0, 60.0], [400.0], 8.0),  # other numbers of rounds: the medians
        ("api-create", [200.0], [], None),
    ],
)
def test_ratios_say_how_many_times_better(row: str, ours: list[float], peer: list[float], ratio: float | None) -> None:
    assert Figure(row=row, ours=ours, peer=peer).ratio == ratio


def test_a_row_whose_rounds_differ_much_is_marked() -> None:
    assert Figure(row="api-get", ours=[100.0, 160.0], peer=[100.0, 100.0]).is_unsteady
    assert not Figure(row="api-get", ours=[100.0, 140.0], peer=[100.0, 100.0]).is_unsteady
    assert not Figure(row="api-get", ours=[100.0], peer=[10.0]).is_unsteady


def test_a_goal_may_be_a_ratio_or_an_amount() -> None:
    assert Figure(row="api-list", ours=[80.0], peer=[10.0]).reached is True
    assert Figure(row="api-list", ours=[79.0], peer=[10.0]).reached is False
    assert Figure(row="plane-rest", ours=[5.1], peer=[90.0]).reached is False
    assert Figure(row="client-get", ours=[5.0], peer=[1.0]).reached is None


def test_merged_rows_replace_those_of_the_earlier_run() -> None:
    earlier = msgspec.structs.replace(load(), quick=False)
    newer = Run(origin=earlier.origin, machine=earlier.machine, figures=[Figure(row="api-get", ours=[7.0])])
    merged = earlier.merged(newer)
    assert merged.figure("api-get").ours == [7.0]
    assert len(merged.figures) == len({each.row for each in (*earlier.figures, *newer.figures)})


def test_figures_of_a_quick_run_do_not_remain_beside_others() -> None:
    earlier = msgspec.structs.replace(load(), quick=True)
    newer = Run(origin=earlier.origin, machine=earlier.machine, figures=[Figure(row="api-get", ours=[7.0])])
    merged = earlier.merged(newer)
    assert [each.row for each in merged.figures] == ["api-get"]
    assert not merged.quick


def test_rows_that_were_measured_beside_other_work_are_marked() -> None:
    busy, idle = (
        Origin("2026-01-01 10:00 UTC", "0123abcd", others=1.25),
        Origin("2026-01-01 10:00 UTC", "0123abcd", 0.05),
    )
    figures = [
        Figure(row="api-get", ours=[60.0], peer=[10.0], origin=busy),
        Figure(row="api-create", ours=[20.0], peer=[10.0], origin=idle),
    ]
    run = msgspec.structs.replace(load(), quick=False, figures=figures)
    text = page(run, None)
    assert "| get ‡ | 60.0/s |" in text
    assert "| create | 20.0/s |" in text
    assert "‡ Other programs used 1.25 cores meanwhile: `api-get`." in text
    readme = with_headlines("<!-- performance: made -->\n<!-- performance -->\n", run)
    assert "| API server: get | kube-apiserver + etcd | 6.00 ‡ |" in readme


def test_the_readme_shows_the_ratios_between_its_marks() -> None:
    readme = "before\n<!-- performance: made -->\nold\n<!-- performance -->\nafter\n"
    run = msgspec.structs.replace(load(), figures=[Figure(row="api-get", ours=[60.0], peer=[10.0])])
    assert with_headlines(readme, run) == (
        "before\n<!-- performance: made -->\n| | beside | times better |\n|---|---|---|\n"
        "| API server: get | kube-apiserver + etcd | 6.00 |\n<!-- performance -->\nafter\n"
    )
    assert "<!-- performance: " in README.read_text(encoding="utf-8")

"""Ten thousand objects, 500 events a second: bounded work, by counts; `python -m bench.page_frames` measures times."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from .facts import Facts
from .played import Played, played

COUNTERS = """
window.counts = { frames: 0, mutations: 0, dots: 0, most: 0 };
(() => {
  const frame = () => {
    counts.frames += 1;
    counts.most = Math.max(counts.most, counts.dots);
    counts.dots = 0;
    requestAnimationFrame(frame);
  };
  requestAnimationFrame(frame);
  const arc = CanvasRenderingContext2D.prototype.arc;
  CanvasRenderingContext2D.prototype.arc = function (...rest) {
    counts.dots += 1;
    counts.drawn = true;
    return arc.apply(this, rest);
  };
  const changes = { subtree: true, childList: true, characterData: true };
  new MutationObserver(() => { counts.mutations += 1; }).observe(document, changes);
})();
"""


@pytest.fixture(scope="module")
def busy() -> Iterator[Played]:
    with played(Facts(pods=10_000, nodes=1000, rate=500)) as server:
        yield server


def test_only_visible_rows_of_ten_thousand_objects_are_in_the_document(page: Page, busy: Played) -> None:
    page.goto(f"{busy.address}#/objects")
    expect(page.get_by_text("10,003 objects")).to_be_visible()
    rows = page.get_by_role("treeitem")
    expect(rows.first).to_contain_text("Deployment")
    assert rows.count() < 100
    page.get_by_role("tree").focus()
    page.keyboard.press("End")
    expect(rows.last).to_contain_text("ConfigMap")
    assert rows.count() < 100


def test_events_change_the_document_at_most_once_a_frame(page: Page, busy: Played) -> None:
    page.add_init_script(COUNTERS)
    page.goto(busy.address)
    expect(page.get_by_role("group", name="Kinds and controllers")).to_be_visible()
    page.evaluate("() => Object.assign(counts, { frames: 0, mutations: 0, most: 0 })")
    sent = busy.handlers.sent
    page.wait_for_function("() => counts.frames > 90")
    page.wait_for_function("() => counts.drawn")
    counts = page.evaluate("() => counts")
    assert busy.handlers.sent > sent
    assert counts["mutations"] <= counts["frames"]
    assert 0 < counts["most"] <= 240


def test_with_reduced_motion_no_dots_travel(page: Page, busy: Played) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.add_init_script(COUNTERS)
    page.goto(busy.address)
    expect(page.get_by_role("group", name="Kinds and controllers")).to_be_visible()
    page.wait_for_function("() => counts.frames > 45")
    assert page.evaluate("() => counts.most + counts.dots") == 0


def test_a_thousand_nodes_are_a_grid_that_the_keyboard_walks(page: Page, busy: Played) -> None:
    page.goto(f"{busy.address}#/nodes")
    cells = page.get_by_role("group", name="Nodes").get_by_role("button")
    expect(cells).to_have_count(1000)
    cells.first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Open the object")).to_be_visible()

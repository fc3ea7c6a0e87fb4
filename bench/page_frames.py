"""Frame times of the live page in chromium, with 10,000 objects and 500 events a second."""

from __future__ import annotations

import statistics

from playwright.sync_api import Page, sync_playwright
from tests.browser.conftest import FLAGS, chromium
from tests.browser.facts import Facts
from tests.browser.played import played

SECONDS = 8
VIEWS = ["overview", "loop", "controllers", "objects", "nodes"]
MEASURE = """(seconds) => new Promise((done) => {
  const times = [];
  let last = performance.now();
  const end = last + seconds * 1000;
  const frame = (now) => {
    times.push(now - last);
    last = now;
    if (now < end) requestAnimationFrame(frame); else done(times.slice(1));
  };
  requestAnimationFrame(frame);
})"""


def measure(page: Page, address: str, view: str) -> str:
    page.goto(f"{address}#/{view}")
    page.wait_for_timeout(2000)
    times = sorted(page.evaluate(MEASURE, SECONDS))
    slow = sum(1 for time in times if time > 50)
    return (
        f"{view:12} {len(times) / SECONDS:5.1f} frames/s, median {statistics.median(times):5.1f} ms, "
        f"p99 {times[int(len(times) * 0.99)]:5.1f} ms, longest {times[-1]:6.1f} ms, {slow} of {len(times)} over 50 ms"
    )


def main() -> None:
    with played(Facts(pods=10_000, nodes=1000, rate=500)) as server, sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium(), args=FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        for view in VIEWS:
            print(measure(page, server.address, view), flush=True)
        browser.close()


if __name__ == "__main__":
    main()

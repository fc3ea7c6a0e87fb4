"""`ostinato demo --page`: the page shows each step. Its pictures are kept; the one of the README is made here.

OSTINATO_BROWSER_ARTEFACTS=pictures pytest tests/browser/test_demo.py
cp pictures/demo.png docs/page.png
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from .programs import Program, running

STEPS = ["Apply a Deployment", "Kill", "Scale it", "Roll out", "Delete it"]
ATTEMPTS = 3  # the demo takes 15 seconds, whatever a browser on busy cores does meanwhile


def _watch(demo: Program, page: Page, screenshot: Callable[[str], Path]) -> bool:
    """Follow the steps on the page; return whether it was in time to show the Deployment before its roll-out."""
    workload = page.get_by_role("listitem").filter(has=page.get_by_role("link", name="Deployment default/web"))
    ready = workload.get_by_role("img", name="5 of 5 Pods ready")
    in_time = False
    for number, step in enumerate(STEPS):
        demo.wait(f"▌ {step}")
        if step == "Roll out":
            ready.or_(page.get_by_text("No workloads")).first.wait_for()
            in_time = ready.is_visible()
            screenshot("demo")
        screenshot(f"demo-{number}-{step.split()[0].lower()}")
    return in_time


def test_the_page_shows_each_step_of_the_demo(
    context: BrowserContext, page: Page, screenshot: Callable[[str], Path]
) -> None:
    page.set_viewport_size({"width": 1440, "height": 860})
    for _ in range(ATTEMPTS):
        with running("demo", "--page", ":0") as demo:
            demo.wait("the demo begins then")
            demo.enter(context)
            page.goto(demo.address)
            if _watch(demo, page, screenshot):
                _check_history(demo, page)
                return
    pytest.fail(f"the page was late in {ATTEMPTS} demos")


def _check_history(demo: Program, page: Page) -> None:
    """Check what the page tells afterwards."""
    demo.wait("The page stays open")
    page.goto(f"{demo.address}#/object?apiVersion=apps%2Fv1&kind=Deployment&namespace=default&name=web&tab=writes")
    writes = page.get_by_role("tabpanel")
    for text in ["by ostinato-demo", "spec.replicas", "by deployment-controller", "delete"]:
        expect(writes).to_contain_text(text)
    page.get_by_role("tab", name="Children").click()
    created = page.get_by_role("link", name=re.compile("Why was Pod web-.* created"))
    deleted = page.get_by_role("link", name=re.compile("Why was Pod web-.* deleted"))
    expect(created).to_have_count(10)  # three, two more by scaling, five of the new version
    assert deleted.count() >= 10
    created.last.click()
    expect(page.locator(".why-headline")).to_contain_text("because ostinato-demo created Deployment web")

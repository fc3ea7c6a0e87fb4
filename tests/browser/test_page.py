"""The page by itself: views, keyboard, accessibility, states of the connection, and text that stays text."""

from __future__ import annotations

import re
from pathlib import Path

import axe_playwright_python
import pytest
from playwright.sync_api import Page, expect

from .facts import HOSTILE, Facts
from .played import Played, played

AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"
CHECK = "([where, rules]) => axe.run(where, { runOnly: rules, resultTypes: ['violations'] })"
DEPLOYMENT = "object?apiVersion=apps%2Fv1&kind=Deployment&namespace=default&name=web"
BUCKET = "object?apiVersion=example.dev%2Fv1&kind=Bucket&namespace=default&name=photos"
POD = "apiVersion=v1&kind=Pod&namespace=default&name=web-7d9f6c5b8-00000"
# Each view with the heading that it has, and a text that only its data can bring.
VIEWS = {
    "overview": ("Overview", "Why did it change?"),
    "loop": ("Loop", "Latest writes"),
    "controllers": ("Controllers", "garbage-collector"),
    "controller?name=buckets": ("buckets", "reconciles take 2.3 s"),
    "objects": ("Objects", "pending"),
    DEPLOYMENT: ("Deployment web", "because kubectl updated"),
    f"{DEPLOYMENT}&tab=children": ("Deployment web", "Owner tree"),
    f"{DEPLOYMENT}&tab=fields": ("Deployment web", "replicas: 3"),
    f"{DEPLOYMENT}&tab=writes": ("Deployment web", "spec.template.spec.containers[0].image"),
    f"{DEPLOYMENT}&tab=events": ("Deployment web", "BackOff"),
    f"{DEPLOYMENT}&tab=conditions": ("Deployment web", "MinimumReplicas"),
    f"{BUCKET}&tab=deletion": ("Bucket photos", "is removed by"),
    f"pods?{POD}": ("Pods", "GET /index.html"),
    f"pods?{POD}&view=usage": ("Pods", "Working set"),
    "scheduler?namespace=default&name=pending": ("Scheduler", "NodeResourcesFit"),
    "nodes?name=node-1": ("Nodes", "1 of 110"),
    "alarms": ("Alarms", "flips between"),
}


def show(page: Page, server: Played, view: str, heading: str, text: str) -> None:
    page.goto(f"{server.address}#/{view}")
    expect(page.get_by_role("heading", level=1)).to_have_text(heading)
    expect(page.get_by_text(text).first).to_be_visible()


# Rules that depend on colours are checked in both themes, the others once.
RULES = {
    "light": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"],
    "dark": ["color-contrast", "link-in-text-block"],
}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_view_passes_the_accessibility_rules(page: Page, server: Played, theme: str) -> None:
    server.facts.nodes[1].update(pods=1)
    page.emulate_media(color_scheme="dark" if theme == "dark" else "light", reduced_motion="reduce")
    found: dict[str, list[str]] = {}
    where = "html"  # with the frame around the view, once
    for view, (heading, text) in VIEWS.items():
        show(page, server, view, heading, text)
        if where == "html":
            page.evaluate(AXE.read_text())
        for violation in page.evaluate(CHECK, [where, RULES[theme]])["violations"]:
            places = [node["html"][:200] for node in violation["nodes"][:3]]
            found.setdefault(view, []).append(f"{violation['id']}: {violation['help']}: {places}")
        where = "main"
    assert found == {}


def test_names_messages_and_logs_with_markup_stay_text(page: Page, server: Played) -> None:
    server.facts.message = HOSTILE
    for view, (heading, text) in VIEWS.items():
        if view.startswith("nodes"):
            continue
        show(page, server, view, heading, text)
        assert page.locator("img").count() == 1, view  # that of the brand
        assert "pwned" not in page.title()
    page.goto(f"{server.address}#/alarms")
    expect(page.get_by_text(HOSTILE).first).to_be_visible()
    page.goto(f"{server.address}#/objects")
    expect(page.get_by_role("treeitem", name=f"ConfigMap {HOSTILE}")).to_be_visible()


def test_slash_searches_and_enter_opens_what_was_found(page: Page, server: Played) -> None:
    show(page, server, "overview", "Overview", "Why did it change?")
    page.keyboard.press("/")
    page.keyboard.type("deployment web"[:10])
    expect(page.get_by_role("option").first).to_contain_text("web")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Deployment web")


def test_question_mark_shows_the_keys_and_g_goes_to_a_view(page: Page, server: Played) -> None:
    show(page, server, "overview", "Overview", "Why did it change?")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    page.keyboard.press("g")
    page.keyboard.press("n")
    expect(page.get_by_role("heading", level=1)).to_have_text("Nodes")
    expect(page.get_by_role("heading", level=1)).to_be_focused()


def test_arrow_keys_walk_fold_and_open_the_tree(page: Page, server: Played) -> None:
    show(page, server, "objects", "Objects", "pending")
    tree = page.get_by_role("tree")
    tree.focus()
    selected = page.locator("[role=treeitem][aria-selected=true]")
    for key, name in [
        ("ArrowDown", "Deployment web"), ("ArrowRight", "ReplicaSet web"), ("ArrowRight", "Pod web"),
        ("ArrowLeft", "ReplicaSet web"),
    ]:  # fmt: skip
        page.keyboard.press(key)
        expect(selected).to_have_attribute("aria-label", re.compile(name))
    page.keyboard.press("ArrowLeft")
    expect(selected).to_have_attribute("aria-expanded", "false")
    expect(page.get_by_role("treeitem", name="Pod web")).to_have_count(0)
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("Deployment web")


def test_every_link_of_the_menu_is_reached_with_the_keyboard(page: Page, server: Played) -> None:
    show(page, server, "overview", "Overview", "Why did it change?")
    reached = []
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.append(page.evaluate("() => document.activeElement.textContent"))
    menu = ["Overview", "Loop", "Controllers", "Objects", "Pods", "Scheduler", "Nodes"]
    assert [name for name in reached if name in menu] == menu


def test_a_lost_connection_is_said_and_restored(page: Page, server: Played) -> None:
    show(page, server, "overview", "Overview", "Why did it change?")
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()
    server.stop()
    expect(page.get_by_role("alert")).to_contain_text("Connection lost, retrying")
    expect(page.get_by_role("region", name="Which controller is behind?")).to_contain_text(
        "buckets"
    )  # the last known state
    server.start()
    expect(page.get_by_role("status").filter(has_text="Live")).to_be_visible()
    expect(page.get_by_role("alert")).to_have_count(0)


def test_a_browser_without_access_is_told_so(page: Page, server: Played) -> None:
    page.route("**/api/**", lambda route: route.fulfill(status=401, json={"error": "no cookie"}))
    page.goto(server.address)
    expect(page.get_by_role("heading", level=1)).to_have_text("This browser has no access")


def test_kinds_that_the_process_may_not_see_are_named(page: Page) -> None:
    facts = Facts(mode="operator")
    facts.denied = [{"what": "secrets", "why": "list of secrets is forbidden at the cluster scope"}]
    with played(facts) as server:
        show(page, server, "alarms", "Alarms", "Not visible to this page: secrets")
        expect(page.get_by_role("region", name="Not visible")).to_contain_text("forbidden at the cluster scope")


def test_new_alarms_are_announced_and_counted_in_the_menu(page: Page, server: Played) -> None:
    show(page, server, "overview", "Overview", "Why did it change?")
    expect(page.get_by_role("navigation").get_by_label("2 alarms")).to_be_visible()
    expect(page.locator("#announcements[aria-live=polite]")).to_contain_text(
        "Bucket default/photos was written 60 times"
    )


def test_the_slider_goes_back_and_live_returns(page: Page, server: Played) -> None:
    show(page, server, "loop", "Loop", "Latest writes")
    slider = page.get_by_role("slider", name="Time shown")
    expect(slider).to_have_attribute("aria-valuetext", "live")
    page.get_by_role("button", name="Previous write").click()
    expect(page.get_by_role("region", name="Writes before")).to_be_visible()
    before = slider.get_attribute("aria-valuetext")
    slider.focus()
    page.keyboard.press("Home")
    expect(slider).not_to_have_attribute("aria-valuetext", before or "")
    page.get_by_role("button", name="Next write").click()
    page.get_by_role("button", name="Play").click()
    expect(page.get_by_role("button", name="Pause")).to_be_visible()
    page.get_by_role("button", name="Live", exact=True).click()
    expect(slider).to_have_attribute("aria-valuetext", "live")


def test_the_slider_shows_the_alarms_of_that_time(page: Page) -> None:
    facts = Facts()
    alarm = {**facts.alarms()[0], "message": "an alarm of the past"}
    facts.recorded[20]["alarms"] = [alarm]
    facts.recorded[40]["alarms"] = []
    with played(facts) as server:
        show(page, server, "loop", "Loop", "Latest writes")
        page.get_by_role("button", name="Previous write").click()
        slider, alarms = page.get_by_role("slider", name="Time shown"), page.get_by_role("region", name="Alarms at")
        for at, count in ((10, 0), (30, 1), (50, 0)):
            slider.fill(str(round(facts.recorded[at]["at"], 1)))
            expect(alarms).to_have_count(count)
            if count:
                expect(alarms).to_contain_text("an alarm of the past")


def test_the_theme_is_chosen_and_kept(page: Page, server: Played) -> None:
    show(page, server, "overview", "Overview", "Why did it change?")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(ground)
    for name in ("System", "Light"):
        page.get_by_role("button", name=f"Theme: {name}").click()
    assert page.evaluate(ground) != light
    page.reload()
    expect(page.get_by_role("button", name="Theme: Dark")).to_be_visible()


def test_a_shell_types_and_shows_what_the_container_answers(page: Page, server: Played) -> None:
    show(page, server, f"pods?{POD}&view=shell", "Pods", "connected")
    page.keyboard.type("echo hello")
    expect(page.locator(".xterm-rows")).to_contain_text("echo hello")


def test_without_writes_there_is_neither_a_shell_nor_a_button_to_delete(page: Page) -> None:
    facts = Facts()
    facts.writes = False
    with played(facts) as server:
        show(page, server, f"pods?{POD}&view=shell", "Pods", "This page is read-only")
        show(page, server, DEPLOYMENT, "Deployment web", "because kubectl updated")
        expect(page.get_by_role("button", name="Delete")).to_have_count(0)

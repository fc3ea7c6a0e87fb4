"""The page in Debian's chromium, driven by playwright.

- `OSTINATO_CHROMIUM` names another binary; without any, these tests are skipped.
- `OSTINATO_BROWSER_ARTEFACTS` is the directory that keeps the screenshots, a temporary one by default.
- A test fails at an error of a script, also at what the Content-Security-Policy refuses.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

playwright = pytest.importorskip("playwright.sync_api")

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright  # noqa: E402

from .facts import Facts  # noqa: E402
from .played import Played, played  # noqa: E402

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
NAMES = ("chromium", "chromium-browser", "google-chrome")
expect.set_options(timeout=30_000)  # milliseconds; other tests use the same cores


def chromium() -> str | None:
    return os.environ.get("OSTINATO_CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A browser for the tests of this directory: while playwright is open, this thread can run no other event loop."""
    binary = chromium()
    if binary is None:
        pytest.skip("no chromium; `apt-get install chromium`, or name one in OSTINATO_CHROMIUM")
    with sync_playwright() as driver:
        launched = driver.chromium.launch(executable_path=binary, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    opened = browser.new_context(viewport={"width": 1440, "height": 900}, color_scheme="light")
    opened.set_default_timeout(15_000)
    yield opened
    opened.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A tab; errors of scripts and refusals of the Content-Security-Policy fail the test."""
    opened = context.new_page()
    errors: list[str] = []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    opened.on("console", lambda message: errors.append(message.text) if is_error(message.type, message.text) else None)
    yield opened
    assert errors == []


def is_error(kind: str, text: str) -> bool:
    """Whether a message of the console is an error of the page; failed requests are, on purpose, part of some tests."""
    return kind == "error" and "Failed to load resource" not in text and "net::ERR_" not in text


@pytest.fixture(scope="session")
def artefacts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    named = os.environ.get("OSTINATO_BROWSER_ARTEFACTS")
    directory = Path(named) if named else tmp_path_factory.mktemp("screenshots")
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@pytest.fixture
def screenshot(page: Page, artefacts: Path) -> Callable[[str], Path]:
    def take(name: str) -> Path:
        path = artefacts / f"{name}.png"
        page.screenshot(path=path)
        return path

    return take


@pytest.fixture
def server() -> Iterator[Played]:
    with played(Facts()) as running:
        yield running

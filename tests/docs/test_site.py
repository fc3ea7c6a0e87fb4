"""The site: its navigation is that of the index pages, and links to files outside `docs/` lead to pages."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT


@pytest.fixture(autouse=True)
def scripts(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The scripts of the site are modules of their own directory, as for MkDocs."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts" / "site"))
    yield
    for name in ("navigation", "outside", "api_pages"):
        sys.modules.pop(name, None)


def test_headings_of_an_index_group_its_pages(tmp_path: Path) -> None:
    from navigation import SECTIONS, navigation

    for folder in SECTIONS:
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "index.md").write_text("# Title\n\n1. [One](1.md)\n\n## More\n\n- [`Two`](2.md): text\n")
    (tutorial,) = [each for each in navigation(tmp_path) if isinstance(each, dict) and "Tutorial" in each]
    assert tutorial == {
        "Tutorial": ["tutorial/index.md", {"One": "tutorial/1.md"}, {"More": [{"Two": "tutorial/2.md"}]}],
    }


@pytest.mark.parametrize(
    ("page", "link", "becomes"),
    [
        ("how-to/a.md", "../../examples/widget.py", "../source/examples/widget.py.md"),
        ("index.md", "../examples/", "source/examples.md"),
        ("how-to/a.md", "../../SECURITY.md#scope", "../source/SECURITY.md#scope"),
        ("how-to/a.md", "connect.md#proxies", "connect.md#proxies"),
        ("how-to/a.md", "https://example.dev/a.md", "https://example.dev/a.md"),
        ("how-to/a.md", "nowhere.md", "nowhere.md"),
        ("source/SECURITY.md", "docs/concepts/security.md", "../concepts/security.md"),
    ],
)
def test_links_to_files_outside_lead_to_pages(page: str, link: str, becomes: str) -> None:
    from outside import rewritten

    assert rewritten(f"see [it]({link}).", page)[0] == f"see [it]({becomes})."


def test_links_in_code_are_not_changed() -> None:
    from outside import rewritten

    text = "```text\n[it](../../examples/widget.py)\n```\n"
    assert rewritten(text, "how-to/a.md") == (text, [])


def test_every_public_module_has_a_page_with_its_names() -> None:
    from api_pages import MODULES, module_page

    page = module_page("ostinato.queue")
    assert "## `WorkQueue`" in page
    assert {"ostinato", "ostinato.testing", "ostinato.client"} <= set(MODULES)

"""The navigation of the site, from the index pages: each lists its pages, in order, under headings if they are many."""

from __future__ import annotations

import re
from pathlib import Path

from api_pages import MODULES, page_name

SECTIONS = {
    "tutorial": "Tutorial",
    "how-to": "How-to",
    "examples": "Examples",
    "concepts": "Concepts",
    "reference": "Reference",
    "dev": "Development",
}

Entry = dict[str, "str | list[Entry]"] | str

_ITEM = re.compile(r"^(?:- |\d+\. |\| )\[(?P<title>[^\]]+)\]\((?P<target>[^)#:]+\.md)\)")
_HEADING = re.compile(r"^## (?P<title>.+)$")


def navigation(docs: Path) -> list[Entry]:
    """Return the value of `nav`: the sections, and in each the pages that its index lists."""
    made: list[Entry] = [{"Home": "index.md"}]
    for folder, title in SECTIONS.items():
        made.append({title: [f"{folder}/index.md", *_listed(docs / folder / "index.md", folder)]})
    made.insert(-1, {"Performance": "performance.md"})
    return made


def _listed(index: Path, folder: str) -> list[Entry]:
    entries: list[Entry] = []
    group: list[Entry] = entries
    pending = ""
    for line in index.read_text(encoding="utf-8").splitlines():
        if heading := _HEADING.match(line):
            pending = heading["title"]
        elif item := _ITEM.match(line):
            if pending:
                group = []
                entries.append({pending: group})
                pending = ""
            group.append({item["title"].replace("`", ""): f"{folder}/{item['target']}"})
    if folder == "reference":
        entries.append({"Python modules": ["reference/python/index.md", *(page_name(name) for name in MODULES)]})
    return entries

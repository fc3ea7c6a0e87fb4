"""The architecture page names files that exist, and packages that are all of them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "ostinato"
TEXT = (ROOT / "docs" / "dev" / "architecture.md").read_text()


def test_every_file_that_the_page_names_exists() -> None:
    named = re.findall(r"`([\w/]+/\w+\.py)`", TEXT)
    assert len(named) > 50
    missing = [name for name in named if not (SOURCE / name).is_file() and not (ROOT / name).is_file()]
    assert missing == []


def test_the_page_lists_every_package() -> None:
    table = TEXT.split("| package | contains |")[1].split("## Walk 1")[0]
    listed = set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE))
    packages = {path.parent.name for path in SOURCE.glob("*/__init__.py")}
    assert listed == packages


def test_there_are_ten_questions() -> None:
    questions = re.findall(r"^\| [^|]+\? \|", TEXT.split("## Ten questions")[1], re.MULTILINE)
    assert len(questions) == 10

"""Every numbered behaviour of client-go's cache is tested, or it is said why not."""

from __future__ import annotations

import re
from pathlib import Path

HERE = Path(__file__).parent
ITEMS = {*range(1, 117), *range(233, 239)}


def test_no_item_is_forgotten() -> None:
    tested: set[int] = set()
    for path in HERE.glob("test_*.py"):
        for comment in re.findall(r"# (\d[\d, ]*)$", path.read_text(), re.MULTILINE):
            tested |= {int(number) for number in comment.split(",")}
    rows = re.findall(r"^\| ([\d, ]+) \|", (HERE / "ITEMS.md").read_text(), re.MULTILINE)
    explained = {int(number) for row in rows for number in row.split(",")}
    assert sorted(ITEMS - tested - explained) == []

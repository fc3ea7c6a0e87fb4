"""The page about known vulnerabilities names the files that hold the tests, and these name the vulnerabilities."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "dev" / "vulnerabilities.md").read_text().split("## Not applicable")[0].splitlines()
    if line.startswith(("| CVE", "| GHSA"))
]


def test_every_vulnerability_that_applies_has_a_test_in_the_files_that_the_page_names() -> None:
    assert len(ROWS) > 25
    for names, _, tests in ROWS:
        files = re.findall(r"`(tests/[^`]+)`", tests)
        assert files, names
        texts = [(ROOT / file).read_text().lower().replace("-", "_") for file in files]
        known = [name for name in names.split(", ") if name.lower().replace("-", "_") in "".join(texts)]
        shown = re.findall(r"\(`(cve_[0-9_]+)`\)", tests)  # one test for several vulnerabilities
        assert known == names.split(", ") or all(name in "".join(texts) for name in shown or ["?"]), (names, known)
        assert all(any(name.lower().replace("-", "_") in text for name in names.split(", ")) for text in texts), names

"""What the README shows is true."""

from __future__ import annotations

import json
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()


def test_the_controller_in_the_readme_is_that_of_the_example() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    assert code in (ROOT / "examples" / "widget.py").read_text()


def test_the_counts_in_the_readme_are_reached() -> None:
    counts = json.loads((ROOT / "tests" / "contract" / "counts.json").read_text())
    *recorded, conformance = [
        int(number.replace(",", "")) for number in re.findall(r"\| ([\d,]+) of [\d,]+ \|", README)
    ]
    for prefix, number in zip(("api/", "kubectl", "plane"), recorded, strict=True):
        assert sum(equal for name, (equal, _) in counts.items() if name.startswith(prefix)) >= number, prefix
    results = json.loads((ROOT / "tests" / "conformance" / "results.json").read_text())
    assert results["containerd"]["passed"] == conformance

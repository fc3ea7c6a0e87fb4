"""The pages about custom resources: their code runs, and they leave no marker out."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ostinato.api import markers

DOCS = Path(__file__).parents[3] / "docs"


def test_the_code_of_the_page_runs(capsys: pytest.CaptureFixture[str]) -> None:
    page = (DOCS / "how-to" / "write-a-custom-resource.md").read_text()
    module: Any = ModuleType("page")
    sys.modules["page"] = module
    try:
        for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
            exec(block, module.__dict__)
    finally:
        del sys.modules["page"]
    told = capsys.readouterr().out
    assert told.startswith("widgets.example.dev\n")
    assert "class WidgetSpec(Struct):" in told


def test_the_reference_names_every_marker() -> None:
    page = (DOCS / "reference" / "markers.md").read_text()
    functions = {"Marker", "add_to", "combined_schema", "markers_on"}
    assert [name for name in markers.__all__ if name not in functions and not re.search(rf"\b{name}\b", page)] == []

"""The reference of markers leaves no marker out."""

from __future__ import annotations

import re
from pathlib import Path

from ostinato.api import markers

DOCS = Path(__file__).parents[3] / "docs"


def test_the_reference_names_every_marker() -> None:
    page = (DOCS / "reference" / "markers.md").read_text()
    functions = {"Marker", "add_to", "combined_schema", "markers_on"}
    assert [name for name in markers.__all__ if name not in functions and not re.search(rf"\b{name}\b", page)] == []

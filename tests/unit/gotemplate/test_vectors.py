"""What Go's text/template prints, or says is wrong, recorded: byte for byte."""

from __future__ import annotations

from tests.unit.gotemplate.replay import VECTORS, differences, read, report


def test_templates_give_what_go_gives() -> None:
    data, vectors = read(VECTORS / "language.jsonl")
    assert len(vectors) >= 2_800
    assert sum("e" in vector for vector in vectors) >= 1_000
    found = differences(vectors, data)
    assert not found, report(found[:20])

from __future__ import annotations

from collections.abc import Iterator

from ostinato.metrics import Family, Registry, gauge


def one(name: str, value: float, **labels: str) -> Family:
    return gauge(name, "Help.", value, labels)


def test_families_are_sorted_by_name_and_merged() -> None:
    registry = Registry()
    registry.add(lambda: [one("b", 1, x="1"), one("a", 2.5)])
    registry.add(lambda: [one("b", 3, x="2")])
    assert registry.text() == (
        '# HELP a Help.\n# TYPE a gauge\na 2.5\n# HELP b Help.\n# TYPE b gauge\nb{x="1"} 1\nb{x="2"} 3\n'
    )
    assert registry.text() == registry.text(), "a scrape changes nothing"


def test_families_can_be_removed() -> None:
    registry = Registry()

    def families() -> list[Family]:
        return [one("a", 1)]

    registry.add(families)
    registry.add(families)
    assert registry.text().count("a 1\n") == 1
    registry.remove(families)
    registry.remove(families)
    assert registry.text() == ""


def test_a_source_that_raises_loses_only_its_own_metrics() -> None:
    def broken() -> Iterator[Family]:
        yield one("lost", 1)
        raise RuntimeError("broken")

    registry = Registry()
    registry.add(broken)
    registry.add(lambda: [one("a", 1)])
    assert registry.text().endswith("a 1\n")
    assert "lost" not in registry.text()

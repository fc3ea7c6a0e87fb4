"""Registry: collects the metrics of several components for one scrape.

- A component registers a function; it is called on every scrape. Nothing is cached.
- Families of the same name, from several controllers for instance, are merged.
- A function that raises loses its own metrics; the others are reported.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from ostinato.metrics import exposition
from ostinato.metrics.families import Families, Family

_logger = logging.getLogger("ostinato.metrics")


class Registry:
    def __init__(self) -> None:
        self._sources: list[Families] = []

    def add(self, families: Families) -> None:
        """Report these metrics from now on. A function that is already registered is not added again."""
        if families not in self._sources:
            self._sources.append(families)

    def remove(self, families: Families) -> None:
        """Stop reporting these metrics. No error if they are not registered."""
        if families in self._sources:
            self._sources.remove(families)

    def collect(self) -> list[Family]:
        """Return all current metrics, sorted by name."""
        found: dict[str, Family] = {}
        for source in self._sources:
            for family in _collected(source):
                known = found.get(family.name)
                if known is None:
                    found[family.name] = family._replace(samples=list(family.samples))
                else:
                    known.samples.extend(family.samples)
        return [found[name] for name in sorted(found)]

    def text(self) -> str:
        """Return all current metrics in the Prometheus text format."""
        return exposition.text(self.collect())


def _collected(source: Families) -> Iterable[Family]:
    try:
        return list(source())
    except Exception:
        _logger.exception("collecting metrics failed source=%r", source)
        return []

"""The data model of Prometheus: a metric family and its samples."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal, NamedTuple


class Sample(NamedTuple):
    """One line of the text format: `name{labels} value [timestamp]`."""

    name: str
    labels: Mapping[str, str]
    value: float
    timestamp: int | None = None  # milliseconds since the epoch; None is the time of the scrape


class Family(NamedTuple):
    """All samples of one metric."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    samples: list[Sample]


Families = Callable[[], Iterable[Family]]
"""Returns the current metrics of a component. Called on every scrape."""


def counter(name: str, help_text: str, value: float, labels: Mapping[str, str] | None = None) -> Family:
    """Return a counter with one sample."""
    return Family(name, "counter", help_text, [Sample(name, labels or {}, value)])


def gauge(name: str, help_text: str, value: float, labels: Mapping[str, str] | None = None) -> Family:
    """Return a gauge with one sample."""
    return Family(name, "gauge", help_text, [Sample(name, labels or {}, value)])

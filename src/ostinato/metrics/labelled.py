"""Counters and histograms by label values, as Prometheus' CounterVec and HistogramVec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ostinato.metrics.families import Family, Sample
from ostinato.metrics.histogram import Histogram

_Values = tuple[str, ...]  # of labels


class Description(NamedTuple):
    """The help text of a metric and, for a histogram, the bounds of its buckets."""

    help: str
    bounds: tuple[float, ...] = ()


class LabelledMetrics:
    """Counters and histograms that are created when first used.

    A metric must have the same labels, in the same order, in every call.
    """

    def __init__(self, descriptions: Mapping[str, Description]) -> None:
        """`descriptions`: by metric name. A metric without one has its name as help text."""
        self._descriptions = descriptions
        self._labels: dict[str, tuple[str, ...]] = {}  # label names of each metric
        self._counts: dict[str, dict[_Values, int]] = {}
        self._histograms: dict[str, dict[_Values, Histogram]] = {}

    def count(self, name: str, labels: Mapping[str, str]) -> None:
        """Increment a counter."""
        series, values = self._counts.get(name), tuple(labels.values())
        if series is None:
            self._labels[name] = tuple(labels)
            series = self._counts[name] = {}
        series[values] = series.get(values, 0) + 1

    def observe(self, name: str, value: float, labels: Mapping[str, str]) -> None:
        """Add an observation to a histogram."""
        series, values = self._histograms.get(name), tuple(labels.values())
        if series is None:
            self._labels[name] = tuple(labels)
            series = self._histograms[name] = {}
        histogram = series.get(values)
        if histogram is None:
            histogram = series[values] = Histogram(self._description(name).bounds)
        histogram.observe(value)

    def families(self) -> Iterator[Family]:
        for name, counts in list(self._counts.items()):
            found = [Sample(name, self._labelled(name, values), n) for values, n in list(counts.items())]
            yield Family(name, "counter", self._description(name).help, found)
        for name, series in list(self._histograms.items()):
            histograms = [(self._labelled(name, values), each) for values, each in list(series.items())]
            samples = [sample for labels, each in histograms for sample in each.samples(name, labels)]
            yield Family(name, "histogram", self._description(name).help, samples)

    def _description(self, name: str) -> Description:
        return self._descriptions.get(name) or Description(name)

    def _labelled(self, name: str, values: _Values) -> dict[str, str]:
        return dict(zip(self._labels[name], values, strict=True))

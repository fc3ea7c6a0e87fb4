"""The registry: where all metrics of a manager come together to be shown.

- Whoever has metrics gives a function; it is called when somebody looks. Nothing is copied in between.
- Metrics of the same name, of several controllers for instance, are shown as one.
- A function that fails costs its own metrics, not those of the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from ostinato.cache.informers import Informers
from ostinato.cache.metrics import OBJECTS, PROCESSING_LATENCY, QUEUED_ITEMS, STORE_VERSION, Gauge
from ostinato.client.transport import metrics as client
from ostinato.controllers.runnable import Families
from ostinato.manager.metrics import exposition
from ostinato.queue import Family, Sample
from ostinato.queue.metrics import Histogram

_logger = logging.getLogger("ostinato.manager")

_SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_BYTES: Final = (64.0, 256.0, 512.0, 1024.0, *(4.0**power for power in range(6, 13)))
_SHORT: Final = (0.00001, 0.0001, 0.001, 0.01, 0.1, 1.0, 10.0)

# What is told as it happens: what it is and, for a histogram, its bounds.
_TOLD: Final[Mapping[str, tuple[str, tuple[float, ...]]]] = {
    client.REQUESTS: ("Number of HTTP requests, partitioned by status code, method, and host.", ()),
    client.RETRIES: ("Number of request retries, partitioned by status code, verb, and host.", ()),
    client.TRANSPORTS: ("Number of connection pools made, by what came of it.", ()),
    client.EXEC_CALLS: ("Number of runs of a credential plugin, by how they ended.", ()),
    client.DURATION: ("Request latency in seconds. Broken down by verb and host.", _SECONDS),
    client.RATE_LIMITER: ("Client side rate limiter latency in seconds. Broken down by verb and host.", _SECONDS),
    client.REQUEST_SIZE: ("Request size in bytes. Broken down by verb and host.", _BYTES),
    client.RESPONSE_SIZE: ("Response size in bytes. Broken down by verb and host.", _BYTES),
    client.DNS: ("DNS resolver latency in seconds. Broken down by host.", _SECONDS),
    PROCESSING_LATENCY: ("How long a batch takes from the server into the store and to the handlers.", _SHORT),
}

_Values = tuple[str, ...]  # of labels

# What caches are asked for: what it is, and how that of several caches of a kind is one number.
_GAUGES: Final[Mapping[str, tuple[str, Callable[[list[float]], float]]]] = {
    QUEUED_ITEMS: ("What came from the server and is not in the store yet.", sum),
    STORE_VERSION: ("The resource version of the store, its last 15 digits.", min),
    OBJECTS: ("How many objects are in the store.", sum),
}


class Registry:
    """The metrics of one manager. A `Metrics` of surroundings."""

    def __init__(self) -> None:
        self._sources: list[Families] = []

    def add(self, families: Families) -> None:
        """Show these metrics from now on."""
        if families not in self._sources:
            self._sources.append(families)

    def remove(self, families: Families) -> None:
        """Show them no longer. Harmless when they are not shown."""
        if families in self._sources:
            self._sources.remove(families)

    def collect(self) -> list[Family]:
        """All metrics as they are now, by name."""
        found: dict[str, Family] = {}
        for source in self._sources:
            for family in _safely(source):
                known = found.get(family.name)
                if known is None:
                    found[family.name] = family._replace(samples=list(family.samples))
                else:
                    known.samples.extend(family.samples)
        return [found[name] for name in sorted(found)]

    def text(self) -> str:
        """All metrics, as Prometheus reads them."""
        return exposition.text(self.collect())


class Tallies:
    """Keeps what clients and caches tell as it happens: their `ClientMetrics` and `CacheMetrics`.

    A metric has the same labels, in the same order, whenever it is told.
    """

    def __init__(self) -> None:
        self._labels: dict[str, tuple[str, ...]] = {}  # the names of the labels of each metric
        self._counts: dict[str, dict[_Values, int]] = {}
        self._histograms: dict[str, dict[_Values, Histogram]] = {}

    def count(self, name: str, labels: Mapping[str, str]) -> None:
        """One more."""
        series, values = self._counts.get(name), tuple(labels.values())
        if series is None:
            self._labels[name] = tuple(labels)
            series = self._counts[name] = {}
        series[values] = series.get(values, 0) + 1

    def observe(self, name: str, value: float, labels: Mapping[str, str]) -> None:
        """One more, that took or weighed so much."""
        series, values = self._histograms.get(name), tuple(labels.values())
        if series is None:
            self._labels[name] = tuple(labels)
            series = self._histograms[name] = {}
        histogram = series.get(values)
        if histogram is None:
            histogram = series[values] = Histogram(_TOLD.get(name, ("", ()))[1])
        histogram.observe(value)

    def families(self) -> Iterator[Family]:
        for name, counts in list(self._counts.items()):
            found = [Sample(name, self._labelled(name, values), n) for values, n in list(counts.items())]
            yield Family(name, "counter", _help(name), found)
        for name, series in list(self._histograms.items()):
            histograms = [(self._labelled(name, values), each) for values, each in list(series.items())]
            samples = [sample for labels, each in histograms for sample in each.samples(name, labels)]
            yield Family(name, "histogram", _help(name), samples)

    def _labelled(self, name: str, values: _Values) -> dict[str, str]:
        return dict(zip(self._labels[name], values, strict=True))


def _help(name: str) -> str:
    return _TOLD.get(name, (name,))[0]


def cache_families(informers: Informers) -> Iterator[Family]:
    """What the caches hold and wait for, now; those of one kind, in several namespaces for instance, as one."""
    gauges = [gauge for informer in informers.all() for feed in informer.feeds for gauge in feed.gauges()]
    for name, (text, joined) in _GAUGES.items():
        found: dict[_Values, list[Gauge]] = {}
        for gauge in gauges:
            if gauge.name == name:
                found.setdefault(tuple(gauge.labels.values()), []).append(gauge)
        if found:
            samples = [Sample(name, same[0].labels, joined([each.value for each in same])) for same in found.values()]
            yield Family(name, "gauge", text, samples)


def _safely(source: Families) -> Iterable[Family]:
    try:
        return list(source())
    except Exception:
        _logger.exception("metrics cannot be read")
        return []

"""Metrics that a manager adds to those of its controllers: clients, caches and the process."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from ostinato.cache.informers import Informers
from ostinato.cache.metrics import OBJECTS, PROCESSING_LATENCY, QUEUED_ITEMS, STORE_VERSION
from ostinato.client.transport import metrics as client
from ostinato.client.unreadable import UnreadableObjects
from ostinato.metrics import Description, Family, LabelledMetrics, Sample

UNREADABLE: Final = "ostinato_unreadable_objects_total"

_SECONDS: Final = (0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0)
_BYTES: Final = (64.0, 256.0, 512.0, 1024.0, *(4.0**power for power in range(6, 13)))
_LATENCIES: Final = (0.00001, 0.0001, 0.001, 0.01, 0.1, 1.0, 10.0)

_DESCRIPTIONS: Final[Mapping[str, Description]] = {
    client.REQUESTS: Description("Number of HTTP requests, partitioned by status code, method, and host."),
    client.RETRIES: Description("Number of request retries, partitioned by status code, verb, and host."),
    client.TRANSPORTS: Description("Number of connection pools created, partitioned by result."),
    client.EXEC_CALLS: Description("Number of calls to an exec credential plugin, partitioned by status."),
    client.DURATION: Description("Request latency in seconds. Broken down by verb and host.", _SECONDS),
    client.RATE_LIMITER: Description(
        "Client side rate limiter latency in seconds. Broken down by verb and host.", _SECONDS
    ),
    client.REQUEST_SIZE: Description("Request size in bytes. Broken down by verb and host.", _BYTES),
    client.RESPONSE_SIZE: Description("Response size in bytes. Broken down by verb and host.", _BYTES),
    client.DNS: Description("DNS resolver latency in seconds. Broken down by host.", _SECONDS),
    PROCESSING_LATENCY: Description("Time from reading a batch to calling the event handlers.", _LATENCIES),
}

# Help text, and how the gauges of several informers of one kind are merged.
_CACHE_GAUGES: Final[Mapping[str, tuple[str, Callable[[list[float]], float]]]] = {
    QUEUED_ITEMS: ("Number of items received from the server and not yet in the store.", sum),
    STORE_VERSION: ("resourceVersion of the store, its last 15 digits.", min),
    OBJECTS: ("Number of objects in the store.", sum),
}


def request_metrics() -> LabelledMetrics:
    """Return the metrics of clients and reflectors: a `ClientMetrics` and a `CacheMetrics`."""
    return LabelledMetrics(_DESCRIPTIONS)


def unreadable_families(unreadable: UnreadableObjects) -> Iterator[Family]:
    """Return the counter of objects that lists and watches skipped."""
    samples = [
        Sample(UNREADABLE, {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}, count)
        for gvk, count in unreadable.counts.items()
    ]
    if samples:
        yield Family(UNREADABLE, "counter", "Number of objects that could not be decoded and were skipped.", samples)


def cache_families(informers: Informers) -> Iterator[Family]:
    """Return the gauges of the caches. Informers of one kind, for several namespaces for instance, are merged."""
    gauges = [gauge for informer in informers.all() for feed in informer.feeds for gauge in feed.gauges()]
    for name, (text, merge) in _CACHE_GAUGES.items():
        found: dict[tuple[str, ...], list[Sample]] = {}
        for gauge in gauges:
            if gauge.name == name:
                found.setdefault(tuple(gauge.labels.values()), []).append(gauge)
        if found:
            samples = [Sample(name, same[0].labels, merge([each.value for each in same])) for same in found.values()]
            yield Family(name, "gauge", text, samples)

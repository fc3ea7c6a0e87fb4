"""Metrics of the server, in the Prometheus text format.

Names and labels are those of kube-apiserver, so that its dashboards and alerts work. Label values are served verbs and
resources, never text from a client: the number of series is bounded.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from ostinato.metrics import Families, Family, Histogram, Sample, exposition, gauge
from ostinato.server.request.route import Route
from ostinato.server.resources.resource import Resource

_BOUNDS = (0.005, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60)
_VERBS = {
    "get": "GET",
    "list": "LIST",
    "watch": "WATCH",
    "create": "POST",
    "update": "PUT",
    "patch": "PATCH",
    "delete": "DELETE",
    "deletecollection": "DELETECOLLECTION",
}
_READING = frozenset({"GET", "HEAD"})
_TOTAL = "apiserver_request_total"
_DURATION = "apiserver_request_duration_seconds"
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})

_Request = tuple[str, str, str, str, str, str]  # verb, group, version, resource, subresource, scope


class _Series:
    """The requests of one verb, resource and scope."""

    __slots__ = ("codes", "duration")

    def __init__(self) -> None:
        self.codes: dict[int, int] = {}
        self.duration = Histogram(_BOUNDS)


class Metrics:
    """The counters of one server."""

    def __init__(self, started: float, *more: Families) -> None:
        """`started`: the wall time. `more`: further metrics."""
        self._started = started
        self._more = more
        self._requests: dict[_Request, _Series] = {}
        self._inflight = {"mutating": 0, "readOnly": 0}

    def inflight(self, reading: bool) -> int:
        """The number of requests in flight."""
        return self._inflight["readOnly" if reading else "mutating"]

    def begin(self, method: str) -> None:
        self._inflight["readOnly" if method in _READING else "mutating"] += 1

    def end(self, method: str, route: Route | None, code: int, seconds: float) -> None:
        """Record the end of a request. `route` is set if the request matched a served resource."""
        self._inflight["readOnly" if method in _READING else "mutating"] -= 1
        self.count(method, route, code, seconds)

    def count(self, method: str, route: Route | None, code: int, seconds: float) -> None:
        """Record a request that was answered synchronously, and so was never in flight."""
        if route is None:
            key = (method if method in _METHODS else "other", "", "", "", "", "")
        else:
            scope = "resource" if route.name else "namespace" if route.namespace else "cluster"
            verb = _VERBS.get(route.verb, "other")
            key = (verb, route.group, route.version, route.resource, route.subresource, scope)
        series = self._requests.get(key)
        if series is None:
            series = self._requests[key] = _Series()
        series.codes[code] = series.codes.get(code, 0) + 1
        series.duration.observe(seconds)

    def text(self, resources: Iterable[Resource], version: str, names: Collection[str] = ()) -> str:
        """Return the metrics in the Prometheus text format. `names`: those that are wanted. Defaults to all."""
        return exposition.text(self._families(list(resources), version, names), names)

    def _families(self, resources: list[Resource], version: str, names: Collection[str]) -> Iterator[Family]:
        name = "apiserver_current_inflight_requests"
        inflight = [Sample(name, {"request_kind": kind}, number) for kind, number in self._inflight.items()]
        yield Family(name, "gauge", "Number of requests being processed.", inflight)
        if not names or not {_TOTAL, _DURATION}.isdisjoint(names):  # they have most of the series
            yield from self._of_requests()
        yield from _stored(resources)
        for families in self._more:
            yield from families()
        yield gauge("kubernetes_build_info", "The version that is served.", 1, {"git_version": version})
        yield gauge("process_start_time_seconds", "Start time of the server since the epoch.", self._started)

    def _of_requests(self) -> Iterator[Family]:
        requests = [(_labels(key), series) for key, series in self._requests.items()]
        totals = [
            Sample(_TOTAL, {**labels, "code": str(code)}, number)
            for labels, series in requests
            for code, number in series.codes.items()
        ]
        yield Family(_TOTAL, "counter", "Number of requests by code, verb and resource.", totals)
        durations = [sample for labels, series in requests for sample in series.duration.samples(_DURATION, labels)]
        yield Family(_DURATION, "histogram", "Response latency in seconds; of a watch, until it began.", durations)


def _labels(key: _Request) -> dict[str, str]:
    verb, group, version, resource, subresource, scope = key
    return {
        "component": "apiserver",
        "dry_run": "",
        "group": group,
        "resource": resource,
        "scope": scope,
        "subresource": subresource,
        "verb": verb,
        "version": version,
    }


def _stored(resources: list[Resource]) -> Iterator[Family]:
    """Return the number of stored objects and of watches of each resource."""
    stored = {each.collection.name: (each.gvr, each.collection) for each in resources if each.collection is not None}
    objects, watchers, events = (
        Family("apiserver_resource_objects", "gauge", "Number of stored objects.", []),
        Family("apiserver_registered_watchers", "gauge", "Number of open watches.", []),
        Family("apiserver_watch_events_total", "counter", "Number of events sent to watches.", []),
    )
    for gvr, collection in stored.values():
        labels = {"group": gvr.group, "resource": gvr.resource}
        objects.samples.append(Sample(objects.name, labels, len(collection.entries)))
        watchers.samples.append(Sample(watchers.name, labels, len(collection.hub)))
        events.samples.append(Sample(events.name, labels, collection.hub.sent))
    yield from (objects, watchers, events)

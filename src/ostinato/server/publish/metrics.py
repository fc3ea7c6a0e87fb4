"""Metrics: what the server counts of its work, in the text form of Prometheus.

The names and labels are those of kube-apiserver, so that its dashboards and alerts work. Only what the server knows
becomes a label, never what a client made up: the number of series is bounded by what is served.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator

from ostinato.server.request.route import Route
from ostinato.server.resources.resource import Resource

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

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
_METHODS = frozenset({"GET", "POST", "PUT", "PATCH", "DELETE"})

_What = tuple[str, str, str, str, str, str]  # verb, group, version, resource, subresource, scope


class _Series:
    """The requests of one sort."""

    __slots__ = ("buckets", "codes", "seconds")

    def __init__(self) -> None:
        self.codes: dict[int, int] = {}
        self.buckets = [0] * (len(_BOUNDS) + 1)
        self.seconds = 0.0


class Metrics:
    """The counters of one server."""

    def __init__(self, more: Callable[[], Iterator[str]] | None = None) -> None:
        """`more`: lines of what else is counted."""
        self._more = more
        self._requests: dict[_What, _Series] = {}
        self._inflight = {"mutating": 0, "readOnly": 0}

    def inflight(self, reading: bool) -> int:
        """How many requests are under way."""
        return self._inflight["readOnly" if reading else "mutating"]

    def begin(self, method: str) -> None:
        self._inflight["readOnly" if method in _READING else "mutating"] += 1

    def end(self, method: str, route: Route | None, code: int, seconds: float) -> None:
        """A request is answered. `route` is given if it asked for something that there is."""
        self._inflight["readOnly" if method in _READING else "mutating"] -= 1
        self.count(method, route, code, seconds)

    def count(self, method: str, route: Route | None, code: int, seconds: float) -> None:
        """The same for a request that was answered as soon as it came: nobody has seen it under way."""
        if route is None:
            what = (method if method in _METHODS else "other", "", "", "", "", "")
        else:
            scope = "resource" if route.name else "namespace" if route.namespace else "cluster"
            what = (_VERBS[route.verb], route.group, route.version, route.resource, route.subresource, scope)
        series = self._requests.get(what)
        if series is None:
            series = self._requests[what] = _Series()
        series.codes[code] = series.codes.get(code, 0) + 1
        series.buckets[bisect_left(_BOUNDS, seconds)] += 1
        series.seconds += seconds

    def text(self, resources: Iterable[Resource], version: str) -> str:
        """Everything, as Prometheus reads it."""
        return "".join(f"{line}\n" for line in self._lines(list(resources), version))

    def _lines(self, resources: list[Resource], version: str) -> Iterator[str]:
        yield from _head("apiserver_current_inflight_requests", "gauge", "Requests that are being answered.")
        for kind, number in self._inflight.items():
            yield f'apiserver_current_inflight_requests{{request_kind="{kind}"}} {number}'
        yield from _head("apiserver_request_total", "counter", "Requests that were answered.")
        for what, series in self._requests.items():
            for code, number in series.codes.items():
                yield f'apiserver_request_total{{code="{code}",{_labels(what)}}} {number}'
        name = "apiserver_request_duration_seconds"
        yield from _head(name, "histogram", "The time that answers took; of watches, until they began.")
        for what, series in self._requests.items():
            yield from _histogram(name, _labels(what), series)
        yield from _stored(resources)
        if self._more is not None:
            yield from self._more()
        yield from _head("kubernetes_build_info", "gauge", "The version that is served.")
        yield f'kubernetes_build_info{{git_version="{version}"}} 1'


def _head(name: str, kind: str, text: str) -> Iterator[str]:
    yield f"# HELP {name} {text}"
    yield f"# TYPE {name} {kind}"


def _labels(what: _What) -> str:
    verb, group, version, resource, subresource, scope = what
    return (
        f'component="apiserver",dry_run="",group="{group}",resource="{resource}",scope="{scope}",'
        f'subresource="{subresource}",verb="{verb}",version="{version}"'
    )


def _histogram(name: str, labels: str, series: _Series) -> Iterator[str]:
    total = 0
    for bound, number in zip((*_BOUNDS, "+Inf"), series.buckets, strict=True):
        total += number
        yield f'{name}_bucket{{{labels},le="{bound}"}} {total}'
    yield f"{name}_sum{{{labels}}} {series.seconds}"
    yield f"{name}_count{{{labels}}} {total}"


def _stored(resources: list[Resource]) -> Iterator[str]:
    """Of what is stored: how much there is and who watches it."""
    kept = {resource.collection.name: resource for resource in resources if resource.collection is not None}
    gauges = (
        ("apiserver_resource_objects", "gauge", "Objects that are stored.", lambda stored: len(stored.entries)),
        ("apiserver_registered_watchers", "gauge", "Watches under way.", lambda stored: len(stored.hub)),
        ("apiserver_watch_events_total", "counter", "Events sent to watches.", lambda stored: stored.hub.sent),
    )
    for name, kind, text, value in gauges:
        yield from _head(name, kind, text)
        for resource in kept.values():
            gvr = resource.gvr
            labels = f'group="{gvr.group}",resource="{gvr.resource}"'
            yield f"{name}{{{labels}}} {value(resource.collection)}"

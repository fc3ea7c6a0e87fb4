"""Work estimates: the seats of a request, with kube-apiserver's figures.

- A list takes one seat per 100 kB that it holds in memory at a time.
- A write takes one seat, and afterwards further seats for a while, for the watchers that receive its event.
- Everything else takes one seat.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from ostinato.server.request import Request
from ostinato.server.request.route import Route
from ostinato.server.resources.resource import Resource
from ostinato.server.store.collection import Collection

BYTES_PER_SEAT = 100_000
CACHED_BYTES = 1_000_000  # limit of a list from the watch cache, which is streamed
WATCHES_PER_SEAT = 10
EVENT_SECONDS = 0.005  # that a write's watchers occupy seats
MOST_LIST_SEATS = 100
MOST_WRITE_SEATS = 10
_SAMPLES = 16
_WRITES = frozenset({"create", "update", "patch", "delete"})


class Estimate(NamedTuple):
    initial: int = 1  # seats during execution
    final: int = 0  # seats afterwards
    seconds: float = 0.0  # that the final seats are occupied

    @property
    def seats(self) -> int:
        return max(self.initial, self.final)


ONE = Estimate()


def estimate(request: Request, route: Route | None, resource: Resource | None, most: int) -> Estimate:
    """Return the estimate. `most`: the limit of the priority level for one request; 0: none."""
    if route is None or resource is None or resource.collection is None:
        return ONE
    if route.verb in ("list", "watch"):
        return _list(request, route, resource.collection, min(most or MOST_LIST_SEATS, MOST_LIST_SEATS))
    if route.verb in _WRITES:
        return _write(route, resource, min(most or MOST_WRITE_SEATS, MOST_WRITE_SEATS))
    return ONE


def _list(request: Request, route: Route, collection: Collection, most: int) -> Estimate:
    version = request.parameter("resourceVersion")
    if route.verb == "watch":
        initial = request.parameter("sendInitialEvents") not in ("", "0", "false")
        if not initial and version not in ("", "0"):
            return ONE
    text = request.parameter("limit")
    asked = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
    stored = len(collection.entries)
    limited = asked if 0 < asked < stored else stored
    match, continues = request.parameter("resourceVersionMatch"), request.parameter("continue")
    exact = match == "Exact" or (not match and (continues or (asked > 0 and version not in ("", "0"))))
    if route.name:
        limited = 1
    elif exact and (request.parameter("fieldSelector") or request.parameter("labelSelector")):
        limited = max(limited, stored // 2)
    held = limited * _average(collection)
    if not exact or route.verb == "watch":
        held = min(held, CACHED_BYTES)
    seats = min(max(ceil(held / BYTES_PER_SEAT), 1), most)
    return ONE if seats == 1 else Estimate(seats)


def _average(collection: Collection) -> int:
    """Estimate the average size of an object from a sample."""
    keys = collection.keys
    if not keys:
        return 0
    chosen = keys[:: max(len(keys) // _SAMPLES, 1)]
    return sum(len(collection.entries[key].data) for key in chosen) // len(chosen)


def _write(route: Route, resource: Resource, most: int) -> Estimate:
    if route.subresource == "token" and route.resource == "serviceaccounts":
        return ONE  # no watch event follows
    assert resource.collection is not None
    hub = resource.collection.hub
    if len(hub) < WATCHES_PER_SEAT:
        return ONE
    watchers = hub.watcher_count(
        f"{route.namespace}/" if resource.namespaced else "", resource.key(route.namespace, route.name)
    )
    if watchers < WATCHES_PER_SEAT:
        return ONE
    seats = ceil(watchers / WATCHES_PER_SEAT)
    final = min(seats, most)
    return Estimate(1, final, seats * EVENT_SECONDS / final)

"""Metrics and debug pages of flow control, with kube-apiserver's names and columns."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Literal

from ostinato.metrics import Family, Sample, exposition
from ostinato.server.flow.control import FlowControl
from ostinato.server.flow.flow import Count
from ostinato.server.flow.levels import Level
from ostinato.server.flow.queue_set import SeatedRequest
from ostinato.server.request import Request, Response, text_response
from ostinato.server.request.options import boolean
from ostinato.server.request.route import parse
from ostinato.world import Clock

_PAGES = "/debug/api_priority_and_fairness/"
_PREFIX = "apiserver_flowcontrol_"
_NARROWEST = 8  # characters of a column


class FlowReport:
    def __init__(self, control: FlowControl, clock: Clock) -> None:
        self._control = control
        self._clock = clock

    def page(self, path: str) -> Callable[[Request], Response] | None:
        """Return the handler of a debug page; None for other paths."""
        match path.removeprefix(_PAGES) if path.startswith(_PAGES) else "":
            case "dump_priority_levels":
                return lambda _: _table(self._levels())
            case "dump_queues":
                return lambda _: _table(self._queues())
            case "dump_requests":
                return lambda request: _table(self._requests(details=bool(request.parameter("includeRequestDetails"))))
        return None

    @property
    def _in_order(self) -> list[Level]:
        return [level for _, level in sorted(self._control.levels.by_name.items())]

    def _levels(self) -> Iterator[list[object]]:
        yield [
            "PriorityLevelName",
            "ActiveQueues",
            "IsIdle",
            "IsQuiescing",
            "WaitingRequests",
            "ExecutingRequests",
            "DispatchedRequests",
            "RejectedRequests",
            "TimedoutRequests",
            "CancelledRequests",
        ]
        for level in self._in_order:
            found = level.set
            active = sum(bool(queue.waiting) for queue in found.queues)
            counts = found.waiting, found.executing, _dispatched(level), found.rejected
            yield [level.name, active, found.idle, level.removed, *counts, found.timed_out, found.cancelled]

    def _queues(self) -> Iterator[list[object]]:
        yield [
            "PriorityLevelName",
            "Index",
            "PendingRequests",
            "ExecutingRequests",
            "SeatsInUse",
            "NextDispatchR",
            "InitialSeatsSum",
            "MaxSeatsSum",
            "TotalWorkSum",
        ]
        for level in self._in_order:
            for queue in level.set.queues:
                initial = sum(each.estimate.initial for each in queue.waiting)
                most = sum(each.estimate.seats for each in queue.waiting)
                counts = len(queue.waiting), queue.executing, queue.seats
                yield [level.name, queue.index, *counts, f"{queue.start:.8f}ss", initial, most, f"{queue.work:.8f}ss"]

    def _requests(self, *, details: bool) -> Iterator[list[object]]:
        heads = [
            "PriorityLevelName",
            "FlowSchemaName",
            "QueueIndex",
            "RequestIndexInQueue",
            "FlowDistingsher",
            "ArriveTime",
            "InitialSeats",
            "FinalSeats",
            "AdditionalLatency",
            "StartTime",
        ]
        more = ["UserName", "Verb", "APIPath", "Namespace", "Name", "APIVersion", "Resource", "SubResource"]
        yield [*heads, *more] if details else list(heads)
        for level in self._in_order:
            for queue in level.set.queues:
                for i, seated in enumerate(queue.waiting):
                    yield self._request(level, seated, (queue.index, i), details=details)
            for seated in level.set.seated:
                index = -1 if seated.queue is None else seated.queue.index
                yield self._request(level, seated, (index, -1), details=details)

    def _request(self, level: Level, seated: SeatedRequest, place: tuple[int, int], *, details: bool) -> list[object]:
        flow, estimate = seated.flow, seated.estimate
        started = "0001-01-01T00:00:00Z" if seated.started < 0 else self._time(seated.started)
        latency = f"{estimate.seconds * 1000:g}ms" if estimate.seconds else "0s"
        row: list[object] = [level.name, flow.schema.name, *place, flow.distinguisher, self._time(seated.arrived)]
        row += [estimate.initial, estimate.final, latency, started]
        if details:
            row += _details(seated)
        return row

    def _time(self, monotonic: float) -> str:
        moment = self._clock.wall() - (self._clock.monotonic() - monotonic)
        return datetime.fromtimestamp(moment, UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")

    # Metrics

    def metrics(self, names: Collection[str] = ()) -> str:
        """Return the metrics in the Prometheus text format. `names`: those that are wanted. Defaults to all."""
        return exposition.text(self._families(), names)

    def _families(self) -> Iterator[Family]:
        levels = self._in_order
        gauges: Iterable[tuple[str, str, Callable[[Level], float]]] = (
            ("nominal_limit_seats", "Nominal seats of each priority level.", lambda level: level.nominal),
            ("lower_limit_seats", "Seats that a level does not lend.", lambda level: level.least),
            ("upper_limit_seats", "Seats of a level including all that it may borrow.", lambda level: level.most),
            ("current_limit_seats", "Current seats of a level.", lambda level: level.current),
            ("current_r", "Progress meter R in seat-seconds.", lambda level: level.set.r),
            (
                "demand_seats_high_watermark",
                "Highest demand for seats.",
                lambda level: level.set.demand.highest,
            ),
            ("demand_seats_average", "Average demand for seats.", lambda level: level.set.demand.average),
            (
                "demand_seats_stdev",
                "Standard deviation of the demand for seats.",
                lambda level: level.set.demand.deviation,
            ),
            ("demand_seats_smoothed", "Smoothed demand for seats.", lambda level: level.set.demand.smoothed),
        )
        for name, text, value in gauges:
            yield _family(name, "gauge", text, [({"priority_level": level.name}, value(level)) for level in levels])
        counts = [
            (level, {"flow_schema": schema, "priority_level": level.name}, count)
            for level in levels
            for schema, count in sorted(level.counts.items())
        ]
        numbers: Iterable[tuple[str, Literal["counter", "gauge"], str, Callable[[Count], float]]] = (
            ("dispatched_requests_total", "counter", "Dispatched requests.", lambda count: count.dispatched),
            ("current_executing_requests", "gauge", "Executing requests.", lambda count: count.executing),
            ("current_executing_seats", "gauge", "Occupied seats.", lambda count: count.seats),
            ("current_inqueue_requests", "gauge", "Queued requests.", lambda count: count.waiting),
        )
        for name, kind, text, of in numbers:
            yield _family(name, kind, text, [(labels, of(count)) for _, labels, count in counts])
        rejected = [
            ({**labels, "reason": reason}, number)
            for _, labels, count in counts
            for reason, number in sorted(count.rejected.items())
        ]
        yield _family("rejected_requests_total", "counter", "Rejected requests.", rejected)
        name = f"{_PREFIX}request_wait_duration_seconds"
        waits = []
        for level, labels, count in counts:
            if not level.exempt:  # requests that did not wait are counted as dispatched only
                zeros = count.dispatched - count.waits.count
                waits += count.waits.samples(name, {"execute": "true", **labels}, zeros)
        yield Family(name, "histogram", "Queue wait duration of requests.", waits)


def _dispatched(level: Level) -> int:
    return sum(count.dispatched for count in level.counts.values())


def _family(
    name: str, kind: Literal["counter", "gauge"], text: str, values: Sequence[tuple[dict[str, str], float]]
) -> Family:
    name = f"{_PREFIX}{name}"
    return Family(name, kind, text, [Sample(name, labels, value) for labels, value in values])


def _details(seated: SeatedRequest) -> list[object]:
    request = seated.request
    assert request is not None
    user = "" if request.user is None else request.user.name
    route = parse(request.method, request.path, watch=boolean(request.parameter("watch") or "0"))
    if route is None:
        return [user, request.method.lower(), request.path, "", "", "", "", ""]
    version = f"{route.group}/{route.version}" if route.group else route.version
    about = route.namespace, route.name, version, route.resource, route.subresource
    return [user, route.verb, request.path, *about]


def _table(rows: Iterator[list[object]]) -> Response:
    """Align rows in columns, as Go's tabwriter does."""
    texts = [[str(cell).lower() if isinstance(cell, bool) else str(cell) for cell in row] for row in rows]
    widths = [max(_NARROWEST, *(len(row[i]) + 2 for row in texts)) for i in range(len(texts[0]) - 1)]
    lines = [
        "".join(f"{cell},".ljust(width) for cell, width in zip(row, widths, strict=False)) + row[-1] for row in texts
    ]
    answer = text_response(200, "".join(f"{line}\n" for line in lines))
    answer.headers = ()
    return answer

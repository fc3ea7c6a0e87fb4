"""Alarms from the counters of the API server: webhooks that fail and requests that are throttled, whoever sends them.

- The counters are read while someone looks at the page. The first reading of a server raises no alarm.
- Servers are told apart by their start: behind one address there may be several, and each may be restarted. A counter
  that is less than before was reset, which is not an alarm.
- Without permission to read `/metrics` this is in `denied`, and tried again after a minute. So is that there are other
  API servers, as far as the endpoints of the Service `kubernetes` name them: the counters are those of one.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from ostinato.api.errors import APIError, Forbidden, Unauthorized
from ostinato.api.gvk import GroupVersionKind
from ostinato.client.transport.protocol import TransportError
from ostinato.page.facts import Alarm, Denied, Ref
from ostinato.page.live.alarms import Alarms
from ostinato.page.watching.cluster import Cluster
from ostinato.page.watching.server_metrics import FAIL_OPEN, PATH, REJECTIONS, Reading, Series, read_counters
from ostinato.world import Clock

_STEP: Final = 1.0  # seconds between two looks whether the page is viewed
INTERVAL: Final = 5.0  # seconds between two readings
RETRY: Final = 60.0  # seconds until the next attempt, if it is not permitted; the most after errors
_WINDOW: Final = 60.0  # seconds in which requests are counted
_MAX_SERVERS: Final = 64
_MAX_CAUSES: Final = 1_000
_MAX_RESOURCES: Final = 3  # in a message
_GROUP: Final = "admissionregistration.k8s.io"
_CONFIGURATIONS: Final = {
    "validating": GroupVersionKind(_GROUP, "v1", "ValidatingWebhookConfiguration"),
    "admit": GroupVersionKind(_GROUP, "v1", "MutatingWebhookConfiguration"),
}
_FLOW_SCHEMA: Final = GroupVersionKind("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema")
_ENDPOINT_SLICE: Final = GroupVersionKind("discovery.k8s.io", "v1", "EndpointSlice")
_SERVICE_NAME: Final = "kubernetes.io/service-name"
_DENIED: Final = "metrics of the API server"
_ERRORS: Final = ("calling_webhook_error", "apiserver_internal_error")
_logger = logging.getLogger("ostinato.page")

Json = dict[str, Any]


class _Cause(NamedTuple):
    """What one alarm is about. `error`: the error type of rejections; "" for others."""

    metric: str
    name: str  # of the webhook or the FlowSchema
    error: str = ""


class _Growth(NamedTuple):
    at: float
    series: Series
    requests: float


class ServerAlarms:
    def __init__(self, clock: Clock, cluster: Cluster, alarms: Alarms, is_viewed: Callable[[], bool]) -> None:
        """`is_viewed`: whether someone looks at the page."""
        self._denied: list[Denied] = []
        self._clock = clock
        self._cluster = cluster
        self._alarms = alarms
        self._is_viewed = is_viewed
        self._servers: dict[str, tuple[float, Reading]] = {}  # by process: when it was read, the last read at the end
        self._recent: dict[_Cause, deque[_Growth]] = {}
        self._wait = 0.0  # seconds before the next reading

    @property
    def denied(self) -> list[Denied]:
        """What the page does not see of the API servers, and why."""
        others = len(self._addresses()) - 1
        if self._denied or others < 1:
            return self._denied
        why = "the page reads those of the server that answers it; no alarms of webhooks and throttling at the others"
        return [Denied(f"metrics of {others} other API server{'s' if others > 1 else ''} ({PATH})", why)]

    def _addresses(self) -> set[str]:
        """Return the addresses of the API servers; none if their EndpointSlice is not watched."""
        found: set[str] = set()
        for entry in self._cluster.entries(_ENDPOINT_SLICE):
            if entry.key.namespace == "default" and entry.labels.get(_SERVICE_NAME) == "kubernetes":
                for endpoint in entry.dict().get("endpoints") or ():
                    found.update(endpoint.get("addresses") or ())
        return found

    async def run(self) -> None:
        """Read the counters until cancelled, while the page is viewed."""
        await self._ask_permission()
        due = self._clock.monotonic() + self._wait
        while True:
            await self._clock.sleep(_STEP)
            if self._is_viewed() and self._clock.monotonic() >= due:
                await self._read()
                due = self._clock.monotonic() + self._wait

    async def _ask_permission(self) -> None:
        """Ask whether the counters may be read, so that the page can say so before it is viewed."""
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"nonResourceAttributes": {"path": PATH, "verb": "get"}},
        }
        try:
            answer: Json = await self._cluster.client.create(review)
        except (APIError, TransportError):
            return  # the first reading says more
        status = answer.get("status") or {}
        if not status.get("allowed"):
            self._deny(str(status.get("reason") or f"the role of the page does not allow get {PATH}"))

    def _deny(self, why: str) -> None:
        self._denied = [Denied(f"{_DENIED} ({PATH})", f"{why}; no alarms of webhooks and throttling of other clients")]
        self._wait = RETRY

    async def _read(self) -> None:
        try:
            reading = await read_counters(self._cluster.client)
        except (Forbidden, Unauthorized) as error:
            self._deny(str(error))
        except (APIError, TransportError) as error:
            self._wait = min(2 * max(self._wait, INTERVAL), RETRY)
            _logger.warning("unable to read metrics of the API server retry_seconds=%g error=%s", self._wait, error)
        else:
            self._denied, self._wait = [], INTERVAL
            self.receive(reading)

    def receive(self, reading: Reading) -> None:
        """Compare the counters with the last ones of the same server, and raise alarms for those that grew."""
        now = self._clock.monotonic()
        at, last = self._servers.pop(reading.process, (now, None))
        self._servers[reading.process] = now, reading
        if len(self._servers) > _MAX_SERVERS:
            del self._servers[next(iter(self._servers))]
        if last is None or now - at > _WINDOW:
            return
        grown: dict[_Cause, None] = {}
        for series, value in reading.values.items():
            count, cause = value - last.values.get(series, 0.0), _cause(series)
            if count > 0 and cause is not None and (cause in self._recent or len(self._recent) < _MAX_CAUSES):
                self._recent.setdefault(cause, deque()).append(_Growth(now, series, count))
                grown[cause] = None
        self._forget(now - _WINDOW)
        for cause in grown:
            self._alarms.report(self._alarm(cause, self._recent[cause]), self._clock.wall())

    def _forget(self, before: float) -> None:
        for cause, growths in [*self._recent.items()]:
            while growths and growths[0].at <= before:
                growths.popleft()
            if not growths:
                del self._recent[cause]

    # Alarms

    def _alarm(self, cause: _Cause, growths: deque[_Growth]) -> Alarm:
        count = round(sum(each.requests for each in growths))
        if cause.metric in (REJECTIONS, FAIL_OPEN):
            return self._of_webhook(cause, growths, _requests(count))
        levels = ", ".join(sorted({each.series.label("priority_level") for each in growths}))
        reasons = ", ".join(sorted({each.series.label("reason") for each in growths}))
        were = "was" if count == 1 else "were"
        return Alarm(
            id=f"throttled/flow-schema/{cause.name}",
            severity="warning",
            type="throttled",
            at=self._clock.wall(),
            ref=self._flow_schema(cause.name),
            message=f"{_requests(count)} of flow schema {cause.name} {were} rejected with 429 in the last minute",
            detail=f"priority level {levels}: {reasons}; give it more seats, or send fewer requests",
        )

    def _of_webhook(self, cause: _Cause, growths: deque[_Growth], requests: str) -> Alarm:
        types = {each.series.label("type") for each in growths}
        ignored = cause.metric == FAIL_OPEN
        what, ref = self._configured(cause.name, types, ignored=ignored)
        operations = ", ".join(sorted({each.series.label("operation") for each in growths} - {""}))
        detail = f"{requests} in the last minute" + (f" ({operations})" if operations else "")
        if ref is not None:
            detail += f"; {ref.kind} {ref.name}"
        id_, message = f"webhook/{cause.name}", f"webhook {cause.name} cannot be called; writes to {what} are rejected"
        if ignored:
            id_ += "/ignored"
            message = f"webhook {cause.name} cannot be called; writes to {what} are let through (failurePolicy Ignore)"
        elif cause.error == "apiserver_internal_error":
            id_ += "/internal"
            message = f"answers of webhook {cause.name} cannot be used; writes to {what} are rejected"
            detail += "; its patch cannot be applied, or it does not support dry run"
        return Alarm(
            id=id_,
            severity="warning" if ignored else "error",
            type="webhook",
            at=self._clock.wall(),
            ref=ref,
            message=message,
            detail=detail,
        )

    def _configured(self, name: str, types: set[str], *, ignored: bool) -> tuple[str, Ref | None]:
        """Return the resources of a webhook, for people, and its configuration; None if it is not watched."""
        resources: dict[str, None] = {}
        ref: Ref | None = None
        for gvk in (_CONFIGURATIONS[each] for each in sorted(types) if each in _CONFIGURATIONS):
            for entry in self._cluster.entries(gvk):
                for webhook in entry.dict().get("webhooks") or ():
                    if webhook.get("name") == name and (webhook.get("failurePolicy") == "Ignore") == ignored:
                        resources.update(dict.fromkeys(_resources(webhook)))
                        ref = ref or Ref.of(entry.collection.info.gvk, entry.key, entry.uid)
        shown = [*resources]
        if not shown:
            return "the resources in its rules", ref
        more = len(shown) - _MAX_RESOURCES
        return ", ".join(shown[:_MAX_RESOURCES]) + (f" and {more} more" if more > 0 else ""), ref

    def _flow_schema(self, name: str) -> Ref | None:
        for entry in self._cluster.entries(_FLOW_SCHEMA):
            if entry.key.name == name:
                return Ref.of(entry.collection.info.gvk, entry.key, entry.uid)
        return None


def _cause(series: Series) -> _Cause | None:
    """Return what a counter is about; None if its growth is not an alarm."""
    if series.metric == REJECTIONS:
        error = series.label("error_type")
        return _Cause(REJECTIONS, series.label("name"), error) if error in _ERRORS else None
    if series.metric == FAIL_OPEN:
        return _Cause(FAIL_OPEN, series.label("name"))
    if series.label("reason") == "cancelled":
        return None  # the client did not wait for the answer
    return _Cause(series.metric, series.label("flow_schema"))


def _requests(count: int) -> str:
    return "1 request" if count == 1 else f"{count} requests"


def _resources(webhook: Json) -> list[str]:
    """Return the resources that a webhook is called for: `pods`, `deployments.apps`, `all resources`."""
    found = []
    for rule in webhook.get("rules") or ():
        for group in rule.get("apiGroups") or ():
            for resource in rule.get("resources") or ():
                if resource in ("*", "*/*"):
                    found.append("all resources" if group == "*" else f"all of {group or 'the core group'}")
                else:
                    found.append(resource if group in ("", "*") else f"{resource}.{group}")
    return found

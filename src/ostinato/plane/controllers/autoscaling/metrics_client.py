"""Clients of the metrics APIs.

| API | serves |
|---|---|
| `metrics.k8s.io` | CPU and memory usage of containers |
| `custom.metrics.k8s.io` | metrics of Pods and other objects |
| `external.metrics.k8s.io` | metrics from outside the cluster |

Each API is optional. Amounts are in thousandths (milli-units).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final, TypeVar
from urllib.parse import quote as quote_path

import msgspec

from ostinato.api.codec import ObjectError, from_json
from ostinato.api.errors import APIError, NotFound
from ostinato.api.gvk import GroupKind, GroupVersion
from ostinato.api.quantity import Quantity
from ostinato.api.selectors.labels import Selector
from ostinato.api.struct import BuiltinStruct
from ostinato.api.time import Duration, Time, TimeError
from ostinato.client.client import Client
from ostinato.client.discovery.mapping import NoSuchResource
from ostinato.client.transport.exchange import Call, Exchange
from ostinato.client.transport.protocol import TransportError
from ostinato.kinds.autoscaling_v2 import CrossVersionObjectReference

S = TypeVar("S", bound=BuiltinStruct)

_RESOURCES: Final = GroupVersion("metrics.k8s.io", "v1beta1")
_CUSTOM: Final = GroupVersion("custom.metrics.k8s.io", "v1beta2")
_EXTERNAL: Final = GroupVersion("external.metrics.k8s.io", "v1beta1")
_DEFAULT_WINDOW: Final = 60  # seconds


class MetricsError(Exception):
    """Metrics are not available; the message is that of kube-controller-manager."""


class Sample(msgspec.Struct, frozen=True):
    value: int  # in thousandths
    timestamp: datetime | None = None
    window: timedelta = timedelta()  # ends at the timestamp


Samples = dict[str, Sample]
"""Samples by Pod name."""


class _Name(BuiltinStruct):
    name: str = ""


class _Usage(BuiltinStruct):
    name: str = ""
    usage: dict[str, Quantity] = {}


class _PodMetrics(BuiltinStruct):
    metadata: _Name = msgspec.field(default_factory=_Name)
    timestamp: Time | None = None
    window: str = ""
    containers: list[_Usage] = []


class _PodMetricsList(BuiltinStruct):
    items: list[_PodMetrics] = []


class _Value(BuiltinStruct):
    described_object: _Name = msgspec.field(default_factory=_Name)
    timestamp: Time | None = None
    window_seconds: int | None = None
    value: Quantity = msgspec.field(default_factory=Quantity)


class _Values(BuiltinStruct):
    items: list[_Value] = []


class MetricsClient:
    """Client of the metrics APIs."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._exchange = Exchange(client.transport)

    async def of_resource(self, resource: str, namespace: str, selector: Selector, container: str) -> Samples:
        """Return the usage of a resource per Pod, or of one container per Pod. Pods without metrics are left out."""
        query = {"labelSelector": str(selector)}
        try:
            found = await self._get(_PodMetricsList, _RESOURCES, namespace, "pods", query)
        except MetricsError as error:
            raise MetricsError(f"unable to fetch metrics from resource metrics API: {error}") from None
        if not found.items:
            raise MetricsError("no metrics returned from resource metrics API")
        samples: Samples = {}
        for pod in found.items:
            used = [each.usage.get(resource) for each in pod.containers if not container or each.name == container]
            known = [each for each in used if each is not None]
            if known and len(known) == len(used):
                total = sum(each.milli_value() for each in known)
                samples[pod.metadata.name] = Sample(total, pod.timestamp, _window(pod.window))
        return samples

    async def of_pods(self, metric: str, namespace: str, selector: Selector, metric_selector: Selector) -> Samples:
        """Return a custom metric of each Pod."""
        query = {"labelSelector": str(selector), "metricLabelSelector": str(metric_selector)}
        found = await self._custom(namespace, f"pods/*/{quote_path(metric, safe='')}", query)
        if not found.items:
            raise MetricsError("no metrics returned from custom metrics API")
        return {
            each.described_object.name: Sample(
                each.value.milli_value(),
                each.timestamp,
                timedelta(seconds=_DEFAULT_WINDOW if each.window_seconds is None else each.window_seconds),
            )
            for each in found.items
        }

    async def of_object(
        self, metric: str, namespace: str, reference: CrossVersionObjectReference, metric_selector: Selector
    ) -> int:
        """Return a custom metric of an object."""
        group = _group(reference.api_version or "")
        if (group, reference.kind) == ("", "Namespace"):
            what = f"metrics/{quote_path(metric, safe='')}"
        else:
            try:
                info = await self._client.mapper.preferred(GroupKind(group, reference.kind))
            except (APIError, NoSuchResource) as error:
                about = f"unable to map kind {GroupKind(group, reference.kind)} to resource: {error}"
                raise MetricsError(f"unable to fetch metrics from custom metrics API: {about}") from None
            what = f"{info.gvr.group_resource}/{quote_path(reference.name)}/{quote_path(metric, safe='')}"
        found = await self._custom(namespace, what, {"metricLabelSelector": str(metric_selector)})
        if len(found.items) != 1:
            about = f"the custom metrics API server returned {len(found.items)} results when we asked for exactly one"
            raise MetricsError(f"unable to fetch metrics from custom metrics API: {about}")
        return found.items[0].value.milli_value()

    async def external(self, metric: str, namespace: str, metric_selector: Selector) -> list[int]:
        """Return the values of an external metric, one per series."""
        query = {"labelSelector": str(metric_selector)}
        try:
            found = await self._get(_Values, _EXTERNAL, namespace, quote_path(metric, safe=""), query)
        except MetricsError as error:
            raise MetricsError(f"unable to fetch metrics from external metrics API: {error}") from None
        if not found.items:
            raise MetricsError("no metrics returned from external metrics API")
        return [each.value.milli_value() for each in found.items]

    async def _custom(self, namespace: str, what: str, query: Mapping[str, str]) -> _Values:
        try:
            return await self._get(_Values, _CUSTOM, namespace, what, query)
        except MetricsError as error:
            known = await self._is_served(_CUSTOM)
            why = error if known else f"no custom metrics API ({_CUSTOM.group}) registered"
            raise MetricsError(f"unable to fetch metrics from custom metrics API: {why}") from None

    async def _is_served(self, version: GroupVersion) -> bool:
        try:
            await self._exchange.send(Call(method="GET", path=f"/apis/{version.group}"))
        except NotFound:
            return False
        except (APIError, TransportError):
            return True
        return True

    async def _get(
        self, type_: type[S], version: GroupVersion, namespace: str, what: str, query: Mapping[str, str]
    ) -> S:
        path = f"/apis/{version}/namespaces/{namespace}/{what}"
        call = Call(method="GET", path=path, query=[(name, value) for name, value in query.items() if value])
        try:
            return from_json(type_, await self._exchange.send(call))
        except NotFound as error:
            if error.details.name:
                raise MetricsError(str(error)) from None
            raise MetricsError(f"{error} (get {what.partition('/')[0]}.{version.group})") from None
        except (APIError, TransportError, ObjectError) as error:
            raise MetricsError(str(error)) from None


def total(values: Sequence[int]) -> int:
    """Return the sum, clamped to 64 bits."""
    return min(sum(values), 2**63 - 1)


def _window(text: str) -> timedelta:
    try:
        return timedelta(microseconds=Duration.parse(text).nanoseconds / 1000) if text else timedelta()
    except TimeError:
        return timedelta()


def _group(api_version: str) -> str:
    try:
        return GroupVersion.parse(api_version).group
    except ValueError:
        return ""

"""Metric sources: the replica count that each metric of an autoscaler proposes.

A metric that cannot be evaluated raises `MetricSourceError` with reason and message of condition and event; `summary`
is used if all metrics fail.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from ostinato.api.meta import LabelSelector
from ostinato.api.quantity import Format, Quantity
from ostinato.api.selectors.labels import Selector, SelectorError, everything
from ostinato.cache import CachedClient
from ostinato.kinds.autoscaling_v2 import (
    ContainerResourceMetricStatus,
    ExternalMetricSource,
    ExternalMetricStatus,
    MetricIdentifier,
    MetricSpec,
    MetricStatus,
    MetricTarget,
    MetricValueStatus,
    ObjectMetricSource,
    ObjectMetricStatus,
    PodsMetricSource,
    PodsMetricStatus,
    ResourceMetricStatus,
)
from ostinato.plane.controllers.autoscaling import replica_calculator as arithmetic
from ostinato.plane.controllers.autoscaling.metrics_client import MetricsClient, MetricsError, Samples, total
from ostinato.plane.controllers.autoscaling.replica_calculator import MeasuredPod, Tolerance
from ostinato.plane.ownership.event_handler import selector_of, selector_text


class MetricSourceError(Exception):
    """A metric cannot be evaluated."""

    def __init__(self, reason: str, message: str, summary: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.summary = summary


class Target(msgspec.Struct, frozen=True):
    """The scale target: its current and desired replicas, and the selector of its Pods."""

    namespace: str
    wanted: int
    present: int
    selector: Selector
    tolerance: Tolerance


class MetricProposal(msgspec.Struct, frozen=True):
    replicas: int
    name: str  # description of the metric
    status: MetricStatus


class MetricSources:
    """Evaluates the metrics of one autoscaler at one time."""

    def __init__(self, client: CachedClient, metrics: MetricsClient, target: Target, now: datetime) -> None:
        self._client = client
        self._metrics = metrics
        self._target = target
        self._now = now

    async def propose(self, spec: MetricSpec) -> MetricProposal:
        """Return the replica count that a metric proposes."""
        match spec:
            case MetricSpec(type="Resource", resource=source) if source is not None:
                about = f"failed to get {source.name} resource metric value"
                replicas, current, name = await self._resource(source.name, source.target, "", about)
                status = MetricStatus(type=spec.type, resource=ResourceMetricStatus(name=source.name, current=current))
                return MetricProposal(replicas, name, status)
            case MetricSpec(type="ContainerResource", container_resource=source) if source is not None:
                about = f"failed to get {source.container} container metric value"
                replicas, current, name = await self._resource(source.name, source.target, source.container, about)
                contained = ContainerResourceMetricStatus(name=source.name, container=source.container, current=current)
                return MetricProposal(replicas, name, MetricStatus(type=spec.type, container_resource=contained))
            case MetricSpec(type="Pods", pods=source) if source is not None:
                return await self._pods(source)
            case MetricSpec(type="Object", object=source) if source is not None:
                return await self._object(source)
            case MetricSpec(type="External", external=source) if source is not None:
                return await self._external(source)
            case _:
                message = f'unknown metric source type "{spec.type}"'
                raise MetricSourceError("InvalidMetricSourceType", message, message)

    async def _resource(
        self, resource: str, wanted: MetricTarget, container: str, about: str
    ) -> tuple[int, MetricValueStatus, str]:
        try:
            return await self._resource_usage(resource, wanted, container)
        except MetricsError as error:
            reason = "FailedGetContainerResourceMetric" if container else "FailedGetResourceMetric"
            raise MetricSourceError(reason, str(error), f"{about}: {error}") from None

    async def _resource_usage(
        self, resource: str, wanted: MetricTarget, container: str
    ) -> tuple[int, MetricValueStatus, str]:
        target = self._target
        share = wanted.average_utilization
        if wanted.average_value is None and share is None:
            raise MetricsError(
                "invalid resource metric source: neither an average utilization target nor an average value (usage) "
                "target was set"
            )
        try:
            samples = await self._samples(resource, container)
            pods = await self._target_pods()
            groups = arithmetic.grouped(pods, samples, resource, self._now)
            if wanted.average_value is not None:
                amount = wanted.average_value.milli_value()
                found = arithmetic.by_value(target.wanted, amount, samples, groups, target.tolerance)
                return (
                    found.replicas,
                    MetricValueStatus(average_value=_amount(resource, found.average)),
                    (f"{resource} resource"),
                )
            assert share is not None, "either value or averageValue is set"
            requested = arithmetic.requests(pods, resource, container)
            found = arithmetic.by_utilization(target.wanted, share, samples, requested, groups, target.tolerance)
        except MetricsError as error:
            what = "usage" if wanted.average_value is not None else "utilization"
            raise MetricsError(f"failed to get {resource} {what}: {error}") from None
        current = MetricValueStatus(
            average_utilization=found.utilization, average_value=_amount(resource, found.average)
        )
        whose = "container resource" if container else "resource"
        return found.replicas, current, f"{resource} {whose} utilization (percentage of request)"

    async def _samples(self, resource: str, container: str) -> Samples:
        target = self._target
        try:
            return await self._metrics.of_resource(resource, target.namespace, target.selector, container)
        except MetricsError as error:
            raise MetricsError(f"unable to get metrics for resource {resource}: {error}") from None

    async def _target_pods(self) -> list[MeasuredPod]:
        target = self._target
        pods = await self._client.list(MeasuredPod, namespace=target.namespace, labels=target.selector, fresh=False)
        if not pods:
            raise MetricsError("no pods returned by selector while calculating replica count")
        return pods

    async def _pods(self, source: PodsMetricSource) -> MetricProposal:
        target, name = self._target, source.metric.name
        try:
            chosen = _series_selector(source.metric.selector)
            if source.target.average_value is None:
                raise MetricsError("invalid pods metric source: no average value target was set")
            try:
                samples = await self._metrics.of_pods(name, target.namespace, target.selector, chosen)
            except MetricsError as error:
                raise MetricsError(f"unable to get metric {name}: {error}") from None
            groups = arithmetic.grouped(await self._target_pods(), samples, "", self._now)
            amount = source.target.average_value.milli_value()
            found = arithmetic.by_value(target.wanted, amount, samples, groups, target.tolerance)
        except MetricsError as error:
            summary = f"failed to get pods metric value: {error}"
            raise MetricSourceError("FailedGetPodsMetric", str(error), summary) from None
        current = MetricValueStatus(average_value=Quantity.milli(found.average))
        status = PodsMetricStatus(metric=_same(source.metric), current=current)
        return MetricProposal(found.replicas, f"pods metric {name}", MetricStatus(type="Pods", pods=status))

    async def _object(self, source: ObjectMetricSource) -> MetricProposal:
        target, name, reference = self._target, source.metric.name, source.described_object
        wanted = source.target
        try:
            chosen = _series_selector(source.metric.selector)
            if wanted.value is None and wanted.average_value is None:
                raise MetricsError(
                    "invalid object metric source: neither a value target nor an average value target was set"
                )
            try:
                value = await self._metrics.of_object(name, target.namespace, reference, chosen)
            except MetricsError as error:
                about = f"{reference.kind} on {target.namespace} {reference.name}/{error}"  # upstream's word order
                raise MetricsError(f"unable to get metric {name}: {about}") from None
            if wanted.type == "Value" and wanted.value is not None:
                replicas = await self._by_ratio(value / wanted.value.milli_value())
                current = MetricValueStatus(value=Quantity.milli(value))
                words = f"{reference.kind} metric {name}"
            else:
                replicas, current = self._by_share(value, wanted.average_value)
                words = f"external metric {name}({selector_text(source.metric.selector)})"
        except MetricsError as error:
            whose = f"failed to get {name} object metric: " if wanted.type == "AverageValue" else ""
            summary = f"failed to get object metric value: {whose}{error}"
            raise MetricSourceError("FailedGetObjectMetric", str(error), summary) from None
        status = ObjectMetricStatus(described_object=reference, metric=_same(source.metric), current=current)
        return MetricProposal(replicas, words, MetricStatus(type="Object", object=status))

    async def _external(self, source: ExternalMetricSource) -> MetricProposal:
        target, name, wanted = self._target, source.metric.name, source.target
        shown = selector_text(source.metric.selector)
        try:
            chosen = _series_selector(source.metric.selector)
            if wanted.value is None and wanted.average_value is None:
                raise MetricsError(
                    "invalid external metric source: neither a value target nor an average value target was set"
                )
            try:
                value = total(await self._metrics.external(name, target.namespace, chosen))
            except MetricsError as error:
                which = f"{target.namespace}/{name}/{shown}"
                raise MetricsError(f"unable to get external metric {which}: {error}") from None
            if wanted.average_value is not None:
                replicas, current = self._by_share(value, wanted.average_value)
            else:
                assert wanted.value is not None, "either value or averageValue is set"
                replicas = await self._by_ratio(value / wanted.value.milli_value())
                current = MetricValueStatus(value=Quantity.milli(value))
        except MetricsError as error:
            which = f"{name} external metric" if wanted.average_value is not None else f"external metric {name}"
            summary = f"failed to get {name} external metric value: failed to get {which}: {error}"
            raise MetricSourceError("FailedGetExternalMetric", str(error), summary) from None
        status = ExternalMetricStatus(metric=_same(source.metric), current=current)
        return MetricProposal(
            replicas, f"external metric {name}({shown})", MetricStatus(type="External", external=status)
        )

    async def _by_ratio(self, ratio: float) -> int:
        target = self._target
        ready = 0
        if target.wanted and not target.tolerance.covers(ratio):
            try:
                ready = arithmetic.count_ready(await self._target_pods())
            except MetricsError as error:
                raise MetricsError(f"unable to calculate ready pods: {error}") from None
        return arithmetic.by_ratio(target.wanted, ratio, ready, target.tolerance)

    def _by_share(self, value: int, share: Quantity | None) -> tuple[int, MetricValueStatus]:
        target = self._target
        found = arithmetic.by_share(target.present, value, (share or Quantity(1)).milli_value(), target.tolerance)
        return found.replicas, MetricValueStatus(average_value=Quantity.milli(found.average))


def _amount(resource: str, thousandths: int) -> Quantity:
    return Quantity.milli(thousandths, Format.BINARY_SI if resource == "memory" else Format.DECIMAL_SI)


def _same(metric: MetricIdentifier) -> MetricIdentifier:
    return MetricIdentifier(name=metric.name, selector=metric.selector)


def _series_selector(selector: LabelSelector | None) -> Selector:
    """Return the selector of a metric's series; without one it matches all."""
    try:
        return everything() if selector is None else selector_of(selector)
    except SelectorError as error:
        raise MetricsError(str(error)) from None

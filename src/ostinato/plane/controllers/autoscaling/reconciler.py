"""Reconciles a HorizontalPodAutoscaler every 15 seconds: evaluates its metrics and scales its target.

Changes of the object do not trigger an earlier evaluation. Errors are reported by a condition and an event, and retried
with the next evaluation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NoReturn

import msgspec

from ostinato.api.errors import APIError, Conflict
from ostinato.api.gvk import GroupKind, GroupVersion, NamespacedName
from ostinato.api.selectors.labels import Selector, SelectorError, parse
from ostinato.cache.own_writes.recorder import record_scale
from ostinato.client.discovery.mapping import NoSuchResource
from ostinato.client.transport.protocol import TransportError
from ostinato.client.views import Unstructured
from ostinato.controllers import Context, Request, Result
from ostinato.kinds.autoscaling_v1 import Scale
from ostinato.kinds.autoscaling_v2 import (
    HorizontalPodAutoscaler,
    HorizontalPodAutoscalerStatus,
    HPAScalingRules,
    MetricStatus,
)
from ostinato.plane.controllers.autoscaling.behavior import Bounds, ScaleHistory
from ostinato.plane.controllers.autoscaling.conditions import Conditions
from ostinato.plane.controllers.autoscaling.metric_sources import (
    MetricProposal,
    MetricSourceError,
    MetricSources,
    Target,
)
from ostinato.plane.controllers.autoscaling.metrics_client import MetricsClient
from ostinato.plane.controllers.autoscaling.replica_calculator import Tolerance
from ostinato.plane.objects.pod_state import PodState
from ostinato.plane.objects.status import write_status

PERIOD: Final = 15.0  # seconds between two evaluations
_MAX_ATTEMPTS: Final = 5  # attempts of a conflicting write


class _NoRecommendation(Exception):  # noqa: N818
    """No replica count can be computed from the metrics."""

    def __init__(self, why: str, statuses: Sequence[MetricStatus] = ()) -> None:
        super().__init__(why)
        self.statuses = list(statuses)  # statuses of the metrics that could be read


class AutoscalerReconciler:
    def __init__(self) -> None:
        self._next_sync: dict[Request, float] = {}  # monotonic time of the next evaluation
        self._histories: dict[Request, ScaleHistory] = {}
        self._selectors: dict[Request, Selector] = {}  # selector of each target's Pods

    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        autoscaler = await ctx.client.get(HorizontalPodAutoscaler, request, missing=None)
        if autoscaler is None:
            self._next_sync.pop(request, None)
            self._histories.pop(request, None)
            self._selectors.pop(request, None)
            return None
        now = ctx.world.clock.monotonic()
        due = self._next_sync.setdefault(request, now + PERIOD)
        if due > now:
            return Result(requeue_after=due - now)
        self._next_sync[request] = now + PERIOD
        step = _Sync(ctx, autoscaler, self._histories, self._selectors)
        try:
            await step.run()
        except (APIError, TransportError) as error:
            ctx.event(autoscaler, "FailedUpdateStatus", str(error), kind="Warning")
        return Result(requeue_after=PERIOD)


class _Sync:
    """One evaluation of one autoscaler."""

    def __init__(
        self,
        ctx: Context,
        autoscaler: HorizontalPodAutoscaler,
        histories: dict[Request, ScaleHistory],
        selectors: dict[Request, Selector],
    ) -> None:
        self._ctx = ctx
        self._autoscaler = autoscaler
        self._histories = histories
        self._selectors = selectors
        self._conditions = Conditions(autoscaler.status.conditions, ctx.now())
        self._seconds = ctx.world.clock.monotonic()

    async def run(self) -> None:
        autoscaler = self._autoscaler
        try:
            view, scale = await self._get_scale()
        except (APIError, NoSuchResource, TransportError, ValueError) as error:
            self._warn("FailedGetScale", str(error))
            why = f"the HPA controller was unable to get the target's current scale: {error}"
            self._conditions.able("FailedGetScale", why, status=False)
            await self._write(msgspec.structs.replace(autoscaler.status, conditions=self._conditions.all))
            return
        message = "the HPA controller was able to get the target's current scale"
        self._conditions.able("SucceededGetScale", message)
        current = scale.spec.replicas or 0
        history = self._histories.setdefault(self._ctx.request, ScaleHistory(current, self._seconds))
        least = 1 if autoscaler.spec.min_replicas is None else autoscaler.spec.min_replicas
        bounds = Bounds(least, autoscaler.spec.max_replicas, autoscaler.spec.behavior)
        try:
            desired, reason, statuses = await self._desired(scale, bounds, history)
        except _NoRecommendation as error:
            await self._update_status(current, autoscaler.status.desired_replicas, error.statuses)
            self._warn("FailedComputeMetricsReplicas", str(error))
            return
        rescaled = desired != current and await self._rescale(view, scale, desired, reason)
        if rescaled:
            history.record_scaled(current, desired, bounds, self._seconds)
        elif desired != current:
            desired = autoscaler.status.desired_replicas
        await self._update_status(current, desired, statuses, rescaled=rescaled)

    async def _get_scale(self) -> tuple[Unstructured, Scale]:
        target = self._autoscaler.spec.scale_target_ref
        group = GroupVersion.parse(target.api_version or "").group
        client = self._ctx.client.live
        view = Unstructured((await client.mapper.preferred(GroupKind(group, target.kind))).gvk)
        return view, await client.scale.get(view, target.name, namespace=self._autoscaler.metadata.namespace)

    async def _desired(
        self, scale: Scale, bounds: Bounds, history: ScaleHistory
    ) -> tuple[int, str, list[MetricStatus]]:
        """Return the desired replicas, the reason, and the metric statuses."""
        current = scale.spec.replicas or 0
        if current == 0:
            why = "scaling is disabled since the replica count of the target is zero"
            self._conditions.active("ScalingDisabled", why, status=False)
            self._conditions.remove("ScaledToZero")
            return 0, "", []
        if current > bounds.most:
            return bounds.most, "Current number of replicas above Spec.MaxReplicas", []
        if current < bounds.least:
            return bounds.least, "Current number of replicas below Spec.MinReplicas", []
        proposed, name, statuses = await self._compute_replicas(scale)
        reason = ""
        if proposed > current:
            reason = f"{name} above target"
        elif proposed < current:
            reason = "All metrics below target"
        decision = history.decide(current, proposed, bounds, self._seconds)
        self._conditions.able(*decision.stabilized)
        self._conditions.limited(*decision.limited, status=decision.is_limited)
        if decision.replicas != current:
            self._ctx.explain(reason or "an earlier recommendation takes effect")
        return decision.replicas, reason, statuses

    async def _compute_replicas(self, scale: Scale) -> tuple[int, str, list[MetricStatus]]:
        """Return the highest proposal, the name of its metric, and the statuses of all metrics."""
        autoscaler = self._autoscaler
        current = scale.spec.replicas or 0
        selector = await self._selector(scale.status.selector or "")
        behavior = autoscaler.spec.behavior
        target = Target(
            namespace=autoscaler.metadata.namespace,
            wanted=current,
            present=scale.status.replicas or 0,
            selector=selector,
            tolerance=Tolerance(
                down=_tolerance(None if behavior is None else behavior.scale_down),
                up=_tolerance(None if behavior is None else behavior.scale_up),
            ),
        )
        sources = MetricSources(self._ctx.client, MetricsClient(self._ctx.client.live), target, self._ctx.now())
        statuses: list[MetricStatus] = []
        best: MetricProposal | None = None
        errors: list[MetricSourceError] = []
        for spec in autoscaler.spec.metrics:
            try:
                found = await sources.propose(spec)
            except MetricSourceError as error:
                self._warn(error.reason, str(error))
                errors.append(error)
                statuses.append(MetricStatus())
                continue
            statuses.append(found.status)
            if best is None or found.replicas > best.replicas:
                best = found
        if errors and (best is None or best.replicas < current):
            first = errors[0]
            why = f"the HPA was unable to compute the replica count: {first}"
            self._conditions.active(first.reason, why, status=False)
            count = f"{len(errors)} invalid out of {len(statuses)}"
            raise _NoRecommendation(f"invalid metrics ({count}), first error is: {first.summary}", statuses)
        if best is None:
            raise _NoRecommendation("invalid metrics (0 invalid out of 0), first error is: there are none", statuses)
        message = f"the HPA was able to successfully calculate a replica count from {best.name}"
        self._conditions.active("ValidMetricFound", message, status=True)
        return best.replicas, best.name, statuses

    async def _selector(self, text: str) -> Selector:
        """Return the selector of the target's Pods. No other autoscaler may select the same Pods."""
        if not text:
            self._warn("SelectorRequired", "selector is required")
            why = "the HPA target's scale is missing a selector"
            self._conditions.active("InvalidSelector", why, status=False)
            raise _NoRecommendation("selector is required")
        try:
            selector = parse(text)
        except SelectorError as error:
            why = f"couldn't convert selector into a corresponding internal selector object: {error}"
            self._fail_selector("InvalidSelector", why)
        self._selectors[self._ctx.request] = selector
        others = await self._selecting_same_pods(selector)
        if len(others) > 1:
            names = " ".join(str(each) for each in others)
            self._fail_selector(
                "AmbiguousSelector", f"pods by selector {text} are controlled by multiple HPAs: [{names}]"
            )
        return selector

    def _fail_selector(self, reason: str, why: str) -> NoReturn:
        self._warn(reason, why)
        self._conditions.active(reason, why, status=False)
        raise _NoRecommendation(why)

    async def _selecting_same_pods(self, selector: Selector) -> list[NamespacedName]:
        """Return the autoscalers that select one of the Pods, including this one."""
        namespace = self._autoscaler.metadata.namespace
        rivals = {key: each for key, each in self._selectors.items() if key.namespace == namespace}
        if len(rivals) < 2:
            return []
        pods = await self._ctx.client.list(PodState, namespace=namespace, labels=selector, fresh=False)
        labels = [pod.metadata.labels for pod in pods]
        return sorted(key for key, each in rivals.items() if any(each.matches(found) for found in labels))

    async def _rescale(self, view: Unstructured, scale: Scale, desired: int, reason: str) -> bool:
        autoscaler, client = self._autoscaler, self._ctx.client.live
        name, namespace = autoscaler.spec.scale_target_ref.name, autoscaler.metadata.namespace
        version = scale.metadata.resource_version
        for attempt in range(_MAX_ATTEMPTS):
            try:
                written = await client.scale.set(view, name, desired, namespace=namespace, resource_version=version)
                record_scale(view.gvk, written)
                break
            except (APIError, TransportError) as error:
                if isinstance(error, Conflict) and attempt + 1 < _MAX_ATTEMPTS:
                    version = (await client.scale.get(view, name, namespace=namespace)).metadata.resource_version
                    continue
                self._warn("FailedRescale", f"New size: {desired}; reason: {reason}; error: {error}")
                why = f"the HPA controller was unable to update the target scale: {error}"
                self._conditions.able("FailedUpdateScale", why, status=False)
                return False
        message = f"the HPA controller was able to update the target scale to {desired}"
        self._conditions.able("SucceededRescale", message)
        self._conditions.remove("ScaledToZero")
        self._ctx.event(autoscaler, "SuccessfulRescale", f"New size: {desired}; reason: {reason}")
        return True

    async def _update_status(
        self, current: int, desired: int, statuses: list[MetricStatus], *, rescaled: bool = False
    ) -> None:
        before = self._autoscaler.status
        after = HorizontalPodAutoscalerStatus(
            conditions=self._conditions.all,
            current_metrics=statuses,
            current_replicas=current,
            desired_replicas=desired,
            last_scale_time=self._ctx.now() if rescaled else before.last_scale_time,
        )
        await self._write(after)

    async def _write(self, status: HorizontalPodAutoscalerStatus) -> None:
        await write_status(self._ctx.client, self._autoscaler, self._autoscaler.status, status)

    def _warn(self, reason: str, note: str) -> None:
        self._ctx.event(self._autoscaler, reason, note, kind="Warning")


def _tolerance(rules: HPAScalingRules | None) -> float:
    return 0.1 if rules is None or rules.tolerance is None else float(rules.tolerance)

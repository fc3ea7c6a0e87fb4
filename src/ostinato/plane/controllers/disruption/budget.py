"""Reconciles a PodDisruptionBudget: counts its Pods and writes the allowed disruptions.

A Pod whose eviction was granted (`status.disruptedPods`) does not count as healthy. If it is not deleted within two
minutes, it counts again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Final

import msgspec

from ostinato.api.codec import ObjectError
from ostinato.api.conditions import set_condition
from ostinato.api.errors import APIError, Conflict
from ostinato.api.gvk import NamespacedName
from ostinato.api.intstr import IntOrStringError, scaled_value
from ostinato.api.meta import Condition, OwnerReference
from ostinato.api.selectors.labels import SelectorError
from ostinato.api.time import Time
from ostinato.cache.lookup import ListQuery
from ostinato.cache.store.entry import Entry
from ostinato.client.transport.protocol import TransportError
from ostinato.client.views import view_of
from ostinato.controllers import Context, Request, Result
from ostinato.kinds.policy_v1 import PodDisruptionBudget, PodDisruptionBudgetStatus
from ostinato.plane.controllers.disruption.expected_pods import ScaleError, expected_pods
from ostinato.plane.objects.decoded import DecodedCache
from ostinato.plane.objects.pod_state import PodState, is_ready
from ostinato.plane.ownership.event_handler import selector_of, selector_text

DELETION_TIMEOUT: Final = timedelta(minutes=2)  # for a Pod whose eviction was granted

_FAILURES: Final = (APIError, TransportError, ObjectError, ScaleError, SelectorError, IntOrStringError)


class BudgetPod(msgspec.Struct, frozen=True):
    """The fields of a Pod that a budget needs."""

    entry: Entry
    controller: OwnerReference | None
    is_ready: bool

    @classmethod
    def of(cls, entry: Entry) -> BudgetPod:
        return cls(entry, entry.controller, is_ready(entry.read(PodState)))

    @property
    def key(self) -> NamespacedName:
        return self.entry.key

    @property
    def name(self) -> str:
        return self.entry.key.name

    @property
    def is_terminating(self) -> bool:
        return self.entry.is_being_deleted


class BudgetReconciler:
    def __init__(self) -> None:
        self._pods = DecodedCache(BudgetPod.of)

    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        budget = await ctx.client.get(PodDisruptionBudget, request, missing=None)
        if budget is None:
            self._pods.forget(request)
            return None
        now = ctx.now()
        try:
            status, recheck = await self._status(budget, ctx, now)
        except Conflict:
            raise
        except _FAILURES as error:
            status, recheck = _failed_status(budget, str(error), now), None
        if status != budget.status:
            budget.status = status
            await ctx.client.update(budget, subresource="status")  # conflicts if an eviction was granted in between
        return None if recheck is None else Result(requeue_after=recheck - now)

    async def _status(
        self, budget: PodDisruptionBudget, ctx: Context, now: Time
    ) -> tuple[PodDisruptionBudgetStatus, datetime | None]:
        try:
            selector = selector_of(budget.spec.selector)
        except SelectorError as error:
            ctx.event(budget, "NoPods", f"Failed to get pods: {error}", kind="Warning")
            raise
        asked = ListQuery(namespace=budget.metadata.namespace, labels=selector, fresh=False)
        found = await ctx.client.found(view_of(PodState), asked)
        assert found is not None, "Pods have an informer"
        pods = self._pods.get(ctx.request, found.entries)
        if not pods:
            ctx.event(budget, "NoPods", "No matching pods found")
        try:
            expected, desired = await self._expected(budget, pods, ctx)
        except _FAILURES as error:
            note = f"Failed to calculate the number of expected pods: {error}"
            ctx.event(budget, "CalculateExpectedPodCountFailed", note, kind="Warning")
            raise
        disrupted, recheck = self._disrupted(budget, pods, ctx, now)
        healthy = count_healthy(pods, disrupted)
        allowed = max(healthy - desired, 0) if expected > 0 else 0
        status = PodDisruptionBudgetStatus(
            conditions=list(budget.status.conditions),
            current_healthy=healthy,
            desired_healthy=desired,
            disrupted_pods=disrupted,
            disruptions_allowed=allowed,
            expected_pods=expected,
            observed_generation=budget.metadata.generation,
        )
        _set_condition(status, "SufficientPods" if allowed else "InsufficientPods", "", now)
        return status, recheck

    async def _expected(self, budget: PodDisruptionBudget, pods: Sequence[BudgetPod], ctx: Context) -> tuple[int, int]:
        """Return the expected number of Pods, and how many of them must be healthy."""
        most, least = budget.spec.max_unavailable, budget.spec.min_available
        if most is None and isinstance(least, int):
            return len(pods), least
        if most is None and least is None:
            return 0, 0
        expected, unmanaged = await expected_pods(ctx.client, pods)
        if unmanaged:
            selector = selector_text(budget.spec.selector)
            note = (
                f"Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be unmanaged. As a "
                "result, the status of the PDB cannot be calculated correctly, which may result in undefined behavior. "
                'To account for these pods please set ".spec.minAvailable" field of the PDB to an integer value.'
            )
            ctx.event(budget, "UnmanagedPods", note, kind="Warning")
        if most is not None:
            return expected, max(expected - scaled_value(most, expected, round_up=True), 0)
        return expected, scaled_value(least, expected, round_up=True)

    def _disrupted(
        self, budget: PodDisruptionBudget, pods: Sequence[BudgetPod], ctx: Context, now: Time
    ) -> tuple[dict[str, Time], datetime | None]:
        """Return the Pods whose deletion is still expected, and when the next of them times out."""
        found: dict[str, Time] = {}
        recheck: datetime | None = None
        for pod in pods:
            since = budget.status.disrupted_pods.get(pod.name)
            if since is None or pod.is_terminating:
                continue
            end = since + DELETION_TIMEOUT
            if end < now:
                namespace = budget.metadata.namespace
                note = f"Pod was expected by PDB {namespace}/{namespace} to be deleted but it wasn't"
                ctx.event(pod.entry.read(PodState), "NotDeleted", note, kind="Warning")
                continue
            found[pod.name] = since
            recheck = end if recheck is None else min(recheck, end)
        return found, None if recheck is None else recheck + timedelta(seconds=1)


def count_healthy(pods: Sequence[BudgetPod], disrupted: Mapping[str, Time]) -> int:
    """Count ready Pods that are not terminating or disrupted."""
    return sum(pod.is_ready and not pod.is_terminating and pod.name not in disrupted for pod in pods)


def _failed_status(budget: PodDisruptionBudget, why: str, now: Time) -> PodDisruptionBudgetStatus:
    """Return a status that allows no disruptions, after an error."""
    status = msgspec.structs.replace(
        budget.status,
        conditions=list(budget.status.conditions),
        disruptions_allowed=0,
        observed_generation=budget.metadata.generation,
    )
    _set_condition(status, "SyncFailed", why, now)
    return status


def _set_condition(status: PodDisruptionBudgetStatus, reason: str, message: str, now: Time) -> None:
    condition = Condition(
        type="DisruptionAllowed",
        status="True" if status.disruptions_allowed else "False",
        reason=reason,
        message=message,
        observed_generation=status.observed_generation,
    )
    status.conditions = [msgspec.structs.replace(each) for each in status.conditions]
    set_condition(status.conditions, condition, now)

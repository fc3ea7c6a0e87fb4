"""Reconciles a DaemonSet: creates and deletes Pods so that each eligible node runs one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from ostinato.api.errors import NAMESPACE_TERMINATING, APIError, Forbidden
from ostinato.api.selectors.labels import Selector, SelectorError
from ostinato.cache.lookup import ListQuery
from ostinato.client.views import view_of
from ostinato.controllers import Context, Request, Result
from ostinato.kinds.apps_v1 import ControllerRevision, DaemonSet, DaemonSetStatus
from ostinato.plane.controllers.workloads.daemonset import rollout
from ostinato.plane.controllers.workloads.daemonset.backoff import FailureBackoff
from ostinato.plane.controllers.workloads.daemonset.placement import NodeFacts, NodeFit, NodeState, Placement
from ostinato.plane.controllers.workloads.daemonset.pods import (
    HASH_LABEL,
    DaemonPod,
    PodFactory,
    is_updated,
    template_generation,
)
from ostinato.plane.controllers.workloads.daemonset.rollout import Changes, PodChecks
from ostinato.plane.controllers.workloads.pod_control import create_pod, delete_pod, encoded
from ostinato.plane.controllers.workloads.revision_history import History
from ostinato.plane.controllers.workloads.slow_start import slow_start
from ostinato.plane.objects.decoded import DecodedCache
from ostinato.plane.objects.pod_state import PodState
from ostinato.plane.objects.status import write_status
from ostinato.plane.ownership.controller_refs import claim_entries
from ostinato.plane.ownership.event_handler import selector_of
from ostinato.world import Clock

_BURST_REPLICAS: Final = 250  # Pods created, and Pods deleted, per sync
_QUIET_FACTOR: Final = 4  # a set is not synced again for this multiple of the time that its last evaluation took


class DaemonSetReconciler:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures = FailureBackoff(clock)
        self._pods = DecodedCache(DaemonPod.of)
        self._nodes: dict[Request, _NodeFits] = {}  # by DaemonSet
        self._quiet_until: dict[Request, float] = {}  # by DaemonSet: no sync before this time

    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        owner = await ctx.client.get(DaemonSet, request, missing=None)
        if owner is None or owner.metadata.deletion_timestamp is not None:
            self._pods.forget(request)
            self._nodes.pop(request, None)
            self._quiet_until.pop(request, None)
            return None
        if (quiet := self._quiet_until.get(request, 0.0) - self._clock.monotonic()) > 0:
            return Result(requeue_after=quiet)
        try:
            selector = selector_of(owner.spec.selector)
        except SelectorError as error:
            ctx.logger.warning("invalid selector object=%s error=%s", request, error)
            return None  # retried when it changes
        try:
            return await self._sync(owner, selector, ctx)
        except Forbidden as error:
            if error.has_cause(NAMESPACE_TERMINATING):
                return None  # the namespace is terminating
            raise

    async def _sync(self, owner: DaemonSet, selector: Selector, ctx: Context) -> Result | None:
        history = History(ctx.client, owner, selector, HASH_LABEL)
        revisions = await history.load()
        current, collisions = await history.revise(revisions, owner.status.collision_count or 0)
        entries = await claim_entries(ctx.client, owner, selector, PodState)
        began = self._clock.monotonic()
        sync = _Sync(ctx, owner, current, self._pods.get(ctx.request, entries), await self._fits(owner, ctx))
        changes = sync.needed(self._failures)
        self._quiet_until[ctx.request] = began + _QUIET_FACTOR * (self._clock.monotonic() - began)
        failure: APIError | None = None
        try:
            if not changes:
                changes = sync.outdated()
                await sync.truncate_history(
                    history, [each for each in revisions if each.metadata.uid != current.metadata.uid]
                )
            await sync.apply(changes)
        except APIError as error:
            failure = error
        waits = [*sync.waits, *await sync.update_status(collisions)]
        if failure is not None:
            raise failure
        return Result(requeue_after=min(waits)) if waits else None

    async def _fits(self, owner: DaemonSet, ctx: Context) -> dict[str, NodeFit]:
        known = self._nodes.get(ctx.request)
        if known is None or known.version != (owner.metadata.uid, owner.metadata.generation):
            known = self._nodes[ctx.request] = _NodeFits(owner)
        found = await ctx.client.found(view_of(NodeState), ListQuery(fresh=False))
        assert found is not None, "nodes have an informer"
        return dict(known.fits.get(None, found.entries))


class _NodeFits:
    """Eligibility of all nodes for one generation of a DaemonSet."""

    def __init__(self, owner: DaemonSet) -> None:
        self.version = owner.metadata.uid, owner.metadata.generation
        placement = Placement(owner)
        self.fits = DecodedCache(lambda entry: (entry.key.name, NodeFacts(entry).fit(placement)))


class _Sync:
    """One sync of one DaemonSet."""

    def __init__(
        self,
        ctx: Context,
        owner: DaemonSet,
        revision: ControllerRevision,
        pods: Sequence[DaemonPod],
        fits: Mapping[str, NodeFit],
    ) -> None:
        self.waits: list[float] = []  # seconds until the next sync
        self._ctx = ctx
        self._owner = owner
        self._hash = revision.metadata.labels.get(HASH_LABEL, "")
        self._pods = pods
        self._now: datetime = ctx.now()
        self._seconds = owner.spec.min_ready_seconds or 0
        generation = template_generation(owner)
        self._checks = PodChecks(
            is_updated=lambda pod: is_updated(pod, self._hash, generation),
            is_available=lambda pod: pod.is_available(self._seconds, self._now),
        )
        self._fits = fits
        self._desired = sum(fit is NodeFit.SHOULD_RUN for fit in fits.values())
        self._pods_by_node: dict[str, list[DaemonPod]] = {}  # by node; without finished Pods that are terminating
        for pod in pods:
            if pod.node and not (pod.is_terminating and pod.is_finished):
                self._pods_by_node.setdefault(pod.node, []).append(pod)

    def needed(self, failures: FailureBackoff) -> Changes:
        """Return the changes that give each eligible node one Pod, and other nodes none."""
        changes = Changes()
        surging = rollout.max_surge(self._owner, 1) > 0
        for node, fit in self._fits.items():
            pods = self._pods_by_node.get(node)
            if pods is not None and fit is not NodeFit.MUST_LEAVE:
                if len(pods) == 1 and not pods[0].is_finished and not pods[0].is_terminating:
                    continue
                changes.pods += self._finished(node, pods, failures)
                pods = [pod for pod in pods if not pod.is_finished]
            found = rollout.needed_on_node(node, fit, pods, self._checks, surging=surging)
            changes.nodes += found.nodes
            changes.pods += found.pods
        changes.pods += [  # unscheduled Pods of deleted nodes: Pod GC does not delete them
            pod
            for node, pods in self._pods_by_node.items()
            if node not in self._fits
            for pod in pods
            if not pod.is_bound and not pod.is_terminating
        ]
        return changes

    def _finished(self, node: str, pods: Sequence[DaemonPod], failures: FailureBackoff) -> list[DaemonPod]:
        """Return finished Pods to delete, so that they are replaced."""
        finished: list[DaemonPod] = []
        for pod in pods:
            if pod.is_terminating or not pod.is_finished:
                continue
            description = f"daemon pod {pod.key.namespace}/{pod.key.name} on node {node}"
            if pod.phase == "Succeeded":
                self._event("SucceededDaemonPod", f"Found succeeded {description}, will try to delete it")
            else:
                owner = self._owner
                wait = failures.wait((owner.metadata.uid, owner.status.observed_generation, node))
                if wait > 0:
                    self.waits.append(wait)
                    continue
                self._event("FailedDaemonPod", f"Found failed {description}, will try to kill it", kind="Warning")
            finished.append(pod)
        return finished

    def outdated(self) -> Changes:
        """Return the next changes of a rolling update."""
        strategy = self._owner.spec.update_strategy
        if strategy is None or strategy.type != "RollingUpdate":
            return Changes()
        if all(map(self._checks.is_updated, self._pods)):
            return Changes()
        on: Mapping[str, Sequence[DaemonPod]] = {
            **self._pods_by_node,
            **{
                node: ()
                for node, fit in self._fits.items()
                if fit is NodeFit.SHOULD_RUN and node not in self._pods_by_node
            },
        }
        surge = rollout.max_surge(self._owner, self._desired)
        if surge:
            return rollout.surge_changes(on, self._fits, self._checks, surge, self._desired)
        return rollout.replacement_changes(on, self._checks, rollout.max_unavailable(self._owner, self._desired) or 1)

    async def truncate_history(self, history: History, old: Sequence[ControllerRevision]) -> None:
        limit = self._owner.spec.revision_history_limit
        if limit is None:
            return
        used = {pod.labels.get(HASH_LABEL) for pod in self._pods}
        spare = [each for each in old if each.metadata.labels.get(HASH_LABEL) not in used]
        await history.truncate(spare, len(old) - limit)

    async def update_status(self, collisions: int) -> list[float]:
        """Write the status; return the seconds until Pods become available."""
        current = misplaced = ready = updated = available = 0
        waits: list[float] = []
        for node, fit in self._fits.items():
            pods = self._pods_by_node.get(node)
            if not pods:
                continue
            if fit is not NodeFit.SHOULD_RUN:
                misplaced += 1
                continue
            current += 1
            oldest = pods[0] if len(pods) == 1 else min(pods, key=lambda pod: pod.age)
            updated += self._checks.is_updated(oldest)
            ready += oldest.is_ready
            if self._checks.is_available(oldest):
                available += 1
            elif (since := oldest.ready_since) is not None:
                waits.append(max(self._seconds - (self._now - since).total_seconds(), 0.0))
        before = self._owner.status
        after = DaemonSetStatus(
            collision_count=collisions or before.collision_count,
            conditions=before.conditions,
            current_number_scheduled=current,
            desired_number_scheduled=self._desired,
            number_available=available or None,
            number_misscheduled=misplaced,
            number_ready=ready,
            number_unavailable=(self._desired - available) or None,
            observed_generation=self._owner.metadata.generation,
            updated_number_scheduled=updated or None,
        )
        await write_status(self._ctx.client, self._owner, before, after)
        return waits

    async def apply(self, changes: Changes) -> None:
        failure: APIError | None = None
        if changes.nodes:
            factory = PodFactory(self._owner, self._hash)
            try:
                await slow_start(
                    changes.nodes[:_BURST_REPLICAS],
                    lambda node: create_pod(self._ctx, self._owner, encoded(factory.new_pod(node))),
                )
            except APIError as error:
                failure = error
        for pod in changes.pods[:_BURST_REPLICAS]:
            try:
                await delete_pod(self._ctx, self._owner, pod.key, pod.uid)
            except APIError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def _event(self, reason: str, note: str, kind: str = "Normal") -> None:
        self._ctx.event(self._owner, reason, note, kind=kind)

"""A DaemonSet's step: from the Pods that are on nodes to one on every node where one belongs."""

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
from ostinato.plane.controllers.workloads.daemonset.placement import Fit, NodeFacts, NodeState, Placement
from ostinato.plane.controllers.workloads.daemonset.pods import (
    HASH_LABEL,
    Daemon,
    Mould,
    is_updated,
    template_generation,
)
from ostinato.plane.controllers.workloads.daemonset.rollout import Judge, Work
from ostinato.plane.controllers.workloads.pod_control import create_pod, delete_pod
from ostinato.plane.controllers.workloads.revision_history import History
from ostinato.plane.controllers.workloads.slow_start import slow_start
from ostinato.plane.objects.decoded import DecodedCache
from ostinato.plane.objects.pod_state import PodState
from ostinato.plane.objects.status import write_status
from ostinato.plane.ownership.controller_refs import claim_entries
from ostinato.plane.ownership.event_handler import selector_of
from ostinato.world import Clock

_MOST: Final = 250  # Pods that are made, and that are deleted, in one step
_RESTS: Final = 4  # times as long as a look at all Pods took: so that of many changes at once not each is looked at


class DaemonSetReconciler:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures = FailureBackoff(clock)
        self._pods = DecodedCache(Daemon.of)
        self._nodes: dict[Request, _Fits] = {}  # of each set
        self._rests: dict[Request, float] = {}  # until when each set is left alone

    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        owner = await ctx.client.get(DaemonSet, request, missing=None)
        if owner is None or owner.metadata.deletion_timestamp is not None:
            self._pods.forget(request)
            self._nodes.pop(request, None)
            self._rests.pop(request, None)
            return None
        if (rest := self._rests.get(request, 0.0) - self._clock.monotonic()) > 0:
            return Result(requeue_after=rest)
        try:
            selector = selector_of(owner.spec.selector)
        except SelectorError as error:
            ctx.logger.warning("DaemonSet %s: spec.selector: %s", request, error)
            return None  # until it changes
        try:
            return await self._step(owner, selector, ctx)
        except Forbidden as error:
            if error.has_cause(NAMESPACE_TERMINATING):
                return None  # it goes with its namespace
            raise

    async def _step(self, owner: DaemonSet, selector: Selector, ctx: Context) -> Result | None:
        history = History(ctx.client, owner, selector, HASH_LABEL)
        revisions = await history.load()
        current, collisions = await history.revise(revisions, owner.status.collision_count or 0)
        entries = await claim_entries(ctx.client, owner, selector, PodState)
        began = self._clock.monotonic()
        step = _Step(ctx, owner, current, self._pods.get(ctx.request, entries), await self._fits(owner, ctx))
        work = step.needed(self._failures)
        self._rests[ctx.request] = began + _RESTS * (self._clock.monotonic() - began)
        failure: APIError | None = None
        try:
            if not work:
                work = step.outdated()
                await step.forget(history, [each for each in revisions if each.metadata.uid != current.metadata.uid])
            await step.do(work)
        except APIError as error:
            failure = error
        waits = [*step.waits, *await step.say(collisions)]
        if failure is not None:
            raise failure
        return Result(requeue_after=min(waits)) if waits else None

    async def _fits(self, owner: DaemonSet, ctx: Context) -> dict[str, Fit]:
        known = self._nodes.get(ctx.request)
        if known is None or known.version != (owner.metadata.uid, owner.metadata.generation):
            known = self._nodes[ctx.request] = _Fits(owner)
        found = await ctx.client.found(view_of(NodeState), ListQuery(fresh=False))
        assert found is not None, "nodes are watched"
        return dict(known.fits.get(None, found.entries))


class _Fits:
    """Which nodes are fit for one state of a set."""

    def __init__(self, owner: DaemonSet) -> None:
        self.version = owner.metadata.uid, owner.metadata.generation
        placement = Placement(owner)
        self.fits = DecodedCache(lambda entry: (entry.key.name, NodeFacts(entry).fit(placement)))


class _Step:
    """One reconcile of one set."""

    def __init__(
        self,
        ctx: Context,
        owner: DaemonSet,
        revision: ControllerRevision,
        pods: Sequence[Daemon],
        fits: Mapping[str, Fit],
    ) -> None:
        self.waits: list[float] = []  # seconds after which there is more to do
        self._ctx = ctx
        self._owner = owner
        self._hash = revision.metadata.labels.get(HASH_LABEL, "")
        self._pods = pods
        self._now: datetime = ctx.now()
        self._seconds = owner.spec.min_ready_seconds or 0
        generation = template_generation(owner)
        self._judge = Judge(
            is_updated=lambda pod: is_updated(pod, self._hash, generation),
            is_available=lambda pod: pod.is_available(self._seconds, self._now),
        )
        self._fits = fits
        self._desired = sum(fit is Fit.RUN for fit in fits.values())
        self._on: dict[str, list[Daemon]] = {}  # the Pods of each node that has any, but for those that are over
        for pod in pods:
            if pod.node and not (pod.is_going and pod.is_finished):
                self._on.setdefault(pod.node, []).append(pod)

    def needed(self, failures: FailureBackoff) -> Work:
        """What is to be done to have a Pod where one belongs, and none elsewhere."""
        work = Work()
        surging = rollout.surge(self._owner, 1) > 0
        for node, fit in self._fits.items():
            pods = self._on.get(node)
            if pods is not None and fit is not Fit.LEAVE:
                if len(pods) == 1 and not pods[0].is_finished and not pods[0].is_going:
                    continue
                work.pods += self._ended(node, pods, failures)
                pods = [pod for pod in pods if not pod.is_finished]
            found = rollout.on_node(node, fit, pods, self._judge, surging=surging)
            work.nodes += found.nodes
            work.pods += found.pods
        work.pods += [  # nobody else would: a Pod that no node has is not looked after
            pod
            for node, pods in self._on.items()
            if node not in self._fits
            for pod in pods
            if not pod.is_bound and not pod.is_going
        ]
        return work

    def _ended(self, node: str, pods: Sequence[Daemon], failures: FailureBackoff) -> list[Daemon]:
        """Pods that have ended, and are to be deleted so that others can be made."""
        ended: list[Daemon] = []
        for pod in pods:
            if pod.is_going or not pod.is_finished:
                continue
            about = f"daemon pod {pod.key.namespace}/{pod.key.name} on node {node}"
            if pod.phase == "Succeeded":
                self._tell("SucceededDaemonPod", f"Found succeeded {about}, will try to delete it")
            else:
                owner = self._owner
                wait = failures.wait((owner.metadata.uid, owner.status.observed_generation, node))
                if wait > 0:
                    self.waits.append(wait)
                    continue
                self._tell("FailedDaemonPod", f"Found failed {about}, will try to kill it", kind="Warning")
            ended.append(pod)
        return ended

    def outdated(self) -> Work:
        """What is to be done next to replace Pods of older templates."""
        strategy = self._owner.spec.update_strategy
        if strategy is None or strategy.type != "RollingUpdate":
            return Work()
        if all(map(self._judge.is_updated, self._pods)):
            return Work()
        on: Mapping[str, Sequence[Daemon]] = {
            **self._on,
            **{node: () for node, fit in self._fits.items() if fit is Fit.RUN and node not in self._on},
        }
        surge = rollout.surge(self._owner, self._desired)
        if surge:
            return rollout.additions(on, self._fits, self._judge, surge, self._desired)
        return rollout.replacements(on, self._judge, rollout.unavailable(self._owner, self._desired) or 1)

    async def forget(self, history: History, old: Sequence[ControllerRevision]) -> None:
        limit = self._owner.spec.revision_history_limit
        if limit is None:
            return
        used = {pod.labels.get(HASH_LABEL) for pod in self._pods}
        spare = [each for each in old if each.metadata.labels.get(HASH_LABEL) not in used]
        await history.forget(spare, len(old) - limit)

    async def say(self, collisions: int) -> list[float]:
        """Write the status; seconds until it has to be looked at again."""
        current = misplaced = ready = updated = available = 0
        waits: list[float] = []
        for node, fit in self._fits.items():
            pods = self._on.get(node)
            if not pods:
                continue
            if fit is not Fit.RUN:
                misplaced += 1
                continue
            current += 1
            oldest = pods[0] if len(pods) == 1 else min(pods, key=lambda pod: pod.age)
            updated += self._judge.is_updated(oldest)
            ready += oldest.is_ready
            if self._judge.is_available(oldest):
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

    async def do(self, work: Work) -> None:
        failure: APIError | None = None
        if work.nodes:
            mould = Mould(self._owner, self._hash)
            try:
                await slow_start(work.nodes[:_MOST], lambda node: create_pod(self._ctx, self._owner, mould.cast(node)))
            except APIError as error:
                failure = error
        for pod in work.pods[:_MOST]:
            try:
                await delete_pod(self._ctx, self._owner, pod.key, pod.uid)
            except APIError as error:
                failure = failure or error
        if failure is not None:
            raise failure

    def _tell(self, reason: str, note: str, kind: str = "Normal") -> None:
        self._ctx.event(self._owner, reason, note, kind=kind)

"""ReplicaSet controller; also serves ReplicationControllers (`replication_controller`).

- Its Pods are those that it controls and selects; matching orphans are adopted. Finished and terminating Pods do not
  count.
- Missing Pods are created with slow start (1, 2, 4, …); surplus Pods are deleted by rank (`ranking`); at most 500 per
  sync.
- Errors are reported by an event and the condition ReplicaFailure, and retried with backoff.
- The status counts Pods that are active, ready, available for `minReadySeconds`, and terminating.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any, Final

import msgspec

from ostinato.api.errors import NAMESPACE_TERMINATING, APIError
from ostinato.api.gvk import NamespacedName
from ostinato.api.owners import controller_of
from ostinato.api.selectors.labels import Selector
from ostinato.api.time import Time
from ostinato.cache import CachedClient, Entry
from ostinato.client.transport.protocol import TransportError
from ostinato.controllers import Context, Result
from ostinato.kinds.apps_v1 import ReplicaSet, ReplicaSetCondition, ReplicaSetStatus
from ostinato.kinds.core_v1 import ReplicationController, ReplicationControllerStatus
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.workloads.pod_control import create_pod, delete_pod, encoded
from ostinato.plane.controllers.workloads.pod_template import pod_from_template
from ostinato.plane.controllers.workloads.replicaset.pods import ForReplicaOwner, PodSummaries
from ostinato.plane.controllers.workloads.replicaset.ranking import Candidate, ranked
from ostinato.plane.controllers.workloads.slow_start import slow_start
from ostinato.plane.objects.pod_state import PodState, is_active
from ostinato.plane.objects.status import write_status
from ostinato.plane.ownership.controller_refs import (
    ControllerRefManager,
    add_controller_index,
    controlled_by,
    orphans_in,
)
from ostinato.plane.ownership.event_handler import selector_in_spec

Owner = ReplicaSet | ReplicationController
_Status = ReplicaSetStatus | ReplicationControllerStatus

_MOST_AT_ONCE: Final = 500
_FAILURE: Final = "ReplicaFailure"


class ReplicaKind(msgspec.Struct, frozen=True, kw_only=True):
    """What differs between ReplicaSet and ReplicationController.

    - `select`: returns the selector of an object. Defaults to `spec.selector`.
    """

    name: str
    kind: type[Any]
    status: type[Any]
    condition: type[Any]
    select: Callable[[Any], Selector] = selector_in_spec


REPLICA_SETS: Final = ReplicaKind(
    name="replicaset-controller", kind=ReplicaSet, status=ReplicaSetStatus, condition=ReplicaSetCondition
)


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001
    add_replica_controller(manager, REPLICA_SETS)


def add_replica_controller(manager: Manager, replica_kind: ReplicaKind) -> None:
    add_controller_index(manager, PodState)
    add_controller_index(manager, replica_kind.kind)  # finds related ReplicaSets
    summaries = PodSummaries()
    (
        manager.build(replica_kind.name)
        .watch_for(replica_kind.kind)
        .watches(PodState, handler=ForReplicaOwner(replica_kind.kind, replica_kind.select, summaries))
        .with_options(max_concurrent=5)
        .complete(ReplicaReconciler(replica_kind, summaries))
    )


class _Pods(msgspec.Struct):
    """Pods of one owner."""

    active: list[Entry]  # not finished, not terminating
    terminating: int = 0  # unfinished


class _Failure(msgspec.Struct, frozen=True):
    """Error that prevented the desired number of Pods."""

    reason: str
    message: str
    error: Exception


class ReplicaReconciler:
    def __init__(self, replica_kind: ReplicaKind, summaries: PodSummaries) -> None:
        self._replica_kind = replica_kind
        self._summaries = summaries

    async def reconcile(self, request: NamespacedName, ctx: Context) -> Result | None:
        owner: Owner | None = await ctx.client.get(self._replica_kind.kind, request, missing=None)
        if owner is None:
            return None
        pods = await self._pods(ctx.client, owner)
        failure = None if owner.metadata.deletion_timestamp is not None else await self._adjust(owner, pods.active, ctx)
        now = ctx.now()
        status = self._status(owner, pods, failure, now)
        await write_status(ctx.client, owner, owner.status, status)
        if failure is not None:
            raise failure.error
        if (status.ready_replicas or 0) == (status.available_replicas or 0):
            return None
        return Result(requeue_after=self._next_available(owner, pods.active, now))

    async def _pods(self, client: CachedClient, owner: Owner) -> _Pods:
        selector = self._replica_kind.select(owner)
        selects: dict[bytes, bool] = {}  # cached by labels: Pods of one owner mostly have equal ones

        def selected(entry: Entry) -> bool:
            known = selects.get(entry.labels_json)
            if known is None:
                known = selects[entry.labels_json] = selector.matches(entry.labels)
            return known

        pods = _Pods([])
        to_claim: list[Entry] = []
        for entry in await controlled_by(client, PodState, owner.metadata.uid):
            if self._summaries.at(entry).finished:
                continue
            if entry.is_being_deleted:
                pods.terminating += selected(entry)
            else:
                (pods.active if selected(entry) else to_claim).append(entry)
        to_claim += [
            entry
            for entry in await controlled_by(client, PodState, orphans_in(owner.metadata.namespace))
            if selected(entry) and not entry.is_being_deleted and not self._summaries.at(entry).finished
        ]
        if to_claim:
            claims = ControllerRefManager(client, owner, selector, PodState)
            claimed = {
                pod.metadata.uid for pod in await claims.claim_from([entry.read(PodState) for entry in to_claim])
            }
            pods.active += [entry for entry in to_claim if entry.uid in claimed]
        return pods

    async def _adjust(self, owner: Owner, active: list[Entry], ctx: Context) -> _Failure | None:
        missing = (owner.spec.replicas or 0) - len(active)
        try:
            if missing > 0:
                await self._create(owner, min(missing, _MOST_AT_ONCE), ctx)
            elif missing < 0:
                await self._delete(owner, active, min(-missing, _MOST_AT_ONCE), ctx)
        except (APIError, TransportError) as error:
            if missing > 0:
                return _Failure("FailedCreate", str(error), error)
            return _Failure("FailedDelete", f"unable to delete pods: {error}", error)
        return None

    async def _create(self, owner: Owner, count: int, ctx: Context) -> None:
        assert owner.spec.template is not None, "required by validation"
        pod = encoded(pod_from_template(owner.spec.template, owner))
        namespace_terminating = False  # creation is rejected

        async def create(_: int) -> None:
            nonlocal namespace_terminating
            if namespace_terminating:
                return
            try:
                await create_pod(ctx, owner, pod)
            except APIError as error:
                if not error.has_cause(NAMESPACE_TERMINATING):
                    raise
                namespace_terminating = True

        await slow_start(range(count), create)

    async def _delete(self, owner: Owner, active: list[Entry], count: int, ctx: Context) -> None:
        chosen = active
        if count < len(active):
            related_pods = await self._related_pods_by_node(ctx.client, owner)
            order = ranked([entry.read(Candidate) for entry in active], related_pods, ctx.world.clock.now())
            uids = {pod.metadata.uid for pod in order[:count]}
            chosen = [entry for entry in active if entry.uid in uids]

        deletions = [delete_pod(ctx, owner, entry.key, entry.uid) for entry in chosen]
        for answer in await asyncio.gather(*deletions, return_exceptions=True):
            if isinstance(answer, BaseException):
                raise answer

    async def _related_pods_by_node(self, client: CachedClient, owner: Owner) -> Counter[str]:
        """Return the number of Pods of this and related ReplicaSets per node."""
        counts: Counter[str] = Counter()
        manager = controller_of(owner)
        if manager is None:
            return counts
        for sibling in await controlled_by(client, self._replica_kind.kind, manager.uid):
            pods = [entry.read(PodState) for entry in await controlled_by(client, PodState, sibling.uid)]
            counts.update(pod.spec.node_name for pod in pods if is_active(pod))
        return counts

    def _status(self, owner: Owner, pods: _Pods, failure: _Failure | None, now: Time) -> _Status:
        wanted = owner.spec.template.metadata.labels if owner.spec.template is not None else {}
        labelled: dict[bytes, bool] = {}
        fully = ready = available = 0
        for entry in pods.active:
            labels = entry.labels_json
            if labels not in labelled:
                labelled[labels] = wanted.items() <= entry.labels.items()
            fully += labelled[labels]
            if self._summaries.at(entry).ready:
                ready += 1
                available += self._seconds_until_available(owner, entry, now) <= 0
        status: _Status = self._replica_kind.status(
            replicas=len(pods.active),
            fully_labeled_replicas=fully or None,
            ready_replicas=ready or None,
            available_replicas=available or None,
            observed_generation=owner.metadata.generation or None,
            conditions=self._conditions(owner, failure, now),
        )
        if isinstance(status, ReplicaSetStatus):
            status.terminating_replicas = pods.terminating
        return status

    def _conditions(self, owner: Owner, failure: _Failure | None, now: Time) -> list[Any]:
        """Return the conditions with ReplicaFailure set or removed."""
        known: list[Any] = list(owner.status.conditions)
        others = [each for each in known if each.type != _FAILURE]
        if failure is None:
            return others
        if len(others) < len(known):
            return known
        condition = self._replica_kind.condition(
            type=_FAILURE, status="True", reason=failure.reason, message=failure.message, last_transition_time=now
        )
        return [*known, condition]

    def _seconds_until_available(self, owner: Owner, entry: Entry, now: Time) -> float:
        """Return the seconds until a ready Pod is available; 0 or less if it is."""
        least = owner.spec.min_ready_seconds or 0
        if least == 0:
            return 0.0
        since = self._summaries.at(entry).ready_at()
        return float(least) if since is None else least - (now - since).total_seconds()

    def _next_available(self, owner: Owner, active: list[Entry], now: Time) -> float:
        left = [self._seconds_until_available(owner, entry, now) for entry in active if self._summaries.at(entry).ready]
        return min((seconds for seconds in left if seconds > 0), default=float(owner.spec.min_ready_seconds or 0))

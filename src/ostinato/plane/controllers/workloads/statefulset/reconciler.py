"""Reconciles a StatefulSet.

With OrderedReady, no Pod is created, deleted or updated while a preceding one is missing, terminating or unavailable.
Missing replicas are created in ascending order, condemned ones are deleted in descending order, then outdated ones are
deleted in descending order down to the partition and recreated.

Each sync starts after the cache has the writes of the last one.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from typing import Final, TypeVar

from ostinato.api.errors import NAMESPACE_TERMINATING, AlreadyExists, APIError, Forbidden
from ostinato.api.selectors.labels import SelectorError
from ostinato.cache.store.entry import Entry
from ostinato.client.patching import StrategicMergePatch
from ostinato.controllers import Context, Request, Result
from ostinato.kinds.apps_v1 import ControllerRevision, StatefulSet
from ostinato.kinds.core_v1 import Pod, PodTemplateSpec
from ostinato.plane.controllers.workloads.revision_history import History, template_of
from ostinato.plane.controllers.workloads.slow_start import slow_start
from ostinato.plane.controllers.workloads.statefulset import pods as pod_identity
from ostinato.plane.controllers.workloads.statefulset.claims import ClaimError, PodClaims
from ostinato.plane.controllers.workloads.statefulset.pods import Member
from ostinato.plane.controllers.workloads.statefulset.status import counted, is_complete
from ostinato.plane.objects.pod_state import is_available, is_finished, is_ready, ready_since
from ostinato.plane.objects.status import write_status
from ostinato.plane.ownership.controller_refs import claim_entries
from ostinato.plane.ownership.event_handler import selector_of

Item = TypeVar("Item")

HASH_LABEL: Final = "controller.kubernetes.io/hash"


class StatefulSetReconciler:
    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        owner = await ctx.client.get(StatefulSet, request, missing=None)
        if owner is None:
            return None
        try:
            selector = selector_of(owner.spec.selector)
        except SelectorError as error:
            ctx.logger.warning("invalid selector object=%s error=%s", request, error)
            return None  # retried when it changes

        def is_member(entry: Entry) -> bool:
            return pod_identity.split(entry.key.name)[0] == request.name

        pods = [entry.read(Member) for entry in await claim_entries(ctx.client, owner, selector, Member, is_member)]
        history = History(ctx.client, owner, selector, HASH_LABEL)
        try:
            return await _Sync(ctx, owner, pods, history).run()
        except Forbidden as error:
            if error.has_cause(NAMESPACE_TERMINATING):
                return None  # the namespace is terminating
            raise


class _Sync:
    """One sync of one StatefulSet."""

    def __init__(self, ctx: Context, owner: StatefulSet, pods: Sequence[Member], history: History) -> None:
        self._ctx = ctx
        self._client = ctx.client
        self._owner = owner
        self._pods = pods
        self._history = history
        self._claims = PodClaims(ctx, owner)
        self._now: datetime = ctx.now()
        self._in_order = owner.spec.pod_management_policy != "Parallel"
        wanted = pod_identity.ordinals(owner)
        by_ordinal = {pod.ordinal: pod for pod in pods}
        self._replicas = [(ordinal, by_ordinal.get(ordinal)) for ordinal in wanted]
        self._condemned = sorted(
            (pod for pod in pods if pod.ordinal >= 0 and pod.ordinal not in wanted), key=lambda pod: -pod.ordinal
        )
        self._templates: dict[str, PodTemplateSpec] = {}  # by revision name
        self._replaced = 0  # deleted for an update

    async def run(self) -> Result | None:
        if self._owner.metadata.deletion_timestamp is not None:
            return await self._update_status(
                self._owner.status.current_revision, self._owner.status.update_revision, None
            )
        revisions = await self._history.load()
        update, collisions = await self._history.revise(revisions, self._owner.status.collision_count or 0)
        current = next((each for each in revisions if _name(each) == self._owner.status.current_revision), update)
        failure: APIError | ClaimError | None = None
        try:
            await self._sync_pods(current, update)
        except (APIError, ClaimError) as error:
            failure = error
        result = await self._update_status(_name(current), _name(update), collisions)
        await self._truncate_history(revisions, (current, update))
        if isinstance(failure, APIError):
            raise failure
        return result if failure is None else Result(retry=True)

    async def _sync_pods(self, current: ControllerRevision, update: ControllerRevision) -> None:
        async def sync_replica(replica: tuple[int, Member | None]) -> bool:
            return await self._sync_replica(*replica, current, update)

        if not await self._for_each(self._replicas, sync_replica):
            return
        if not await self._for_each(self._condemned, self._update_claim_owners):
            return
        if not await self._for_each(self._condemned, self._delete_condemned):
            return
        strategy = self._owner.spec.update_strategy
        if strategy is None or strategy.type != "OnDelete":
            await self._rolling_update(_name(update))

    async def _for_each(self, items: Sequence[Item], work: Callable[[Item], Awaitable[bool]]) -> bool:
        """Process items in order until one must be awaited, or all of them in parallel; return whether to continue."""
        if self._in_order:
            for item in items:
                if not await work(item):
                    return False
        else:
            await slow_start(items, work)
        return True

    # Replicas

    async def _sync_replica(
        self, ordinal: int, pod: Member | None, current: ControllerRevision, update: ControllerRevision
    ) -> bool:
        """Sync the Pod of an ordinal; return whether it is up to date and available."""
        if pod is None:
            return await self._create(ordinal, current if self._uses_current_revision(ordinal) else update)
        if is_finished(pod):
            if pod.metadata.deletion_timestamp is None:
                await self._delete(pod)
            return False
        if pod.status.phase == "Pending":
            await self._create_missing_claims(pod)
        if self._in_order and (not self._is_available(pod) or pod.metadata.deletion_timestamp is not None):
            return False
        await self._repair(pod)
        return True

    def _uses_current_revision(self, ordinal: int) -> bool:
        """Return whether the ordinal uses the current revision during an update (partition)."""
        spec, status = self._owner.spec, self._owner.status
        strategy, first = spec.update_strategy, pod_identity.first_ordinal(self._owner)
        if strategy is None:
            return ordinal < first + (status.current_replicas or 0)
        if strategy.rolling_update is not None:
            return ordinal < first + (strategy.rolling_update.partition or 0)
        return strategy.type == "RollingUpdate" and ordinal < first + (status.current_replicas or 0)

    async def _create(self, ordinal: int, revision: ControllerRevision) -> bool:
        if await self._claims.has_stale_claim(ordinal):
            return False
        pod = pod_identity.new_member(self._owner, self._template(revision), _name(revision), ordinal)
        try:
            await self._claims.create_missing(ordinal)
            made = await self._client.create(pod)
            await self._claims.update_owners(made)
        except AlreadyExists:
            raise  # an unrelated Pod has the name: retried without an event
        except (APIError, ClaimError) as error:
            self._event("Create", pod, error)
            raise
        self._event("Create", pod)
        return False

    def _template(self, revision: ControllerRevision) -> PodTemplateSpec:
        name = _name(revision)
        if name not in self._templates:
            self._templates[name] = template_of(revision)
        return self._templates[name]

    async def _create_missing_claims(self, pod: Member) -> None:
        """Recreate deleted claims of a pending Pod."""
        await self._claims.create_missing(pod.ordinal)
        try:
            await self._claims.update_owners(pod)
        except APIError as error:
            self._event("Update", pod, error)
            raise

    async def _repair(self, pod: Member) -> None:
        """Repair identity labels, volumes and claim owners of a Pod."""
        change: dict[str, object] = {}
        if not pod_identity.has_identity(pod):
            change["metadata"] = {"labels": pod_identity.identity(pod.metadata.name)}
        if not pod_identity.has_storage(self._owner, pod):
            claims = pod_identity.claim_names(self._owner, pod.ordinal)
            volumes = [{"name": name, "persistentVolumeClaim": {"claimName": claims[name]}} for name in claims]
            change["spec"] = {"volumes": volumes}
        if not change and await self._claims.owners_match(pod):
            return
        try:
            await self._claims.create_missing(pod.ordinal)
            await self._claims.update_owners(pod)
            if change:
                await self._client.patch(Member, pod.metadata, StrategicMergePatch(change))
        except (APIError, ClaimError) as error:
            self._event("Update", pod, error)
            raise
        self._event("Update", pod)

    # Condemned and outdated Pods

    async def _update_claim_owners(self, pod: Member) -> bool:
        if not await self._claims.owners_match(pod):
            await self._claims.update_owners(pod)
        return True

    async def _delete_condemned(self, pod: Member) -> bool:
        if pod.metadata.deletion_timestamp is not None:
            return False
        if self._in_order and not self._is_available(pod) and pod is not self._first_unavailable():
            return False
        await self._delete(pod)
        return False

    def _first_unavailable(self) -> Member | None:
        """Return the first unavailable Pod: replicas first, then condemned ones, lowest ordinal first."""
        present = [pod for _, pod in self._replicas if pod is not None]
        for pod in [*present, *reversed(self._condemned)]:
            if not self._is_available(pod) or pod.metadata.deletion_timestamp is not None:
                return pod
        return None

    async def _rolling_update(self, revision: str) -> None:
        """Delete the outdated Pod with the highest ordinal, unless a higher one is unavailable."""
        strategy = self._owner.spec.update_strategy
        rolling = None if strategy is None else strategy.rolling_update
        partition = 0 if rolling is None else rolling.partition or 0
        for _, pod in reversed(self._replicas[partition:]):
            if pod is None:
                return
            terminating = pod.metadata.deletion_timestamp is not None
            if pod.revision != revision and not terminating:
                await self._delete(pod)
                self._replaced += 1
                return
            if terminating or not self._is_available(pod):
                return

    async def _delete(self, pod: Member) -> None:
        try:
            await self._client.delete(pod, missing_ok=True)
        except APIError as error:
            self._event("Delete", pod, error)
            raise
        self._event("Delete", pod)

    # Status and events

    async def _update_status(self, current: str | None, update: str | None, collisions: int | None) -> Result | None:
        owner = self._owner
        seconds = owner.spec.min_ready_seconds or 0
        status = counted(self._pods, current or "", update or "", seconds, self._now)
        status.current_replicas = max((status.current_replicas or 0) - self._replaced, 0) or None
        status.collision_count = owner.status.collision_count if collisions is None else collisions
        status.observed_generation = owner.metadata.generation
        status.conditions = owner.status.conditions
        if is_complete(owner, status):
            status.current_replicas = status.updated_replicas
            status.current_revision = status.update_revision
        await write_status(self._client, owner, owner.status, status)
        if (status.ready_replicas or 0) == (status.available_replicas or 0):
            return None
        return Result(requeue_after=self._until_available(seconds))

    def _until_available(self, seconds: int) -> float:
        """Return the seconds until the next Pod becomes available."""
        moments = [since for pod in self._pods if (since := ready_since(pod)) is not None]
        waits = [seconds - (self._now - since).total_seconds() for since in moments]
        return min((wait for wait in waits if wait > 0), default=float(seconds))

    async def _truncate_history(
        self, revisions: Sequence[ControllerRevision], live: Sequence[ControllerRevision]
    ) -> None:
        limit = self._owner.spec.revision_history_limit
        if limit is None or limit < 0:
            return
        used = {_name(each) for each in live} | {pod.revision for pod in self._pods}
        spare = [each for each in revisions if _name(each) not in used]
        await self._history.truncate(spare, len(spare) - limit)

    def _is_available(self, pod: Member) -> bool:
        running = pod.status.phase == "Running" and is_ready(pod)
        return running and is_available(pod, self._owner.spec.min_ready_seconds or 0, self._now)

    def _event(self, verb: str, pod: Pod | Member, error: Exception | None = None) -> None:
        description = f"{verb} Pod {pod.metadata.name} in StatefulSet {self._owner.metadata.name}"
        if error is None:
            self._ctx.event(self._owner, f"Successful{verb}", f"{description} successful")
        else:
            self._ctx.event(self._owner, f"Failed{verb}", f"{description} failed error: {error}", kind="Warning")


def _name(revision: ControllerRevision) -> str:
    return revision.metadata.name

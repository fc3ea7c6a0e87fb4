"""A StatefulSet's step: from the Pods that there are to the ones that are wanted, in order.

One after the other, unless the set says `Parallel`: no Pod is made, deleted or updated while one that comes before it
is missing, going, or not available. First all numbers get their Pod, from the lowest up; then those that are too many
go, from the highest down; then those that are outdated go, from the highest down to the partition, to be made anew.

What a step did is seen by the next: it begins when the cache has it.
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
from ostinato.plane.controllers.workloads.statefulset import pods as members
from ostinato.plane.controllers.workloads.statefulset.claims import Storage, StorageError
from ostinato.plane.controllers.workloads.statefulset.pods import Member
from ostinato.plane.controllers.workloads.statefulset.status import counted, is_complete
from ostinato.plane.objects.pod_state import is_available, is_finished, is_ready, ready_since
from ostinato.plane.objects.status import write_status
from ostinato.plane.ownership.controller_refs import claim_entries
from ostinato.plane.ownership.event_handler import selector_of

Piece = TypeVar("Piece")

HASH_LABEL: Final = "controller.kubernetes.io/hash"


class StatefulSetReconciler:
    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        owner = await ctx.client.get(StatefulSet, request, missing=None)
        if owner is None:
            return None
        try:
            selector = selector_of(owner.spec.selector)
        except SelectorError as error:
            ctx.logger.warning("StatefulSet %s: spec.selector: %s", request, error)
            return None  # until it changes

        def is_member(entry: Entry) -> bool:
            return members.split(entry.key.name)[0] == request.name

        pods = [entry.read(Member) for entry in await claim_entries(ctx.client, owner, selector, Member, is_member)]
        history = History(ctx.client, owner, selector, HASH_LABEL)
        try:
            return await _Step(ctx, owner, pods, history).take()
        except Forbidden as error:
            if error.has_cause(NAMESPACE_TERMINATING):
                return None  # it goes with its namespace
            raise


class _Step:
    """One reconcile of one set."""

    def __init__(self, ctx: Context, owner: StatefulSet, pods: Sequence[Member], history: History) -> None:
        self._ctx = ctx
        self._client = ctx.client
        self._owner = owner
        self._pods = pods
        self._history = history
        self._storage = Storage(ctx, owner)
        self._now: datetime = ctx.now()
        self._in_order = owner.spec.pod_management_policy != "Parallel"
        wanted = members.ordinals(owner)
        by_number = {pod.ordinal: pod for pod in pods}
        self._replicas = [(number, by_number.get(number)) for number in wanted]
        self._condemned = sorted(
            (pod for pod in pods if pod.ordinal >= 0 and pod.ordinal not in wanted), key=lambda pod: -pod.ordinal
        )
        self._templates: dict[str, PodTemplateSpec] = {}  # of revisions, by their names
        self._replaced = 0  # deleted so that they are made anew

    async def take(self) -> Result | None:
        if self._owner.metadata.deletion_timestamp is not None:
            return await self._say(self._owner.status.current_revision, self._owner.status.update_revision, None)
        revisions = await self._history.load()
        update, collisions = await self._history.revise(revisions, self._owner.status.collision_count or 0)
        current = next((each for each in revisions if _name(each) == self._owner.status.current_revision), update)
        failure: APIError | StorageError | None = None
        try:
            await self._advance(current, update)
        except (APIError, StorageError) as error:
            failure = error
        result = await self._say(_name(current), _name(update), collisions)
        await self._forget(revisions, (current, update))
        if isinstance(failure, APIError):
            raise failure
        return result if failure is None else Result(retry=True)

    async def _advance(self, current: ControllerRevision, update: ControllerRevision) -> None:
        async def fill(place: tuple[int, Member | None]) -> bool:
            return await self._fill(*place, current, update)

        if not await self._each(self._replicas, fill):
            return
        if not await self._each(self._condemned, self._settle):
            return
        if not await self._each(self._condemned, self._remove):
            return
        strategy = self._owner.spec.update_strategy
        if strategy is None or strategy.type != "OnDelete":
            await self._update(_name(update))

    async def _each(self, pieces: Sequence[Piece], work: Callable[[Piece], Awaitable[bool]]) -> bool:
        """Work on one after the other until one is to be waited for, or on all at once; whether to go on."""
        if self._in_order:
            for piece in pieces:
                if not await work(piece):
                    return False
        else:
            await slow_start(pieces, work)
        return True

    # The Pods that are wanted

    async def _fill(
        self, number: int, pod: Member | None, current: ControllerRevision, update: ControllerRevision
    ) -> bool:
        """See to the Pod of a number; whether it is as it should be."""
        if pod is None:
            return await self._create(number, current if self._stays_behind(number) else update)
        if is_finished(pod):
            if pod.metadata.deletion_timestamp is None:
                await self._delete(pod)
            return False
        if pod.status.phase == "Pending":
            await self._provide(pod)
        if self._in_order and (not self._is_available(pod) or pod.metadata.deletion_timestamp is not None):
            return False
        await self._correct(pod)
        return True

    def _stays_behind(self, number: int) -> bool:
        """Whether the Pod of a number is still to be made from the current revision, in the course of an update."""
        spec, status = self._owner.spec, self._owner.status
        strategy, first = spec.update_strategy, members.first_ordinal(self._owner)
        if strategy is None:
            return number < first + (status.current_replicas or 0)
        if strategy.rolling_update is not None:
            return number < first + (strategy.rolling_update.partition or 0)
        return strategy.type == "RollingUpdate" and number < first + (status.current_replicas or 0)

    async def _create(self, number: int, revision: ControllerRevision) -> bool:
        if await self._storage.belongs_to_former(number):
            return False
        pod = members.new_member(self._owner, self._template(revision), _name(revision), number)
        try:
            await self._storage.provide(number)
            made = await self._client.create(pod)
            await self._storage.settle(made)
        except AlreadyExists:
            raise  # another's Pod has the name: it may go, and that is no event in the life of this set
        except (APIError, StorageError) as error:
            self._tell("Create", pod, error)
            raise
        self._tell("Create", pod)
        return False

    def _template(self, revision: ControllerRevision) -> PodTemplateSpec:
        name = _name(revision)
        if name not in self._templates:
            self._templates[name] = template_of(revision)
        return self._templates[name]

    async def _provide(self, pod: Member) -> None:
        """A Pod that waits may wait for a claim that somebody deleted."""
        await self._storage.provide(pod.ordinal)
        try:
            await self._storage.settle(pod)
        except APIError as error:
            self._tell("Update", pod, error)
            raise

    async def _correct(self, pod: Member) -> None:
        """Give a Pod the labels, volumes and owners of claims that it lacks: one that was made by somebody else."""
        change: dict[str, object] = {}
        if not members.has_identity(pod):
            change["metadata"] = {"labels": members.identity(pod.metadata.name)}
        if not members.has_storage(self._owner, pod):
            claims = members.claim_names(self._owner, pod.ordinal)
            volumes = [{"name": name, "persistentVolumeClaim": {"claimName": claims[name]}} for name in claims]
            change["spec"] = {"volumes": volumes}
        if not change and await self._storage.is_settled(pod):
            return
        try:
            await self._storage.provide(pod.ordinal)
            await self._storage.settle(pod)
            if change:
                await self._client.patch(Member, pod.metadata, StrategicMergePatch(change))
        except (APIError, StorageError) as error:
            self._tell("Update", pod, error)
            raise
        self._tell("Update", pod)

    # The Pods that are too many, or outdated

    async def _settle(self, pod: Member) -> bool:
        if not await self._storage.is_settled(pod):
            await self._storage.settle(pod)
        return True

    async def _remove(self, pod: Member) -> bool:
        if pod.metadata.deletion_timestamp is not None:
            return False
        if self._in_order and not self._is_available(pod) and pod is not self._first_unavailable():
            return False
        await self._delete(pod)
        return False

    def _first_unavailable(self) -> Member | None:
        """Of those that are wanted and, after them, those that are too many, the one with the lowest number."""
        present = [pod for _, pod in self._replicas if pod is not None]
        for pod in [*present, *reversed(self._condemned)]:
            if not self._is_available(pod) or pod.metadata.deletion_timestamp is not None:
                return pod
        return None

    async def _update(self, revision: str) -> None:
        """Delete the outdated Pod with the highest number, unless one above it is not back yet."""
        strategy = self._owner.spec.update_strategy
        rolling = None if strategy is None else strategy.rolling_update
        partition = 0 if rolling is None else rolling.partition or 0
        for _, pod in reversed(self._replicas[partition:]):
            if pod is None:
                return
            going = pod.metadata.deletion_timestamp is not None
            if pod.revision != revision and not going:
                await self._delete(pod)
                self._replaced += 1
                return
            if going or not self._is_available(pod):
                return

    async def _delete(self, pod: Member) -> None:
        try:
            await self._client.delete(pod, missing_ok=True)
        except APIError as error:
            self._tell("Delete", pod, error)
            raise
        self._tell("Delete", pod)

    # What is said of it

    async def _say(self, current: str | None, update: str | None, collisions: int | None) -> Result | None:
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
        """How long until the next Pod has been ready for long enough."""
        moments = [since for pod in self._pods if (since := ready_since(pod)) is not None]
        waits = [seconds - (self._now - since).total_seconds() for since in moments]
        return min((wait for wait in waits if wait > 0), default=float(seconds))

    async def _forget(self, revisions: Sequence[ControllerRevision], live: Sequence[ControllerRevision]) -> None:
        limit = self._owner.spec.revision_history_limit
        if limit is None or limit < 0:
            return
        used = {_name(each) for each in live} | {pod.revision for pod in self._pods}
        spare = [each for each in revisions if _name(each) not in used]
        await self._history.forget(spare, len(spare) - limit)

    def _is_available(self, pod: Member) -> bool:
        running = pod.status.phase == "Running" and is_ready(pod)
        return running and is_available(pod, self._owner.spec.min_ready_seconds or 0, self._now)

    def _tell(self, verb: str, pod: Pod | Member, error: Exception | None = None) -> None:
        about = f"{verb} Pod {pod.metadata.name} in StatefulSet {self._owner.metadata.name}"
        if error is None:
            self._ctx.event(self._owner, f"Successful{verb}", f"{about} successful")
        else:
            self._ctx.event(self._owner, f"Failed{verb}", f"{about} failed error: {error}", kind="Warning")


def _name(revision: ControllerRevision) -> str:
    return revision.metadata.name

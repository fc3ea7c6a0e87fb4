"""One sync of a Deployment.

- Paused: scale existing ReplicaSets only.
- Rollback requested: restore an old template (`rollback`).
- Scaling event: scale the active ReplicaSets proportionally.
- RollingUpdate: scale the new ReplicaSet up, else old ones down, within maxSurge and maxUnavailable.
- Recreate: scale old ReplicaSets to 0, wait until their Pods are gone, then scale the new one up.

When a rollout is complete, old ReplicaSets beyond `revisionHistoryLimit` are deleted. The status is written at the end
of the sync; the conditions for pause and resume are written immediately.
"""

from __future__ import annotations

import copy
from typing import Any, Final

from ostinato.api.errors import NAMESPACE_TERMINATING, AlreadyExists, APIError
from ostinato.api.owners import is_controlled_by
from ostinato.client.patching import MergePatch
from ostinato.controllers import Context
from ostinato.kinds.apps_v1 import Deployment, DeploymentStatus, ReplicaSet
from ostinato.plane.controllers.workloads.deployment import progress, revisions, rollback, scaling
from ostinato.plane.controllers.workloads.deployment.scaling import (
    active,
    desired_replicas,
    max_surge,
    oldest_first,
    spec_replicas,
    strategy,
)
from ostinato.plane.objects.status import write_status

_UNLIMITED: Final = 2**31 - 1


class HashCollision(Exception):  # noqa: N818
    """Another ReplicaSet has the name of the new one; the next sync uses another hash."""


class Rollout:
    def __init__(self, ctx: Context, deployment: Deployment, sets: list[ReplicaSet]) -> None:
        self._ctx = ctx
        self._client = ctx.client
        self._deployment = deployment
        ordered = oldest_first(sets)
        template = deployment.spec.template
        self._new = next((each for each in ordered if revisions.same_template(each.spec.template, template)), None)
        self._old = [each for each in ordered if each is not self._new]
        self._now = ctx.now()
        self.status: DeploymentStatus = copy.deepcopy(deployment.status)
        self._written: DeploymentStatus = deployment.status
        self._revision = self._written_revision = deployment.metadata.annotations.get(revisions.REVISION, "")

    async def sync(self) -> None:
        if self._deployment.metadata.deletion_timestamp is not None:
            self._count_status()
            return
        await self._check_paused_conditions()
        await self._sync_new_set()
        if self._deployment.spec.paused:
            await self._scale()
            await self._clean_up()
            self._count_status()
        elif (revision := rollback.requested_revision(self._deployment)) is not None:
            await self._roll_back(revision)
        elif self._is_scaling_event():
            await self._scale()
            self._count_status()
        elif strategy(self._deployment) == scaling.RECREATE:
            await self._recreate()
        else:
            await self._rolling_update()

    async def write_status(self) -> None:
        """Write the changed fields of the status."""
        revision = {revisions.REVISION: self._revision} if self._revision != self._written_revision else None
        await write_status(self._client, self._deployment, self._written, self.status, annotations=revision)
        self._written, self._written_revision = copy.deepcopy(self.status), self._revision

    def time_left(self) -> float | None:
        """Return the seconds until the next sync."""
        if self._deployment.metadata.deletion_timestamp is not None or self._deployment.spec.paused:
            return None
        return progress.time_left(self._deployment, self.status, self._now)

    # Strategies

    async def _rolling_update(self) -> None:
        new = await self._get_or_create_new_set()
        total = spec_replicas(new) + sum(map(spec_replicas, self._old))
        target = desired_replicas(self._deployment)
        if spec_replicas(new) < target:
            target = scaling.new_set_size(self._deployment, spec_replicas(new), total)
        if not await self._scale_set(new, target):
            steps = scaling.old_set_sizes(self._deployment, new, self._old)
            for replica_set, to in steps:
                await self._scale_set(replica_set, to)
        await self._progress()

    async def _recreate(self) -> None:
        shrunk = False
        for replica_set in active(self._old):
            shrunk |= await self._scale_set(replica_set, 0)
        if not shrunk and not any(map(_has_pods, self._old)):
            await self._scale_set(await self._get_or_create_new_set(), desired_replicas(self._deployment))
        await self._progress()

    async def _roll_back(self, revision: int) -> None:
        await self._get_or_create_new_set()
        reason, note, kind = await rollback.roll_back(self._client, self._deployment, self._sets, revision)
        self._ctx.event(self._deployment, reason, note, kind=kind)

    async def _progress(self) -> None:
        self.status = progress.with_progress(self._deployment, self.status, self._new, self._old, self._now)
        if progress.is_complete(self._deployment, self.status):
            await self._clean_up()

    def _count_status(self) -> None:
        self.status = progress.calculate_status(self._deployment, self.status, self._new, self._old, self._now)

    # New ReplicaSet

    async def _sync_new_set(self) -> None:
        """Update annotations and revision of the new ReplicaSet, if it exists."""
        new, deployment = self._new, self._deployment
        if new is None:
            return
        known = new.metadata.annotations
        annotations = revisions.new_annotations(deployment, known, revisions.next_revision(self._old))
        changes: dict[str, Any] = {}
        least = deployment.spec.min_ready_seconds or 0
        if (new.spec.min_ready_seconds or 0) != least:
            changes["spec"] = {"minReadySeconds": least}
        if annotations != known:
            changed = {name: value for name, value in annotations.items() if known.get(name) != value}
            changes["metadata"] = {"annotations": changed}
        if changes:
            self._new = await self._change(new, changes)
        self._revision = annotations.get(revisions.REVISION, "") or self._revision
        if progress.get_condition(self.status, progress.PROGRESSING) is None:
            self._set_progressing("True", progress.FOUND, f'Found new replica set "{new.metadata.name}"')
        await self.write_status()

    async def _get_or_create_new_set(self) -> ReplicaSet:
        """Return the new ReplicaSet; create it if it does not exist."""
        if self._new is None:
            self._new = await self._create()
        return self._new

    async def _create(self) -> ReplicaSet:
        deployment = self._deployment
        made = revisions.new_replica_set(deployment, self.status.collision_count or 0)
        name = made.metadata.name
        replicas = scaling.new_set_size(deployment, 0, sum(map(spec_replicas, self._old)))
        made.spec.replicas = replicas
        made.metadata.annotations = {
            **revisions.new_annotations(deployment, {}, revisions.next_revision(self._old)),
            **self._scale_annotations(),
        }
        try:
            created = await self._client.create(made)
        except AlreadyExists:
            created = await self._existing(name)
        except APIError as error:
            if not error.has_cause(NAMESPACE_TERMINATING):
                note = f'Failed to create new replica set "{name}": {error}'
                self._set_progressing("False", progress.CREATE_FAILED, note)
                self._ctx.event(deployment, progress.CREATE_FAILED, note, kind="Warning")
            raise
        else:
            if replicas > 0:
                self._scaling_event(f"Scaled up replica set {name} from 0 to {replicas}")
            self._set_progressing("True", progress.CREATED, f'Created new replica set "{name}"')
        self._revision = made.metadata.annotations[revisions.REVISION]
        return created

    async def _existing(self, name: str) -> ReplicaSet:
        """Return the existing ReplicaSet of this name if it belongs to the Deployment and has its template."""
        deployment = self._deployment
        found = await self._client.live.get(ReplicaSet, name, namespace=deployment.metadata.namespace, missing=None)
        if (
            found is not None
            and is_controlled_by(found, deployment)
            and revisions.same_template(found.spec.template, deployment.spec.template)
        ):
            return found
        self.status.collision_count = (self.status.collision_count or 0) + 1
        raise HashCollision

    # Scaling

    def _is_scaling_event(self) -> bool:
        """Return whether the Deployment's replicas differ from those that a ReplicaSet's annotation records."""
        recorded = [revisions.number_in(each, revisions.DESIRED) for each in active(self._sets)]
        return any(each is not None and each != desired_replicas(self._deployment) for each in recorded)

    async def _scale(self) -> None:
        sets = active(self._sets)
        if len(sets) <= 1:
            only = sets[0] if sets else self._new or (self._old[-1] if self._old else None)
            if only is not None:
                await self._scale_set(only, desired_replicas(self._deployment))
        elif self._new is not None and scaling.is_saturated(self._deployment, self._new):
            for replica_set in active(self._old):
                await self._scale_set(replica_set, 0)
        elif strategy(self._deployment) == scaling.ROLLING:
            for replica_set, to in scaling.proportional_sizes(self._deployment, sets):
                await self._scale_set(replica_set, to, update_annotations=True)

    async def _scale_set(self, replica_set: ReplicaSet, to: int, *, update_annotations: bool = False) -> bool:
        """Scale a ReplicaSet and update its scale annotations; return whether it was scaled.

        `update_annotations`: update them even if the size does not change.
        """
        now = spec_replicas(replica_set)
        annotations = self._scale_annotations()
        if now == to and (not update_annotations or annotations.items() <= replica_set.metadata.annotations.items()):
            return False
        await self._change(replica_set, {"metadata": {"annotations": annotations}, "spec": {"replicas": to}})
        replica_set.spec.replicas = to
        replica_set.metadata.annotations |= annotations
        if now != to:
            which = "up" if now < to else "down"
            self._scaling_event(f"Scaled {which} replica set {replica_set.metadata.name} from {now} to {to}")
        return now != to

    async def _clean_up(self) -> None:
        """Delete old ReplicaSets without replicas beyond the history limit, lowest revisions first."""
        limit = self._deployment.spec.revision_history_limit
        if limit is None or limit == _UNLIMITED:
            return
        living = [each for each in self._old if each.metadata.deletion_timestamp is None]
        living.sort(key=lambda each: revisions.revision_of(each) or 0)
        for each in living[: max(len(living) - limit, 0)]:
            observed = each.status.observed_generation or 0
            if each.status.replicas == 0 and spec_replicas(each) == 0 and each.metadata.generation <= observed:
                await self._client.delete(each, missing_ok=True)

    # Conditions and events

    async def _check_paused_conditions(self) -> None:
        """Set Progressing to Unknown when the rollout is paused or resumed, unless its deadline is exceeded."""
        current = progress.get_condition(self.status, progress.PROGRESSING)
        reason = None if current is None else current.reason
        if progress.deadline(self._deployment) is None or reason == progress.TIMED_OUT:
            return
        if self._deployment.spec.paused and reason != progress.PAUSED:
            self._set_progressing("Unknown", progress.PAUSED, "Deployment is paused")
        elif not self._deployment.spec.paused and reason == progress.PAUSED:
            self._set_progressing("Unknown", progress.RESUMED, "Deployment is resumed")
        await self.write_status()

    def _set_progressing(self, value: str, reason: str, message: str) -> None:
        if progress.deadline(self._deployment) is not None:
            progress.set_condition(
                self.status, progress.condition(progress.PROGRESSING, value, reason, message, self._now)
            )

    def _scaling_event(self, note: str) -> None:
        self._ctx.event(self._deployment, "ScalingReplicaSet", note)

    @property
    def _sets(self) -> list[ReplicaSet]:
        return self._old if self._new is None else [*self._old, self._new]

    def _scale_annotations(self) -> dict[str, str]:
        total = desired_replicas(self._deployment)
        return revisions.scale_annotations(total, total + max_surge(self._deployment))

    async def _change(self, replica_set: ReplicaSet, changes: dict[str, Any]) -> ReplicaSet:
        """Patch the ReplicaSet, with its uid as precondition."""
        metadata = {**changes.get("metadata", {}), "uid": replica_set.metadata.uid}
        return await self._client.patch(ReplicaSet, replica_set.metadata, MergePatch({**changes, "metadata": metadata}))


def _has_pods(replica_set: ReplicaSet) -> bool:
    """Return whether the ReplicaSet has running or terminating Pods."""
    return replica_set.status.replicas > 0 or (replica_set.status.terminating_replicas or 0) > 0

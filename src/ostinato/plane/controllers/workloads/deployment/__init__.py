"""Deployment controller: rolls out templates by scaling ReplicaSets.

A Deployment has one ReplicaSet per revision of its template. Each sync takes one step, derived from the status of the
ReplicaSets, so a rollout can be interrupted at any time.

| module | contains |
|---|---|
| `rollout` | the sync: create, scale, clean up |
| `revisions` | the new ReplicaSet, revisions and their annotations |
| `scaling` | replica counts of new and old ReplicaSets |
| `progress` | status and conditions |
| `rollback` | rollback by annotation |
"""

from __future__ import annotations

from ostinato.api.errors import NAMESPACE_TERMINATING, APIError
from ostinato.api.gvk import NamespacedName
from ostinato.controllers import Context, Result
from ostinato.kinds.apps_v1 import Deployment, ReplicaSet
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.workloads.deployment.rollout import HashCollision, Rollout
from ostinato.plane.ownership.controller_refs import (
    ControllerRefManager,
    add_controller_index,
    controlled_by,
    orphans_in,
)
from ostinato.plane.ownership.event_handler import ForControllerRef, selector_in_spec


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001
    add_controller_index(manager, ReplicaSet)
    (
        manager.build("deployment-controller")
        .watch_for(Deployment)
        .watches(ReplicaSet, handler=ForControllerRef(Deployment))
        .with_options(max_concurrent=5)
        .complete(DeploymentReconciler())
    )


class DeploymentReconciler:
    async def reconcile(self, request: NamespacedName, ctx: Context) -> Result | None:
        deployment = await ctx.client.get(Deployment, request, missing=None)
        if deployment is None:
            return None
        rollout = Rollout(ctx, deployment, await _replica_sets(ctx, deployment))
        try:
            await rollout.sync()
        except HashCollision:
            await rollout.write_status()
            return Result(retry=True)
        except APIError as error:
            if error.has_cause(NAMESPACE_TERMINATING):
                return None  # the namespace is terminating
            await rollout.write_status()
            raise
        await rollout.write_status()
        left = rollout.time_left()
        return None if left is None else Result(requeue_after=left)


async def _replica_sets(ctx: Context, deployment: Deployment) -> list[ReplicaSet]:
    own = await controlled_by(ctx.client, ReplicaSet, deployment.metadata.uid)
    orphans = await controlled_by(ctx.client, ReplicaSet, orphans_in(deployment.metadata.namespace))
    claims = ControllerRefManager(ctx.client, deployment, selector_in_spec(deployment), ReplicaSet)
    return await claims.claim_from([entry.read(ReplicaSet) for entry in (*own, *orphans)])

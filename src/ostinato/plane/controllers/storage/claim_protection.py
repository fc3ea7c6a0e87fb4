"""PersistentVolumeClaim protection controller: keeps the finalizer while a running Pod uses the claim."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ostinato.api.gvk import NamespacedName
from ostinato.cache import Entry, Event, by
from ostinato.cache.store.indexes import IndexBy
from ostinato.controllers import Context, ForEvent, Request
from ostinato.kinds.core_v1 import PersistentVolumeClaim, Pod
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.storage.protection import add_finalizer, has_finalizer, remove_finalizer
from ostinato.plane.objects.indexes import ensure_index
from ostinato.plane.objects.pod_state import PodState, is_finished

FINALIZER: Final = "kubernetes.io/pvc-protection"


def _claims_of(entry: Entry) -> list[str]:
    """Return the claims that a Pod uses; Pods without claims are not decoded."""
    if b'"persistentVolumeClaim"' not in entry.data and b'"ephemeral"' not in entry.data:
        return []
    pod = entry.read(Pod)
    names = []
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.append(f"{pod.metadata.name}-{volume.name}")
    return [f"{entry.key.namespace}/{name}" for name in names]


USED_CLAIMS: Final[IndexBy] = by("claims", _claims_of)


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001
    ensure_index(manager.informers.of(PodState), USED_CLAIMS)

    def used(event: Event) -> Iterable[NamespacedName]:
        return [NamespacedName(*each.split("/", 1)) for each in _claims_of(event.object)]

    (
        manager.build("pvc-protection-controller")
        .watch_for(PersistentVolumeClaim)
        .watches(PodState, handler=ForEvent(used))
        .complete(ClaimProtection())
    )


class ClaimProtection:
    async def reconcile(self, request: Request, ctx: Context) -> None:
        claim = await ctx.client.get(PersistentVolumeClaim, request, missing=None)
        if claim is None:
            return
        if claim.metadata.deletion_timestamp is None:
            await add_finalizer(ctx.client, claim, FINALIZER)
        elif has_finalizer(claim, FINALIZER) and not await self._is_used(claim, ctx):
            await remove_finalizer(ctx.client, claim, FINALIZER)

    async def _is_used(self, claim: PersistentVolumeClaim, ctx: Context) -> bool:
        """Return whether a scheduled, unfinished Pod uses the claim; the last check is a live read."""
        name = f"{claim.metadata.namespace}/{claim.metadata.name}"
        pods = await ctx.client.list(PodState, index=(USED_CLAIMS.name, name))
        if any(_uses(pod) for pod in pods):
            return True
        live = await ctx.client.live.list(Pod, namespace=claim.metadata.namespace)
        return any(
            pod.spec.node_name
            and pod.status.phase not in ("Succeeded", "Failed")
            and any(
                volume.persistent_volume_claim is not None
                and volume.persistent_volume_claim.claim_name == claim.metadata.name
                for volume in pod.spec.volumes
            )
            for pod in live
        )


def _uses(pod: PodState) -> bool:
    return bool(pod.spec.node_name) and not is_finished(pod)

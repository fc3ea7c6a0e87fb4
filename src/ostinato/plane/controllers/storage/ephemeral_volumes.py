"""Ephemeral volumes: a Pod that has volumes of its own gets a claim for each, which goes when the Pod goes.

The claim's name is that of the Pod and of the volume. One of that name that is not the Pod's is never used for it: the
Pod is told, and waits. A claim that somebody deletes is made again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ostinato.api.errors import APIError
from ostinato.api.gvk import NamespacedName
from ostinato.api.meta import ObjectMeta
from ostinato.api.owners import controller_reference_to, is_controlled_by
from ostinato.cache import Deleted, Event, Updated
from ostinato.controllers import Context, ForEvent, Request
from ostinato.kinds.core_v1 import PersistentVolumeClaim, PersistentVolumeClaimTemplate, Pod
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.storage.claim_protection import USED_CLAIMS
from ostinato.plane.objects.indexes import ensure_index
from ostinato.plane.objects.pod_state import PodState

_EPHEMERAL_MARKER: Final = b'"ephemeral"'  # what every Pod that has such a volume holds, and few others


class ClaimNotCreated(Exception):  # noqa: N818 - in the words of events
    """A volume has no claim, and why."""


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001
    pods = manager.informers.of(PodState)
    ensure_index(pods, USED_CLAIMS)

    def on_pod_event(event: Event) -> Iterable[NamespacedName]:
        """A Pod's volumes never change: what matters is that it is there."""
        if isinstance(event, Updated | Deleted) or _EPHEMERAL_MARKER not in event.object.data:
            return ()
        return (event.key,)

    def pods_using_claim(event: Event) -> Iterable[NamespacedName]:
        return pods.store.index_keys(USED_CLAIMS.name, str(event.key)) if isinstance(event, Deleted) else ()

    (
        manager.build("ephemeral_volume")
        .watches(PodState, handler=ForEvent(on_pod_event))
        .watches(PersistentVolumeClaim, handler=ForEvent(pods_using_claim))
        .complete(EphemeralVolumeReconciler())
    )


class EphemeralVolumeReconciler:
    async def reconcile(self, request: Request, ctx: Context) -> None:
        pod = await ctx.client.get(Pod, request, missing=None)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            return
        for volume in pod.spec.volumes:
            template = None if volume.ephemeral is None else volume.ephemeral.volume_claim_template
            if template is None:
                continue
            try:
                await _ensure_claim(ctx, pod, f"{pod.metadata.name}-{volume.name}", template)
            except ClaimNotCreated as error:
                ctx.event(pod, "FailedBinding", f"ephemeral volume {volume.name}: {error}", kind="Warning")
                raise  # to try again, after longer and longer


async def _ensure_claim(ctx: Context, pod: Pod, name: str, template: PersistentVolumeClaimTemplate) -> None:
    """Have the claim of one volume; `NoClaim` if there can be none."""
    namespace = pod.metadata.namespace
    claim = await ctx.client.get(PersistentVolumeClaim, NamespacedName(namespace, name), missing=None)
    if claim is not None:
        if not is_controlled_by(claim, pod):
            whose = f"{namespace}/{pod.metadata.name}"
            raise ClaimNotCreated(f"PVC {namespace}/{name} was not created for pod {whose} (pod is not owner)")
        return
    metadata = ObjectMeta(
        name=name,
        namespace=namespace,
        labels=template.metadata.labels,
        annotations=template.metadata.annotations,
        owner_references=[controller_reference_to(pod)],
    )
    try:
        await ctx.client.create(PersistentVolumeClaim(metadata=metadata, spec=template.spec))
    except APIError as error:
        raise ClaimNotCreated(f"create PVC {name}: {error}") from error

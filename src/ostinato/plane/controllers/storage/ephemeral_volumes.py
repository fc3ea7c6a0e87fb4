"""Ephemeral volume controller: creates the claim of each generic ephemeral volume, owned by the Pod.

The claim's name is `<pod>-<volume>`. An existing claim that the Pod does not own is not used; an event reports the
conflict. A deleted claim is recreated.
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

_EPHEMERAL_MARKER: Final = b'"ephemeral"'  # occurs in the JSON of every Pod with such a volume


class ClaimNotCreated(Exception):  # noqa: N818
    """The claim of a volume cannot be created."""


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001
    pods = manager.informers.of(PodState)
    ensure_index(pods, USED_CLAIMS)

    def on_pod_event(event: Event) -> Iterable[NamespacedName]:
        """Enqueue new Pods: volumes of a Pod are immutable."""
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
                raise  # retried with backoff


async def _ensure_claim(ctx: Context, pod: Pod, name: str, template: PersistentVolumeClaimTemplate) -> None:
    """Ensure that the claim of one volume exists. Raises `ClaimNotCreated`."""
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

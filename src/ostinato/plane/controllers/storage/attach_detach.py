"""Attach/detach controller: a VolumeAttachment for each CSI volume that a node's Pods need.

- Reconciled by node. The driver's attacher attaches and detaches; this controller creates and deletes the attachments,
  and reports those that are complete in `status.volumesAttached` of the Node.
- A volume is detached after no Pod on the node uses it and the node has unmounted it (`status.volumesInUse`). It leaves
  `volumesAttached` first: a node mounts only what is listed there. A node that is not Ready for six minutes, or has the
  taint out-of-service, is not waited for.
- A volume whose access modes permit one node only is attached to the next after it was detached from the first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Final, NamedTuple

from ostinato.api.errors import AlreadyExists
from ostinato.api.gvk import NamespacedName
from ostinato.api.meta import ObjectMeta
from ostinato.api.time import Time
from ostinato.cache import Deleted, Entry, Event, Informer, Updated, by
from ostinato.cache.store.indexes import IndexBy
from ostinato.client.patching import MergePatch
from ostinato.controllers import Context, ForEvent, Request, Result
from ostinato.kinds.core_v1 import Node, PersistentVolume, PersistentVolumeClaim
from ostinato.kinds.storage_v1 import CSIDriver, VolumeAttachment, VolumeAttachmentSource, VolumeAttachmentSpec
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.storage.claim_protection import USED_CLAIMS
from ostinato.plane.csi import attachment_name, unique_volume_name
from ostinato.plane.objects.indexes import NODE_NAME, ensure_index
from ostinato.plane.objects.pod_state import PodState, is_finished

_MANAGED: Final = "volumes.kubernetes.io/controller-managed-attach-detach"
_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
_MULTI_ATTACH: Final = frozenset({"ReadWriteMany", "ReadOnlyMany"})
_FORCE_AFTER: Final = timedelta(minutes=6)
_LOOK_AGAIN: Final = 15.0  # seconds until it is checked again whether a node that does not answer may be overruled


def _node_of(entry: Entry) -> list[str]:
    return [entry.read(VolumeAttachment).spec.node_name]


def _volume_of(entry: Entry) -> list[str]:
    return [entry.read(VolumeAttachment).spec.source.persistent_volume_name or ""]


BY_NODE: Final[IndexBy] = by("attachments of node", _node_of)
BY_VOLUME: Final[IndexBy] = by("attachments of volume", _volume_of)


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001
    pods, attachments = manager.informers.of(PodState), manager.informers.of(VolumeAttachment)
    for index in (USED_CLAIMS, NODE_NAME):
        ensure_index(pods, index)
    for index in (BY_NODE, BY_VOLUME):
        ensure_index(attachments, index)
    reconciler = AttachDetach(pods)

    def nodes_of_pods(keys: Iterable[NamespacedName]) -> list[NamespacedName]:
        names = {name for key in keys for name in pods.store.values_of(NODE_NAME.name, key)}
        return [NamespacedName("", name) for name in sorted(names) if name]

    def of_pod(event: Event) -> Iterable[NamespacedName]:
        if not USED_CLAIMS.function(event.object):  # a Pod's volumes do not change
            return ()
        entries = [event.old, event.new] if isinstance(event, Updated) else [event.object]
        names = {entry.read(PodState).spec.node_name for entry in entries}
        return [NamespacedName("", name) for name in names if name]

    def of_claim(event: Event) -> Iterable[NamespacedName]:
        return nodes_of_pods(pods.store.index_keys(USED_CLAIMS.name, str(event.key)))

    def of_attachment(event: Event) -> Iterable[NamespacedName]:
        found = event.object.read(VolumeAttachment)
        nodes = {found.spec.node_name}
        if isinstance(event, Deleted):  # another node may wait for the volume
            nodes |= reconciler.waiting.pop(found.spec.source.persistent_volume_name or "", set())
        return [NamespacedName("", name) for name in nodes]

    def of_node(event: Event) -> Iterable[NamespacedName]:
        return [event.key] if attachments.store.index_keys(BY_NODE.name, event.key.name) else ()

    (
        manager.build("attachdetach-controller")
        .watches(PodState, handler=ForEvent(of_pod))
        .watches(PersistentVolumeClaim, handler=ForEvent(of_claim))
        .watches(VolumeAttachment, handler=ForEvent(of_attachment))
        .watches(Node, handler=ForEvent(of_node))
        .complete(reconciler)
    )


class _Volume(NamedTuple):
    """A PersistentVolume of a CSI driver."""

    name: str
    driver: str
    handle: str
    access_modes: frozenset[str]

    @property
    def unique_name(self) -> str:
        return unique_volume_name(self.driver, self.handle)

    def attachment(self, node: str) -> str:
        """Return the name of its VolumeAttachment on a node."""
        return attachment_name(self.handle, self.driver, node)


class AttachDetach:
    """Reconciles nodes."""

    def __init__(self, pods: Informer) -> None:
        self._pods = pods
        self.waiting: dict[str, set[str]] = defaultdict(set)  # nodes that wait for a volume to be detached elsewhere

    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        name = request.name
        node = await ctx.client.get(Node, name, missing=None)
        existing = await self._existing(name, ctx)
        if node is None:
            for attachment, _ in existing:
                await ctx.client.delete(attachment, missing_ok=True)
            return None
        if node.metadata.annotations.get(_MANAGED) != "true":
            return None
        desired = await self._desired(name, ctx)
        attached = {
            volume.unique_name
            for attachment, volume in existing
            if volume in desired and attachment.status.attached and attachment.metadata.deletion_timestamp is None
        }
        known = {each.name for each in node.status.volumes_attached}
        unused = [(attachment, volume) for attachment, volume in existing if volume not in desired]
        look_again = await self._detach(node, unused, attached, ctx)
        present = {volume for _, volume in existing}
        for volume, pods in desired.items():
            if volume not in present:
                await self._attach(volume, name, pods, ctx)
            elif volume.unique_name in attached - known:
                for pod in pods:
                    text = f'AttachVolume.Attach succeeded for volume "{volume.name}" '
                    ctx.event(pod, "SuccessfulAttachVolume", text)
        return Result(requeue_after=_LOOK_AGAIN) if look_again else None

    async def _existing(self, node: str, ctx: Context) -> list[tuple[VolumeAttachment, _Volume]]:
        """Return the attachments to a node that this controller made: others have other names."""
        found = []
        for each in await ctx.client.list(VolumeAttachment, index=(BY_NODE.name, node)):
            volume = await self._volume(each.spec.source.persistent_volume_name or "", ctx)
            if volume is not None and volume.attachment(node) == each.metadata.name:
                found.append((each, volume))
        return found

    async def _desired(self, node: str, ctx: Context) -> dict[_Volume, list[PodState]]:
        """Return the volumes that must be attached to a node, with the Pods that use them."""
        found: dict[_Volume, list[PodState]] = {}
        for key in self._pods.store.index_keys(NODE_NAME.name, node):
            claims = self._pods.store.values_of(USED_CLAIMS.name, key)
            pod = await ctx.client.get(PodState, key, missing=None) if claims else None
            if pod is None or is_finished(pod):
                continue
            for each in claims:
                volume = await self._attachable(NamespacedName(*each.split("/", 1)), ctx)
                if volume is not None:
                    found.setdefault(volume, []).append(pod)
        return found

    async def _attachable(self, claim: NamespacedName, ctx: Context) -> _Volume | None:
        """Return the volume of a bound claim, if its driver attaches volumes."""
        found = await ctx.client.get(PersistentVolumeClaim, claim, missing=None)
        if found is None or found.status.phase != "Bound" or not found.spec.volume_name:
            return None
        volume = await self._volume(found.spec.volume_name, ctx)
        if volume is None:
            return None
        driver = await ctx.client.get(CSIDriver, volume.driver, missing=None)
        return volume if driver is None or driver.spec.attach_required is not False else None

    async def _volume(self, name: str, ctx: Context) -> _Volume | None:
        found = await ctx.client.get(PersistentVolume, name, missing=None) if name else None
        if found is None or found.spec.csi is None:
            return None
        csi = found.spec.csi
        return _Volume(name, csi.driver, csi.volume_handle, frozenset(found.spec.access_modes))

    async def _attach(self, volume: _Volume, node: str, pods: list[PodState], ctx: Context) -> None:
        others = await ctx.client.list(VolumeAttachment, index=(BY_VOLUME.name, volume.name))
        if others and not _MULTI_ATTACH & volume.access_modes:
            if node not in self.waiting[volume.name]:
                self.waiting[volume.name].add(node)
                for pod in pods:
                    text = (
                        f'Waiting for detach for volume "{volume.name}" Volume is already exclusively attached to one '
                        "node, waiting on detach before it can be attached to another node"
                    )
                    ctx.event(pod, "FailedAttachVolume", text, kind="Warning")
            return
        source = VolumeAttachmentSource(persistent_volume_name=volume.name)
        spec = VolumeAttachmentSpec(attacher=volume.driver, node_name=node, source=source)
        with suppress(AlreadyExists):
            await ctx.client.create(VolumeAttachment(metadata=ObjectMeta(name=volume.attachment(node)), spec=spec))

    async def _detach(
        self, node: Node, unused: list[tuple[VolumeAttachment, _Volume]], attached: set[str], ctx: Context
    ) -> bool:
        """Write `volumesAttached` without unused volumes, then delete their attachments.

        Return whether a node that is not Ready must be looked at again.
        """
        in_use = set(node.status.volumes_in_use)
        is_overruled, look_again = _is_overruled(node, Time.of(ctx.world.clock.now()))
        going = []
        for attachment, volume in unused:
            if volume.unique_name not in in_use or is_overruled:
                going.append((attachment, volume))
            elif attachment.status.attached and attachment.metadata.deletion_timestamp is None:
                attached.add(volume.unique_name)
        if attached != {each.name for each in node.status.volumes_attached}:
            listed = [{"name": each, "devicePath": ""} for each in sorted(attached)]
            change = MergePatch({"status": {"volumesAttached": listed or None}})
            node = await ctx.client.patch(Node, node.metadata.name, change, subresource="status")
        for attachment, volume in going:
            if is_overruled or volume.unique_name not in node.status.volumes_in_use:  # as of the write before
                await ctx.client.delete(attachment, missing_ok=True)
        return look_again and len(going) < len(unused)


def _is_overruled(node: Node, now: Time) -> tuple[bool, bool]:
    """Return whether volumes are detached that the node has not unmounted, and whether that changes by itself."""
    if any(each.key == _OUT_OF_SERVICE and each.effect == "NoExecute" for each in node.spec.taints):
        return True, False
    ready = next((each for each in node.status.conditions if each.type == "Ready"), None)
    if ready is None or ready.status == "True" or ready.last_transition_time is None:
        return False, False
    return now - ready.last_transition_time > _FORCE_AFTER, True

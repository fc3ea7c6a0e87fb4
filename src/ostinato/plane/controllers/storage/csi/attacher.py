"""Attacher of CSI volumes: has the driver attach the volumes of VolumeAttachments, and detach them before they go.

A finalizer on the VolumeAttachment, and one on its PersistentVolume, keep both until the volume is detached.
"""

from __future__ import annotations

from typing import Any, Final

from ostinato.api.time import Time
from ostinato.client.patching import MergePatch
from ostinato.controllers import Context, Request
from ostinato.kinds.core_v1 import PersistentVolume
from ostinato.kinds.storage_v1 import CSINode, VolumeAttachment
from ostinato.manager import Manager
from ostinato.plane.controllers.storage.attach_detach import BY_VOLUME
from ostinato.plane.controllers.storage.csi.drivers import ControllerDriver, ControllerDrivers, secrets_of
from ostinato.plane.controllers.storage.protection import add_finalizer, has_finalizer, remove_finalizer
from ostinato.plane.csi import CsiError
from ostinato.plane.csi.volumes import PUBLISHES
from ostinato.plane.objects.indexes import ensure_index

_NODE_ID: Final = "csi.alpha.kubernetes.io/node-id"


def add_to(manager: Manager, drivers: ControllerDrivers) -> None:
    ensure_index(manager.informers.of(VolumeAttachment), BY_VOLUME)
    manager.informers.of(PersistentVolume)
    manager.build("csi-attacher").watch_for(VolumeAttachment).complete(Attacher(drivers))


class Attacher:
    """Reconciles attachments."""

    def __init__(self, drivers: ControllerDrivers) -> None:
        self._drivers = drivers

    async def reconcile(self, request: Request, ctx: Context) -> None:
        attachment = await ctx.client.get(VolumeAttachment, request, missing=None)
        if attachment is None:
            return
        driver = await self._drivers.find(attachment.spec.attacher)
        if driver is None:
            return
        is_leaving = attachment.metadata.deletion_timestamp is not None
        if (attachment.status.attached and not is_leaving) or (is_leaving and not _has(attachment, driver)):
            return
        try:
            await (self._detach if is_leaving else self._attach)(attachment, driver, ctx)
        except CsiError as error:
            failure = {"message": str(error), "time": str(Time.of(ctx.world.clock.now()))}
            await _set_status(attachment, {"detachError" if is_leaving else "attachError": failure}, ctx)
            raise

    async def _attach(self, attachment: VolumeAttachment, driver: ControllerDriver, ctx: Context) -> None:
        volume = await _volume_of(attachment, ctx)
        node = attachment.spec.node_name
        found = await ctx.client.get(CSINode, node, missing=None)
        known = [] if found is None else [each.node_id for each in found.spec.drivers if each.name == driver.name]
        if not known:
            raise CsiError(f"CSINode {node} does not contain driver {driver.name}")
        finalizer = _finalizer(driver.name)
        await add_finalizer(ctx.client, volume, finalizer)
        if not has_finalizer(attachment, finalizer) or attachment.metadata.annotations.get(_NODE_ID) != known[0]:
            metadata = {
                "resourceVersion": attachment.metadata.resource_version,
                "finalizers": sorted({*attachment.metadata.finalizers, finalizer}),
                "annotations": {_NODE_ID: known[0]},
            }
            await ctx.client.patch(VolumeAttachment, attachment.metadata.name, MergePatch({"metadata": metadata}))
        context: dict[str, str] = {}
        csi = volume.spec.csi
        assert csi is not None
        if await driver.has(PUBLISHES):
            request = {
                "volume_id": csi.volume_handle,
                "node_id": known[0],
                "volume_capability": await driver.capability_of_volume(volume),
                "readonly": bool(csi.read_only),
                "secrets": dict(await secrets_of(csi.controller_publish_secret_ref, ctx)),
                "volume_context": csi.volume_attributes,
            }
            context = (await driver.service.call("ControllerPublishVolume", request)).get("publish_context", {})
        status = {"attached": True, "attachmentMetadata": context or None, "attachError": None}
        await _set_status(attachment, status, ctx)

    async def _detach(self, attachment: VolumeAttachment, driver: ControllerDriver, ctx: Context) -> None:
        volume = await _volume_of(attachment, ctx)
        csi = volume.spec.csi
        assert csi is not None
        if await driver.has(PUBLISHES):
            request = {
                "volume_id": csi.volume_handle,
                "node_id": attachment.metadata.annotations.get(_NODE_ID, ""),
                "secrets": dict(await secrets_of(csi.controller_publish_secret_ref, ctx)),
            }
            await driver.service.call("ControllerUnpublishVolume", request)
        finalizer = _finalizer(driver.name)
        others = await ctx.client.list(VolumeAttachment, index=(BY_VOLUME.name, volume.metadata.name))
        if all(each.metadata.name == attachment.metadata.name for each in others):
            await remove_finalizer(ctx.client, volume, finalizer)
        await remove_finalizer(ctx.client, attachment, finalizer)


def _finalizer(driver: str) -> str:
    """Return the finalizer of a driver, as external-attacher names it."""
    return f"external-attacher/{driver.replace('.', '-').replace('/', '-')}"


def _has(attachment: VolumeAttachment, driver: ControllerDriver) -> bool:
    return has_finalizer(attachment, _finalizer(driver.name))


async def _volume_of(attachment: VolumeAttachment, ctx: Context) -> PersistentVolume:
    name = attachment.spec.source.persistent_volume_name or ""
    found = await ctx.client.get(PersistentVolume, name, missing=None) if name else None
    if found is None or found.spec.csi is None:
        raise CsiError(f'persistentvolume "{name}" of a CSI driver not found')
    return found


async def _set_status(attachment: VolumeAttachment, status: dict[str, Any], ctx: Context) -> None:
    change = MergePatch({"metadata": {"uid": attachment.metadata.uid}, "status": status})
    await ctx.client.patch(VolumeAttachment, attachment.metadata.name, change, subresource="status")

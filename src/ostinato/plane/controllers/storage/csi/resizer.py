"""Resizer of CSI volumes: has the driver expand a volume whose claim requests more, then the node, if needed."""

from __future__ import annotations

from typing import Any, Final

from ostinato.api.codec import to_dict
from ostinato.api.quantity import Quantity
from ostinato.api.time import Time
from ostinato.client.patching import MergePatch
from ostinato.controllers import Context, Request
from ostinato.kinds.core_v1 import PersistentVolume, PersistentVolumeClaim
from ostinato.manager import Manager
from ostinato.plane.controllers.storage.csi.drivers import ControllerDriver, ControllerDrivers, secrets_of
from ostinato.plane.csi import CsiError
from ostinato.plane.csi.volumes import EXPANDS
from ostinato.plane.placement.volume_matching import requested

_STORAGE: Final = "storage"
_OURS: Final = ("Resizing", "FileSystemResizePending")
_ON_NODE: Final = ("NodeResizePending", "NodeResizeInProgress")

_PENDING_MESSAGE: Final = "Waiting for user to (re-)start a pod to finish file system resize of volume on node."


def add_to(manager: Manager, drivers: ControllerDrivers) -> None:
    manager.informers.of(PersistentVolume)
    manager.build("csi-resizer").watch_for(PersistentVolumeClaim).complete(Resizer(drivers))


class Resizer:
    """Reconciles claims."""

    def __init__(self, drivers: ControllerDrivers) -> None:
        self._drivers = drivers

    async def reconcile(self, request: Request, ctx: Context) -> None:
        claim = await ctx.client.get(PersistentVolumeClaim, request, missing=None)
        if claim is None or claim.status.phase != "Bound" or not claim.spec.volume_name:
            return
        actual = claim.status.capacity.get(_STORAGE)
        if actual is None or requested(claim) <= actual.value():
            return
        volume = await ctx.client.get(PersistentVolume, claim.spec.volume_name, missing=None)
        if volume is None or volume.spec.csi is None:
            return
        driver = await self._drivers.find(volume.spec.csi.driver)
        has = volume.spec.capacity.get(_STORAGE)
        is_expanded = has is not None and requested(claim) <= has.value()
        if driver is None or (is_expanded and claim.status.allocated_resource_statuses.get(_STORAGE) in _ON_NODE):
            return
        ctx.event(claim, "Resizing", f"External resizer is resizing volume {volume.metadata.name}")
        try:
            await self._expand(claim, volume, driver, ctx)
        except CsiError as error:
            text = f'resize volume "{volume.metadata.name}" by resizer "{driver.name}" failed: {error}'
            ctx.event(claim, "VolumeResizeFailed", text, kind="Warning")
            raise

    async def _expand(
        self, claim: PersistentVolumeClaim, volume: PersistentVolume, driver: ControllerDriver, ctx: Context
    ) -> None:
        csi, size = volume.spec.csi, requested(claim)
        assert csi is not None
        wanted = str((claim.spec.resources.requests if claim.spec.resources is not None else {})[_STORAGE])
        begun = {
            "allocatedResources": {_STORAGE: wanted},
            "allocatedResourceStatuses": {_STORAGE: "ControllerResizeInProgress"},
            "conditions": _conditions(claim, ctx, "Resizing"),
        }
        await _set_status(claim, begun, ctx)
        on_node = True  # a driver that expands on nodes alone
        if await driver.has(EXPANDS):
            request = {
                "volume_id": csi.volume_handle,
                "capacity_range": {"required_bytes": size},
                "secrets": dict(await secrets_of(csi.controller_expand_secret_ref, ctx)),
                "volume_capability": await driver.capability_of_volume(volume),
            }
            answer = await driver.service.call("ControllerExpandVolume", request)
            size, on_node = answer.get("capacity_bytes") or size, answer.get("node_expansion_required", False)
        capacity = wanted if size == requested(claim) else str(Quantity(size))
        change = {"spec": {"capacity": {_STORAGE: capacity}}}
        await ctx.client.patch(PersistentVolume, volume.metadata.name, MergePatch(change))
        if on_node:
            pending = {
                "allocatedResourceStatuses": {_STORAGE: "NodeResizePending"},
                "conditions": _conditions(claim, ctx, "FileSystemResizePending"),
            }
            await _set_status(claim, pending, ctx)
            ctx.event(claim, "FileSystemResizeRequired", "Require file system resize of volume on node")
            return
        done = {
            "capacity": {_STORAGE: capacity},
            "allocatedResourceStatuses": {_STORAGE: None},
            "conditions": _conditions(claim, ctx),
        }
        await _set_status(claim, done, ctx)
        ctx.event(claim, "VolumeResizeSuccessful", "Resize volume succeeded")


def _conditions(claim: PersistentVolumeClaim, ctx: Context, kind: str = "") -> list[Any] | None:
    """Return the conditions of a claim with one of the resize, or none of them."""
    kept = [to_dict(each) for each in claim.status.conditions if each.type not in _OURS]
    if kind:
        condition = {"type": kind, "status": "True", "lastTransitionTime": str(Time.of(ctx.world.clock.now()))}
        if kind == "FileSystemResizePending":
            condition["message"] = _PENDING_MESSAGE
        kept.append(condition)
    return kept or None


async def _set_status(claim: PersistentVolumeClaim, status: dict[str, Any], ctx: Context) -> None:
    change = MergePatch({"metadata": {"uid": claim.metadata.uid}, "status": status})
    await ctx.client.patch(PersistentVolumeClaim, claim.metadata, change, subresource="status")

"""Provisioner of CSI volumes: creates a volume for a claim of a driver's StorageClass, and deletes it with the claim.

- The names of volumes are derived from claims, and drivers' calls are idempotent: a volume whose PersistentVolume was
  not written is found again, not created twice.
- A finalizer keeps the PersistentVolume until the driver has deleted the volume.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from ostinato.api.errors import AlreadyExists
from ostinato.api.gvk import NamespacedName
from ostinato.api.meta import ObjectMeta
from ostinato.api.quantity import Quantity
from ostinato.cache import Deleted, Event
from ostinato.client.patching import MergePatch
from ostinato.controllers import Context, ForEvent, Request
from ostinato.grpc import Code
from ostinato.kinds.core_v1 import (
    CSIPersistentVolumeSource,
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    SecretReference,
    VolumeNodeAffinity,
)
from ostinato.kinds.storage_v1 import CSINode, StorageClass, VolumeAttachment
from ostinato.manager import Manager
from ostinato.plane.controllers.storage.attach_detach import BY_VOLUME
from ostinato.plane.controllers.storage.csi import parameters
from ostinato.plane.controllers.storage.csi.drivers import ControllerDriver, ControllerDrivers, secrets_of
from ostinato.plane.controllers.storage.protection import has_finalizer, remove_finalizer
from ostinato.plane.csi import CsiError
from ostinato.plane.objects.indexes import ensure_index
from ostinato.plane.placement.volume_matching import (
    SELECTED_NODE,
    claim_reference,
    class_of,
    requested,
    waits_for_consumer,
)

_FINALIZER: Final = "external-provisioner.volume.kubernetes.io/finalizer"
_PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
_SECRET_NAME: Final = "volume.kubernetes.io/provisioner-deletion-secret-name"  # noqa: S105 - a name
_SECRET_NAMESPACE: Final = "volume.kubernetes.io/provisioner-deletion-secret-namespace"  # noqa: S105


def add_to(manager: Manager, drivers: ControllerDrivers) -> None:
    ensure_index(manager.informers.of(VolumeAttachment), BY_VOLUME)

    def of_attachment(event: Event) -> Iterable[NamespacedName]:
        if not isinstance(event, Deleted):
            return ()
        name = event.object.read(VolumeAttachment).spec.source.persistent_volume_name
        return (NamespacedName("", name),) if name else ()

    manager.build("csi-provisioner").watch_for(PersistentVolumeClaim).complete(Provisioner(drivers))
    (
        manager.build("csi-deleter")
        .watch_for(PersistentVolume)
        .watches(VolumeAttachment, handler=ForEvent(of_attachment))
        .complete(Deleter(drivers))
    )


class Provisioner:
    """Reconciles claims."""

    def __init__(self, drivers: ControllerDrivers) -> None:
        self._drivers = drivers

    async def reconcile(self, request: Request, ctx: Context) -> None:
        claim = await ctx.client.get(PersistentVolumeClaim, request, missing=None)
        if claim is None or claim.spec.volume_name or claim.metadata.deletion_timestamp is not None:
            return
        name = claim.metadata.annotations.get(_PROVISIONER, "")
        driver = await self._drivers.find(name) if name else None
        if driver is None:
            return
        storage_class = await ctx.client.get(StorageClass, class_of(claim), missing=None)
        selected = claim.metadata.annotations.get(SELECTED_NODE, "")
        if storage_class is None or (waits_for_consumer(storage_class) and not selected):
            return
        text = f'External provisioner is provisioning volume for claim "{request}"'
        ctx.event(claim, "Provisioning", text)
        try:
            volume = await self._provision(claim, storage_class, driver, selected, ctx)
        except CsiError as error:
            failed = f'failed to provision volume with StorageClass "{storage_class.metadata.name}": {error}'
            ctx.event(claim, "ProvisioningFailed", failed, kind="Warning")
            if selected and error.code == Code.RESOURCE_EXHAUSTED:  # the scheduler selects another node
                change = {"metadata": {"uid": claim.metadata.uid, "annotations": {SELECTED_NODE: None}}}
                await ctx.client.patch(PersistentVolumeClaim, claim.metadata, MergePatch(change))
                return
            raise
        ctx.event(claim, "ProvisioningSucceeded", f"Successfully provisioned volume {volume}")

    async def _provision(
        self,
        claim: PersistentVolumeClaim,
        storage_class: StorageClass,
        driver: ControllerDriver,
        node: str,
        ctx: Context,
    ) -> str:
        """Create the volume and its PersistentVolume; return its name."""
        if claim.spec.data_source is not None or claim.spec.data_source_ref is not None:
            raise CsiError("spec.dataSource: copies of volumes and snapshots are not supported here")
        name, is_block = f"pvc-{claim.metadata.uid}", claim.spec.volume_mode == "Block"
        fs_type = "" if is_block else parameters.fs_type(storage_class)
        flags, modes = storage_class.mount_options, claim.spec.access_modes
        secret = parameters.secret(storage_class, "provisioner", claim, name)
        request: dict[str, Any] = {
            "name": name,
            "capacity_range": {"required_bytes": requested(claim)},
            "volume_capabilities": [
                await driver.capability_of(modes, fs_type=fs_type, mount_flags=flags, is_block=is_block)
            ],
            "parameters": parameters.of_driver(storage_class),
            "secrets": dict(await secrets_of(secret, ctx)),
        }
        if await driver.has_topology():
            request |= await _topology(driver.name, node, ctx)
        made = (await driver.service.call("CreateVolume", request)).get("volume", {})
        if not made.get("volume_id"):
            raise CsiError("CreateVolume: the driver returned no volume_id", Code.INTERNAL)
        metadata = ObjectMeta(name=name, annotations={_PROVISIONED_BY: driver.name}, finalizers=[_FINALIZER])
        if secret is not None:
            metadata.annotations |= {_SECRET_NAME: secret.name or "", _SECRET_NAMESPACE: secret.namespace or ""}
        csi = CSIPersistentVolumeSource(
            driver=driver.name,
            volume_handle=made["volume_id"],
            fs_type=fs_type or None,
            volume_attributes=made.get("volume_context", {}),
            controller_publish_secret_ref=parameters.secret(storage_class, "controller-publish", claim, name),
            node_stage_secret_ref=parameters.secret(storage_class, "node-stage", claim, name),
            node_publish_secret_ref=parameters.secret(storage_class, "node-publish", claim, name),
            controller_expand_secret_ref=parameters.secret(storage_class, "controller-expand", claim, name),
            node_expand_secret_ref=parameters.secret(storage_class, "node-expand", claim, name),
        )
        spec = PersistentVolumeSpec(
            capacity={"storage": Quantity(made.get("capacity_bytes") or requested(claim))},
            access_modes=modes,
            volume_mode=claim.spec.volume_mode,
            storage_class_name=storage_class.metadata.name,
            mount_options=flags,
            persistent_volume_reclaim_policy=storage_class.reclaim_policy or "Delete",
            csi=csi,
            node_affinity=_affinity(made.get("accessible_topology", ())),
            claim_ref=claim_reference(claim),
        )
        with suppress(AlreadyExists):
            await ctx.client.create(PersistentVolume(metadata=metadata, spec=spec))
        return name


class Deleter:
    """Reconciles volumes: deletes those that are released."""

    def __init__(self, drivers: ControllerDrivers) -> None:
        self._drivers = drivers

    async def reconcile(self, request: Request, ctx: Context) -> None:
        volume = await ctx.client.get(PersistentVolume, request, missing=None)
        if volume is None or volume.spec.csi is None or not has_finalizer(volume, _FINALIZER):
            return
        driver = await self._drivers.find(volume.metadata.annotations.get(_PROVISIONED_BY, ""))
        if driver is None or volume.status.phase != "Released":
            return
        if volume.spec.persistent_volume_reclaim_policy != "Delete":
            if volume.metadata.deletion_timestamp is not None:
                await remove_finalizer(ctx.client, volume, _FINALIZER)
            return
        if await ctx.client.list(VolumeAttachment, index=(BY_VOLUME.name, request.name)):
            return  # reconciled again when it is detached
        try:
            deletion = {"volume_id": volume.spec.csi.volume_handle, "secrets": dict(await self._secrets(volume, ctx))}
            await driver.service.call("DeleteVolume", deletion)
        except CsiError as error:
            ctx.event(volume, "VolumeFailedDelete", str(error), kind="Warning")
            raise
        if volume.metadata.deletion_timestamp is None:
            await ctx.client.delete(volume, missing_ok=True)
            volume = await ctx.client.live.get(PersistentVolume, request, missing=None)
        if volume is not None:
            await remove_finalizer(ctx.client, volume, _FINALIZER)

    async def _secrets(self, volume: PersistentVolume, ctx: Context) -> Mapping[str, str]:
        annotations = volume.metadata.annotations
        if not annotations.get(_SECRET_NAME):
            return {}
        from_annotations = SecretReference(
            name=annotations[_SECRET_NAME], namespace=annotations.get(_SECRET_NAMESPACE, "")
        )
        return await secrets_of(from_annotations, ctx)


async def _topology(driver: str, node: str, ctx: Context) -> dict[str, Any]:
    """Return the topology where the volume must be accessible: that of the selected node, or of any node."""
    segments = []
    for each in await ctx.client.list(CSINode):
        keys = next((known.topology_keys for known in each.spec.drivers if known.name == driver), [])
        found = await ctx.client.get(Node, each.metadata.name, missing=None)
        if not keys or found is None or (node and each.metadata.name != node):
            continue
        segment = {key: found.metadata.labels[key] for key in keys if key in found.metadata.labels}
        if len(segment) == len(keys) and segment not in segments:
            segments.append(segment)
    if not segments:
        return {}
    terms = [{"segments": each} for each in segments]
    return {"accessibility_requirements": {"requisite": terms, "preferred": terms}}


def _affinity(topology: Iterable[Mapping[str, Any]]) -> VolumeNodeAffinity | None:
    terms = [
        NodeSelectorTerm(
            match_expressions=[
                NodeSelectorRequirement(key=key, operator="In", values=[value])
                for key, value in sorted(each.get("segments", {}).items())
            ]
        )
        for each in topology
        if each.get("segments")
    ]
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms)) if terms else None

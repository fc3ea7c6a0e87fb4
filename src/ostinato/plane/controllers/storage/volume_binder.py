"""PersistentVolume binder: binds claims to volumes, provisions and reclaims volumes.

- A claim is bound to the smallest volume with matching class, size, access modes and labels; a prebound volume has
  precedence. With WaitForFirstConsumer the scheduler selects the volume and this controller binds it.
- A claim without a matching volume stays Pending. For the plane's own provisioner a directory on this machine is
  created, and with WaitForFirstConsumer the volume is tied to the node that the scheduler has selected.
- A volume whose claim was deleted is released, then retained or deleted by its reclaim policy.
- Binding takes four writes; each reconcile performs those that are missing.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from ostinato.api.errors import AlreadyExists
from ostinato.api.gvk import NamespacedName
from ostinato.api.meta import ObjectMeta
from ostinato.api.quantity import Quantity
from ostinato.api.time import Time
from ostinato.cache import Entry, Event, Informer, by
from ostinato.client.patching import MergePatch
from ostinato.controllers import Context, ForEvent, Request
from ostinato.controllers.runnable import Dependencies, Task
from ostinato.kinds.core_v1 import (
    HostPathVolumeSource,
    Node,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    VolumeNodeAffinity,
)
from ostinato.kinds.storage_v1 import StorageClass
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.objects.indexes import ensure_index
from ostinato.plane.placement.volume_matching import (
    BIND_COMPLETED,
    SELECTED_NODE,
    claim_reference,
    class_of,
    find_matching_volume,
    waits_for_consumer,
)

PROVISIONER: Final = "ostinato.dev/host-path"
DEFAULT_CLASS: Final = "standard"
_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
_PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
_STORAGE_PROVISIONER: Final = "volume.kubernetes.io/storage-provisioner"
_HOSTNAME: Final = "kubernetes.io/hostname"
_IS_DEFAULT: Final = "storageclass.kubernetes.io/is-default-class"


def _class_name(entry: Entry) -> str:
    return class_of(entry.read(PersistentVolume))


BY_CLASS: Final = by("class", _class_name)


def add_to(manager: Manager, options: Options) -> None:
    claims: Informer = manager.informers.of(PersistentVolumeClaim)
    ensure_index(manager.informers.of(PersistentVolume), BY_CLASS)
    manager.informers.of(Node)  # the role permits to list and watch them, not to get one

    def waiting(event: Event) -> Iterable[NamespacedName]:  # noqa: ARG001 - any claim may match
        """Return the pending claims."""
        return [entry.key for entry in claims.store.entries() if b'"phase":"Bound"' not in entry.data]

    def waiting_or_bound(event: Event) -> Iterable[NamespacedName]:
        reference = event.object.read(PersistentVolume).spec.claim_ref
        bound = [] if reference is None else [NamespacedName(reference.namespace or "", reference.name or "")]
        return [*bound, *waiting(event)]

    def of_claim(event: Event) -> Iterable[NamespacedName]:
        name = event.object.read(PersistentVolumeClaim).spec.volume_name
        return (NamespacedName("", name),) if name else ()

    (
        manager.build("persistentvolume-controller")
        .watch_for(PersistentVolumeClaim)
        .watches(PersistentVolume, handler=ForEvent(waiting_or_bound))
        .watches(StorageClass, handler=ForEvent(waiting))
        .complete(ClaimBinder(options.volumes))
    )
    (
        manager.build("persistentvolume-releaser")
        .watch_for(PersistentVolume)
        .watches(PersistentVolumeClaim, handler=ForEvent(of_claim))
        .complete(VolumeReclaimer(options.volumes))
    )
    if options.volumes is not None:
        manager.add(Task("default-storage-class", _create_storage_class))


async def _create_storage_class(dependencies: Dependencies) -> None:
    metadata = ObjectMeta(name=DEFAULT_CLASS, annotations={_IS_DEFAULT: "true"})
    try:
        await dependencies.client.create(
            StorageClass(
                metadata=metadata,
                provisioner=PROVISIONER,
                reclaim_policy="Delete",
                volume_binding_mode="WaitForFirstConsumer",
            )
        )
    except AlreadyExists:
        return


class ClaimBinder:
    """Reconciles claims."""

    def __init__(self, volumes: Path | None) -> None:
        self._directory = volumes

    async def reconcile(self, request: Request, ctx: Context) -> None:
        claim = await ctx.client.get(PersistentVolumeClaim, request, missing=None)
        if claim is None:
            return
        if claim.spec.volume_name:
            await self._sync_bound(claim, claim.spec.volume_name, ctx)
        elif claim.metadata.deletion_timestamp is None:
            await self._sync_unbound(claim, ctx)

    async def _sync_bound(self, claim: PersistentVolumeClaim, name: str, ctx: Context) -> None:
        """Sync a claim with a volumeName."""
        volume = await ctx.client.get(PersistentVolume, name, missing=None)
        completed = BIND_COMPLETED in claim.metadata.annotations
        if volume is not None and _is_available_for(volume, claim):
            await _bind(claim, volume, ctx)
        elif completed:
            lost = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
            if volume is not None:
                lost = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
            await _mark_lost(claim, lost, ctx)
        else:
            await _update_claim_status(claim, {"phase": "Pending"}, ctx)

    async def _sync_unbound(self, claim: PersistentVolumeClaim, ctx: Context) -> None:
        name = class_of(claim)
        storage_class = await ctx.client.get(StorageClass, name, missing=None) if name else None
        if waits_for_consumer(storage_class) and SELECTED_NODE not in claim.metadata.annotations:
            meant = [each for each in await _volumes(name, ctx) if _is_prebound_to(each, claim)]
            if not meant:
                message = "waiting for first consumer to be created before binding"
                ctx.event(claim, "WaitForFirstConsumer", message)
                await _update_claim_status(claim, {"phase": "Pending"}, ctx)
                return
        volume = find_matching_volume(claim, await _volumes(name, ctx))
        if volume is not None:
            await _bind(claim, volume, ctx)
            return
        await self._no_matching_volume(claim, name, storage_class, ctx)
        await _update_claim_status(claim, {"phase": "Pending"}, ctx)

    async def _no_matching_volume(
        self, claim: PersistentVolumeClaim, name: str, storage_class: StorageClass | None, ctx: Context
    ) -> None:
        if not name:
            message = "no persistent volumes available for this claim and no storage class is set"
            ctx.event(claim, "FailedBinding", message)
        elif storage_class is None:
            message = f'storageclass.storage.k8s.io "{name}" not found'
            ctx.event(claim, "ProvisioningFailed", message, kind="Warning")
        elif storage_class.provisioner == PROVISIONER and self._directory is not None:
            await self._provision(claim, storage_class, self._directory, ctx)
        elif storage_class.provisioner != "kubernetes.io/no-provisioner":
            await _wait_for_provisioner(claim, storage_class.provisioner, ctx)

    async def _provision(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass, directory: Path, ctx: Context
    ) -> None:
        """Create a directory and a volume that is prebound to the claim."""
        name = f"pvc-{claim.metadata.uid}"
        path = directory / name
        await ctx.world.executor.run(_make_directory, path)
        requests = claim.spec.resources.requests if claim.spec.resources is not None else {}
        volume = PersistentVolume(
            metadata=ObjectMeta(name=name, annotations={_PROVISIONED_BY: PROVISIONER}),
            spec=PersistentVolumeSpec(
                capacity={"storage": requests.get("storage", Quantity())},
                access_modes=claim.spec.access_modes,
                volume_mode=claim.spec.volume_mode,
                storage_class_name=storage_class.metadata.name,
                persistent_volume_reclaim_policy=storage_class.reclaim_policy or "Delete",
                host_path=HostPathVolumeSource(path=str(path), type="DirectoryOrCreate"),
                node_affinity=await _affinity(claim, ctx),
                claim_ref=claim_reference(claim),
            ),
        )
        try:
            await ctx.client.create(volume)
        except AlreadyExists:
            return
        message = f"Successfully provisioned volume {name}"
        ctx.event(claim, "ProvisioningSucceeded", message)


class VolumeReclaimer:
    """Reconciles volumes: releases and reclaims them when their claim is deleted."""

    def __init__(self, volumes: Path | None) -> None:
        self._directory = volumes

    async def reconcile(self, request: Request, ctx: Context) -> None:
        volume = await ctx.client.get(PersistentVolume, request, missing=None)
        if volume is None:
            return
        reference = volume.spec.claim_ref
        if reference is None or not reference.uid:
            await _update_volume_phase(volume, "Available", ctx)
            return
        key = NamespacedName(reference.namespace or "", reference.name or "")
        claim = await ctx.client.get(PersistentVolumeClaim, key, missing=None)
        if claim is None or claim.metadata.uid != reference.uid:
            live = await ctx.client.live.get(PersistentVolumeClaim, key, missing=None)
            if live is None or live.metadata.uid != reference.uid:
                await self._reclaim(volume, ctx)
        elif claim.spec.volume_name == volume.metadata.name:
            await _update_volume_phase(volume, "Bound", ctx)
        elif claim.spec.volume_name and _BY_CONTROLLER in volume.metadata.annotations:
            await self._unbind(volume, ctx)  # the claim is bound to another volume

    async def _reclaim(self, volume: PersistentVolume, ctx: Context) -> None:
        if volume.status.phase != "Failed":
            await _update_volume_phase(volume, "Released", ctx)
        if volume.spec.persistent_volume_reclaim_policy != "Delete":
            return
        if volume.metadata.annotations.get(_PROVISIONED_BY) != PROVISIONER or self._directory is None:
            return
        path = self._directory / volume.metadata.name
        host = volume.spec.host_path
        if host is not None and Path(host.path) == path:  # never delete other directories
            await ctx.world.executor.run(_remove_directory, path)
        await ctx.client.delete(volume, missing_ok=True)

    async def _unbind(self, volume: PersistentVolume, ctx: Context) -> None:
        change = {
            "metadata": {
                "resourceVersion": volume.metadata.resource_version,
                "annotations": {_BY_CONTROLLER: None},
            },
            "spec": {"claimRef": None},
        }
        await ctx.client.patch(PersistentVolume, volume.metadata, MergePatch(change))


async def _volumes(name: str, ctx: Context) -> list[PersistentVolume]:
    return await ctx.client.list(PersistentVolume, index=(BY_CLASS.name, name))


def _is_prebound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Return whether the volume is prebound to the claim, by uid if it has one."""
    reference = volume.spec.claim_ref
    if reference is None:
        return False
    named = (reference.namespace, reference.name) == (claim.metadata.namespace, claim.metadata.name)
    return named and reference.uid in (None, "", claim.metadata.uid)


def _is_available_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return volume.spec.claim_ref is None or _is_prebound_to(volume, claim)


async def _bind(claim: PersistentVolumeClaim, volume: PersistentVolume, ctx: Context) -> None:
    """Perform the missing writes: claimRef and phase of the volume, volumeName and status of the claim."""
    reference = volume.spec.claim_ref
    if reference is None or reference.uid != claim.metadata.uid:
        said = claim_reference(claim)
        change: dict[str, Any] = {
            "metadata": {"resourceVersion": volume.metadata.resource_version},
            "spec": {
                "claimRef": {
                    "apiVersion": said.api_version,
                    "kind": said.kind,
                    "namespace": said.namespace,
                    "name": said.name,
                    "uid": said.uid,
                    "resourceVersion": said.resource_version,
                }
            },
        }
        if reference is None:
            change["metadata"]["annotations"] = {_BY_CONTROLLER: "yes"}
        volume = await ctx.client.patch(PersistentVolume, volume.metadata, MergePatch(change))
    await _update_volume_phase(volume, "Bound", ctx)
    annotations = {}
    if BIND_COMPLETED not in claim.metadata.annotations:
        annotations[BIND_COMPLETED] = "yes"
    if not claim.spec.volume_name:
        annotations[_BY_CONTROLLER] = "yes"
    if annotations:
        change = {
            "metadata": {"resourceVersion": claim.metadata.resource_version, "annotations": annotations},
            "spec": {"volumeName": volume.metadata.name},
        }
        claim = await ctx.client.patch(PersistentVolumeClaim, claim.metadata, MergePatch(change))
    capacity = {name: str(amount) for name, amount in volume.spec.capacity.items()}
    status = {"phase": "Bound", "accessModes": list(volume.spec.access_modes), "capacity": capacity}
    await _update_claim_status(claim, status, ctx)


async def _mark_lost(claim: PersistentVolumeClaim, message: str, ctx: Context) -> None:
    if claim.status.phase != "Lost":
        await _update_claim_status(claim, {"phase": "Lost"}, ctx)
        ctx.event(claim, "ClaimLost", message, kind="Warning")


async def _update_claim_status(claim: PersistentVolumeClaim, status: dict[str, Any], ctx: Context) -> None:
    if claim.status.phase == status["phase"] and (status["phase"] != "Bound" or claim.status.capacity):
        return
    change = {"metadata": {"uid": claim.metadata.uid}, "status": status}
    await ctx.client.patch(PersistentVolumeClaim, claim.metadata, MergePatch(change), subresource="status")


async def _update_volume_phase(volume: PersistentVolume, phase: str, ctx: Context) -> None:
    if volume.status.phase == phase:
        return
    now = str(Time.of(ctx.world.clock.now()))
    change = {
        "metadata": {"uid": volume.metadata.uid},
        "status": {"phase": phase, "lastPhaseTransitionTime": now},
    }
    await ctx.client.patch(PersistentVolume, volume.metadata, MergePatch(change), subresource="status")


async def _wait_for_provisioner(claim: PersistentVolumeClaim, provisioner: str, ctx: Context) -> None:
    """Report that an external provisioner must create the volume."""
    if claim.metadata.annotations.get(_STORAGE_PROVISIONER) != provisioner:
        annotations = {
            _STORAGE_PROVISIONER: provisioner,
            "volume.beta.kubernetes.io/storage-provisioner": provisioner,
        }
        change = {"metadata": {"annotations": annotations}}
        await ctx.client.patch(PersistentVolumeClaim, claim.metadata, MergePatch(change))
    message = (
        f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
        "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
        "correctly registered."
    )
    ctx.event(claim, "ExternalProvisioning", message)


async def _affinity(claim: PersistentVolumeClaim, ctx: Context) -> VolumeNodeAffinity | None:
    """The node that the scheduler has selected for the claim; None if it did not."""
    name = claim.metadata.annotations.get(SELECTED_NODE)
    if not name:
        return None
    node = await ctx.client.get(Node, name, missing=None)
    label = name if node is None else node.metadata.labels.get(_HOSTNAME, name)
    term = NodeSelectorTerm(match_expressions=[NodeSelectorRequirement(key=_HOSTNAME, operator="In", values=[label])])
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=[term]))


def _make_directory(path: Path) -> None:
    path.mkdir(parents=True, exist_ok=True)
    path.chmod(0o777)  # for Pods of any user: fsGroup does not apply to hostPath


def _remove_directory(path: Path) -> None:
    shutil.rmtree(path, ignore_errors=True)

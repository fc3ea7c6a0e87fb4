"""VolumeBinding: schedules a Pod where its volumes are available, and binds them.

- A bound claim allows the nodes of its volume.
- A claim with WaitForFirstConsumer allows nodes with a matching volume, or where one can be provisioned: a driver that
  reports its capacity (CSIStorageCapacity) has enough of it. In PreBind the
  volume is prebound to the claim, or the selected node is written to it, and the binding is awaited.
- Other claims must be bound before the Pod is scheduled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from ostinato.api.codec import to_dict
from ostinato.api.gvk import NamespacedName
from ostinato.api.selectors.labels import from_label_selector
from ostinato.client.patching import MergePatch
from ostinato.controllers.runnable import Dependencies
from ostinato.kinds.core_v1 import PersistentVolume, PersistentVolumeClaim
from ostinato.kinds.storage_v1 import CSIDriver, CSIStorageCapacity, StorageClass
from ostinato.plane.placement.volume_matching import (
    SELECTED_NODE,
    can_be_provisioned,
    class_of,
    find_matching_volume,
    is_bound,
    matches_node_affinity,
    requested,
    waits_for_consumer,
)
from ostinato.plane.scheduler.api_writes import FIELD_MANAGER
from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.framework.events import (
    CAPACITY,
    CLAIM,
    CLASS,
    CSI_DRIVER,
    NODE,
    VOLUME,
    Action,
    QueueingHint,
)
from ostinato.plane.scheduler.framework.interface import Cycle, Filter, Plugin
from ostinato.plane.scheduler.framework.status import Status, unresolvable
from ostinato.plane.scheduler.plugins.volumes.restrictions import is_its_claim

_NAME: Final = "VolumeBinding"
_ELSEWHERE: Final = "node(s) didn't match PersistentVolume's node affinity"
_NONE_LEFT: Final = "node(s) didn't find available persistent volumes to bind"
_TOO_SMALL: Final = "node(s) did not have enough free storage"
_GONE: Final = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
_UNBOUND: Final = unresolvable(_NAME, "pod has unbound immediate PersistentVolumeClaims")
_BIND_TIMEOUT: Final = 600.0  # seconds
_BETWEEN_LOOKS: Final = 1.0


class VolumesNotBound(Exception):  # noqa: N818
    """Claims of a Pod were not bound in time, or to other volumes."""


class _Plan(msgspec.Struct):
    """Volumes to bind and claims to provision for a Pod on a node, or why the node is not feasible."""

    bind: list[tuple[PersistentVolumeClaim, PersistentVolume]] = []
    provision: list[PersistentVolumeClaim] = []
    conflict: str = ""


class VolumeBinding(Plugin):
    name = _NAME

    def __init__(self) -> None:
        self._assumed_volumes: dict[str, str] = {}  # claim uid by volume name
        self._selected_nodes: dict[str, str] = {}  # node by claim uid

    def filter(self, cycle: Cycle) -> Filter | Status | None:
        pod = cycle.pod
        names = pod.claims if pod.spec.volumes else []
        if not names:
            return None
        bound: list[PersistentVolumeClaim] = []
        waiting: list[PersistentVolumeClaim] = []
        for name in names:
            claim = cycle.listers.get(PersistentVolumeClaim, name, pod.namespace)
            why = _claim_error(cycle, name, claim)
            if why or claim is None:
                return unresolvable(_NAME, why)
            if is_bound(claim):
                bound.append(claim)
            elif waits_for_consumer(_class(cycle, claim)) and not claim.spec.volume_name:
                waiting.append(claim)
            else:
                return _UNBOUND
        waiting.sort(key=requested)
        return _Filter(self, cycle, bound, waiting)

    def hints(self) -> Sequence[QueueingHint]:
        return (
            QueueingHint(CLAIM, Action.ADD | Action.UPDATE, is_its_claim),
            QueueingHint(VOLUME, Action.ADD | Action.UPDATE),
            QueueingHint(CLASS, Action.ADD | Action.UPDATE),
            QueueingHint(NODE, Action.ADD | Action.NODE_LABEL),
            QueueingHint(CSI_DRIVER, Action.UPDATE),
            QueueingHint(CAPACITY, Action.ADD | Action.UPDATE),
        )

    def plan(self, cycle: Cycle, waiting: Sequence[PersistentVolumeClaim], node: NodeInfo) -> _Plan:
        """Return the plan for unbound claims on a node."""
        plan = _Plan(bind=[], provision=[])
        taken: dict[str, object] = {**self._assumed_volumes}
        for claim in waiting:
            selected = self._selected_nodes.get(claim.metadata.uid) or claim.metadata.annotations.get(SELECTED_NODE)
            if selected and selected != node.name:
                return _Plan(conflict=_NONE_LEFT)
            volume = None if selected else find_matching_volume(claim, cycle.listers.all(PersistentVolume), node, taken)
            if volume is not None:
                taken[volume.metadata.name] = claim
                plan.bind.append((claim, volume))
                continue
            storage_class = _class(cycle, claim)
            if storage_class is None or not can_be_provisioned(storage_class, node):
                return _Plan(conflict=_NONE_LEFT)
            if not _has_capacity(cycle, claim, storage_class, node):
                return _Plan(conflict=_TOO_SMALL)
            plan.provision.append(claim)
        return plan

    def reserve(self, cycle: Cycle, node: NodeInfo) -> None:
        plan = _plan_for(cycle, node)
        if plan is not None:
            self._assumed_volumes.update({volume.metadata.name: claim.metadata.uid for claim, volume in plan.bind})
            self._selected_nodes.update({claim.metadata.uid: node.name for claim in plan.provision})

    def unreserve(self, cycle: Cycle, node: NodeInfo) -> None:
        plan = _plan_for(cycle, node)
        if plan is not None:
            for _, volume in plan.bind:
                self._assumed_volumes.pop(volume.metadata.name, None)
            for claim in plan.provision:
                self._selected_nodes.pop(claim.metadata.uid, None)

    async def pre_bind(self, cycle: Cycle, node: NodeInfo, dependencies: Dependencies) -> None:
        plan = _plan_for(cycle, node)
        if plan is None or not (plan.bind or plan.provision):
            return
        client, clock = dependencies.client, dependencies.world.clock
        for claim, volume in plan.bind:
            change = MergePatch(_bind_patch(claim, volume))
            await client.patch(PersistentVolume, volume.metadata.name, change, field_manager=FIELD_MANAGER)
        for claim in plan.provision:
            annotation = {"metadata": {"uid": claim.metadata.uid, "annotations": {SELECTED_NODE: node.name}}}
            await client.patch(PersistentVolumeClaim, _key(claim), MergePatch(annotation), field_manager=FIELD_MANAGER)
        until = clock.monotonic() + _BIND_TIMEOUT
        claims = [*(claim for claim, _ in plan.bind), *plan.provision]
        while not self._are_bound(cycle, claims, plan, node):
            if clock.monotonic() >= until:
                raise VolumesNotBound("binding volumes: context deadline exceeded")
            await clock.sleep(_BETWEEN_LOOKS)
        self.unreserve(cycle, node)

    def _are_bound(self, cycle: Cycle, claims: Sequence[PersistentVolumeClaim], plan: _Plan, node: NodeInfo) -> bool:
        for claim in claims:
            now = cycle.listers.get(PersistentVolumeClaim, claim.metadata.name, claim.metadata.namespace)
            if now is None or now.metadata.uid != claim.metadata.uid:
                raise VolumesNotBound(
                    f'failed to check binding: persistentvolumeclaim "{claim.metadata.name}" not found'
                )
            if is_bound(now):
                continue
            seen = int(now.metadata.resource_version) > int(claim.metadata.resource_version)
            if seen and claim in plan.provision and now.metadata.annotations.get(SELECTED_NODE) != node.name:
                raise VolumesNotBound(f'provisioning failed for PVC "{claim.metadata.name}"')
            return False
        return True


class _Filter(Filter):
    plugin = _NAME

    def __init__(
        self,
        plugin: VolumeBinding,
        cycle: Cycle,
        bound: list[PersistentVolumeClaim],
        waiting: list[PersistentVolumeClaim],
    ) -> None:
        self._plugin = plugin
        self._cycle = cycle
        self._waiting = waiting
        self._volumes = [cycle.listers.get(PersistentVolume, claim.spec.volume_name or "") for claim in bound]
        self._plans: dict[str, _Plan] = {}
        cycle.state[_NAME] = self._plans

    def check(self, node: NodeInfo) -> Status | None:
        reasons = []
        present = [volume for volume in self._volumes if volume is not None]
        if not all(matches_node_affinity(volume, node) for volume in present):
            reasons.append(_ELSEWHERE)
        if self._waiting:
            plan = self._plugin.plan(self._cycle, self._waiting, node)
            if plan.conflict:
                reasons.append(plan.conflict)
            else:
                self._plans[node.name] = plan
        if len(present) < len(self._volumes):
            reasons.append(_GONE)
        return unresolvable(_NAME, *reasons) if reasons else None


def _claim_error(cycle: Cycle, name: str, claim: PersistentVolumeClaim | None) -> str:
    """Return why a claim cannot be used on any node; "" if it can."""
    pod = cycle.pod
    ephemeral = any(each.ephemeral is not None and name == f"{pod.name}-{each.name}" for each in pod.spec.volumes)
    if claim is None:
        if ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"'
        return f'persistentvolumeclaim "{name}" not found'
    if claim.status.phase == "Lost":
        volume = claim.spec.volume_name or ""
        return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{volume}"'
    if claim.metadata.deletion_timestamp is not None:
        return f'persistentvolumeclaim "{name}" is being deleted'
    if ephemeral and all(owner.uid != pod.uid for owner in claim.metadata.owner_references):
        return f"PVC {pod.namespace}/{name} was not created for pod {pod.namespace}/{pod.name} (pod is not owner)"
    return ""


def _class(cycle: Cycle, claim: PersistentVolumeClaim) -> StorageClass | None:
    name = class_of(claim)
    return cycle.listers.get(StorageClass, name) if name else None


def _has_capacity(cycle: Cycle, claim: PersistentVolumeClaim, storage_class: StorageClass, node: NodeInfo) -> bool:
    """Return whether a volume can be provisioned on a node, by the capacities that its driver reports, if it does."""
    driver = cycle.listers.get(CSIDriver, storage_class.provisioner)
    size = requested(claim)
    if not size or driver is None or not driver.spec.storage_capacity:
        return True
    return any(
        each.storage_class_name == storage_class.metadata.name
        and (limit := each.maximum_volume_size or each.capacity) is not None
        and limit.value() >= size
        and each.node_topology is not None
        and from_label_selector(to_dict(each.node_topology)).matches(node.labels)
        for each in cycle.listers.all(CSIStorageCapacity)
    )


def _plan_for(cycle: Cycle, node: NodeInfo) -> _Plan | None:
    plans: dict[str, _Plan] = cycle.state.get(_NAME, {})
    return plans.get(node.name)


def _key(claim: PersistentVolumeClaim) -> NamespacedName:
    return NamespacedName(claim.metadata.namespace, claim.metadata.name)


def _bind_patch(claim: PersistentVolumeClaim, volume: PersistentVolume) -> dict[str, object]:
    """Return the patch that prebinds a volume, conditional on its resourceVersion."""
    reference = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.metadata.namespace,
        "name": claim.metadata.name,
        "uid": claim.metadata.uid,
        "resourceVersion": claim.metadata.resource_version,
    }
    metadata: dict[str, object] = {"resourceVersion": volume.metadata.resource_version}
    if volume.spec.claim_ref is None:
        metadata["annotations"] = {"pv.kubernetes.io/bound-by-controller": "yes"}
    return {"metadata": metadata, "spec": {"claimRef": reference}}

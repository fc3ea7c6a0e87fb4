"""NodeVolumeLimits: the number of volumes of a CSI driver on a node, which its CSINode limits.

Volumes of the node's Pods count, and those that are still attached (VolumeAttachment); each of them once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from typing import Final

from ostinato.kinds.core_v1 import PersistentVolume, PersistentVolumeClaim
from ostinato.kinds.storage_v1 import CSIDriver, CSINode, StorageClass, VolumeAttachment
from ostinato.plane.placement.volume_matching import class_of
from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.pod_info import PodInfo
from ostinato.plane.scheduler.framework.events import (
    ATTACHMENT,
    CLAIM,
    CSI_NODE,
    POD,
    Action,
    ClusterEvent,
    QueueingHint,
)
from ostinato.plane.scheduler.framework.interface import Cycle, Filter, Plugin
from ostinato.plane.scheduler.framework.status import Status, unschedulable
from ostinato.plane.scheduler.plugins.volumes.restrictions import is_its_claim

_NAME: Final = "NodeVolumeLimits"
_EXCEEDED: Final = unschedulable(_NAME, "node(s) exceed max volume count")

Volumes = dict[tuple[str, str], str]
"""Drivers by driver and handle: each volume once."""


class VolumeLimits(Plugin):
    name = _NAME

    def filter(self, cycle: Cycle) -> Filter | Status | None:
        pod = cycle.pod
        if not pod.spec.volumes or not pod.claims:
            return None
        volumes = _volumes_of(cycle, pod)
        return _Filter(cycle, volumes) if volumes else None

    def hints(self) -> Sequence[QueueingHint]:
        return (
            QueueingHint(CSI_NODE, Action.ADD),
            QueueingHint(CSI_NODE, Action.UPDATE, _raises_limit),
            QueueingHint(POD, Action.DELETE, _had_claims),
            QueueingHint(CLAIM, Action.ADD, is_its_claim),
            QueueingHint(ATTACHMENT, Action.DELETE, _has_claims),
        )


class _Filter(Filter):
    plugin = _NAME

    def __init__(self, cycle: Cycle, volumes: Volumes) -> None:
        self._cycle = cycle
        self._volumes = volumes
        self._attached = _attached(cycle)
        self._required = frozenset(
            driver for driver in set(volumes.values()) if _must_be_installed(cycle.listers.get(CSIDriver, driver))
        )

    def check(self, node: NodeInfo) -> Status | None:
        listers = self._cycle.listers
        found = listers.get(CSINode, node.name)
        drivers = [] if found is None else found.spec.drivers
        for driver in sorted(self._required - {each.name for each in drivers}):
            return unschedulable(_NAME, f"{driver} CSI driver is not installed on the node")
        limits = {
            each.name: each.allocatable.count
            for each in drivers
            if each.allocatable is not None and each.allocatable.count is not None
        }
        if not limits:
            return None
        attached: Volumes = {}
        for pod in node.pods.values():
            if pod.spec.volumes:
                attached |= _volumes_of(self._cycle, pod)
        new = Counter(driver for volume, driver in self._volumes.items() if volume not in attached)
        attached |= self._attached.get(node.name, {})
        counts = Counter(attached.values())
        if any(driver in limits and counts[driver] + more > limits[driver] for driver, more in new.items()):
            return _EXCEEDED
        return None


def _volumes_of(cycle: Cycle, pod: PodInfo) -> Volumes:
    """Return the CSI volumes of a Pod's claims; a claim that is not bound counts as a volume of its class."""
    found: Volumes = {}
    for name in pod.claims:
        claim = cycle.listers.get(PersistentVolumeClaim, name, pod.namespace)
        if claim is None:
            continue
        volume = cycle.listers.get(PersistentVolume, claim.spec.volume_name) if claim.spec.volume_name else None
        if volume is not None:
            if volume.spec.csi is not None:
                found[volume.spec.csi.driver, volume.spec.csi.volume_handle] = volume.spec.csi.driver
            continue
        storage_class = cycle.listers.get(StorageClass, class_of(claim))
        if storage_class is not None:
            found[storage_class.provisioner, f"claim {pod.namespace}/{name}"] = storage_class.provisioner
    return found


def _attached(cycle: Cycle) -> dict[str, Volumes]:
    """Return the volumes that are attached, by node."""
    found: dict[str, Volumes] = defaultdict(dict)
    for each in cycle.listers.all(VolumeAttachment):
        name = each.spec.source.persistent_volume_name
        volume = cycle.listers.get(PersistentVolume, name) if name else None
        if volume is not None and volume.spec.csi is not None:
            found[each.spec.node_name][each.spec.attacher, volume.spec.csi.volume_handle] = each.spec.attacher
    return found


def _must_be_installed(driver: CSIDriver | None) -> bool:
    return driver is not None and bool(driver.spec.prevent_pod_scheduling_if_missing)


def _raises_limit(_pod: PodInfo, event: ClusterEvent) -> bool:
    """Return whether a CSINode permits more volumes than before."""

    def limits(node: CSINode) -> Counter[str]:
        found = Counter[str]()
        for each in node.spec.drivers:
            found[each.name] = (each.allocatable.count or 0) if each.allocatable is not None else 0
        return found

    return bool(limits(event.new.read(CSINode)) - limits(event.old.read(CSINode)))


def _had_claims(_pod: PodInfo, event: ClusterEvent) -> bool:
    gone: PodInfo = event.old
    return bool(gone.claims)


def _has_claims(pod: PodInfo, _event: ClusterEvent) -> bool:
    return bool(pod.claims)

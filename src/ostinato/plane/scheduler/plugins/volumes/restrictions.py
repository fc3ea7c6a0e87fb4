"""VolumeRestrictions: disks that can be attached once per node, and ReadWriteOncePod claims."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ostinato.kinds.core_v1 import PersistentVolumeClaim
from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.pod_info import PodInfo, Volume
from ostinato.plane.scheduler.framework.events import CLAIM, NODE, POD, Action, ClusterEvent, QueueingHint
from ostinato.plane.scheduler.framework.interface import Cycle, Filter, Plugin
from ostinato.plane.scheduler.framework.status import Status, unresolvable, unschedulable

_NAME: Final = "VolumeRestrictions"
_NO_DISK: Final = unschedulable(_NAME, "node(s) had no available disk")
_IN_USE: Final = unschedulable(
    _NAME,
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod",
)


class VolumeRestrictions(Plugin):
    name = _NAME

    def filter(self, cycle: Cycle) -> Filter | Status | None:
        pod = cycle.pod
        if not pod.spec.volumes:
            return None
        exclusive = set()
        for volume in pod.spec.volumes:
            if volume.persistent_volume_claim is None:
                continue
            name = volume.persistent_volume_claim.claim_name
            claim = cycle.listers.get(PersistentVolumeClaim, name, pod.namespace)
            if claim is None:
                return unresolvable(_NAME, f'persistentvolumeclaim "{name}" not found')
            if "ReadWriteOncePod" in claim.spec.access_modes:
                exclusive.add(name)
        in_use = sum((pod.namespace, name) in cycle.snapshot.claims for name in exclusive)
        return _Filter(pod, frozenset(exclusive), in_use) if in_use or pod.shape.disks else None

    def hints(self) -> Sequence[QueueingHint]:
        return (
            QueueingHint(POD, Action.DELETE, _frees),
            QueueingHint(NODE, Action.ADD),
            QueueingHint(CLAIM, Action.ADD, is_its_claim),
        )


class _Filter(Filter):
    plugin = _NAME

    def __init__(self, pod: PodInfo, exclusive: frozenset[str], in_use: int) -> None:
        self._pod = pod
        self._exclusive = exclusive
        self._in_use = in_use

    def check(self, node: NodeInfo) -> Status | None:
        disks = self._pod.shape.disks
        if disks and any(_conflict(disks, other.shape.disks) for other in node.pods.values()):
            return _NO_DISK
        return _IN_USE if self._in_use > 0 else None

    def copy(self) -> Filter:
        return _Filter(self._pod, self._exclusive, self._in_use)

    def add_pod(self, pod: PodInfo, node: NodeInfo) -> None:  # noqa: ARG002
        self._in_use += self._uses(pod)

    def remove_pod(self, pod: PodInfo, node: NodeInfo) -> None:  # noqa: ARG002
        self._in_use -= self._uses(pod)

    def _uses(self, pod: PodInfo) -> int:
        return sum(claim in self._exclusive for claim in pod.claims) if pod.namespace == self._pod.namespace else 0


def is_its_claim(pod: PodInfo, event: ClusterEvent) -> bool:
    """Return whether the event concerns a claim of the Pod."""
    key = event.new.key
    return key.namespace == pod.namespace and key.name in pod.claims


def _frees(pod: PodInfo, event: ClusterEvent) -> bool:
    gone: PodInfo = event.old
    if _conflict(pod.shape.disks, gone.shape.disks):
        return True
    return gone.namespace == pod.namespace and bool(set(gone.claims) & set(pod.claims))


def _conflict(disks: Sequence[Volume], others: Sequence[Volume]) -> bool:
    return any(_same(disk, other) for disk in disks for other in others)


def _same(one: Volume, other: Volume) -> bool:
    """Return whether two volumes are the same disk and one is mounted read-write."""
    return (
        _clash(one.gce_persistent_disk, other.gce_persistent_disk, "pdName")
        or _clash(one.aws_elastic_block_store, other.aws_elastic_block_store, "volumeID", shared=False)
        or _clash(one.iscsi, other.iscsi, "iqn")
        or (_clash(one.rbd, other.rbd, "pool", "image") and _share_monitor(one.rbd or {}, other.rbd or {}))
    )


def _clash(one: Mapping[str, Any] | None, other: Mapping[str, Any] | None, *identity: str, shared: bool = True) -> bool:
    if one is None or other is None or any(one.get(field) != other.get(field) for field in identity):
        return False
    return not (shared and one.get("readOnly") and other.get("readOnly"))


def _share_monitor(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return bool(set(one.get("monitors") or []) & set(other.get("monitors") or []))

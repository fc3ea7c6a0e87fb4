"""VolumeZone: zone and region labels of volumes must match the node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ostinato.kinds.core_v1 import PersistentVolume, PersistentVolumeClaim
from ostinato.plane.scheduler.cache.node_info import REGION, ZONE, NodeInfo
from ostinato.plane.scheduler.framework.events import CLAIM, CLASS, NODE, VOLUME, Action, QueueingHint
from ostinato.plane.scheduler.framework.interface import Cycle, Filter, Plugin
from ostinato.plane.scheduler.framework.status import Status, unresolvable
from ostinato.plane.scheduler.plugins.volumes.restrictions import is_its_claim

_NAME: Final = "VolumeZone"
_ELSEWHERE: Final = unresolvable(_NAME, "node(s) had no available volume zone")
_OLD: Final = {"failure-domain.beta.kubernetes.io/zone": ZONE, "failure-domain.beta.kubernetes.io/region": REGION}
_KEYS: Final = (ZONE, REGION, *_OLD)


class VolumeZone(Plugin):
    name = _NAME

    def filter(self, cycle: Cycle) -> Filter | Status | None:
        pod = cycle.pod
        wanted: list[tuple[str, frozenset[str]]] = []
        for name in pod.claims if pod.spec.volumes else ():
            claim = cycle.listers.get(PersistentVolumeClaim, name, pod.namespace)
            volume_name = None if claim is None else claim.spec.volume_name
            if not volume_name:
                continue
            volume = cycle.listers.get(PersistentVolume, volume_name)
            if volume is None:
                return unresolvable(_NAME, f'persistentvolume "{volume_name}" not found')
            labels = volume.metadata.labels
            wanted += [(key, frozenset(labels[key].split("__"))) for key in _KEYS if key in labels]
        return _Filter(wanted) if wanted else None

    def hints(self) -> Sequence[QueueingHint]:
        return (
            QueueingHint(NODE, Action.ADD | Action.NODE_LABEL),
            QueueingHint(CLAIM, Action.ADD | Action.UPDATE, is_its_claim),
            QueueingHint(VOLUME, Action.ADD | Action.UPDATE),
            QueueingHint(CLASS, Action.ADD),
        )


class _Filter(Filter):
    plugin = _NAME

    def __init__(self, wanted: list[tuple[str, frozenset[str]]]) -> None:
        self._wanted = wanted

    def check(self, node: NodeInfo) -> Status | None:
        labels = node.labels
        if not any(key in labels for key in _KEYS):
            return None  # the node has no topology labels
        for key, values in self._wanted:
            if labels.get(key, labels.get(_OLD.get(key, key), "")) not in values:
                return _ELSEWHERE
        return None

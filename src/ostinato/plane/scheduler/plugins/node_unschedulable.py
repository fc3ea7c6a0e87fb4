"""NodeUnschedulable: rejects cordoned nodes, unless the Pod tolerates the taint."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from ostinato.plane.placement.taints import UNSCHEDULABLE, tolerated
from ostinato.plane.scheduler.cache.node_info import NodeInfo
from ostinato.plane.scheduler.cache.pod_info import PodInfo, Shape
from ostinato.plane.scheduler.framework.events import NODE, POD, Action, ClusterEvent, QueueingHint
from ostinato.plane.scheduler.framework.interface import Cycle, Filter, Plugin
from ostinato.plane.scheduler.framework.status import Status, unresolvable

_NAME: Final = "NodeUnschedulable"
_CORDONED: Final = unresolvable(_NAME, "node(s) were unschedulable")


class NodeUnschedulable(Plugin):
    name = _NAME
    local = True

    def local_key(self, shape: Shape) -> Hashable:
        return tuple(shape.spec.tolerations)

    def filter(self, cycle: Cycle) -> Filter | None:
        return None if tolerated(UNSCHEDULABLE, cycle.pod.spec.tolerations) else _FILTER

    def hints(self) -> Sequence[QueueingHint]:
        return (
            QueueingHint(NODE, Action.ADD | Action.NODE_TAINT, _is_freed),
            QueueingHint(POD, Action.POD_TOLERATION, _tolerates_now),
        )


class _Filter(Filter):
    plugin = _NAME

    def check(self, node: NodeInfo) -> Status | None:
        return _CORDONED if node.facts.unschedulable else None


_FILTER: Final = _Filter()


def _is_freed(pod: PodInfo, event: ClusterEvent) -> bool:  # noqa: ARG001 - the same for all Pods
    if event.new.unschedulable:
        return False
    return bool(event.old is None or event.old.unschedulable)


def _tolerates_now(pod: PodInfo, event: ClusterEvent) -> bool:
    return bool(event.new.uid == pod.uid) and tolerated(UNSCHEDULABLE, event.new.spec.tolerations)

"""NodePorts: host ports of the Pod must be free on the node."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Final

from ostinato.plane.scheduler.cache.node_info import NodeInfo, ports_conflict
from ostinato.plane.scheduler.cache.pod_info import PodInfo, Shape
from ostinato.plane.scheduler.framework.events import NODE, POD, Action, ClusterEvent, QueueingHint
from ostinato.plane.scheduler.framework.interface import Cycle, Filter, Plugin
from ostinato.plane.scheduler.framework.status import Status, unschedulable

_NAME: Final = "NodePorts"
_TAKEN: Final = unschedulable(_NAME, "node(s) didn't have free ports for the requested pod ports")


class NodePorts(Plugin):
    name = _NAME
    local = True

    def local_key(self, shape: Shape) -> Hashable:
        return shape.ports

    def filter(self, cycle: Cycle) -> Filter | None:
        return _Filter(cycle.shape.ports) if cycle.shape.ports else None

    def hints(self) -> Sequence[QueueingHint]:
        return (QueueingHint(POD, Action.DELETE, _held_one), QueueingHint(NODE, Action.ADD))


class _Filter(Filter):
    plugin = _NAME

    def __init__(self, ports: tuple[tuple[str, str, int], ...]) -> None:
        self._ports = ports

    def check(self, node: NodeInfo) -> Status | None:
        return _TAKEN if node.conflicts(self._ports) else None


def _held_one(pod: PodInfo, event: ClusterEvent) -> bool:
    return ports_conflict(pod.shape.ports, event.old.shape.ports)

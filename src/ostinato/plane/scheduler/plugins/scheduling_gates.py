"""SchedulingGates: holds a Pod back until all scheduling gates are removed."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ostinato.plane.scheduler.cache.pod_info import PodInfo, Shape
from ostinato.plane.scheduler.framework.events import POD, Action, ClusterEvent, QueueingHint
from ostinato.plane.scheduler.framework.interface import Plugin


class SchedulingGates(Plugin):
    name = "SchedulingGates"
    local = True

    def local_key(self, shape: Shape) -> Hashable:  # noqa: ARG002 - the same for all shapes
        return None

    def gate(self, pod: PodInfo) -> str:
        gates = pod.spec.scheduling_gates
        return f"waiting for scheduling gates: [{' '.join(gate.name for gate in gates)}]" if gates else ""

    def hints(self) -> Sequence[QueueingHint]:
        return (QueueingHint(POD, Action.POD_GATES_ELIMINATED, _is_its_own),)


def _is_its_own(pod: PodInfo, event: ClusterEvent) -> bool:
    return bool(event.new.uid == pod.uid)

"""DaemonSet controller: runs one Pod on each eligible node.

- `placement`: which nodes are eligible.
- `pods`: Pods of a DaemonSet, each pinned to a node by node affinity.
- `rollout`: which Pods to create and delete, rolling updates included.
- `backoff`: backoff of failed Pods per node.
- `reconciler`: applies the changes and writes the status.
"""

from __future__ import annotations

from ostinato.kinds.apps_v1 import ControllerRevision, DaemonSet
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.workloads.daemonset.placement import ForPlacement, NodeState
from ostinato.plane.controllers.workloads.daemonset.reconciler import DaemonSetReconciler
from ostinato.plane.objects.pod_state import PodState
from ostinato.plane.ownership.event_handler import ForControllerRef

__all__ = ["DaemonSetReconciler", "add_to"]


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001 - signature of all controllers
    (
        manager.build("daemonset-controller")
        .watch_for(DaemonSet)
        .watches(PodState, handler=ForControllerRef(DaemonSet))
        .watches(ControllerRevision, handler=ForControllerRef(DaemonSet))
        .watches(NodeState, handler=ForPlacement())
        .with_options(max_concurrent=2)
        .complete(DaemonSetReconciler(manager.world.clock))
    )

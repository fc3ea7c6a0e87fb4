"""The DaemonSet controller: a Pod on every node where one belongs.

- `placement`: where that is.
- `daemons`: the Pods, each for a node.
- `rollout`: which are to be made and deleted, also from one template to the next.
- `failures`: how long a node is left alone where they fail.
- `reconciler`: does it, and says how it stands.
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


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001 - there is nothing to choose
    (
        manager.build("daemonset-controller")
        .watch_for(DaemonSet)
        .watches(PodState, handler=ForControllerRef(DaemonSet))
        .watches(ControllerRevision, handler=ForControllerRef(DaemonSet))
        .watches(NodeState, handler=ForPlacement())
        .with_options(max_concurrent=2)
        .complete(DaemonSetReconciler(manager.world.clock))
    )

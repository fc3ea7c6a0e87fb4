"""ReplicationController controller: the ReplicaSet controller with a map selector."""

from __future__ import annotations

from typing import Final

from ostinato.api.selectors.labels import Selector, from_set
from ostinato.kinds.core_v1 import ReplicationController, ReplicationControllerCondition, ReplicationControllerStatus
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.workloads.replicaset.reconciler import ReplicaKind, add_replica_controller


def _select(owner: ReplicationController) -> Selector:
    return from_set(owner.spec.selector)


REPLICATION_CONTROLLERS: Final = ReplicaKind(
    name="replication-controller",
    kind=ReplicationController,
    status=ReplicationControllerStatus,
    condition=ReplicationControllerCondition,
    select=_select,
)


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001
    add_replica_controller(manager, REPLICATION_CONTROLLERS)

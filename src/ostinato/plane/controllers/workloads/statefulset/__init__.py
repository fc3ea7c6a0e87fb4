"""The StatefulSet controller: Pods with names, places and storage of their own, in order.

- `reconciler`: what is done next, and when it has to wait.
- `members`: numbers and names, and the Pod of a number.
- `storage`, `retention`: the claims of the Pods, and with whom they go.
- `status`: what is said of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ostinato.api.gvk import NamespacedName
from ostinato.cache.store.entry import Entry
from ostinato.controllers.runnable import Dependencies
from ostinato.controllers.sources.predicates import deleted
from ostinato.kinds.apps_v1 import ControllerRevision, StatefulSet
from ostinato.kinds.core_v1 import PersistentVolumeClaim
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.controllers.workloads.statefulset.pods import Member, split
from ostinato.plane.controllers.workloads.statefulset.reconciler import StatefulSetReconciler
from ostinato.plane.ownership.event_handler import ForControllerRef

__all__ = ["StatefulSetReconciler", "add_to"]


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001 - there is nothing to choose
    (
        manager.build("statefulset-controller")
        .watch_for(StatefulSet)
        .watches(Member, handler=ForControllerRef(StatefulSet))
        .watches(ControllerRevision, handler=ForControllerRef(StatefulSet))
        .watches(PersistentVolumeClaim, map_to=_users_of, predicates=[deleted])
        .with_options(max_concurrent=5)
        .complete(StatefulSetReconciler())
    )


def _users_of(claim: PersistentVolumeClaim, dependencies: Dependencies) -> Iterable[NamespacedName]:
    """The sets that have a Pod for which the claim was: it may wait for another."""
    namespace = claim.metadata.namespace
    user, _ = split(claim.metadata.name)
    sets: list[Entry] = dependencies.informers.of(StatefulSet).store.entries(namespace)
    return [each.key for each in sets if user.endswith(f"-{each.key.name}")]

"""StatefulSet controller: Pods with stable identity and storage, in order.

- `reconciler`: the sync.
- `pods`: ordinals, names, and the Pod of an ordinal.
- `claims`, `retention`: PersistentVolumeClaims of the Pods, and their owners.
- `status`: counts of the status.
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


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001 - signature of all controllers
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
    """Return the StatefulSets with a Pod that uses the claim."""
    namespace = claim.metadata.namespace
    user, _ = split(claim.metadata.name)
    sets: list[Entry] = dependencies.informers.of(StatefulSet).store.entries(namespace)
    return [each.key for each in sets if user.endswith(f"-{each.key.name}")]

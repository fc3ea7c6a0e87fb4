"""Default selector of topology spread: the Pods of the Pod's Services and of its controller."""

from __future__ import annotations

from typing import Final

from ostinato.api.codec import to_dict
from ostinato.api.selectors.labels import Selector, from_set
from ostinato.kinds.apps_v1 import ReplicaSet, StatefulSet
from ostinato.kinds.core_v1 import ReplicationController, Service
from ostinato.plane.scheduler.cache.affinity_terms import selector_of
from ostinato.plane.scheduler.cache.pod_info import Owner
from ostinato.plane.scheduler.framework.interface import Cycle

_MEMO: Final = "default selector"


def default_selector(cycle: Cycle) -> Selector:
    """Return the selector; it matches everything if the Pod has neither: then it is not spread."""
    known: tuple[int, Selector] | None = cycle.memo.get(_MEMO)
    version = cycle.listers.services
    if known is not None and known[0] == version:
        return known[1]
    shape = cycle.shape
    labels: dict[str, str] = {}
    for service in cycle.listers.all(Service, shape.namespace):
        wanted = service.spec.selector
        if wanted and from_set(wanted).matches(shape.labels):
            labels.update(wanted)
    selector = from_set(labels)
    if shape.owner is not None and shape.owner.kind in _MANAGERS:
        of_owner = _selector_of_owner(cycle, shape.owner)
        if of_owner is None:  # may be created later: do not cache
            return selector
        selector = selector.with_requirements(*of_owner.requirements)
    cycle.memo[_MEMO] = (version, selector)
    return selector


_MANAGERS: Final = frozenset({"ReplicaSet", "StatefulSet", "ReplicationController"})


def _selector_of_owner(cycle: Cycle, owner: Owner) -> Selector | None:
    listers, namespace = cycle.listers, cycle.shape.namespace
    if (owner.api_version, owner.kind) == ("v1", "ReplicationController"):
        controller = listers.get(ReplicationController, owner.name, namespace)
        return None if controller is None else from_set(controller.spec.selector)
    if owner.api_version != "apps/v1":
        return Selector()
    kind: type[ReplicaSet | StatefulSet] = ReplicaSet if owner.kind == "ReplicaSet" else StatefulSet
    found = listers.get(kind, owner.name, namespace)
    return None if found is None else selector_of(to_dict(found.spec.selector))

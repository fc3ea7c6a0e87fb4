"""The resources that a node has allocated to a Pod: those of its spec, unless a resize is pending."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ostinato.api.time import Time
from ostinato.kinds.core_v1 import Container, Pod, ResourceRequirements

PENDING: Final = "PodResizePending"  # condition that exists only while a resize is not allocated
DEFERRED: Final = "Deferred"
_NONE: Final = ResourceRequirements()


class PendingResize(msgspec.Struct, frozen=True):
    """Why a resize is not allocated; the content of the condition PodResizePending.

    - `since`: when the reason became the present one.
    - `evaluated`: when the message became the present one.
    """

    reason: str
    message: str
    generation: int
    since: Time
    evaluated: Time


class Allocation:
    """The allocated resources of one Pod. After a restart of the agent they are those that the Pod's status reports."""

    def __init__(self, pod: Pod) -> None:
        status = pod.status
        reported = {
            each.name: each.resources
            for each in (*status.init_container_statuses, *status.container_statuses)
            if each.resources is not None
        }
        self._resources = {each.name: reported.get(each.name, each.resources or _NONE) for each in _containers(pod)}

    def differs(self, pod: Pod) -> bool:
        """Return whether the spec of a Pod asks for other resources than the allocated ones."""
        return any(self._resources.get(each.name, _NONE) != (each.resources or _NONE) for each in _containers(pod))

    def applied_to(self, pod: Pod) -> Pod:
        """Return a Pod with the allocated resources instead of those of its spec."""
        if not self.differs(pod):
            return pod
        spec = msgspec.structs.replace(
            pod.spec,
            init_containers=[self._allocated(each) for each in pod.spec.init_containers],
            containers=[self._allocated(each) for each in pod.spec.containers],
        )
        return msgspec.structs.replace(pod, spec=spec)

    def allocate(self, pod: Pod) -> None:
        """Allocate the resources of the spec of a Pod."""
        self._resources = {each.name: each.resources or _NONE for each in _containers(pod)}

    def _allocated(self, container: Container) -> Container:
        return msgspec.structs.replace(container, resources=self._resources.get(container.name, _NONE))


def _containers(pod: Pod) -> Iterable[Container]:
    return (*pod.spec.init_containers, *pod.spec.containers)


def reported_resize(pod: Pod) -> PendingResize | None:
    """Return the pending resize that the status of a Pod reports."""
    found = next((each for each in pod.status.conditions if each.type == PENDING), None)
    if found is None or found.last_transition_time is None:
        return None
    since = found.last_transition_time
    return PendingResize(
        found.reason or "",
        found.message or "",
        found.observed_generation or 0,
        since,
        found.last_probe_time or since,
    )

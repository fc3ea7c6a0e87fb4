"""In-place resize of containers: the runtime's interface, the resize policy, and the summary in events."""

from __future__ import annotations

from typing import Any, Final, Protocol, runtime_checkable

import msgspec

from ostinato.api.codec import to_dict
from ostinato.kinds.core_v1 import Container, Pod, ResourceRequirements

_RESOURCES: Final = ("cpu", "memory")  # that a resize can change


class ResizeError(Exception):
    """The resources of a running container cannot be changed."""


@runtime_checkable
class Resizable(Protocol):
    """A runtime that can change the resources of running containers."""

    async def resize(self, pod: Pod, container: Container, attempt: int) -> None:
        """Apply the resources of a container; `ResizeError` if that fails."""


def requires_restart(container: Container, before: ResourceRequirements | None) -> bool:
    """Return whether a resource changed whose resize policy is RestartContainer."""
    policies = {each.resource_name: each.restart_policy for each in container.resize_policy}
    old, new = before or ResourceRequirements(), container.resources or ResourceRequirements()
    return any(
        policies.get(name) == "RestartContainer"
        and (old.requests.get(name), old.limits.get(name)) != (new.requests.get(name), new.limits.get(name))
        for name in _RESOURCES
    )


def resize_summary(pod: Pod, error: str = "") -> str:
    """Return the resources of all containers as JSON, in the format of kubelet's events."""
    summary = {
        "initContainers": [_allocation(each) for each in pod.spec.init_containers],
        "containers": [_allocation(each) for each in pod.spec.containers],
        "generation": pod.metadata.generation,
    }
    if not pod.spec.init_containers:
        del summary["initContainers"]
    if error:
        summary["error"] = error
    return msgspec.json.encode(summary).decode()


def _allocation(container: Container) -> dict[str, Any]:
    resources = {} if container.resources is None else to_dict(container.resources)
    return {"name": container.name, "resources": resources}

"""In-place resize of containers: the runtime's interface, and the summary in events."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import msgspec

from ostinato.api.codec import to_dict
from ostinato.kinds.core_v1 import Container, Pod


@runtime_checkable
class Resizable(Protocol):
    """A runtime that can change the resources of running containers."""

    def resize(self, pod: Pod, container: Container, attempt: int) -> None: ...


def resize_summary(pod: Pod) -> str:
    """Return the resources of all containers as JSON, in the format of kubelet's events."""
    summary = {
        "initContainers": [_allocation(each) for each in pod.spec.init_containers],
        "containers": [_allocation(each) for each in pod.spec.containers],
        "generation": pod.metadata.generation,
    }
    if not pod.spec.init_containers:
        del summary["initContainers"]
    return msgspec.json.encode(summary).decode()


def _allocation(container: Container) -> dict[str, Any]:
    resources = {} if container.resources is None else to_dict(container.resources)
    return {"name": container.name, "resources": resources}

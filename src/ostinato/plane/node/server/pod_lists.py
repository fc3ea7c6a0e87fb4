"""The Pods of a node, as kubelet lists them: `/pods` with all, `/runningpods/` with the running containers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from ostinato.api.codec import to_dict
from ostinato.kinds.core_v1 import Pod

PODS: Final = "/pods"
RUNNING_PODS: Final = "/runningpods"


def all_pods(pods: Sequence[Pod]) -> bytes:
    return _list([_plain(pod) for pod in pods])


def running_pods(pods: Sequence[Pod]) -> bytes:
    """Only names, uid and the running containers, as the runtime knows them."""
    found = []
    for pod in pods:
        running = {each.name for each in pod.status.container_statuses if each.state and each.state.running}
        if running:
            meta = pod.metadata
            named = [{"name": each.name, "image": each.image or ""} for each in pod.spec.containers]
            found.append(
                {
                    "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid},
                    "spec": {"containers": [{**each, "resources": {}} for each in named if each["name"] in running]},
                    "status": {},
                }
            )
    return _list(found)


def _plain(pod: Pod) -> dict[str, Any]:
    """The Pod without kind and apiVersion."""
    return {field: value for field, value in to_dict(pod).items() if field not in ("kind", "apiVersion")}


def _list(items: list[dict[str, Any]]) -> bytes:
    return msgspec.json.encode({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})

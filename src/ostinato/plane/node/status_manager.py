"""Status manager: writes the status of Pods to the API server, and deletes Pods that have terminated."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import msgspec

from ostinato.api.codec import from_json, to_dict
from ostinato.api.errors import NotFound
from ostinato.api.object import Object, origin
from ostinato.api.time import Time
from ostinato.cache.client import CachedClient
from ostinato.client.patching import StrategicMergePatch
from ostinato.kinds.core_v1 import Pod, PodStatus
from ostinato.plane.node.admission import Rejection
from ostinato.plane.node.node_clients import ClientOf


class _WrittenPod(Object, version="v1", kind="Pod", plural="pods"):
    """What a write of the status changes."""

    status: PodStatus = msgspec.field(default_factory=PodStatus)


class StatusManager:
    """Serves all nodes of a process; each request is sent as the Pod's node."""

    def __init__(self, client_of: ClientOf) -> None:
        self._client_of = client_of

    async def sync(self, pod: Pod, mirror: Pod, status: PodStatus) -> Pod:
        """Write the changed fields of a status; return the Pod with the stored status.

        `mirror`: the Pod on the API server, which is `pod` itself unless that is a static Pod. `NotFound` if it was
        deleted.
        """
        changes = _changes(pod.status, status)  # as encoded: the API server stores whole seconds
        if not changes:
            return pod
        patch = StrategicMergePatch({"metadata": {"uid": mirror.metadata.uid}, "status": changes})
        stored = await self._client(pod).patch(_WrittenPod, mirror.metadata, patch, subresource="status")
        if mirror is not pod:
            return msgspec.structs.replace(pod, status=stored.status)
        if stored.metadata.generation != pod.metadata.generation or not pod.metadata.generation:  # the spec changed
            return from_json(Pod, origin(stored) or b"")
        return msgspec.structs.replace(pod, metadata=stored.metadata, status=stored.status)

    async def reject(self, pod: Pod, rejection: Rejection, now: Time) -> None:
        """Mark a Pod as failed because the node does not admit it."""
        status = {
            "phase": "Failed",
            "reason": rejection.reason,
            "message": f"Pod was rejected: {rejection.message}",
            "startTime": str(now),
            "observedGeneration": pod.metadata.generation,
        }
        patch = StrategicMergePatch({"metadata": {"uid": pod.metadata.uid}, "status": status})
        with suppress(NotFound):
            await self._client(pod).patch(Pod, pod.metadata, patch, subresource="status")

    async def delete(self, pod: Pod) -> bool:
        """Delete a terminated Pod whose deletion was requested; return whether it existed.

        Raises Conflict also if another Pod has its name, whose event follows: the caller tries again.
        """
        try:
            await self._client(pod).delete(pod, grace_period=0)
        except NotFound:
            return False
        return True

    def _client(self, pod: Pod) -> CachedClient:
        return self._client_of(pod.spec.node_name or "")


def _changes(old: PodStatus, new: PodStatus) -> dict[str, Any]:
    """Return the fields to patch: those that differ, null for removed ones.

    Conditions are merged by type and field, so that concurrent changes by other writers are kept.
    """
    before, after = to_dict(old), to_dict(new)
    changed = _differences(before, after)
    if "conditions" in changed:
        known = {each["type"]: each for each in before.get("conditions", ())}
        changed["conditions"] = [
            {"type": each["type"]} | _differences(known.get(each["type"], {}), each)
            for each in after.get("conditions", ())
            if each != known.get(each["type"])
        ]
        kept = {each["type"] for each in after.get("conditions", ())}
        changed["conditions"] += [{"type": each, "$patch": "delete"} for each in known if each not in kept]
    for name in ("hostIPs", "podIPs"):  # replaced as a whole: merging would keep former addresses
        if changed.get(name):
            changed[name] = [*changed[name], {"$patch": "replace"}]
    return changed


def _differences(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    changed = {name: value for name, value in after.items() if before.get(name) != value}
    return changed | {name: None for name in before if name not in after}

"""API writes of the scheduler: bindings, Pod status, and evictions of victims."""

from __future__ import annotations

from typing import Any, Final

from ostinato.api.errors import NotFound
from ostinato.api.object import Object
from ostinato.api.struct import BuiltinStruct
from ostinato.api.time import Time
from ostinato.cache.client import CachedClient
from ostinato.client.patching import StrategicMergePatch
from ostinato.plane.scheduler.cache.listers import Listers
from ostinato.plane.scheduler.cache.pod_info import PodInfo
from ostinato.world import Clock

FIELD_MANAGER: Final = "kube-scheduler"
UNSCHEDULABLE: Final = "Unschedulable"
ERROR: Final = "SchedulerError"


class _Condition(BuiltinStruct):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Status(BuiltinStruct):
    conditions: list[_Condition] = []
    nominated_node_name: str = ""


class PodConditions(Object, version="v1", kind="Pod", plural="pods"):
    """A Pod with its conditions."""

    status: _Status | None = None


class ApiWriter:
    def __init__(self, client: CachedClient, listers: Listers, clock: Clock) -> None:
        self._client = client
        self._listers = listers
        self._clock = clock

    async def bind(self, pod: PodInfo, node: str) -> None:
        await self._client.live.pods.bind(pod.key, node, uid=pod.uid)

    async def patch_status(self, pod: PodInfo, reason: str, message: str, nominated: str | None) -> None:
        """Patch the condition PodScheduled and nominatedNodeName, if they changed. `nominated` None keeps the
        nomination.
        """
        known = self._listers.pod(PodConditions, pod)
        if known is None:
            return
        status = known.status or _Status()
        change: dict[str, Any] = {}
        wanted = _Condition(type="PodScheduled", status="False", reason=reason, message=message)
        if condition := self._condition_patch(pod, status, wanted):
            change["conditions"] = [condition]
        if nominated is not None and nominated != status.nominated_node_name:
            change["nominatedNodeName"] = nominated or None
        if change:
            await self._patch(pod, change)

    async def clear_nomination(self, pod: PodInfo) -> None:
        await self._patch(pod, {"nominatedNodeName": None})

    async def evict(self, victim: PodInfo, by: PodInfo) -> bool:
        """Delete a victim, with the condition DisruptionTarget; return whether it still existed."""
        note = f"{by.scheduler_name}: preempting to accommodate a higher priority pod"
        wanted = _Condition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler", message=note)
        known = self._listers.pod(PodConditions, victim)
        if known is None:
            return False
        status = known.status or _Status()
        try:
            if condition := self._condition_patch(victim, status, wanted):
                await self._patch(victim, {"conditions": [condition]})
            await self._client.delete(PodConditions, victim.key, uid=victim.uid)
        except NotFound:
            return False
        return True

    def _condition_patch(self, pod: PodInfo, status: _Status, wanted: _Condition) -> dict[str, Any] | None:
        """Return the condition to write; None if it is unchanged."""
        known = next((each for each in status.conditions if each.type == wanted.type), None)
        if known == wanted:
            return None
        condition: dict[str, Any] = {
            "type": wanted.type,
            "status": wanted.status,
            "reason": wanted.reason,
            "message": wanted.message,
            "lastProbeTime": None,
        }
        if pod.generation:
            condition["observedGeneration"] = pod.generation
        if known is None or known.status != wanted.status:
            condition["lastTransitionTime"] = str(Time.of(self._clock.now()))
        return condition

    async def _patch(self, pod: PodInfo, status: dict[str, Any]) -> None:
        change = StrategicMergePatch({"metadata": {"uid": pod.uid}, "status": status})
        await self._client.patch(PodConditions, pod.key, change, subresource="status", field_manager=FIELD_MANAGER)

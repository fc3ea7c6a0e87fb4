"""Stale disruption: resets the condition DisruptionTarget of Pods that were not deleted.

A component sets the condition before it deletes a Pod. If the Pod is not deleted within two minutes, the condition
is set to False. Conditions of a kubelet are left alone.
"""

from __future__ import annotations

from typing import Final

from ostinato.cache.events import Deleted, Event
from ostinato.client.patching import StrategicMergePatch
from ostinato.controllers import Context, Request, Result
from ostinato.plane.objects.pod_state import PodState, condition, is_finished

_TARGET: Final = "DisruptionTarget"
_IN_JSON: Final = f'"{_TARGET}"'.encode()
_STALE_AFTER: Final = 120.0  # seconds


def may_have_disruption_target(event: Event) -> bool:
    """Return whether the Pod may have the condition DisruptionTarget."""
    return _IN_JSON in event.object.data and not isinstance(event, Deleted)


class StaleDisruptionReconciler:
    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        pod = await ctx.client.get(PodState, request, missing=None)
        if pod is None or pod.metadata.deletion_timestamp is not None or is_finished(pod):
            return None
        target = condition(pod, _TARGET)
        if target is None or target.status != "True" or target.reason == "TerminationByKubelet":
            return None
        now = ctx.now()
        since = target.last_transition_time or now
        left = _STALE_AFTER - (now - since).total_seconds()
        if left > 0:
            return Result(requeue_after=left)
        taken_back = {
            "type": _TARGET,
            "status": "False",
            "reason": None,
            "message": None,
            "lastTransitionTime": str(now),
        }
        change = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [taken_back]}}
        await ctx.client.patch(PodState, request, StrategicMergePatch(change), subresource="status")
        return None

"""Taint eviction controller: deletes Pods that do not tolerate a NoExecute taint of their node.

tolerationSeconds count from when the taint was first observed; the shortest applies. If the taint is removed in time,
the eviction is cancelled.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from ostinato.api.errors import NotFound
from ostinato.api.gvk import NamespacedName
from ostinato.api.time import Time
from ostinato.cache import Deleted, Event, Informer
from ostinato.client.patching import StrategicMergePatch
from ostinato.controllers import Context, ForEvent, Request, Result
from ostinato.kinds.core_v1 import Node, Pod, Taint, Toleration
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.objects.indexes import NODE_NAME, ensure_index
from ostinato.plane.objects.pod_state import PodState
from ostinato.plane.placement.taints import NO_EXECUTE, tolerates

_REASON: Final = "TaintManagerEviction"


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001
    pods: Informer = manager.informers.of(PodState)
    ensure_index(pods, NODE_NAME)
    reconciler = TaintEviction(pods)
    (
        manager.build("taint-eviction-controller")
        .watches(Node, handler=ForEvent(reconciler.node_changed))
        .watches(PodState, handler=ForEvent(reconciler.pod_changed))
        .with_options(max_concurrent=8)
        .complete(reconciler)
    )


class _ScheduledEviction(msgspec.Struct, frozen=True):
    """Scheduled eviction of a Pod."""

    uid: str
    since: float  # when the taint was first observed
    at: float


class TaintEviction:
    def __init__(self, pods: Informer) -> None:
        self._pods = pods
        self._tainted: set[str] = set()  # nodes with NoExecute taints
        self._scheduled: dict[NamespacedName, _ScheduledEviction] = {}

    def node_changed(self, event: Event) -> Iterable[NamespacedName]:
        name = event.key.name
        was = name in self._tainted
        if not isinstance(event, Deleted) and b'"NoExecute"' in event.object.data:
            self._tainted.add(name)
        else:
            self._tainted.discard(name)
            if not was:
                return ()
        return self._pods.store.index_keys(NODE_NAME.name, name)

    def pod_changed(self, event: Event) -> Iterable[NamespacedName]:
        key = event.key
        if key in self._scheduled:
            return (key,)
        if not self._tainted or isinstance(event, Deleted):
            return ()
        return (key,) if self._tainted.intersection(self._pods.store.values_of(NODE_NAME.name, key)) else ()

    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        pod = await ctx.client.get(Pod, request, missing=None)
        plan = self._scheduled.get(request)
        if pod is None or not pod.spec.node_name or pod.metadata.deletion_timestamp is not None:
            self._scheduled.pop(request, None)
            return None
        if plan is not None and plan.uid != pod.metadata.uid:
            del self._scheduled[request]
            plan = None
        node = await ctx.client.get(Node, pod.spec.node_name, missing=None)
        taints = [] if node is None else [each for each in node.spec.taints if each.effect == NO_EXECUTE]
        stays = _min_toleration_seconds(taints, pod.spec.tolerations)
        if stays is None:
            if self._scheduled.pop(request, None) is not None:
                ctx.event(pod, _REASON, f"Cancelling deletion of Pod {request}")
            return None
        now = ctx.world.clock.monotonic()
        since = now if plan is None else plan.since
        at = since + stays
        if at > now:
            self._scheduled[request] = _ScheduledEviction(pod.metadata.uid, since, at)
            return Result(requeue_after=at - now)
        self._scheduled.pop(request, None)
        await self._evict(pod, request, ctx)
        return None

    async def _evict(self, pod: Pod, request: Request, ctx: Context) -> None:
        ctx.event(pod, _REASON, f"Marking for deletion Pod {request}")
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByTaintManager",
            "message": "Taint manager: deleting due to NoExecute taint",
            "observedGeneration": pod.metadata.generation or None,
            "lastTransitionTime": str(Time.of(ctx.world.clock.now())),
        }
        change = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [condition]}}
        try:
            await ctx.client.patch(Pod, pod.metadata, StrategicMergePatch(change), subresource="status")
            await ctx.client.delete(pod)
        except NotFound:
            return


def _min_toleration_seconds(taints: list[Taint], tolerations: list[Toleration]) -> float | None:
    """Return the seconds for which the taints are tolerated; None if without limit."""
    seconds: list[float] = []
    for taint in taints:
        found = [each for each in tolerations if tolerates(each, taint)]
        if not found:
            return 0.0
        seconds += [max(float(each.toleration_seconds), 0.0) for each in found if each.toleration_seconds is not None]
    return min(seconds) if seconds else None

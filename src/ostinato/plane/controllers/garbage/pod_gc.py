"""Pod garbage collector. Every 20 seconds it deletes

| Pods | reason |
|---|---|
| on a node that was deleted 40 seconds ago | no kubelet runs them; they get the condition DisruptionTarget |
| that are terminating and not scheduled | no kubelet deletes them |
| that are terminating on a node that is out of service | its kubelet does not respond |
| that are terminated, beyond a threshold of 12,500 | evicted Pods first, then the oldest |
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from contextlib import suppress
from typing import Any, Final

from ostinato.api.conditions import is_condition_true
from ostinato.api.errors import NotFound
from ostinato.api.gvk import NamespacedName
from ostinato.cache import Entry, Informers
from ostinato.client.patching import StrategicMergePatch
from ostinato.client.views import MetadataOf
from ostinato.controllers import Context, ForEvent, Result, StartupSource
from ostinato.kinds.core_v1 import Node
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.objects.indexes import FINISHED, NODE_NAME, ensure_index
from ostinato.plane.objects.pod_state import FINISHED_PHASES, PodState, is_finished

NAME: Final = "pod-garbage-collector-controller"
PERIOD: Final = 20.0  # seconds
QUARANTINE: Final = 40.0  # seconds a node must be absent
TERMINATED_POD_THRESHOLD: Final = 12_500
_OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
_NODE_GONE: Final = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "DeletionByPodGC",
    "message": "PodGC: node no longer exists",
}


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001 - signature of all controllers
    add_pod_gc(manager)


def add_pod_gc(manager: Manager, *, terminated_threshold: int = TERMINATED_POD_THRESHOLD) -> None:
    """Add the controller. `terminated_threshold`: terminated Pods that are kept."""
    for index in (NODE_NAME, FINISHED):
        ensure_index(manager.informers.of(PodState), index)
    nothing = ForEvent(lambda _: ())  # the controller is triggered by time only
    (
        manager.build(NAME)
        .watches(PodState, handler=nothing)
        .watches(Node, handler=nothing)
        .watches_source(StartupSource(["all Pods"]))
        .complete(PodGarbageCollector(manager.informers, terminated_threshold))
    )


class PodGarbageCollector:
    def __init__(self, informers: Informers, terminated_threshold: int) -> None:
        self._pods = informers.of(PodState)
        self._nodes = informers.of(Node)
        self._terminated_threshold = terminated_threshold
        self._missing: dict[str, float] = {}  # absent nodes with Pods, and since when

    async def reconcile(self, request: str, ctx: Context) -> Result:  # noqa: ARG002 - a single key
        store = self._pods.store
        if len(store) > self._terminated_threshold:
            await self._delete_terminated(ctx)
        for node in await self._deleted_nodes(ctx):
            for entry in store.by_index(NODE_NAME.name, node):
                await self._force_delete(entry, ctx, _NODE_GONE)
        out_of_service = self._out_of_service()
        for entry in store.entries():
            if entry.is_being_deleted and self._is_unreapable(entry, out_of_service):
                await self._force_delete(entry, ctx)
        return Result(requeue_after=PERIOD)

    async def _delete_terminated(self, ctx: Context) -> None:
        found = [entry for phase in FINISHED_PHASES for entry in self._pods.store.by_index(FINISHED.name, phase)]
        if len(found) <= self._terminated_threshold:
            return
        terminated = sorted((entry.read(PodState) for entry in found), key=_deletion_order)
        for pod in terminated[: max(0, len(terminated) - self._terminated_threshold)]:
            with suppress(NotFound):
                await ctx.client.delete(pod, grace_period=0)

    async def _deleted_nodes(self, ctx: Context) -> list[str]:
        """Return nodes that were absent for the quarantine period and do not exist on the server."""
        now, store = ctx.world.clock.monotonic(), self._nodes.store
        missing = {
            name for name in self._pods.store.index_values(NODE_NAME.name) if NamespacedName("", name) not in store
        }
        self._missing = {name: self._missing.get(name, now) for name in missing}
        gone = []
        for name, since in self._missing.items():
            if now - since >= QUARANTINE and await _is_node_deleted(name, ctx):
                gone.append(name)
        return gone

    def _is_unreapable(self, entry: Entry, out_of_service: AbstractSet[str]) -> bool:
        """Whether no kubelet ends the Pod: it has no node, or one that is out of service."""
        bound = self._pods.store.values_of(NODE_NAME.name, entry.key)
        return not bound or not bound[0] or bound[0] in out_of_service

    def _out_of_service(self) -> set[str]:
        """Return the nodes that are not ready and have the taint."""
        tainted = (entry.read(Node) for entry in self._nodes.store.entries() if _OUT_OF_SERVICE.encode() in entry.data)
        return {
            node.metadata.name
            for node in tainted
            if any(each.key == _OUT_OF_SERVICE for each in node.spec.taints) and not is_condition_true(node, "Ready")
        }

    async def _force_delete(self, entry: Entry, ctx: Context, condition: dict[str, str] | None = None) -> None:
        """Set the phase Failed, then delete the Pod without grace period."""
        pod = entry.read(PodState)
        with suppress(NotFound):
            if not is_finished(pod):
                status: dict[str, Any] = {"phase": "Failed", "observedGeneration": pod.metadata.generation}
                if condition is not None:
                    written = {**condition, "observedGeneration": pod.metadata.generation}
                    status["conditions"] = [{**written, "lastTransitionTime": str(ctx.now())}]
                change = StrategicMergePatch({"metadata": {"uid": pod.metadata.uid}, "status": status})
                await ctx.client.patch(PodState, pod.metadata, change, subresource="status")
            await ctx.client.delete(pod, grace_period=0)


async def _is_node_deleted(node: str, ctx: Context) -> bool:
    return await ctx.client.live.get(MetadataOf(Node), NamespacedName("", node), missing=None) is None


def _deletion_order(pod: PodState) -> tuple[bool, str, str]:
    return pod.status.reason != "Evicted", str(pod.metadata.creation_timestamp), pod.metadata.name

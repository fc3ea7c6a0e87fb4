"""Node agent: the sync loop that runs the Pods bound to the nodes of this process.

One reconciler serves all nodes. It creates a pod worker for each Pod, syncs it when the Pod or its containers change,
and has the status manager write its status. A status on the API server is not read back, except for the conditions of
other writers (readiness gates).
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from ostinato.api.errors import NotFound
from ostinato.api.gvk import NamespacedName
from ostinato.cache import Deleted, Event, Updated
from ostinato.cache.store.resource_versions import reached
from ostinato.controllers import Channel, Context, Request, Result
from ostinato.kinds.core_v1 import Node, Pod, PodStatus
from ostinato.plane.node.admission import Rejection, rejection_of, selects_nodes
from ostinato.plane.node.local_node import LocalNode, NodeComponents, components_of
from ostinato.plane.node.node_clients import ClientOf
from ostinato.plane.node.pod_manager import NodeNameOf, PodManager
from ostinato.plane.node.pod_worker import PodWorker
from ostinato.plane.node.resize_admission import ResizeAdmission
from ostinato.plane.node.static_pods import StaticPodSet, ensure_mirror, remove_mirror
from ostinato.plane.node.status_manager import StatusManager


class NodeAgent:
    """A reconciler of Pods. `client_of`: sends requests as a node."""

    def __init__(self, nodes: Mapping[str, LocalNode], node_name_of: NodeNameOf, client_of: ClientOf) -> None:
        self._client_of = client_of
        self._pods = PodManager(nodes, node_name_of)
        self._status = StatusManager(client_of)
        self._workers: dict[NamespacedName, PodWorker] = {}
        self._components: dict[str, NodeComponents] = {}  # by node
        self._settling: set[NamespacedName] = set()  # Pods whose reconcile sees the changes that happen now
        self._removing: dict[NamespacedName, str] = {}  # uids of Pods that the agent deletes, until their event
        self.changes = Channel()  # Pods whose containers have changed
        self._resizes = ResizeAdmission(nodes, self._workers, self.changes)
        for runtime in {id(node.runtime): node.runtime for node in nodes.values()}.values():
            runtime.listen(self._request_sync)

    def _request_sync(self, pod: Pod) -> None:
        key = NamespacedName(pod.metadata.namespace, pod.metadata.name)
        if key not in self._settling:
            self.changes.put(key)

    def keys(self, event: Event) -> tuple[NamespacedName, ...]:
        """Return the Pods to sync after a watch event; none for events of the agent's own writes."""
        key = event.key
        worker = self._workers.get(key)
        if worker is None:
            if self._removing.get(key) == event.object.uid:
                if isinstance(event, Deleted):
                    del self._removing[key]
                return ()
            return (key,) if self._pods.is_bound_here(key) else ()
        if isinstance(event, Updated) and reached(worker.pod.metadata.resource_version, event.new.resource_version):
            return ()
        return (key,)

    def latest(self, cached: Pod) -> Pod:
        """Return a Pod with the present status of its containers.

        A client that has read a status may ask for logs before the agent knows that it was written.
        """
        worker = self._workers.get(NamespacedName(cached.metadata.namespace, cached.metadata.name))
        if worker is None or worker.is_compacted or worker.pod.metadata.uid != cached.metadata.uid:
            return cached
        has_seen = reached(cached.metadata.resource_version, worker.pod.metadata.resource_version)
        return msgspec.structs.replace(cached if has_seen else worker.pod, status=worker.status())

    def set_static_pods(self, node: str, pods: StaticPodSet) -> None:
        """Replace the static Pods of a node."""
        for key in self._pods.set_static_pods(node, pods):
            self.changes.put(key)

    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        if self._pods.is_static(request):
            return await self._reconcile_static(request, ctx)
        pod = await ctx.client.get(Pod, request, missing=None)
        worker = self._workers.get(request)
        if worker is not None and (pod is None or pod.metadata.uid != worker.pod.metadata.uid):
            worker.terminate(0.0)  # deleted without waiting for this node: its containers must not outlive it
            if worker.is_terminated:
                self._remove_worker(request, worker)
            return None
        if pod is None:
            return None
        node = self._pods.node_of(pod)
        if node is None:
            return None
        if worker is None:
            if pod.status.phase in ("Succeeded", "Failed"):
                await self._delete_if_requested(pod)
                return None
            labels = await self._labels(node) if selects_nodes(pod) else {}
            if (rejection := self._rejection(pod, node, labels)) is not None:
                ctx.event(pod, rejection.reason, rejection.message, kind="Warning")
                await self._status.reject(pod, rejection, ctx.now())
                return None
            worker = await self._start_worker(request, pod, node, ctx)
        worker.update(pod)
        if worker.has_resize:
            self._resizes.request(request, node.name)
        elif worker.pending_since is not None:
            worker.withdraw_resize()
        delay = await self._sync(request, worker, ctx)
        if worker.is_terminated:
            self._resizes.retry(node.name)
        if worker.is_terminated and _needs_no_last_status(pod, node):
            await self._delete_if_requested(pod)
            return None
        before, status = worker.pod, worker.status()
        try:
            stored = await self._status.sync(before, before, status)
        except NotFound:
            return None  # deleted; the watch event follows
        worker.update(stored)
        if stored is not before and _others_changed(before, status, stored):
            self.changes.put(request)  # `keys` ignores their events, which are older than the agent's write
        if worker.is_terminated and pod.metadata.deletion_timestamp is not None:
            await self._delete_if_requested(pod)
            return None
        delays = [each for each in (delay, await worker.sync_volumes()) if each is not None]
        if not node.runtime.is_real:
            worker.compact()
        return Result(requeue_after=min(delays)) if delays else None

    async def _reconcile_static(self, request: Request, ctx: Context) -> Result | None:
        static, worker = self._pods.static_pod(request), self._workers.get(request)
        if worker is not None and (static is None or static.metadata.uid != worker.pod.metadata.uid):
            worker.terminate(float(worker.pod.spec.termination_grace_period_seconds or 0))
            if worker.is_terminated:
                self._remove_worker(request, worker)
                await remove_mirror(worker.pod, self._client_of(worker.pod.spec.node_name or "").live)
            return None
        if static is None:
            self._pods.forget_static(request)
            return None
        if worker is None:
            node = self._pods.node_of(static)
            assert node is not None, "static Pods belong to nodes of this process"
            worker = await self._start_worker(request, static, node, ctx)
        client = self._client_of(static.spec.node_name or "").live
        mirror = await ensure_mirror(static, client, str(worker.started_at))
        worker.update(msgspec.structs.replace(static, status=mirror.status))
        delay = worker.sync()
        if worker.is_busy:
            await ctx.world.clock.sleep(0)
        worker.update(await self._status.sync(worker.pod, mirror, worker.status()))
        delays = [each for each in (delay, await worker.sync_volumes()) if each is not None]
        return Result(requeue_after=min(delays)) if delays else None

    async def _sync(self, request: NamespacedName, worker: PodWorker, ctx: Context) -> float | None:
        """Begin the next operation; return the seconds until another sync is needed, if known.

        An operation that completes immediately needs neither an intermediate status nor another reconcile: what
        follows it begins here.
        """
        while True:
            metadata, delay = worker.pod.metadata, None
            if metadata.deletion_timestamp is None:
                delay = worker.sync()
            else:
                worker.terminate(float(metadata.deletion_grace_period_seconds or 0))
            if not worker.is_busy:
                return delay
            self._settling.add(request)
            try:
                await ctx.world.clock.sleep(0)
            finally:
                self._settling.discard(request)
            if worker.is_busy:
                return delay

    # Workers

    async def _start_worker(self, request: NamespacedName, pod: Pod, node: LocalNode, ctx: Context) -> PodWorker:
        """Create a worker and recover its containers; a failed recovery is retried before anything is started."""

        def record_event(about: Pod, kind: str, reason: str, message: str) -> None:
            ctx.event(about, reason, message, kind=kind)

        worker = PodWorker(pod, self._components_of(node, ctx), record_event, self._request_sync)
        self._workers[request] = worker  # before the first await: admission of other Pods counts it
        try:
            await worker.recover()
        except BaseException:
            del self._workers[request]
            raise
        return worker

    def _remove_worker(self, request: NamespacedName, worker: PodWorker) -> None:
        del self._workers[request]
        self._resizes.retry(worker.pod.spec.node_name or "")
        self._remove_logs(worker.pod)
        self.changes.put(request)

    async def _labels(self, node: LocalNode) -> Mapping[str, str]:
        """Return the current labels of a node: others change them after its registration."""
        if node.info is None:
            return {}
        found = await self._client_of(node.name).live.get(Node, node.name, missing=None)
        return node.info.labels if found is None else found.metadata.labels

    def _rejection(self, pod: Pod, node: LocalNode, labels: Mapping[str, str]) -> Rejection | None:
        """`labels`: of the node, if the Pod selects nodes."""
        if node.info is None or pod.status.start_time is not None:
            return None
        others = (
            worker.allocated
            for worker in self._workers.values()
            if worker.pod.spec.node_name == node.name and not worker.is_terminated
        )
        return rejection_of(pod, msgspec.structs.replace(node.info, labels=labels), others)

    async def _delete_if_requested(self, pod: Pod) -> None:
        if pod.metadata.deletion_timestamp is None:
            return
        key = NamespacedName(pod.metadata.namespace, pod.metadata.name)
        worker = self._workers.pop(key, None)  # before the event of the deletion, which needs no sync then
        is_removed = False
        if not pod.metadata.finalizers:
            self._removing[key] = pod.metadata.uid
        try:
            is_removed = await self._status.delete(pod)
        except BaseException:
            if worker is not None:  # for the next attempt
                self._workers.setdefault(key, worker)
            raise
        finally:
            if not is_removed:  # no event follows, or another attempt
                self._removing.pop(key, None)
        self._remove_logs(pod)

    def _remove_logs(self, pod: Pod) -> None:
        components = self._components.get(pod.spec.node_name or "")
        if components is not None and components.environment is not None:
            components.environment.remove_logs(pod)

    def _components_of(self, node: LocalNode, ctx: Context) -> NodeComponents:
        if node.name not in self._components:
            self._components[node.name] = components_of(node, self._client_of(node.name).live, ctx.world)
        return self._components[node.name]


def _others_changed(before: Pod, status: PodStatus, stored: Pod) -> bool:
    """Whether a Pod, as stored with the agent's status, contains changes by others since `before`."""
    old, new = before.metadata, stored.metadata
    return (
        new.generation != old.generation  # changes of the spec, and deletion
        or new.deletion_timestamp != old.deletion_timestamp
        or new.deletion_grace_period_seconds != old.deletion_grace_period_seconds
        or new.labels != old.labels
        or new.annotations != old.annotations
        or new.finalizers != old.finalizers
        or {(each.type, each.status) for each in stored.status.conditions}
        != {(each.type, each.status) for each in status.conditions}
    )


def _needs_no_last_status(pod: Pod, node: LocalNode) -> bool:
    """Return whether a terminated Pod is removed with its deletion, so that its last status would not be read.

    Only for simulated containers, as kwok does: a real container's exit code is worth a write.
    """
    return not node.runtime.is_real and pod.metadata.deletion_timestamp is not None and not pod.metadata.finalizers

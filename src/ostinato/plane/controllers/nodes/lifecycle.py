"""Node lifecycle controller: detects unhealthy nodes and taints nodes by condition.

- A node is healthy while it renews its lease or its status. After 50 seconds without either, its conditions become
  Unknown (60 seconds if it never posted a status) and its Pods become not ready.
- Conditions map to NoSchedule taints: not-ready, unreachable, pressure, unschedulable.
- A node that is not ready or unreachable also gets a NoExecute taint, rate-limited to one node per zone every ten
  seconds. The rate is lower in a partially disrupted zone; in full disruption no node is tainted.
- A node that becomes healthy loses these taints at once.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from ostinato.api.codec import to_dict
from ostinato.api.conditions import is_condition_true
from ostinato.api.errors import NotFound
from ostinato.api.gvk import NamespacedName
from ostinato.api.time import Time
from ostinato.cache import Deleted, Event, InformerSettings
from ostinato.client.patching import MergePatch, StrategicMergePatch
from ostinato.controllers import Context, ForEvent, Request, Result
from ostinato.kinds.coordination_v1 import Lease
from ostinato.kinds.core_v1 import Node, NodeCondition, Pod, Taint
from ostinato.manager import Manager
from ostinato.plane.controllers import Options
from ostinato.plane.objects.indexes import NODE_NAME, ensure_index
from ostinato.plane.objects.pod_state import PodState, condition, is_ready
from ostinato.world import Clock

GRACE: Final = 50.0
STARTUP_GRACE: Final = 60.0
NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_TAINT_OF: Final = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
}
_OWN_TAINTS: Final = frozenset({*_TAINT_OF.values(), _UNSCHEDULABLE})
_HEARTBEATS: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_LEASES: Final = InformerSettings(namespaces=("kube-node-lease",))
_ZONE: Final = ("topology.kubernetes.io/region", "topology.kubernetes.io/zone")

_EVICTION_INTERVAL: Final = 10.0  # seconds between NoExecute taints in a zone
_LARGE_CLUSTER_SIZE: Final = 50  # nodes
_SECONDARY_EVICTION_INTERVAL: Final = 100.0  # in a partially disrupted zone of a large cluster
_UNHEALTHY_ZONE_THRESHOLD: Final = 0.55  # share of unready nodes
_LOOK_AGAIN: Final = 5.0


def add_to(manager: Manager, options: Options) -> None:  # noqa: ARG001
    ensure_index(manager.informers.of(PodState), NODE_NAME)
    reconciler = NodeLifecycle(manager.world.clock)
    (
        manager.build("node-controller")
        .watches(Node, handler=ForEvent(reconciler.changed))
        .watches(Lease, handler=ForEvent(reconciler.renewed), settings=_LEASES)
        .with_options(max_concurrent=8)
        .complete(reconciler)
    )


class _Health(msgspec.Struct, eq=False):
    """Last heartbeat of a node."""

    probed_at: float  # monotonic time of the last heartbeat or lease renewal
    uid: str = ""
    heartbeat: Time | None = None  # lastHeartbeatTime of the Ready condition


class NodeLifecycle:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._health: dict[str, _Health] = {}
        self._zones: dict[str, dict[str, bool]] = {}  # zone -> node -> ready
        self._tainted_at: dict[str, float] = {}  # zone -> time of the last NoExecute taint

    def changed(self, event: Event) -> Iterable[NamespacedName]:
        name = event.key.name
        for zone in self._zones.values():
            zone.pop(name, None)
        if isinstance(event, Deleted):
            self._health.pop(name, None)
            return ()
        node = event.object.read(Node)
        self._zones.setdefault(_zone(node), {})[name] = is_condition_true(node, "Ready")
        return (event.key,)

    def renewed(self, event: Event) -> Iterable[NamespacedName]:
        """Record a lease renewal; it does not enqueue the node."""
        health = self._health.get(event.key.name)
        if health is not None and not isinstance(event, Deleted):
            health.probed_at = self._clock.monotonic()
        return ()

    async def reconcile(self, request: Request, ctx: Context) -> Result | None:
        node = await ctx.client.get(Node, request, missing=None)
        if node is None:
            return None
        health = self._health_of(node, ctx)
        silence = self._clock.monotonic() - health.probed_at
        ready = _condition(node, "Ready")
        grace = STARTUP_GRACE if ready is None else GRACE
        if silence >= grace:
            ctx.explain(f"node {request.name} has sent no heartbeat for {silence:.0f} s")
            node = await self._mark_unknown(node, ready, ctx)
            ready = _condition(node, "Ready")
        recheck = await self._taint(node, ready, ctx)
        left = _LOOK_AGAIN if silence >= grace else grace - silence
        return Result(requeue_after=min(left, recheck))

    def _health_of(self, node: Node, ctx: Context) -> _Health:
        name, ready = node.metadata.name, _condition(node, "Ready")
        heartbeat = None if ready is None else ready.last_heartbeat_time
        health = self._health.get(name)
        if health is None or health.uid != node.metadata.uid:
            health = self._health[name] = _Health(self._clock.monotonic(), node.metadata.uid, heartbeat)
            ctx.event(node, "RegisteredNode", f"Registered Node {name} in Controller")
        elif heartbeat != health.heartbeat:
            health.heartbeat, health.probed_at = heartbeat, self._clock.monotonic()
        return health

    # Health

    async def _mark_unknown(self, node: Node, ready: NodeCondition | None, ctx: Context) -> Node:
        """Set the node conditions to Unknown."""
        now = Time.of(self._clock.now())
        changed = []
        for name in _HEARTBEATS:
            known = _condition(node, name)
            if known is None:
                new = NodeCondition(
                    type=name,
                    status="Unknown",
                    reason="NodeStatusNeverUpdated",
                    message="Kubelet never posted node status.",
                    last_heartbeat_time=node.metadata.creation_timestamp,
                    last_transition_time=now,
                )
            elif known.status != "Unknown":
                new = msgspec.structs.replace(
                    known,
                    status="Unknown",
                    reason="NodeStatusUnknown",
                    message="Kubelet stopped posting node status.",
                    last_transition_time=now,
                )
            else:
                continue
            changed.append(to_dict(new))
        if not changed:
            return node
        change = StrategicMergePatch({"metadata": {"uid": node.metadata.uid}, "status": {"conditions": changed}})
        written = await ctx.client.patch(Node, node.metadata, change, subresource="status")
        if ready is not None and ready.status == "True":
            ctx.event(node, "NodeNotReady", f"Node {node.metadata.name} status is now: NodeNotReady")
            await self._mark_pods_not_ready(node, ctx)
        return written

    async def _mark_pods_not_ready(self, node: Node, ctx: Context) -> None:
        """Set the condition Ready of the node's Pods to False."""
        for pod in await ctx.client.list(PodState, index=(NODE_NAME.name, node.metadata.name)):
            if condition(pod, "Ready") is None or not is_ready(pod):
                continue
            new = {"type": "Ready", "status": "False", "lastTransitionTime": str(Time.of(self._clock.now()))}
            change = {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [new]}}
            try:
                await ctx.client.patch(Pod, pod.metadata, StrategicMergePatch(change), subresource="status")
            except NotFound:
                continue
            ctx.event(pod, "NodeNotReady", "Node is not ready", kind="Warning")

    # Taints

    async def _taint(self, node: Node, ready: NodeCondition | None, ctx: Context) -> float:
        """Write the taints for the node's conditions; return the seconds until the next check."""
        wanted = [
            Taint(key=key, effect="NoSchedule")
            for each in node.status.conditions
            if (key := _TAINT_OF.get((each.type, each.status))) is not None
        ]
        if node.spec.unschedulable:
            wanted.append(Taint(key=_UNSCHEDULABLE, effect="NoSchedule"))
        recheck = float("inf")
        no_execute = _no_execute_taint(ready)
        if no_execute is not None:
            is_tainted = any(each.effect == "NoExecute" and _is_managed(each) for each in node.spec.taints)
            wait = self._eviction_delay(node, is_tainted=is_tainted)
            if wait <= 0:
                wanted.append(no_execute)
            else:
                recheck = wait
        await self._write_taints(node, wanted, ctx)
        return recheck

    async def _write_taints(self, node: Node, wanted: list[Taint], ctx: Context) -> None:
        known = {(each.key, each.effect): each for each in node.spec.taints}
        keys = {(each.key, each.effect) for each in wanted}
        kept = [each for each in node.spec.taints if not _is_managed(each) or (each.key, each.effect) in keys]
        added = [each for each in wanted if (each.key, each.effect) not in known]
        if len(kept) == len(node.spec.taints) and not added:
            return
        for each in added:
            each.time_added = Time.of(self._clock.now())
        change: dict[str, Any] = {
            "metadata": {"resourceVersion": node.metadata.resource_version},
            "spec": {"taints": [to_dict(each) for each in (*kept, *added)] or None},
        }
        await ctx.client.patch(Node, node.metadata, MergePatch(change))

    def _eviction_delay(self, node: Node, *, is_tainted: bool) -> float:
        """Return the seconds until the node may get a NoExecute taint; 0 if it may now."""
        if not any(ready for states in self._zones.values() for ready in states.values()):
            return _LOOK_AGAIN
        if is_tainted:
            return 0.0
        zone, interval = _zone(node), _EVICTION_INTERVAL
        states = self._zones.get(zone, {})
        unready = sum(not ready for ready in states.values())
        if len(states) > unready > 2 and unready >= _UNHEALTHY_ZONE_THRESHOLD * len(states):
            if len(states) <= _LARGE_CLUSTER_SIZE:
                return _LOOK_AGAIN
            interval = _SECONDARY_EVICTION_INTERVAL
        now = self._clock.monotonic()
        last = self._tainted_at.get(zone)
        if last is not None and now - last < interval:
            return last + interval - now
        self._tainted_at[zone] = now
        return 0.0


def _condition(node: Node, name: str) -> NodeCondition | None:
    return next((each for each in node.status.conditions if each.type == name), None)


def _no_execute_taint(ready: NodeCondition | None) -> Taint | None:
    if ready is None or ready.status == "True":
        return None
    return Taint(key=NOT_READY if ready.status == "False" else UNREACHABLE, effect="NoExecute")


def _is_managed(taint: Taint) -> bool:
    if taint.effect == "NoExecute":
        return taint.key in (NOT_READY, UNREACHABLE)
    return taint.effect == "NoSchedule" and taint.key in _OWN_TAINTS


def _zone(node: Node) -> str:
    return "/".join(node.metadata.labels.get(label, "") for label in _ZONE)

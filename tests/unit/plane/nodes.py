"""Simulated nodes for controller tests: bind Pods, make them ready, terminate them.

    nodes = Nodes(stage)
    nodes.keep_unready("db-0")

A pending Pod is bound to the node of its affinity, or to `node`, and becomes ready after a moment. A deleted Pod is
gone after a moment. `keep_unready`, `linger` and `fail` change this for Pods by name.
"""

from __future__ import annotations

from typing import Any

from tests.stage.plane import Stage

from ostinato.controllers import Context, Request
from ostinato.kinds.core_v1 import Pod

MOMENT = 0.2


class Nodes:
    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._unready: set[str] = set()
        self._lingering: set[str] = set()
        self._going: set[str] = set()
        self._seen: set[str] = set()
        self.keep_all_unready = False
        self.fail_all = False
        self.most_going = 0  # maximum number of terminating Pods
        stage.run(
            lambda manager: manager.build("nodes").watch_for(Pod).with_options(max_concurrent=100).complete(self),
            field_manager="kubelet",
        )

    def keep_unready(self, *names: str) -> None:
        """Keep Pods of these names running but not ready."""
        self._unready |= set(names)

    def linger(self, *names: str) -> None:
        """Do not terminate Pods of these names."""
        self._lingering |= set(names)

    async def let_ready(self, *names: str) -> None:
        """Make Pods ready."""
        self._unready -= set(names)
        for name in names:
            await self._stage.set_pod_status(await self._stage.client.get(Pod, name), **running(self._stage))

    async def let_go(self, name: str) -> None:
        """Terminate a Pod."""
        self._lingering.discard(name)
        await self._stage.client.delete(Pod, name, grace_period=0)

    async def fail(self, name: str) -> None:
        """Fail a Pod."""
        await self._stage.set_pod_status(await self._stage.client.get(Pod, name), phase="Failed", conditions=[])

    @property
    def seen(self) -> int:
        """Number of Pods seen so far."""
        return len(self._seen)

    async def reconcile(self, request: Request, ctx: Context) -> None:
        pod = await ctx.client.get(Pod, request, missing=None)
        if pod is None or (pod.metadata.deletion_timestamp is not None and request.name in self._lingering):
            return
        self._seen.add(pod.metadata.uid)
        if pod.metadata.deletion_timestamp is not None:
            self._going.add(pod.metadata.uid)
            self.most_going = max(self.most_going, len(self._going))
            await ctx.world.clock.sleep(MOMENT)
            await ctx.client.delete(Pod, request, grace_period=0, uid=pod.metadata.uid, missing_ok=True)
            self._going.discard(pod.metadata.uid)
        elif not pod.spec.node_name:
            await ctx.client.live.pods.bind(request, target_node(pod) or "node", uid=pod.metadata.uid)
        elif pod.status.phase == "Pending":
            await ctx.world.clock.sleep(MOMENT)
            if self.fail_all:
                await self.fail(request.name)
                return
            ready = request.name not in self._unready and not self.keep_all_unready
            await self._stage.set_pod_status(pod, **running(self._stage, ready=ready))


def target_node(pod: Pod) -> str:
    """Return the node of its required affinity."""
    affinity = pod.spec.affinity
    node = None if affinity is None else affinity.node_affinity
    required = None if node is None else node.required_during_scheduling_ignored_during_execution
    for term in [] if required is None else required.node_selector_terms:
        for field in term.match_fields:
            return field.values[0]
    return ""


def running(stage: Stage, *, ready: bool = True) -> dict[str, Any]:
    now = stage.world.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": now}
    return {"phase": "Running", "conditions": [condition], "startTime": now}

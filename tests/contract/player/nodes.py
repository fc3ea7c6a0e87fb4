"""Simulated nodes: registered like a kubelet's, with renewed leases; they update the Pods bound to them.

A Pod's annotation selects its behaviour (plane/README.md lists the values); a change of it takes effect. Actions in a
namespace are executed one after the other, in the order in which they are due.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Final

from tests.contract.player.observer import Observed
from tests.contract.player.paths import Object
from tests.contract.player.server import FAILURES, PATCH_TYPES, Server
from tests.contract.player.statuses import FINISHED, Moment, course, microseconds, node_status, pod_status

BEHAVIOUR: Final = "script.ostinato.dev/behaviour"
START: Final = 0.25  # seconds from binding to Running
CHANGE: Final = 0.05  # seconds from a change of a running Pod's annotation to its effect
END: Final = 0.15  # seconds from the deletion mark to removal
RENEWAL: Final = 10.0  # seconds between renewals of a lease
_LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"

log = logging.getLogger(__name__)


class PlayedNodes:
    def __init__(self, server: Server) -> None:
        self._server = server
        self._nodes: dict[str, str] = {}  # name: uid
        self._acting: dict[str, str] = {}  # Pod uid: the current behaviour; actions for another one are stale
        self._addresses: dict[str, str] = {}  # Pod uid: its address
        self._ended: set[str] = set()  # namespaces whose scenario has ended: Pods are removed immediately
        self._pending: Counter[str] = Counter()  # namespace: scheduled and running actions
        self._turn: dict[str, asyncio.Lock] = defaultdict(asyncio.Lock)  # namespace: held by the running action
        self._tasks: set[asyncio.Task[None]] = set()
        self._numbers = itertools.count(1)

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def pending(self, namespace: str) -> bool:
        """Whether actions are pending in a namespace."""
        return self._pending[namespace] > 0

    def end(self, namespace: str) -> None:
        """End a scenario: Pods are removed immediately."""
        self._ended.add(namespace)

    # Nodes

    async def add(self, nodes: dict[str, Object]) -> None:
        """Add nodes; return when the plane has removed their not-ready taints, or after ten seconds."""
        for name, spec in nodes.items():
            await self._register(name, spec or {})
        with suppress(TimeoutError):
            async with asyncio.timeout(10):
                await asyncio.gather(*map(self._usable, nodes))
        await asyncio.sleep(0.2)  # the scheduler's own watch

    def forget(self, name: str) -> None:
        """Forget a node that is being deleted."""
        self._nodes.pop(name, None)

    async def remove(self, name: str) -> None:
        self.forget(name)
        await self._server.call("DELETE", f"/api/v1/nodes/{name}")
        await self._server.call("DELETE", f"{_LEASES}/{name}")

    async def _register(self, name: str, spec: Object) -> None:
        capacity = {"cpu": "8", "memory": "16Gi", "pods": "110", "ephemeral-storage": "100Gi"}
        capacity |= {key: str(value) for key, value in spec.get("capacity", {}).items()}
        allocatable = capacity | {key: str(value) for key, value in spec.get("allocatable", {}).items()}
        labels = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
        node = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, "labels": {**labels, **spec.get("labels", {})}},
            "spec": {key: spec[key] for key in ("taints", "unschedulable") if key in spec},
            "status": {"capacity": capacity, "allocatable": allocatable},
        }
        code, created = await self._server.call("POST", "/api/v1/nodes", node)
        if code != 201:
            raise OSError(f"node {name}: {created}")
        uid = self._nodes[name] = created["metadata"]["uid"]
        owner = {"apiVersion": "v1", "kind": "Node", "name": name, "uid": uid}
        lease = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {"name": name, "ownerReferences": [owner]},
            "spec": {"holderIdentity": name, "leaseDurationSeconds": 40, "renewTime": microseconds()},
        }
        await self._server.call("POST", _LEASES, lease)
        status = node_status(name, next(self._numbers))
        path = f"/api/v1/nodes/{name}/status"
        await self._server.call("PATCH", path, {"status": status}, PATCH_TYPES["strategic"])
        self._spawn(self._renew(name, uid))

    async def _usable(self, name: str) -> None:
        """Wait until the node has no not-ready taint."""
        while True:
            code, node = await self._server.call("GET", f"/api/v1/nodes/{name}")
            taints = node["spec"].get("taints") or [] if code == 200 else []
            if code == 200 and all(taint["key"] != "node.kubernetes.io/not-ready" for taint in taints):
                return
            await asyncio.sleep(0.05)

    async def _renew(self, name: str, uid: str) -> None:
        while True:
            await asyncio.sleep(RENEWAL)
            if self._nodes.get(name) != uid:
                return
            body = {"spec": {"renewTime": microseconds()}}
            try:
                await self._server.call("PATCH", f"{_LEASES}/{name}", body, PATCH_TYPES["merge"])
            except FAILURES as error:
                log.warning("lease of node %s: %r", name, error)

    # Pods

    def observe(self, observed: Observed) -> None:
        pod = observed.object
        if observed.kind != "Pod" or observed.type == "DELETED" or pod["spec"].get("nodeName") not in self._nodes:
            return
        meta = pod["metadata"]
        uid, namespace = meta["uid"], meta["namespace"]
        words = [word.strip() for word in meta.get("annotations", {}).get(BEHAVIOUR, "ready").split(",")]
        if meta.get("deletionTimestamp"):
            lingers = "linger" in words and namespace not in self._ended
            if not lingers and self._acting.get(uid) != "end":
                self._acting[uid] = "end"
                self._after(END, namespace, lambda: self._finish(pod))
            return
        behaviour = ",".join(words)
        if self._acting.get(uid) == behaviour or pod["status"].get("phase") in FINISHED:
            return
        started = uid in self._acting and pod["status"].get("startTime")
        self._acting[uid] = behaviour
        for moment in course(words):

            async def act(moment: Moment = moment) -> None:
                if self._acting.get(uid) == behaviour:
                    await self._write(pod, moment, words)

            self._after((CHANGE if started else START) + moment.after, namespace, act)

    async def _finish(self, pod: Object) -> None:
        """End a deleted Pod: set its terminal phase, then remove it."""
        meta = pod["metadata"]
        if pod["status"].get("phase") == "Running":
            await self._write(pod, Moment(0, "Failed", exit_code=143))
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        options = {"gracePeriodSeconds": 0, "preconditions": {"uid": meta["uid"]}}
        await self._server.call("DELETE", path, options)

    async def _write(self, pod: Object, moment: Moment, words: Sequence[str] = ()) -> None:
        meta = pod["metadata"]
        status = pod_status(pod, moment, words, self._address(meta["uid"]))
        if "startTime" in status:
            pod["status"]["startTime"] = status["startTime"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}/status"
        body = {"metadata": {"uid": meta["uid"]}, "status": status}
        await self._server.call("PATCH", path, body, PATCH_TYPES["strategic"])

    def _address(self, uid: str) -> str:
        number = len(self._addresses)
        address = f"10.{244 + number // 62500}.{number // 250 % 250}.{number % 250 + 1}"
        return self._addresses.setdefault(uid, address)

    # Actions

    def _after(self, seconds: float, namespace: str, action: Callable[[], Awaitable[None]]) -> None:
        async def act() -> None:
            try:
                await asyncio.sleep(seconds)
                async with self._turn[namespace]:
                    await action()
            except FAILURES as error:
                log.warning("played node, namespace %s: %r", namespace, error)
            finally:
                self._pending[namespace] -= 1

        self._pending[namespace] += 1
        self._spawn(act())

    def _spawn(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

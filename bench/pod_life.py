"""What the API server spends on each request of a Pod's life, without HTTP and without a disk.

    python -m bench pod_life [--pods 1000]

The Pods are those of one ReplicaSet: created, bound, running, with an Event; marked as deleted, then removed. Prints
microseconds of processor time per request, the best of batches of 50.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec

from ostinato.cli.event_loop import loop_factory, tune_garbage_collection
from ostinato.client.transport.protocol import Request
from ostinato.plane.access import grants, identities
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.standalone import Settings, Standalone
from ostinato.world import World

BATCH = 50
NODES = 10
_PODS = "/api/v1/namespaces/default/pods"
_EVENTS = "/api/v1/namespaces/default/events"
_TIME = "2026-01-01T00:00:00Z"
_CONTROLLER = "system:serviceaccount:kube-system:replicaset-controller"
_SCHEDULER = "system:kube-scheduler"
_JSON = "application/json"
_STRATEGIC = "application/strategic-merge-patch+json"
_encode = msgspec.json.Encoder().encode

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {
        "generateName": "web-7b9d6c5f8-",
        "labels": {"app": "web", "pod-template-hash": "7b9d6c5f8"},
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web-7b9d6c5f8",
                "uid": "6f1c3c1e-0000-4000-8000-000000000000",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    },
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "registry.example.com/web:1",
                "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}},
            }
        ]
    },
}


class Life:
    """The requests, each by the component that sends it."""

    def __init__(self, server: Standalone) -> None:
        assert server.core is not None, "started"
        core = server.core
        self._admin = InProcessTransport(core)
        users = [_CONTROLLER, _SCHEDULER, *(f"system:node:node-{number}" for number in range(NODES))]
        self._as = {
            user: InProcessTransport(core, user=identities.user_and_groups(user), user_agent="bench") for user in users
        }
        self._created: list[Any] = []  # metadata

    async def prepare(self) -> None:
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        await _send(self._admin, "POST", "/api/v1/namespaces/default/serviceaccounts", account)
        for number in range(NODES):
            node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": f"node-{number}"}}
            await _send(self._admin, "POST", "/api/v1/nodes", node)

    async def create(self, number: int) -> None:  # noqa: ARG002
        answer = await _send(self._as[_CONTROLLER], "POST", _PODS, POD)
        self._created.append(msgspec.json.decode(answer)["metadata"])

    async def bind(self, number: int) -> None:
        meta = self._created[number]
        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": meta["name"], "namespace": "default", "uid": meta["uid"]},
            "target": {"kind": "Node", "name": f"node-{number % NODES}"},
        }
        await _send(self._as[_SCHEDULER], "POST", f"{_PODS}/{meta['name']}/binding", binding)

    async def run(self, number: int) -> None:
        meta, address = self._created[number], f"10.0.{number >> 8}.{number & 255}"
        types = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady")
        ready = {"status": "True", "lastTransitionTime": _TIME, "observedGeneration": 1}
        container = {
            "name": "main",
            "image": "registry.example.com/web:1",
            "imageID": "web",
            "containerID": f"simulated://{meta['uid']}",
            "ready": True,
            "started": True,
            "restartCount": 0,
            "state": {"running": {"startedAt": _TIME}},
        }
        status = {
            "phase": "Running",
            "startTime": _TIME,
            "hostIP": "172.16.0.1",
            "hostIPs": [{"ip": "172.16.0.1"}, {"$patch": "replace"}],
            "podIP": address,
            "podIPs": [{"ip": address}, {"$patch": "replace"}],
            "conditions": [{"type": each, **ready} for each in types],
            "containerStatuses": [container],
        }
        patch = {"metadata": {"uid": meta["uid"]}, "status": status}
        await _send(self._node(number), "PATCH", f"{_PODS}/{meta['name']}/status", patch, _STRATEGIC)

    async def record(self, number: int) -> None:
        meta = self._created[number]
        event = {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": f"{meta['name']}.{number:016x}", "namespace": "default"},
            "involvedObject": {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "namespace": "default"},
            "reason": "Scheduled",
            "message": f"Successfully assigned default/{meta['name']} to node-{number % NODES}",
            "type": "Normal",
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "reportingComponent": "default-scheduler",
            "reportingInstance": "default-scheduler-bench",
            "action": "Binding",
        }
        await _send(self._as[_SCHEDULER], "POST", _EVENTS, event)

    async def mark(self, number: int) -> None:
        await self._delete(self._as[_CONTROLLER], number)

    async def remove(self, number: int) -> None:
        await self._delete(self._node(number), number, gracePeriodSeconds=0)

    async def _delete(self, user: InProcessTransport, number: int, **options: int) -> None:
        meta = self._created[number]
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": meta["uid"]}, **options}
        await _send(user, "DELETE", f"{_PODS}/{meta['name']}", body)

    def _node(self, number: int) -> InProcessTransport:
        return self._as[f"system:node:node-{number % NODES}"]


async def _send(user: InProcessTransport, method: str, path: str, body: Any, media: str = _JSON) -> bytes:
    answer = await user.request(Request(method, path, headers=[("Content-Type", media)], body=_encode(body)))
    data = await answer.read()
    if answer.status >= 300:
        raise SystemExit(f"bench.pod_life: {method} {path}: {data.decode()}")
    return data


async def microseconds(act: Callable[[int], Awaitable[None]], count: int) -> float:
    """Return the processor time of one request: the best of the batches."""
    best = float("inf")
    for start in range(0, count, BATCH):
        began = time.thread_time()
        for number in range(start, start + BATCH):
            await act(number)
        best = min(best, time.thread_time() - began)
    return best / BATCH * 1e6


async def measure(pods: int) -> dict[str, float]:
    world = World.real()
    with tempfile.TemporaryDirectory() as directory:
        settings = Settings(state=Path(directory), store="memory", port=0)
        server = Standalone(world, settings)
        await server.start()
        try:
            await grants.ensure(server, settings, world, csi=False)
            life = Life(server)
            await life.prepare()
            tune_garbage_collection()
            steps = {
                "create": life.create,
                "bind": life.bind,
                "patch of the status": life.run,
                "Event": life.record,
                "delete, marked": life.mark,
                "delete, removed": life.remove,
            }
            return {name: await microseconds(step, pods) for name, step in steps.items()}
        finally:
            await server.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pods", type=int, default=1000)
    options = parser.parse_args()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        found = runner.run(measure(options.pods // BATCH * BATCH or BATCH))
    for name, spent in found.items():
        print(f"{name:20} {spent:6.0f} µs")
    print(f"{'together':20} {sum(found.values()):6.0f} µs")


if __name__ == "__main__":
    main()

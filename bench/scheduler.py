"""The scheduler alone: Pods bound per second.

    python -m bench.scheduler [--nodes 500] [--pods 2000] [--templates 1] [--kind plain|service|spread|apart|named]

API server, scheduler and caches run in this process. The Pods are created before the scheduler starts, so that their
creation is not measured; the time is from the first decision until the server has the last binding. Events are written
concurrently and may be dropped: the number written by then is printed, since only their cost is included.

For comparison: kube-scheduler's thresholds, on machines with many more cores, are 270 Pods per second at 5,000 nodes
for plain Pods, 85 to 125 with spread constraints, 60 with anti-affinity.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import pstats
import time
from typing import Any

from ostinato.api.meta import ObjectMeta
from ostinato.client import Client, MergePatch
from ostinato.client.views import MetadataOf
from ostinato.kinds.core_v1 import Event, Node, ServiceAccount
from ostinato.manager import Manager
from ostinato.plane import scheduler
from ostinato.plane.scheduler.api_writes import ApiWriter
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import World

_CONCURRENCY = 32  # objects that are created side by side


def node(number: int) -> dict[str, Any]:
    name = f"node-{number}"
    amounts = {"cpu": "32", "memory": "64Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": f"zone-{number % 3}"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": amounts, "allocatable": amounts},
    }


def pod(number: int, templates: int, kind: str, nodes: int) -> dict[str, Any]:
    labels = {"app": f"app-{number % templates}"}
    requests = {"cpu": "100m", "memory": "128Mi"}
    spec: dict[str, Any] = {"containers": [{"name": "main", "image": "web:1", "resources": {"requests": requests}}]}
    selector = {"matchLabels": labels}
    if kind == "spread":
        spec["topologySpreadConstraints"] = [
            {
                "maxSkew": 1,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": selector,
            }
        ]
    elif kind == "apart":
        apart = {"topologyKey": "kubernetes.io/hostname", "labelSelector": selector}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    elif kind == "named":
        field = {"key": "metadata.name", "operator": "In", "values": [f"node-{number % nodes}"]}
        required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
        spec["affinity"] = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    metadata = {"name": f"pod-{number}", "namespace": "default", "labels": labels}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def service(number: int) -> dict[str, Any]:
    """Create a Service; its Pods are spread over nodes and zones by default."""
    spec = {"selector": {"app": f"app-{number}"}, "ports": [{"port": 80}]}
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": f"app-{number}", "namespace": "default"},
        "spec": spec,
    }


class Bound:
    """Counts bindings and their duration."""

    def __init__(self, wanted: int) -> None:
        self.wanted = wanted
        self.count = 0
        self.first = asyncio.Event()
        self.all = asyncio.Event()
        self._bind = ApiWriter.bind
        bench = self

        async def bind(writes: ApiWriter, info: Any, name: str) -> None:
            await bench._bind(writes, info, name)
            bench.count += 1
            bench.first.set()
            if bench.count == bench.wanted:
                bench.all.set()

        ApiWriter.bind = bind  # type: ignore[method-assign, assignment]


async def measure(options: argparse.Namespace) -> None:
    world = World.real()
    server = Server(world, MemoryLog())
    await server.start()
    client = Client(InProcessTransport(server), world=world, namespace="default", field_manager="bench")
    await client.create(ServiceAccount(metadata=ObjectMeta(name="default", namespace="default")))
    await _create(client, [node(number) for number in range(options.nodes)])
    if options.kind == "service":
        await _create(client, [service(number) for number in range(options.templates)])
    for number in range(options.nodes):  # remove the not-ready taint that admission adds
        await client.patch(Node, f"node-{number}", MergePatch({"spec": {"taints": None}}))
    await _create(
        client, [pod(number, options.templates, options.kind, options.nodes) for number in range(options.pods)]
    )
    manager = Manager(connect=lambda purpose: InProcessTransport(server, deadline=purpose.deadline), world=world)
    scheduler.add_to(manager)
    bound = Bound(options.pods)
    gc.collect()
    profile = cProfile.Profile() if options.profile else None
    started, cpu = time.perf_counter(), time.process_time()
    task = asyncio.get_running_loop().create_task(manager.serve())
    await bound.first.wait()
    ready, ready_cpu = time.perf_counter(), time.process_time()
    if profile is not None:
        profile.enable()
    await bound.all.wait()
    if profile is not None:
        profile.disable()
    ended, ended_cpu = time.perf_counter(), time.process_time()
    rate = options.pods / (ended - ready)
    written = len(await client.list(MetadataOf(Event)))
    print(
        f"{options.nodes:>6,} nodes, {options.pods:,} Pods ({options.kind}, {options.templates} templates): "
        f"{rate:,.0f} Pods/s, {(ended_cpu - ready_cpu) / options.pods * 1e3:.2f} ms of CPU a Pod, {written:,} events "
        f"(sync {ready - started:.2f} s, {ready_cpu - cpu:.2f} s of CPU)"
    )
    if profile is not None:
        pstats.Stats(profile).sort_stats("tottime").print_stats(45)
    manager.stop()
    await task
    await client.close()
    await server.close()


async def _create(client: Client, listers: list[dict[str, Any]]) -> None:
    for at in range(0, len(listers), _CONCURRENCY):
        await asyncio.gather(*[client.create(each) for each in listers[at : at + _CONCURRENCY]])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=500)
    parser.add_argument("--pods", type=int, default=2000)
    parser.add_argument("--templates", type=int, default=1)
    parser.add_argument("--kind", choices=("plain", "service", "spread", "apart", "named"), default="plain")
    parser.add_argument("--profile", action="store_true", help="show where the time goes")
    asyncio.run(measure(parser.parse_args()))


if __name__ == "__main__":
    main()

"""The cache of managedFields after updates: the CPU that it saves, in four loads of 2,000 Gadgets.

- first: an operator and its API server in one process; it creates a ConfigMap per Gadget and writes the status.
- change: the same operator later; each Gadget is changed, the operator updates ConfigMap and status.
- status: two status patches per Gadget, through the API server, without an operator.
- update: `FieldManager.update` alone, for such a status.

Each is measured with and without the cache, in processes of their own, in turns; the best round counts.
docs/dev/update-cache.md states the results.
"""

import asyncio
import multiprocessing
from time import process_time
from typing import Any, Final

from bench.operators.gadget import Gadget, GadgetSpec, definition
from bench.operators.ostinato_operator import gadgets_controller
from ostinato import Client, Manager, ObjectMeta
from ostinato.api.apply import FieldManager, field_manager, field_path, from_paths, without
from ostinato.api.gvk import GroupVersionKind
from ostinato.api.schema import Schema
from ostinato.client import MergePatch
from ostinato.kinds.core_v1 import ConfigMap, Namespace
from ostinato.manager import Purpose
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import World

GADGETS: Final = 2000
ROUNDS: Final = 3
NAMESPACE: Final = "bench"


def main() -> None:
    print(f"\nCache of managedFields after updates, {GADGETS:,} Gadgets, microseconds of CPU per Gadget")
    context = multiprocessing.get_context("spawn")
    for load in ("first", "change", "status", "update"):
        best = {True: float("inf"), False: float("inf")}
        for _ in range(ROUNDS):
            for cached in best:
                with context.Pool(1) as pool:
                    best[cached] = min(best[cached], pool.apply(_measure, (load,), {"cached": cached}))
        saved = 1 - best[True] / best[False]
        print(f"  {load:<8} with {best[True]:8.1f}   without {best[False]:8.1f}   saved {saved:6.1%}")


def _measure(load: str, *, cached: bool) -> float:
    if not cached:
        field_manager.update_key = lambda *_: None  # type: ignore[attr-defined]
    return _update() if load == "update" else asyncio.run(_served(load))


def _update() -> float:
    gvk = GroupVersionKind("bench.example.dev", "v1", "Gadget")
    schema = definition()["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    text, metadata = {"type": "string"}, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema["properties"] |= {"apiVersion": text, "kind": text, "metadata": metadata}
    schemas = {gvk.api_version: Schema.of(schema, {})}
    allowed = {gvk.api_version: without(from_paths(field_path("spec"), field_path("metadata")))}
    whole = FieldManager(gvk, schemas)
    status = FieldManager(gvk, schemas, subresource="status", allowed=allowed)
    gadget: dict[str, Any] = {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": {"name": "a"}}
    live = whole.update(None, {**gadget, "spec": {"text": "x"}}, "user", "2026-01-02T03:04:05Z")
    live["metadata"]["uid"] = "1"
    new = {**live, "status": {"configMap": "a", "observedGeneration": 1}}
    assert len(status.update(live, new, "operator", "2026-01-02T03:04:06Z")["metadata"]["managedFields"]) == 2
    begun = process_time()
    for _ in range(20_000):
        status.update(live, new, "operator", "2026-01-02T03:04:06Z")
    return (process_time() - begun) / 20_000 * 1e6


async def _served(load: str) -> float:
    world = World.real()
    server = Server(world, MemoryLog())
    await server.start()
    client = Client(InProcessTransport(server), world=world, namespace=NAMESPACE)
    try:
        await client.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
        await client.create(definition())
        await asyncio.sleep(1)
        for number in range(GADGETS):
            metadata = ObjectMeta(name=_name(number), namespace=NAMESPACE)
            await client.create(Gadget(metadata=metadata, spec=GadgetSpec(text="first")))
        if load == "status":
            begun = process_time()
            await _write_statuses(client)
            return (process_time() - begun) / GADGETS * 1e6
        first, change = await _operate(server, client, world)
        return (first if load == "first" else change) / GADGETS * 1e6
    finally:
        await client.close()
        await server.close()
        world.executor.close()


def _name(number: int) -> str:
    return f"gadget-{number:05}"


async def _write_statuses(client: Client) -> None:
    for generation in range(2):
        for number in range(GADGETS):
            patch = MergePatch({"status": {"configMap": _name(number), "observedGeneration": generation}})
            await client.patch(Gadget, _name(number), patch, subresource="status")


async def _operate(server: Server, client: Client, world: World) -> tuple[float, float]:
    """Run the operator for new Gadgets, then for changed ones. Returns the seconds of CPU of each."""

    def connect(purpose: Purpose) -> InProcessTransport:
        return InProcessTransport(server, user_agent=purpose.name, deadline=purpose.deadline)

    begun = process_time()
    manager = Manager(connect=connect, world=world).add(gadgets_controller("create", 8))
    serving = asyncio.ensure_future(manager.serve())
    await _wait_for(client, "first")
    created = process_time()
    for number in range(GADGETS):
        await client.patch(Gadget, _name(number), MergePatch({"spec": {"text": "second"}}))
    await _wait_for(client, "second")
    changed = process_time()
    manager.stop()
    await serving
    return created - begun, changed - created


async def _wait_for(client: Client, text: str) -> None:
    """Wait until the last Gadget, in the order of reconciliation, is done."""
    while True:
        found = await client.get(ConfigMap, _name(GADGETS - 1), missing=None)
        if found is not None and found.data["text"] == text:
            return
        await asyncio.sleep(0.05)

"""Resync of unchanged objects: the number of requests, and the processor time of a reconcile without changes.

Server and operator run in one process, so that every request is counted. The objects are created, the operator
reconciles them, and then a resync enqueues all of them.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

from bench.operators.gadget import Gadget, GadgetSpec, definition
from bench.operators.ostinato_operator import apply as reconcile
from ostinato.api.meta import ObjectMeta
from ostinato.client import Client
from ostinato.client.transport.protocol import Request
from ostinato.controllers import Builder, ControllerOptions
from ostinato.kinds.core_v1 import ConfigMap
from ostinato.manager import Manager
from ostinato.server.core import Server
from ostinato.server.in_process.transport import InProcessTransport
from ostinato.server.store.log_memory import MemoryLog
from ostinato.world import World

NEVER, SOON = 1e6, 1.0


class Counting:
    """A transport that counts the requests to another one."""

    def __init__(self, inner: InProcessTransport) -> None:
        self.host = inner.host
        self.methods: Counter[str] = Counter()
        self._inner = inner

    async def request(self, request: Request) -> Any:
        self.methods[request.method] += 1
        return await self._inner.request(request)

    async def websocket(self, request: Request, protocols: Sequence[str]) -> Any:
        return await self._inner.websocket(request, protocols)

    async def close(self) -> None:
        await self._inner.close()


def main(count: int) -> None:
    asyncio.run(_run(count))


async def _run(count: int) -> None:
    world = World.real()
    server = Server(world, MemoryLog())
    await server.start()
    people = Client(InProcessTransport(server), world=world, namespace="default", field_manager="people")
    await people.create(definition())
    for number in range(count):
        await people.create(Gadget(metadata=ObjectMeta(name=f"gadget-{number}"), spec=GadgetSpec(text="x" * 200)))
    transport = Counting(InProcessTransport(server))
    manager = Manager(connect=lambda _: transport, world=world)
    builder = Builder("gadgets").watch_for(Gadget, resync=NEVER).owns(ConfigMap, resync=NEVER)
    gadgets = builder.with_options(ControllerOptions(max_concurrent=16)).complete(reconcile)
    manager.add(gadgets)
    serving = asyncio.create_task(manager.serve())
    await _rest(gadgets)
    first = transport.methods.copy()
    print(f"{count:,} objects at rest after {first['PATCH']:,} writes")
    before, cpu = gadgets.statistics.outcomes["success"], time.process_time()
    for kind in (Gadget, ConfigMap):
        informer = manager.informers.of(kind)
        for listener in list(informer._timers):
            informer._resync(listener)
    await _rest(gadgets)
    runs, cpu = gadgets.statistics.outcomes["success"] - before, time.process_time() - cpu
    sent = transport.methods - first
    print(f"resync: {runs:,} reconciles, {sum(sent.values())} requests, {cpu / runs * 1e6:.0f} us of processor each")
    manager.stop()
    await serving
    await server.close()


async def _rest(gadgets: Any) -> None:
    """Wait until no reconcile has ended for a while."""
    done = -1
    while gadgets.statistics is None or done != (done := gadgets.statistics.outcomes["success"]) or not done:  # noqa: ASYNC110
        await asyncio.sleep(SOON)

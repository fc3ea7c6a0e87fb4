"""Concurrent writers and watchers of many scopes: each watch is its selection of the store's log."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import msgspec
import pytest
from tests.stage.api import APPLY, MERGE, Api, Json
from tests.unit.server.verbs.watching import Watch, watch

from ostinato.server.core import Server
from ostinato.server.request import User
from ostinato.server.store.log_memory import MemoryLog
from ostinato.server.store.records import Event, Write
from ostinato.world import Simulation

WRITERS, WATCHERS, ROUNDS = 16, 24, 6
NAMESPACES = ("default", "kube-system", "kube-public")

Seen = list[tuple[str, str, int]]  # type, key and resourceVersion of each event


class SlowLog(MemoryLog):
    """A log with random delays."""

    def __init__(self, world: Simulation) -> None:
        self._world = world

    async def append(self, writes: Sequence[Write]) -> None:
        await self._world.clock.sleep(self._world.rng.uniform(0, 0.02))


async def write(world: Simulation, api: Api, writer: int) -> None:
    for number in range(ROUNDS):
        namespace, name = NAMESPACES[writer % len(NAMESPACES)], f"w{writer % 4}-{number % 2}"  # some share a name
        path = f"/api/v1/namespaces/{namespace}/configmaps"
        sent: Json = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"n": str(number)}}
        labels = {"x": str(world.rng.randrange(3))}
        await api.post(path, {**sent, "metadata": {"name": name, "labels": labels}})
        await world.clock.sleep(world.rng.uniform(0, 0.05))
        await api.ask("PATCH", f"{path}/{name}", {"metadata": {"labels": {"x": "1"}}}, content_type=MERGE)
        await api.ask("PATCH", f"{path}/{name}?fieldManager=w{writer}&force=true", sent, content_type=APPLY)
        await world.clock.sleep(world.rng.uniform(0, 0.05))
        await api.delete(f"{path}/{name}")


async def read(world: Simulation, live: Watch) -> Seen:
    seen: Seen = []
    while (chunk := await live.chunk()) is not None:
        await world.clock.sleep(world.rng.uniform(0, 0.2))  # some are slower than others
        for line in chunk.splitlines():
            event = msgspec.json.decode(line)
            meta = event["object"]["metadata"]
            if event["type"] != "BOOKMARK":
                seen.append((event["type"], f"{meta['namespace']}/{meta['name']}", int(meta["resourceVersion"])))
    return seen


def expected(log: list[Event], key: str, labels: dict[str, str]) -> Seen:
    """The events of a log for a watch of a key prefix and labels."""

    def matches(entry: object) -> bool:
        found = getattr(entry, "labels", None)
        return found is not None and labels.items() <= found.items()

    seen: Seen = []
    for event in log:
        if event.key.startswith(key):
            was_in, is_in = matches(event.previous), matches(event.entry)
            if was_in or is_in:
                kind = "DELETED" if not is_in else "MODIFIED" if was_in else "ADDED"
                seen.append((kind, event.key, event.version))
    return seen


WATCHES: list[tuple[str, Callable[[list[Event]], Seen]]] = [
    ("/api/v1/configmaps?", lambda log: expected(log, "", {})),
    ("/api/v1/namespaces/default/configmaps?", lambda log: expected(log, "default/", {})),
    ("/api/v1/configmaps?labelSelector=x%3D1", lambda log: expected(log, "", {"x": "1"})),
    (
        "/api/v1/namespaces/kube-public/configmaps?labelSelector=x%3D2",
        lambda log: expected(log, "kube-public/", {"x": "2"}),
    ),
    (
        "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Dw0-1",
        lambda log: expected(log, "default/w0-1", {}),
    ),
    (
        "/api/v1/configmaps?fieldSelector=metadata.namespace%3Dkube-system",
        lambda log: expected(log, "kube-system/", {}),
    ),
]


@pytest.mark.parametrize("seed", range(3))
def test_every_watch_is_exactly_its_selection_of_the_log(seed: int) -> None:
    world = Simulation(seed, interleave=True)

    async def main() -> None:
        server = Server(world, SlowLog(world))
        server.authenticator.add("admin", User("admin", groups=("system:masters",)))
        await server.start()
        api, start = Api(server), server.index.version
        watchers: list[asyncio.Task[Seen]] = []
        writers: list[asyncio.Task[None]] = []
        for number in range(WATCHERS):
            await world.clock.sleep(world.rng.uniform(0, 0.05))
            path = WATCHES[number % len(WATCHES)][0]
            live = await watch(api, f"{path}&watch=1&allowWatchBookmarks=true&resourceVersion={start}")
            watchers.append(asyncio.create_task(read(world, live)))
            if number == WATCHERS // 3:  # the later ones begin while writes are under way
                writers = [asyncio.create_task(write(world, api, n)) for n in range(WRITERS)]
        await asyncio.gather(*writers)
        await server.close()  # ends the watches
        seen = await asyncio.gather(*watchers)
        log = [event for event in server.index.collections["configmaps"].history if event.version > start]
        assert len(log) > WRITERS * ROUNDS
        for number, events in enumerate(seen):
            assert events == WATCHES[number % len(WATCHES)][1](log)

    world.run(main())

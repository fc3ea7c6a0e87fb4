"""Concurrent watchers and writers: no event is lost, duplicated or out of order."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from ostinato.server.core import Server
from ostinato.server.request import Request, Response, Stream, User
from ostinato.server.store import hub as hub_module
from ostinato.server.store.hub import Hub
from ostinato.server.store.log_memory import MemoryLog
from ostinato.server.store.records import Entry, Event
from ostinato.world import Simulation

WRITERS, WATCHERS, ROUNDS = 16, 24, 12
TOKEN = {"authorization": "Bearer t", "content-type": "application/json"}


async def call(server: Server, method: str, path: str, body: Any = None) -> Any:
    data = json.dumps(body).encode() if body is not None else b""
    answer = await server.handle(Request(method, path, headers=TOKEN, body=data))
    assert isinstance(answer, Response)
    assert answer.status < 300, answer.body
    return json.loads(answer.body)


PATH = "/api/v1/namespaces/default/configmaps"


async def write(world: Simulation, server: Server, writer: int) -> None:
    for number in range(ROUNDS):
        name = f"w{writer}-{number}"
        await call(server, "POST", PATH, {"metadata": {"name": name}, "data": {"n": "0"}})
        await world.clock.sleep(world.rng.uniform(0, 0.01))
        await call(server, "PUT", f"{PATH}/{name}", {"metadata": {"name": name}, "data": {"n": "1"}})
        await call(server, "DELETE", f"{PATH}/{name}")


async def watch(world: Simulation, stream: Stream, *, forwards: bool) -> list[tuple[str, str, int]]:
    """The events of a stream, to its end: type, name and resourceVersion."""
    seen = []

    def read(chunk: bytes) -> None:
        for line in chunk.splitlines():
            event = json.loads(line)
            meta = event["object"]["metadata"]
            if event["type"] != "BOOKMARK":
                seen.append((event["type"], meta["name"], int(meta["resourceVersion"])))

    def write(chunk: bytes) -> bool:
        if is_writable := world.rng.random() < 0.7:
            read(chunk)
        return is_writable

    if forwards:
        assert stream.forward is not None
        stream.forward(write)
    async for chunk in stream.chunks:
        await world.clock.sleep(world.rng.uniform(0, 0.05))  # some are slower than others
        read(chunk)
    return seen


@pytest.mark.parametrize("seed", range(2))
def test_every_watcher_sees_every_write_once_and_in_the_order_of_the_store(seed: int) -> None:
    world = Simulation(seed, interleave=True)

    async def main() -> None:
        server = Server(world, MemoryLog())
        server.authenticator.add("t", User("admin", groups=("system:masters",)))
        await server.start()
        start = server.index.version
        watchers = []
        writers: list[asyncio.Task[None]] = []
        for number in range(WATCHERS):
            await world.clock.sleep(world.rng.uniform(0, 0.01))
            query = f"watch=1&resourceVersion={start}" + ("&allowWatchBookmarks=true" if number % 2 else "")
            stream = await server.handle(Request("GET", PATH, query, TOKEN))
            assert isinstance(stream, Stream)
            watchers.append(asyncio.create_task(watch(world, stream, forwards=number % 3 == 0)))
            if number == WATCHERS // 2:  # the later ones begin while writes are under way
                writers = [asyncio.create_task(write(world, server, n)) for n in range(WRITERS)]
        await asyncio.gather(*writers)
        await server.close()  # ends the watches
        seen = await asyncio.gather(*watchers)
        log = [
            (
                "DELETED" if e.entry is None else "MODIFIED" if e.previous else "ADDED",
                e.key.partition("/")[2],
                e.version,
            )
            for e in server.index.collections["configmaps"].history
            if e.version > start
        ]
        assert len(log) == WRITERS * ROUNDS * 3
        assert [version for _, _, version in log] == sorted({version for _, _, version in log})
        assert all(events == log for events in seen)

    world.run(main())


def event(version: int, key: str = "ns/a", data: bytes = b"x") -> Event:
    return Event(key, version, Entry(key, version, data, {}, {}, ""), None, 0.0)


def test_a_slow_watcher_is_closed_and_keeps_its_backlog(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "BACKLOG_EVENTS", 3)
    hub = Hub()
    slow, quick = hub.subscribe(), hub.subscribe()
    taken = []
    for version in range(1, 6):
        hub.publish(event(version))
        taken += [e.version for e in quick.take()]
    assert taken == [1, 2, 3, 4, 5]
    assert [e.version for e in slow.take()] == [1, 2, 3]  # no gap before the end
    assert (slow.closed, quick.closed, len(hub)) == (True, False, 1)
    asyncio.run(slow.wait())  # returns immediately: the watcher is closed


def test_a_watcher_that_is_behind_by_too_many_bytes_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub_module, "BACKLOG_BYTES", 100)
    hub = Hub()
    slow = hub.subscribe()
    for version in range(1, 6):
        hub.publish(event(version, data=b"x" * 60))
    assert [e.version for e in slow.take()] == [1, 2]
    assert slow.closed


def test_a_watcher_receives_accepted_events_of_its_scope() -> None:
    hub = Hub()
    everything, namespace, one = hub.subscribe(), hub.subscribe("ns/"), hub.subscribe("ns/a")
    even = hub.subscribe("", lambda event: event.version % 2 == 0)
    for version, key in enumerate(["ns/a", "ns/b", "other/a", "cluster-scoped"], 1):
        hub.publish(event(version, key))
    assert [[e.version for e in s.take()] for s in (everything, namespace, one, even)] == [
        [1, 2, 3, 4],
        [1, 2],
        [1],
        [2, 4],
    ]
    for subscription in (everything, namespace, one, even):
        subscription.close()
    assert len(hub) == 0


def test_a_watcher_whose_filter_fails_is_closed_and_the_others_continue() -> None:
    hub = Hub()
    broken, sound = hub.subscribe("", lambda event: 1 // 0 == 0), hub.subscribe()
    hub.publish(event(1))
    assert broken.closed
    assert [e.version for e in sound.take()] == [1]


def test_a_closed_hub_ends_every_watch_and_begins_none() -> None:
    hub = Hub()
    before = [hub.subscribe(), hub.subscribe("ns/")]
    hub.close()
    assert all(subscription.closed for subscription in before)
    assert hub.subscribe().closed


def test_a_watcher_that_rings_wakes_without_an_event() -> None:
    async def main() -> None:
        subscription = Hub().subscribe()
        task = asyncio.get_running_loop().create_task(subscription.wait())
        await asyncio.sleep(0)
        subscription.interrupt()
        assert await task
        subscription.interrupt()
        assert await subscription.wait()

    asyncio.run(main())


def test_a_lone_event_is_forwarded_while_the_watcher_waits() -> None:
    async def main() -> None:
        hub = Hub()
        subscription = hub.subscribe()
        forwarded: list[int] = []
        can_send = True

        def send(event: Event) -> bool:
            if can_send:
                forwarded.append(event.version)
            return can_send

        subscription.forward(send)
        hub.publish(event(1), alone=True)  # the watcher does not wait yet: it may be sending
        assert [e.version for e in subscription.take()] == [1]
        waiting = asyncio.get_running_loop().create_task(subscription.wait())
        await asyncio.sleep(0)
        hub.publish(event(2), alone=True)
        assert forwarded == [2]
        assert not waiting.done()
        can_send = False
        hub.publish(event(3), alone=True)
        can_send = True
        hub.publish(event(4), alone=True)  # behind one that was not sent
        assert [e.version for e in subscription.take()] == [3, 4]
        await waiting
        waiting = asyncio.get_running_loop().create_task(subscription.wait())
        await asyncio.sleep(0)
        hub.publish(event(5))  # one of several, which are sent in one piece
        assert forwarded == [2]
        await waiting
        assert [e.version for e in subscription.take()] == [5]
        assert hub.sent == 5

    asyncio.run(main())

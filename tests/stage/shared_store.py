"""A store that several servers in one simulation share: etcd's semantics without etcd.

- `SharedStore` assigns the resourceVersions; a write compares the version of the object with the expected one.
- Each `SharedIndex` applies the writes of all servers in order, each after a random part of `lag`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from ostinato.server.core import Server
from ostinato.server.request import User
from ostinato.server.store.collection import Collection
from ostinato.server.store.index import Index
from ostinato.server.store.records import Conflict, Entry, Event
from ostinato.world import World


class SharedStore:
    def __init__(self) -> None:
        self.log: list[tuple[str, str, bytes | None]] = []  # collection, key, data; its place gives the resourceVersion
        self.versions: dict[tuple[str, str], int] = {}  # last write of each key, also a deletion
        self.changed = asyncio.Event()

    @property
    def version(self) -> int:
        return len(self.log) + 1

    def append(self, collection: str, key: str, data: bytes | None) -> None:
        self.log.append((collection, key, data))
        self.versions[collection, key] = self.version
        self.changed.set()
        self.changed = asyncio.Event()

    def expire(self, collection: str, key: str, version: int) -> None:
        if self.versions[collection, key] == version:
            self.append(collection, key, None)

    def is_at(self, collection: str, key: str, expected: int) -> bool:
        version = self.versions.get((collection, key), 0)
        exists = bool(version) and self.log[version - 2][2] is not None
        return (version if exists else 0) == expected


class SharedIndex(Index):
    is_shared = True

    def __init__(self, store: SharedStore, world: World, lag: float) -> None:
        super().__init__(world.clock, 1)
        self._store = store
        self._world = world
        self._rng = world.rng.fork(f"lag {id(self)}")
        self._lag = lag
        self._task = asyncio.get_running_loop().create_task(self._follow())

    async def _follow(self) -> None:
        while True:
            while self.version < self._store.version:
                await self._world.clock.sleep(self._rng.random() * self._lag)
                self.apply_all(self._store.version)
            await self._store.changed.wait()

    def apply_all(self, until: int) -> None:
        while self.version < until:
            name, key, data = self._store.log[self.version - 1]
            version, collection = self.version + 1, self._collections.get(name)
            if collection is None:
                self.version = version
                continue
            entry = None if data is None else Entry(key, version, data, *collection.describe(data))
            previous = collection.entries.get(key)
            self._apply(collection, Event(key, version, entry, previous, self._clock.monotonic()))
        self._wake()

    def _take_loaded(self, collection: Collection) -> Iterable[tuple[str, int, bytes]]:
        found: dict[str, tuple[int, bytes | None]] = {}
        for number, (name, key, data) in enumerate(self._store.log[: self.version - 1], 2):
            if name == collection.name:
                found[key] = (number, data)
        return [(key, version, data) for key, (version, data) in found.items() if data is not None]

    async def put(
        self,
        collection: Collection,
        entry: Entry,
        expected: Entry | None,
        encode: Callable[[int], bytes],
        ttl: float = 0.0,
    ) -> Entry:
        await self._compare(collection, entry.key, expected)
        version = self._store.version + 1
        self._store.append(collection.name, entry.key, encode(version))
        if ttl:
            self._clock.timer(ttl, lambda: self._store.expire(collection.name, entry.key, version))
        await self.wait_for(version)
        entry.version, entry.data = version, encode(version)
        return entry

    async def delete(self, collection: Collection, key: str, expected: Entry) -> int:
        await self._compare(collection, key, expected)
        self._store.append(collection.name, key, None)
        version = self._store.version
        await self.wait_for(version)
        return version

    async def _compare(self, collection: Collection, key: str, expected: Entry | None) -> None:
        await self._world.clock.sleep(self._rng.random() * self._lag)  # on its way to the store
        if not self._store.is_at(collection.name, key, 0 if expected is None else expected.version):
            await self.wait_for(self._store.versions[collection.name, key])
            raise Conflict(collection.newest(key))

    def is_outdated(self, collection: Collection, key: str) -> bool:
        return False

    async def wait_pending(self) -> None:
        await self.catch_up()

    async def catch_up(self) -> None:
        await self.wait_for(self._store.version)

    def when_current(self, reader: Callable[[str | None], None]) -> None:
        waiting = asyncio.get_running_loop().create_task(self.catch_up())
        waiting.add_done_callback(lambda _: reader(None))

    async def close(self) -> None:
        self._task.cancel()
        for collection in self._collections.values():
            collection.hub.close()


async def start_servers(world: World, count: int, *, lag: float = 0.05) -> list[Server]:
    """Start several servers on one store, at once."""
    store = SharedStore()
    servers = [Server(world, SharedIndex(store, world, lag)) for _ in range(count)]
    await start_all(servers)
    return servers


async def start_all(servers: list[Server]) -> None:
    for server in servers:
        server.authenticator.add("admin", User("admin", "u-1", ("system:masters",)))
    await asyncio.gather(*(server.start(f"192.0.2.{i}") for i, server in enumerate(servers, 1)))

"""etcd index: one of any number of servers that write to an etcd.

- A write is a transaction that compares the object's mod_revision with the one that the writer knows. It is
  acknowledged when etcd has confirmed it and it has been applied: the next read on this server sees it.
- An own write is applied after all earlier revisions: with etcd's answer or with its event, whichever comes first. A
  value that is known already is not decoded.
- Reads may be behind other servers; `catch_up` waits until they are not.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from ostinato.api.errors import Timeout
from ostinato.etcd import EtcdClient, EtcdError
from ostinato.server.store.collection import Collection
from ostinato.server.store.encryption.encryption import Encryption
from ostinato.server.store.etcd.compaction import Compactor
from ostinato.server.store.etcd.following import FollowingIndex, PendingWrite
from ostinato.server.store.etcd.freshness import Freshness
from ostinato.server.store.etcd.layout import EVENTS, RESTORING, Layout
from ostinato.server.store.etcd.options import PROTOBUF, EtcdOptions
from ostinato.server.store.etcd.past import Range, read_past
from ostinato.server.store.etcd.transactions import WRITE_SECONDS, Changed, Transactions
from ostinato.server.store.etcd.values import Values
from ostinato.server.store.records import Conflict, Entry, OutcomeUnknown, StoreFailed, UnusableStore
from ostinato.world import World
from ostinato.world.supervision import supervised

_logger = logging.getLogger(__name__)

_TICK = b"ostinato/tick"
_CHECK_SECONDS = 10.0


class EtcdIndex(FollowingIndex):
    @classmethod
    async def open(
        cls,
        client: EtcdClient,
        prefix: str,
        world: World,
        options: EtcdOptions = EtcdOptions(),  # noqa: B008 - frozen
        encryption: Encryption | None = None,
    ) -> EtcdIndex:
        """Load all objects and follow their changes. `close` closes the client too.

        Raises UnusableStore if etcd does not answer.
        """
        layout = Layout(prefix)
        values = Values(layout, encryption or Encryption(), world.ids, protobuf=options.media_type == PROTOBUF)
        index = cls(client, layout, values, world, options)
        try:
            await index._load()
            restore = await client.range((prefix + RESTORING).encode(), count_only=True)
        except EtcdError as error:
            raise UnusableStore(f"cannot read etcd at {', '.join(client.endpoints)}: {error}") from error
        if restore.count:
            raise UnusableStore(f"{client.settings}: a restore was interrupted; run `ostinato snapshot restore` again")
        index._run("etcd watch", index._follow)
        index._run("etcd check", index._check_regularly)
        if options.compaction_interval:
            index._run("etcd compaction", Compactor(client, world.clock, options.compaction_interval).run)
        return index

    def __init__(self, client: EtcdClient, layout: Layout, values: Values, world: World, options: EtcdOptions) -> None:
        """Use `open`."""
        super().__init__(client, layout, values, world.clock)
        self._event_ttl = options.event_ttl
        self._transactions = Transactions(client, world.clock)
        self._freshness = Freshness(client, world.clock, self)
        self._tasks: set[asyncio.Task[None]] = set()
        self._closed = False

    # Writing

    async def put(
        self,
        collection: Collection,
        entry: Entry,
        expected: Entry | None,
        encode: Callable[[int], bytes],
        ttl: float = 0.0,
    ) -> Entry:
        key = self._layout.key(collection.name, entry.key)
        await self._check(collection, key, entry.key, expected)
        values = self._values
        draft = values.draft(collection, key, encode(values.placeholder))
        if collection.name == EVENTS:
            ttl = self._event_ttl
        version = 0 if expected is None else expected.version
        write = PendingWrite(collection, entry.key, entry, draft, self._epoch)
        done = await self._commit(key, write, self._transactions.put(key, draft.value, version, ttl))
        if not entry.version:  # a later state was loaded instead of its event
            entry.version, entry.data = done, draft.data(done)
        return entry

    async def delete(self, collection: Collection, key: str, expected: Entry) -> int:
        place = self._layout.key(collection.name, key)
        await self._check(collection, place, key, expected)
        write = PendingWrite(collection, key, None, None, self._epoch)
        return await self._commit(place, write, self._transactions.delete(place, expected.version))

    async def _check(self, collection: Collection, place: bytes, key: str, expected: Entry | None) -> None:
        """Wait for an earlier write of the same object, and check that its state is the expected one."""
        if self._closed:
            raise StoreFailed("the server is shutting down")
        while (earlier := self._writes.get(place)) is not None:
            await asyncio.shield(earlier.ended)
        current = collection.entries.get(key)
        if current is not expected:
            raise Conflict(current)

    async def _commit(self, place: bytes, write: PendingWrite, transaction: Coroutine[Any, Any, int | Changed]) -> int:
        """Make a write, and wait until the index has it, or the reason of the conflict."""
        collection, key = write.collection, write.key
        expected, known = collection.entries.get(key), self.version
        self._writes[place] = write
        result: int | Changed = 0
        try:
            result = await transaction
            if isinstance(result, int) and result <= known:
                await self.start_over(result - 1)
                raise OutcomeUnknown("etcd has lost writes", timed_out=False)
            if isinstance(result, int):
                self._confirm(write, result)
                await self._reach(result)
                self._values.forget(place)
                self.failure, self.is_full = None, False
                return result
            self._freshness.hurry()
            await self._reach(result.version)
        except StoreFailed as error:
            self.failure, self.is_full = str(error), self._transactions.is_full
            _logger.error("store write failed error=%s", error)
            raise
        finally:
            del self._writes[place]
            if isinstance(result, int):
                self._answered.pop(result, None)
            write.ended.set_result(None)
        current = collection.entries.get(key)
        if current is expected:
            await self._freshness.wait()  # etcd may have lost writes
            raise StoreFailed(f"{collection.name} {key}: the stored object cannot be read; see the server log")
        raise Conflict(current)

    async def _reach(self, revision: int) -> None:
        """Wait until the index has a revision that etcd has reached."""
        if revision <= self.version:
            return
        reached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self._clock.timer(WRITE_SECONDS, _expire, reached)
        self._waiting.append((revision, reached))
        try:
            await reached
        except (asyncio.CancelledError, OutcomeUnknown):
            self._waiting = [each for each in self._waiting if each[1] is not reached]
            raise
        finally:
            timer.cancel()

    def is_outdated(self, collection: Collection, key: str) -> bool:
        return self._values.is_outdated(self._layout.key(collection.name, key))

    # Reading

    async def catch_up(self) -> None:
        await self._freshness.wait()

    def when_current(self, reader: Callable[[str | None], None]) -> None:
        self._freshness.join(reader)

    async def wait_pending(self) -> None:
        """Wait until the state is not older than that of any server: a rejection may be based on an older one."""
        await self._freshness.wait()

    async def select_past(
        self, collection: Collection, version: int, prefix: str, after: str, limit: int
    ) -> tuple[list[Entry], int]:
        wanted = Range(collection, prefix, after, limit)
        return await read_past(self._client, self._layout, self._values, self._clock, wanted, version)

    async def wait_for(self, version: int) -> None:
        if version > self.version:
            self._freshness.hurry()
            await super().wait_for(version)

    def reaches(self, revision: int, reader: asyncio.Future[None]) -> bool:
        """Complete the future when the index has reached a revision; whether it has now."""
        if revision <= self.version:
            reader.set_result(None)
            return True
        self._waiting.append((revision, reader))
        return False

    @property
    def is_awaited(self) -> bool:
        """Whether anybody waits for a revision."""
        return bool(self._waiting)

    def request_progress(self) -> None:
        """Ask etcd how far the events are that the index has received."""
        if self._stream is None:
            return
        if self._stream.orders_progress:
            self._stream.request_progress()
        else:
            self._run("etcd tick", self._tick)

    async def _check_regularly(self) -> None:
        """Ask for the revision also without readers.

        Health checks report the answer, and the watch stays near the newest revision: what is compacted was seen.
        """
        while True:
            await self._clock.sleep(_CHECK_SECONDS)
            try:
                await self._freshness.wait()
            except Timeout:
                self.failure = self._freshness.failure or "the watch of etcd is delayed"
            else:
                if not self.is_full:
                    self.failure = None

    async def _tick(self) -> None:
        """Write a key that is watched, for versions of etcd whose progress notifications may be too early."""
        try:
            await self._client.put(self._layout.start + _TICK, b"")
        except EtcdError as error:
            _logger.warning("etcd tick failed error=%s", error)

    def _run(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        task = asyncio.get_running_loop().create_task(supervised(name, work, self._clock), name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        for write in tuple(self._writes.values()):
            await asyncio.shield(write.ended)
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._freshness.close()
        for collection in self._collections.values():
            collection.hub.close()
        await self._client.close()


def _expire(reached: asyncio.Future[None]) -> None:
    if not reached.done():
        reached.set_exception(OutcomeUnknown("the watch of etcd is delayed", timed_out=True))

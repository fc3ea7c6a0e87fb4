"""Shard election: acquires, renews and releases the shards of this replica.

Runs in a thread with an event loop of its own, as leader election does: a reconciler that blocks the main loop does not
lose shards. `ReplicaShards` is called on the main loop.

Every `retry_period` a replica

1. renews its own Lease, then lists all Leases of the sharding: other replicas and shards,
2. acquires free shards, if it holds fewer than its share,
3. hands over shards, if it holds more: it drains them, then releases their Leases.

Each held shard is renewed by a task of its own (`Elector.renew`).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from ostinato.api.errors import APIError, Forbidden
from ostinato.client.client import Client
from ostinato.client.transport.protocol import TransportError
from ostinato.kinds.coordination_v1 import Lease
from ostinato.manager.election.elector import Elector, LeadershipLost
from ostinato.manager.election.fence import Fence
from ostinato.manager.election.lease import LeaseLock
from ostinato.manager.sharding.members import Members
from ostinato.manager.sharding.settings import LABEL, Sharding
from ostinato.manager.sharding.shards import ReplicaShards, Term
from ostinato.metrics import Family, gauge
from ostinato.world import Clock, Thread, World
from ostinato.world.loop_task import LoopTask

SHARDS: Final = "ostinato_shards_held"
REPLICAS: Final = "ostinato_sharding_replicas"
_JITTER: Final = 0.2

_logger = logging.getLogger("ostinato.manager")


class ShardElection:
    def __init__(self, options: Sharding, connect: Callable[[], Client], world: World, shards: ReplicaShards) -> None:
        """`connect`: creates a client for the Leases; called and used in the election's thread."""
        self.options = options
        self._connect = connect
        self._world = world
        self._shards = shards
        self._rng = world.rng.fork(f"sharding {options.identity}")
        self._thread: Thread[None] | None = None
        self._home: asyncio.AbstractEventLoop | None = None
        self._resigned = asyncio.Event()  # of the thread's loop
        self._slots: list[_Slot] = []
        self._members: Members | None = None
        self._draining: set[asyncio.Task[None]] = set()  # on the main loop
        self._releasing: set[asyncio.Task[None]] = set()  # in the thread

    def start(self) -> None:
        """Start to acquire shards."""
        self._home = asyncio.get_running_loop()
        thread = self._world.executor.thread if self.options.own_thread else LoopTask
        self._thread = thread(f"sharding {self.options.name}", self._campaign)

    async def ended(self) -> None:
        """Wait for the end. Raises unexpected errors."""
        assert self._thread is not None, "an election is started before its end is awaited"
        await self._thread.join()

    async def resign(self) -> None:
        """Release all shards, after the work has stopped, and leave."""
        if self._thread is not None:
            with suppress(RuntimeError):  # the thread has ended
                self._thread.call_soon(self._resigned.set)
            await self._thread.join()

    def abandon(self) -> None:
        """Leave immediately. The Leases expire by themselves: work may still be running."""
        for slot in self._slots:
            slot.fence.close()
        if self._thread is not None:
            self._thread.stop()

    def families(self) -> Iterator[Family]:
        labels = {"name": self.options.name}
        yield gauge(SHARDS, "Number of shards that this replica holds.", len(self._shards.held), labels)
        if self._members is not None:
            yield gauge(REPLICAS, "Number of replicas that share the objects.", self._members.count, labels)

    # In the thread

    async def _campaign(self) -> None:
        async with self._connect() as client:
            namespace = self.options.namespace or client.namespace
            members = self._members = Members(client, namespace, self.options, self._world)
            shards = range(self.options.shards)
            self._slots = [_Slot(number, self.options, client, members, self._world) for number in shards]
            try:
                while not self._resigned.is_set():
                    await self._try_cycle(client, namespace, members)
                    await self._pause()
                await asyncio.gather(*(self._release(slot) for slot in self._slots), *self._releasing)
                await members.leave()
            finally:
                for slot in self._slots:
                    slot.fence.close()
                    await slot.end_renewal()

    async def _pause(self) -> None:
        with suppress(TimeoutError):
            async with self._world.clock.timeout(self._rng.jitter(self.options.retry_period, _JITTER)):
                await self._resigned.wait()

    async def _try_cycle(self, client: Client, namespace: str, members: Members) -> None:
        try:
            await self._cycle(client, namespace, members)
        except (APIError, TransportError, TimeoutError) as error:
            name = self.options.name
            remedy = f"; `ostinato manifests FILE --sharding {name}` writes the role that it needs"
            _logger.warning(
                "cannot renew the membership of this replica name=%s error=%s%s",
                name,
                error,
                remedy if isinstance(error, Forbidden) else "",
            )
        if not members.is_active:
            await asyncio.gather(*(self._drop(slot) for slot in self._slots))

    async def _cycle(self, client: Client, namespace: str, members: Members) -> None:
        renewed_at = await members.renew()
        async with self._world.clock.timeout(self.options.election(0).request_timeout):
            found = await client.list(Lease, namespace=namespace, labels={LABEL: self.options.name})
        members.observe(found, renewed_at)
        by_name = {lease.metadata.name: lease for lease in found}
        for slot in self._slots:
            lease = by_name.get(slot.name)
            if lease is not None and not slot.is_held:
                slot.elector.observe(lease)
        if not members.is_active:
            return
        await self._balance(members.share)
        await members.forget_dead()

    async def _balance(self, share: int) -> None:
        for slot in self._slots:  # Leases that this replica has created, and may use later
            if slot.is_held and slot.term is None:
                await self._acquire(slot)
        held = [slot for slot in self._slots if slot.is_held]
        kept = [slot for slot in held if not slot.is_draining]
        if len(kept) > share:
            for slot in [each for each in kept if each.term is not None][: len(kept) - share]:
                slot.is_draining = True
                self._call(self._begin_drain, slot.term)
        elif len(held) < share:
            free = [slot for slot in self._slots if not slot.is_held and slot.elector.is_free]
            self._rng.shuffle(free)
            for slot in free[: share - len(held)]:
                await self._acquire(slot)

    async def _acquire(self, slot: _Slot) -> None:
        if await slot.elector.try_acquire():
            slot.begin_renewal(self._lost)
            _logger.info("shard acquired name=%s shard=%d", self.options.name, slot.number)
            self._call(self._shards.gain, slot.term)

    def _lost(self, slot: _Slot, term: Term) -> None:
        _logger.warning("shard lost name=%s shard=%d", self.options.name, slot.number)
        self._call(self._shards.lose, term)

    async def _release(self, slot: _Slot) -> None:
        """Release a shard after its work has stopped, unless a write may still be executed by the server."""
        if slot.term is None:
            return
        await slot.end_renewal()
        if slot.fence.had_unconfirmed_write(within=self.options.lease_duration):
            _logger.info("not releasing the shard, its lease expires: the result of a recent write is unknown")
            slot.fence.close()
        else:
            await slot.elector.release()
        slot.reset()

    async def _drop(self, slot: _Slot) -> None:
        """Give up a shard at once: the others no longer count this replica. The Lease expires."""
        term = slot.term
        if term is not None:
            slot.fence.close()
            await slot.end_renewal()
            if slot.term is term:
                slot.reset()
                self._lost(slot, term)

    async def _hand_over(self, term: Term | None) -> None:
        for slot in self._slots:
            if slot.term is term and term is not None:
                await self._release(slot)
                _logger.info("shard released name=%s shard=%d", self.options.name, slot.number)

    def _call(self, callback: Callable[..., object], *args: object) -> None:
        assert self._home is not None
        with suppress(RuntimeError):  # the main loop is closed
            self._home.call_soon_threadsafe(callback, *args)

    # On the main loop

    def _begin_drain(self, term: Term) -> None:
        draining = asyncio.get_running_loop().create_task(self._drain(term), name=f"drain shard {term.shard}")
        self._draining.add(draining)
        draining.add_done_callback(self._draining.discard)

    async def _drain(self, term: Term) -> None:
        await self._shards.drain(term)
        assert self._thread is not None
        with suppress(RuntimeError):  # the thread has ended
            self._thread.call_soon(self._drained, term)

    def _drained(self, term: Term) -> None:
        """In the thread."""
        releasing = asyncio.get_running_loop().create_task(self._hand_over(term), name=f"release shard {term.shard}")
        self._releasing.add(releasing)
        releasing.add_done_callback(self._releasing.discard)


class MemberFence(Fence):
    """The fence of a shard: it is open no longer than the other replicas count this one."""

    def __init__(self, clock: Clock, members: Members) -> None:
        super().__init__(clock)
        self._members = members
        self._time = clock

    def deadline(self) -> float | None:
        until = super().deadline()
        return None if until is None else min(until, self._members.active_until)

    @property
    def is_open(self) -> bool:
        return super().is_open and self._time.monotonic() <= self._members.active_until


class _Slot:
    """One shard: its elector and, while this replica holds it, its term."""

    def __init__(self, number: int, options: Sharding, client: Client, members: Members, world: World) -> None:
        self.number = number
        self._options = options.election(number)
        self._client = client
        self._members = members
        self._world = world
        self._renewing: asyncio.Task[None] | None = None
        self.reset()

    def reset(self) -> None:
        """Begin anew: fences are closed for good, so that the next term needs another one."""
        options = self._options
        lock = LeaseLock(
            self._client, self._members.namespace, options.name, labels=options.labels, timeout=options.request_timeout
        )
        self.fence = MemberFence(self._world.clock, self._members)
        self.elector = Elector(lock, options, self.fence, self._world)
        self.term: Term | None = None
        self.is_draining = False

    @property
    def name(self) -> str:
        return self._options.name

    @property
    def is_held(self) -> bool:
        """Whether this replica holds the Lease, though it may not use it yet."""
        return self.term is not None or self.elector.is_leader

    def begin_renewal(self, lost: Callable[[_Slot, Term], object]) -> None:
        term = self.term = Term(self.number, self.fence)

        async def renew() -> None:
            try:
                await self.elector.renew()
            except LeadershipLost:
                self.reset()
                lost(self, term)

        self._renewing = asyncio.get_running_loop().create_task(renew(), name=f"renew {self.name}")

    async def end_renewal(self) -> None:
        renewing, self._renewing = self._renewing, None
        if renewing is not None:
            renewing.cancel()
            await asyncio.wait([renewing])
